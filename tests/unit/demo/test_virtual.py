"""The demo without Slurm: the same story, told by the same daemon, proved by the same proof."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from slurm_fair.cli import demo as command
from slurm_fair.demo.counters import leave_behind
from slurm_fair.demo.measure import measure
from slurm_fair.demo.proofs import evidence, prove
from slurm_fair.demo.scenario import PLAIN, DemoJob, DemoScenario, full, quick
from slurm_fair.demo.stage import Stopped
from slurm_fair.demo.virtual import Pace, play_virtual
from slurm_fair.errors import InputError, LabError
from slurm_fair.sim import Run
from slurm_fair_templates.demo_counter import verify

JOB = DemoJob("a-01", "a", 1, 2, 0.0, 10)  # ten steps of 0.2 s


def test_fast_without_a_virtual_cluster_is_refused_before_any_slurm_is_looked_for() -> None:
    said = CliRunner().invoke(command.demo, ["--fast"])
    assert isinstance(said.exception, InputError)
    assert "give --virtual too" in str(said.exception)


@contextmanager
def running(folder: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """The command, with its own temporary folder."""
    with subprocess.Popen(
        (sys.executable, "-m", "slurm_fair.cli", "demo", "--virtual", *more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder), "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"},
        start_new_session=True,
    ) as demo:
        try:
            yield demo
        finally:
            demo.terminate()


def test_the_virtual_demo_proves_itself_compares_itself_and_leaves_nothing(tmp_path: Path) -> None:
    began = time.monotonic()
    with running(tmp_path, "--full") as demo:
        said, complained = demo.communicate(timeout=100)
    assert demo.returncode == 0, said[-3000:] + complained
    assert time.monotonic() - began < 60
    for words in ("\nProof\n", "fair share  FIFO", "Tenant", "29 of 29 jobs", "The daemon made"):
        assert words in said
    assert "FAILED" not in said
    assert re.search(r"^ +\d+ s  slurm_fair: GPUs vision \d+ \(rho", said, re.MULTILINE)
    assert "\x1b" not in said
    assert list(tmp_path.iterdir()) == []


def test_it_ends_with_one_picture_and_in_words_with_gain_and_price() -> None:
    result = CliRunner().invoke(command.demo, ["--virtual", "--fast"])
    assert result.exit_code == 0, result.output
    _, closing = result.stdout.split("\n\nEach tenant's part of the GPU time ")
    assert len(closing.splitlines()) <= 35
    assert max(map(len, closing.splitlines()[:24])) <= 80
    for words in ("fair share   ", "Beside FIFO: ", "The price: ", "12 of 12 proofs hold", "Next: "):
        assert words in closing


def test_the_closing_report_knows_that_every_job_has_ended() -> None:
    result = CliRunner().invoke(command.demo, ["--virtual", "--fast", "--quick", "--no-fifo", "--full"])
    assert result.exit_code == 0, result.output
    states = re.findall(r"^\d+ +\S+ +\S+ +([A-Z]+) ", result.stdout, re.MULTILINE)
    assert states == ["COMPLETED"] * 13


SIZES = {
    "quick": quick(),
    "longer leases": full(lease_seconds=15.0),
    "few nodes of an odd number of GPUs": full(2, 3),
    "long leases on two nodes": full(2, 8, 60.0),
    "an odd cluster": full(3, 3),
    "one GPU": full(1, 1),
}


@pytest.mark.parametrize("plot", SIZES.values(), ids=SIZES)
def test_the_proof_holds_at_every_size_and_slurm_alone_would_not_pass_it(
    plot: DemoScenario, tmp_path: Path
) -> None:
    played = play_virtual(plot, tmp_path, True, Console(file=io.StringIO()), True)
    fair = measure(played.fair.runs, plot.weights, plot.total_gpus)
    assert [check for check in prove(plot, played.fair, fair) if not check.holds] == []
    assert tuple(played.plain) == PLAIN
    for facts in played.plain.values():
        plain = measure(facts.runs, plot.weights, plot.total_gpus)
        failed = [check.title for check in prove(plot, played.fair, plain) if not check.holds]
        assert any(title.startswith("each tenant's part") for title in failed)
        assert any(title.startswith("no tenant's rho") for title in failed)


def test_what_is_kept_is_a_journal_that_the_other_commands_read(tmp_path: Path) -> None:
    with running(tmp_path, "--quick", "--no-fifo", "--keep") as demo:
        said, complained = demo.communicate(timeout=60)
    assert demo.returncode == 0, said[-3000:] + complained
    (kept,) = tmp_path.iterdir()
    config = tmp_path / "slurm-fair.toml"
    config.write_text(f'[storage]\ndir = "{kept}/slurm_fair/storage"\n')
    asked = (sys.executable, "-m", "slurm_fair.cli", "--config", str(config), "replay-tick", "3")
    again = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    assert again.returncode == 0, again.stderr
    assert len(list((kept / "slurm_fair" / "jobs").glob("*/result.json"))) == 13


def test_ctrl_c_in_the_middle_ends_it_and_leaves_nothing(tmp_path: Path) -> None:
    with running(tmp_path, "--nodes", "16", "--lease", "60") as demo:
        assert demo.stdout is not None
        while "GPUs vision" not in demo.stdout.readline():
            assert demo.poll() is None
        os.killpg(demo.pid, signal.SIGINT)
        _, complained = demo.communicate(timeout=30)
    assert demo.returncode == 130
    assert complained.splitlines()[-1] == "slurm-fair: stopped"
    assert list(tmp_path.iterdir()) == []


def no_slurm(_: object) -> None:
    """A machine on which Slurm cannot be installed."""
    raise LabError("a lab needs slurmctld: on Debian or Ubuntu, sudo apt-get install slurmctld")


def test_where_no_slurm_can_be_had_a_virtual_cluster_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "ensure_packages", no_slurm)
    result = CliRunner().invoke(command.demo, ["--or-virtual", "--quick", "--no-fifo"])
    assert result.exit_code == 0, result.output
    assert "No Slurm can be had here (a lab needs slurmctld" in result.stderr
    assert "8 of 8 proofs hold" in result.stdout


def test_without_being_asked_for_it_none_takes_its_place_but_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command, "ensure_packages", no_slurm)
    result = CliRunner().invoke(command.demo, ["--quick"])
    assert isinstance(result.exception, LabError)
    assert str(result.exception).endswith("slurm-fair demo --virtual")


def test_help_names_the_virtual_demo() -> None:
    said = CliRunner().invoke(command.demo, ["--help"]).output
    assert all(option in said for option in ("--virtual", "--or-virtual", "--fast"))


def test_the_pace_is_kept_and_ends_at_once_when_nobody_watches() -> None:
    stop = threading.Event()
    pace, began = Pace(100.0, stop), time.monotonic()
    pace.reach(10.0)
    assert time.monotonic() - began >= 0.099
    stop.set()
    with pytest.raises(Stopped):
        pace.reach(1e9)


# -- the counters' files ----------------------------------------------------------------------------------------


def run(restarts: int, resumed_from: float, reached: float, saved: float, word: str) -> Run:
    """One run of the only job."""
    return Run(1, restarts, "a", "a", 2, 0.0, 1.0, ("n1",), resumed_from, 5.0, reached, saved, word)


def test_a_counter_that_was_saved_in_the_middle_of_a_step_counts_each_step_once(tmp_path: Path) -> None:
    leave_behind(JOB, [run(0, 0, 0.9, 0.9, "REQUEUED"), run(1, 0.9, 2.0, 2.0, "COMPLETED")], tmp_path)
    found = evidence(JOB, tmp_path)
    assert (found.right, found.repeated, found.starts) == (True, 0, (0, 1))
    assert [restart for restart, _ in found.steps] == [0] * 4 + [1] * 6


def test_work_done_again_is_seen_as_repeated_steps(tmp_path: Path) -> None:
    leave_behind(JOB, [run(0, 0, 1.0, 0, "NODE_FAIL"), run(1, 0, 2.0, 2.0, "COMPLETED")], tmp_path)
    found = evidence(JOB, tmp_path)
    assert (found.right, found.repeated) == (True, 5)
    assert json.loads((tmp_path / "a-01" / "result.json").read_text())["lost_steps"] == 5


@pytest.mark.parametrize(
    "runs",
    [
        [run(0, 0, 1.0, 1.0, "REQUEUED"), run(1, 1.4, 2.0, 2.0, "COMPLETED")],
        [run(0, 0, 1.8, 1.8, "COMPLETED")],
        [run(0, 0, 2.0, 2.0, "CANCELLED")],
    ],
    ids=["it went on where nothing was saved", "it ended early", "it was cancelled"],
)
def test_work_that_was_lost_leaves_no_right_result(runs: list[Run], tmp_path: Path) -> None:
    leave_behind(JOB, runs, tmp_path)
    assert not verify(evidence(JOB, tmp_path).result, JOB.steps)
