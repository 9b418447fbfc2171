"""Files of `slurm-fair simulate`: jobs, events for the reports, pages; whole, alike again, or not at all."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from slurm_fair.cli.simulate import files, one_run, runs
from slurm_fair.cli.simulate.events import EventsOut
from slurm_fair.cli.simulate.files import JOB_COLUMNS, of_policy
from slurm_fair.cli.simulate.setups import PolicySetup
from slurm_fair.errors import SlurmFairError
from tests.support.command_line import call
from tests.support.signals import heed_signals
from tests.support.simulations import COSTS, HEADER, TIMINGS, jobs_of, made, only, simulated, written

# -- jobs -----------------------------------------------------------------------------------------------------


def test_a_row_a_job_has_the_traces_columns_and_what_became_of_it(tmp_path: Path) -> None:
    trace = written(tmp_path, "a,x,5,4,100,blue", "b,x,7,16,100,red", header=f"{HEADER},colour")
    out = tmp_path / "jobs.csv"
    assert simulated(trace, "--policy", "fifo", "--jobs-out", str(out)).code == 0
    assert out.read_text().splitlines()[0].split(",") == [*HEADER.split(","), "colour", *JOB_COLUMNS]
    one, two = jobs_of(out)
    assert (one["job_id"], one["colour"], one["start_s"], one["end_s"]) == ("a", "blue", "10", "110")
    assert (one["wait_s"], one["run_s"], one["preemptions"], one["nodes"]) == ("5", "100", "0", "n1")
    assert (two["start_s"], two["nodes"]) == ("110", "n1 n2")
    assert float(two["latency_ratio"]) == pytest.approx(1.03)
    assert float(two["ftf_static"]) == pytest.approx(203 / 100)


def test_the_weight_of_every_job_is_written_where_one_has_another_than_one(tmp_path: Path) -> None:
    trace = written(tmp_path, "a,x,5,4,100,1", "b,x,7,4,100,2.5", "c,x,8,4,100,", header=f"{HEADER},weight")
    out = tmp_path / "jobs.csv"
    assert simulated(trace, "--policy", "fifo", "--jobs-out", str(out)).code == 0
    assert [row["weight"] for row in jobs_of(out)] == ["1", "2.5", "1"]


def test_jobs_agree_with_the_summary(tmp_path: Path) -> None:
    out = tmp_path / "jobs.csv"
    found = only(made(tmp_path), *COSTS, "--jobs-out", str(out))
    jobs = jobs_of(out)
    column = {name: np.array([float(row[name]) for row in jobs]) for name in JOB_COLUMNS if name != "nodes"}
    submit = np.array([float(row["submit_s"]) for row in jobs])
    assert np.mean(column["end_s"] - submit) == pytest.approx(found["jct_mean_s"])
    assert np.mean(column["wait_s"]) == pytest.approx(found["wait_mean_s"])
    assert column["preemptions"].sum() == found["preemptions"] > 0
    assert np.mean(column["rho_ltgf"] < 0.95) == pytest.approx(found["ltgf_job_loss_fraction"])
    assert column["latency_ratio"].max() == pytest.approx(found["latency_ratio_max"])
    for name in ("themis", "shockwave", "static", "sia"):
        assert column[f"ftf_{name}"].max() == pytest.approx(found[f"ftf_{name}_worst"])


def test_jobs_that_did_not_run_or_end_have_empty_cells(tmp_path: Path) -> None:
    trace = written(tmp_path, "a,x,0,16,5000", "b,x,10,16,50", "c,x,9000,1,50")
    out = tmp_path / "jobs.csv"
    simulated(trace, "--policy", "fifo", "--until", "1000", "--jobs-out", str(out))
    a, b, c = jobs_of(out)
    assert (a["start_s"], a["end_s"], a["nodes"]) == ("0", "", "n1 n2")
    assert all(b[name] == "" for name in ("start_s", "end_s", "run_s", "nodes"))
    assert all(c[name] == "" for name in JOB_COLUMNS)


def test_an_outcome_is_no_longer_there_twice_when_jobs_are_simulated_again(tmp_path: Path) -> None:
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    simulated(made(tmp_path), "--jobs-out", str(first))
    assert simulated(first, "--jobs-out", str(second)).code == 0
    assert second.read_bytes() == first.read_bytes()


def test_files_may_be_packed_and_several_policies_have_one_each(tmp_path: Path) -> None:
    trace, out = made(tmp_path), tmp_path / "jobs.csv.gz"
    simulated(trace, "--policy", "fifo,srtf", "--jobs-out", str(out))
    assert not out.exists()
    for policy in ("fifo", "srtf"):
        with gzip.open(tmp_path / f"jobs.{policy}.csv.gz", "rt") as text:
            assert len(text.read().splitlines()) == 41


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("jobs.csv", "jobs.fifo.csv"),
        ("jobs.csv.gz", "jobs.fifo.csv.gz"),
        ("jobs", "jobs.fifo"),
        ("run.2.csv", "run.2.fifo.csv"),
    ],
)
def test_a_policys_file_keeps_its_ending(name: str, expected: str) -> None:
    assert of_policy(Path(name), "fifo", many=True) == Path(expected)
    assert of_policy(Path(name), "fifo", many=False) == Path(name)


# -- pages ----------------------------------------------------------------------------------------------------


def figures(page: str) -> list[ElementTree.Element]:
    """The drawings of a page; a drawing that is no XML is an error."""
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg .*?</svg>", page, re.DOTALL)]


def test_a_page_stands_alone_and_draws_every_policy(tmp_path: Path) -> None:
    trace, out = made(tmp_path), tmp_path / "page.html"
    said = simulated(trace, "--policy", "astraea,fifo", "--html", str(out))
    page = out.read_text()
    assert (said.code, page.startswith("<!DOCTYPE html>")) == (0, True)
    assert re.findall(r"(?:src|href|url|@import)\W", page) == []
    assert "<script" not in page
    assert "prefers-color-scheme: dark" in page
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page)
    for words in ("JCT", "GPU-time fairness", "static", "Latency ratio", "Utilisation", "astraea: since",
                  "fifo: since", "astraea: in windows of 01:00:00", "fifo: in windows"):  # fmt: skip
        assert any(words in caption for caption in captions), words
    drawn = [figure for figure in figures(page) if figure.get("role") == "img"]
    assert len(drawn) == len(captions) == 4 + 1 + 4 + 2
    lines = [path for figure in drawn for path in figure.iter("path") if "line" in path.get("class", "")]
    assert len(lines) >= 5 * 2 + 4 * 4
    assert all(len(re.findall("[ML]", path.get("d", ""))) <= 1000 for path in lines)


def test_the_chart_of_gpus_shows_every_run_and_never_two_on_one_gpu(tmp_path: Path) -> None:
    trace, out, jobs = made(tmp_path), tmp_path / "page.html", tmp_path / "jobs.csv"
    simulated(trace, "--html", str(out), "--jobs-out", str(jobs))
    gantt = figures(out.read_text())[-1]
    bars: dict[float, list[tuple[float, float]]] = {}
    for bar in gantt.iter("rect"):
        x, width = float(bar.get("x", "nan")), float(bar.get("width", "nan"))
        bars.setdefault(float(bar.get("y", "nan")), []).append((x, x + width))
    assert len(bars) == 16
    for spans in bars.values():
        spans.sort()
        assert all(end <= start + 0.35 for (_, end), (start, _) in pairwise(spans))
    named = {(bar.findtext("title") or "").split(",")[0] for bar in gantt.iter("rect")}
    assert named == {row["job_id"] for row in jobs_of(jobs)}


def test_a_large_cluster_says_that_its_gpus_are_not_drawn(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    said = call("simulate", str(made(tmp_path)), "--gpus", "65", "--html", str(out))
    assert (said.code, "the cluster has 65, and the picture holds 64" in out.read_text()) == (0, True)
    assert "<rect" not in out.read_text()


def test_foreign_names_reach_a_page_only_as_text(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    trace = written(tmp_path, "<b>1</b>,<script>alert(1)</script>,0,1,100", 'x",a&b,0,1,100')
    assert simulated(trace, "--html", str(out)).code == 0
    page = out.read_text()
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "a&amp;b" in page


def test_a_page_of_one_job_that_ends_at_once_can_be_drawn(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    assert simulated(written(tmp_path, "a,x,0,1,0.001"), "--html", str(out)).code == 0
    assert len(figures(out.read_text())) > 5
    assert simulated(written(tmp_path, "a,x,0,1,50"), "--until", "5", "--html", str(out)).code == 0


# -- alike, whole, or not at all ------------------------------------------------------------------------------


def outputs(folder: Path, trace: Path, *arguments: str) -> dict[str, bytes]:
    """Everything that a run writes, and what it says."""
    folder.mkdir()
    said = simulated(
        trace, "--policy", "fifo,astraea,srtf", "--json", *COSTS, "--jobs-out", str(folder / "jobs.csv"),
        "--events-out", str(folder / "events.jsonl"), "--html", str(folder / "page.html"), *arguments,
    )  # fmt: skip
    assert (said.code, said.err) == (0, "")
    document = json.loads(said.out)
    for result in document["results"]:
        for key in TIMINGS:
            del result[key]
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    # A page tells the machine's own numbers too.
    timed = rb"<tr><td>(?:a decision, \w+|CPU|memory)</td>.*?</tr>\n"
    return {
        **files,
        "page.html": re.sub(timed, b"", files["page.html"]),
        "said": json.dumps(document).encode(),
    }


def test_two_runs_and_any_number_of_workers_write_the_same_bytes(tmp_path: Path) -> None:
    trace = made(tmp_path)
    one = outputs(tmp_path / "one", trace)
    assert set(one) == {
        "jobs.fifo.csv", "jobs.astraea.csv", "jobs.srtf.csv", "events.fifo.jsonl", "events.astraea.jsonl",
        "events.srtf.jsonl", "page.html", "said",
    }  # fmt: skip
    assert outputs(tmp_path / "two", trace) == one
    assert outputs(tmp_path / "three", trace, "--workers", "2") == one


def test_files_that_stand_there_are_replaced_only_by_whole_ones(tmp_path: Path) -> None:
    trace, out = made(tmp_path), tmp_path / "jobs.csv"
    out.write_text("before")
    bad = written(tmp_path, "a,x,0,1,none", name="bad.csv")
    assert simulated(bad, "--jobs-out", str(out)).code == 2
    assert out.read_text() == "before"
    assert simulated(trace, "--jobs-out", str(out)).code == 0
    assert len(jobs_of(out)) == 40
    assert {path.name for path in tmp_path.iterdir()} == {"trace.csv", "bad.csv", "jobs.csv"}


def _raises(order: one_run.SimulationOrder, beat: one_run.Beat) -> one_run.FinishedRun:
    raise SlurmFairError(f"policy {order.setup.policy} failed")


def test_a_policy_that_fails_ends_the_command_in_one_line_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = made(tmp_path)
    monkeypatch.setattr(runs, "run_one", _raises)
    said = simulated(trace, "--jobs-out", str(tmp_path / "jobs.csv"))
    assert (said.code, said.complaint) == (1, "slurm-fair: policy fair failed")
    assert list(tmp_path.iterdir()) == [trace]


def test_a_plan_that_is_not_the_policys_own_is_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from slurm_fair_plugins.fifo import Fifo

    def broken(self: Fifo, view: object) -> object:
        raise RuntimeError("no idea")

    monkeypatch.setattr(Fifo, "plan", broken)
    said = simulated(made(tmp_path), "--policy", "fifo")
    assert said.code == 1
    assert re.search(r"policy fifo failed at second \d+ of the trace: RuntimeError: no idea$", said.complaint)


def test_a_policy_that_fails_in_a_process_of_its_own_ends_all_of_them(tmp_path: Path) -> None:
    setup = PolicySetup("no-such-policy", {}, None, 10.0, True, False, 0.0, 0)
    from slurm_fair.cli.simulate.case import CaseOptions, read_case
    from slurm_fair.sim import Costs

    case, _ = read_case(made(tmp_path), Costs(), CaseOptions(gpus=16))
    good = PolicySetup("fifo", {}, None, 10.0, True, False, 0.0, 0)
    orders = [one_run.SimulationOrder(case.scenario, each) for each in (good, setup)]
    with pytest.raises(SlurmFairError, match="unknown policy 'no-such-policy'"):
        runs.run_all(orders, 2, lambda policy, ended, seconds: None)


def test_an_interruption_is_one_line_and_leaves_neither_files_nor_processes(tmp_path: Path) -> None:
    trace = made(tmp_path, jobs=4000)
    command = [
        sys.executable, "-m", "slurm_fair.cli", "simulate", str(trace), "--gpus", "16", "--policy", "fifo,srtf",
        "--workers", "2", "--jobs-out", str(tmp_path / "jobs.csv"), "--events-out", str(tmp_path / "e.jsonl"),
    ]  # fmt: skip
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=heed_signals
    ) as process:
        try:
            wait_for_lines(tmp_path, process)
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
            _, err = process.communicate(timeout=60)
            assert (process.returncode, err.strip()) == (130, "slurm-fair: stopped")
            assert list(tmp_path.iterdir()) == [trace]
            wait_for_nobody(process.pid)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def wait_for_nobody(group: int) -> None:
    """Wait until no process of a group is left; the last one, Python's own tracker, notices a moment later."""
    deadline = time.monotonic() + 20
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.killpg(group, 0)
            assert time.monotonic() < deadline
            time.sleep(0.02)


def wait_for_lines(folder: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a simulation has written some of its events."""
    deadline = time.monotonic() + 60
    while not any(path.stat().st_size > 10_000 for path in folder.glob(".slurm-fair-*.jsonl")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_events_that_cannot_be_written_are_one_line(tmp_path: Path) -> None:
    from slurm_fair.sim import Scenario
    from slurm_fair.trace import read_trace, uniform

    scenario = Scenario(read_trace(made(tmp_path)).trace, uniform(16))
    with pytest.raises(SlurmFairError, match="cannot be written: No such file or directory"):
        EventsOut(tmp_path / "no" / "such.jsonl", scenario, 1000.0)


def test_an_output_that_vanishes_is_one_line(tmp_path: Path) -> None:
    with files.Outputs([]) as outputs:
        outputs.will_write(tmp_path / "jobs.csv").unlink()
        with pytest.raises(SlurmFairError, match=r"jobs\.csv: cannot be written: No such file"):
            outputs.commit()
