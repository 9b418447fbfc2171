"""`slurm-fair sweep`: what is simulated, what the file holds, how it goes on, and what is refused."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import pytest

from slurm_fair.cli.simulate.one_run import Beat
from slurm_fair.cli.sweep import command
from slurm_fair.cli.sweep.command import run_command
from slurm_fair.cli.sweep.results_file import ResultsFile
from slurm_fair.cli.sweep.task import Row, SweepTask, simulated_metrics
from slurm_fair.cli.sweep.variants import base_of, variants_of
from slurm_fair.errors import InputError
from tests.support.command_line import call
from tests.support.simulations import TIMINGS, document, made, written
from tests.support.sweeps import asked, file_of, here, swept

__all__ = ["here"]
RUNS = "select policy, lease_s, load, seed, state from runs order by 1, 2, 3, 4"


# -- what is simulated ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_every_policy_meets_every_lease_term_load_and_seed(tmp_path: Path) -> None:
    trace = made(tmp_path, jobs=6)
    said = swept(trace, "--policy", "srtf,fifo", "--lease", "300,own", "--load", "1,2", "--seed", "0-1")
    assert (said.code, said.err) == (0, "")
    runs = asked(file_of(trace), RUNS)
    assert len(runs) == 16
    assert {run[:4] for run in runs if run[0] == "fifo"} == {
        ("fifo", lease, load, seed) for lease in (300.0, None) for load in (1.0, 2.0) for seed in (0, 1)
    }
    assert {run[1] for run in runs if run[0] == "srtf"} == {300.0, 900.0}
    assert {run[4] for run in runs} == {"done"}


@pytest.mark.usefixtures("here")
def test_a_policys_own_term_is_simulated_once_though_it_is_listed_by_its_number_too(tmp_path: Path) -> None:
    trace = made(tmp_path, jobs=6)
    assert swept(trace, "--policy", "srtf", "--lease", "own,900").code == 0
    assert asked(file_of(trace), "select count(*) from runs") == [(1,)]


def test_a_seed_is_that_run_of_simulate_and_processes_change_nothing(tmp_path: Path) -> None:
    trace = made(tmp_path, jobs=12)
    assert swept(trace, "--policy", "tiresias", "--seed", "0-2", "--processes", "2").code == 0
    runs = asked(file_of(trace), "select jct_mean_s, makespan_s, preemptions from runs order by seed")
    (repeated,) = document(trace, "--policy", "tiresias", "--repeat", "3")["results"]
    assert runs[0] == tuple(repeated[key] for key in ("jct_mean_s", "makespan_s", "preemptions"))
    mean = repeated["repeated"]["mean"]
    assert sum(run[0] for run in runs) / 3 == pytest.approx(mean["jct_mean_s"], rel=1e-12)
    assert len({run[0] for run in runs}) > 1


@pytest.mark.usefixtures("here")
def test_load_makes_submissions_come_faster_and_leaves_run_times_alone(tmp_path: Path) -> None:
    trace = written(tmp_path, "a,x,100,16,1000", "b,x,4100,16,1000")
    assert swept(trace, "--policy", "fifo", "--load", "1,8").code == 0
    slow, fast = asked(file_of(trace), "select makespan_s, gpu_seconds from runs order by load")
    assert slow[0] == pytest.approx(5000, abs=20)
    assert fast[0] == pytest.approx(2000, abs=20)
    assert slow[1] == fast[1] == 32000


@pytest.mark.usefixtures("here")
def test_a_row_has_every_metric_of_simulate_and_its_tenants(tmp_path: Path) -> None:
    trace = made(tmp_path, jobs=12)
    swept(trace, "--policy", "astraea")
    (result,) = document(trace, "--policy", "astraea")["results"]
    numbers = {
        key: value
        for key, value in result.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and key not in TIMINGS
    }
    names = ", ".join(numbers)
    assert asked(file_of(trace), f"select {names} from runs") == [tuple(map(float, numbers.values()))]
    had = "select tenant, had_gpu_seconds, owed_gpu_seconds, rho from tenants order by tenant"
    assert asked(file_of(trace), had) == [tuple(account.values()) for account in result["tenants"]]


# -- resumed --------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_what_is_there_is_skipped_and_a_larger_grid_adds_to_it(tmp_path: Path) -> None:
    trace, done = made(tmp_path, jobs=6), []

    def counted(task: SweepTask, beat: Beat) -> Row:
        done.append(task.cell.name)
        return simulated_metrics(task, beat)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "simulated_metrics", counted)
        swept(trace, "--policy", "srtf", "--seed", "0-1")
        assert len(done) == 2
        again = swept(trace, "--policy", "srtf", "--seed", "0-1")
        assert (again.code, len(done)) == (0, 2)
        assert again.err == f"{file_of(trace)}: 2 of 2 runs are there already\n"
        more = swept(trace, "--policy", "srtf,fifo", "--seed", "0-2", "--load", "1", "--lease", "own")
        assert (more.code, len(done)) == (0, 6)
    assert done[:2] == ["srtf, lease 900 s, load 1, seed 0", "srtf, lease 900 s, load 1, seed 1"]
    assert asked(file_of(trace), "select count(*) from runs where state = 'done'") == [(6,)]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("first", "then", "words"),
    [
        pytest.param((), ("--gpus-per-node", "4"), "without --gpus-per-node, and this one is with", id="new"),
        pytest.param(
            ("--restart-cost", "20"), (), "with --restart-cost 20.0, and this one is without", id="gone"
        ),
        pytest.param((), ("--interval", "auto"), "with --interval 10.0, and this one is with", id="interval"),
        pytest.param((), ("--skip-bad",), "without --skip-bad, and this one is with --skip-bad", id="flag"),
        pytest.param((), ("--reserve-after", "never"), "this one is with --reserve-after never", id="never"),
        pytest.param((), ("--renewal", "60"), "with --renewal auto, and this one is with", id="renewal"),
        pytest.param(
            ("--set", "srtf.placement=relaxed"), (), "with other settings (placement=relaxed)", id="setting"
        ),
    ],
)
def test_another_option_in_the_same_file_is_refused_in_one_line(
    tmp_path: Path, first: tuple[str, ...], then: tuple[str, ...], words: str
) -> None:
    trace = made(tmp_path, jobs=6)
    assert swept(trace, "--policy", "srtf", *first).code == 0
    said = swept(trace, "--policy", "srtf", *then)
    assert said.code == 2
    assert words in said.complaint
    assert "--out" in said.complaint


@pytest.mark.usefixtures("here")
def test_a_sweep_whose_leases_were_renewed_for_a_whole_term_says_nothing_of_it(tmp_path: Path) -> None:
    trace = made(tmp_path, jobs=6)
    assert swept(trace, "--policy", "srtf", "--renewal", "term").code == 0
    assert swept(trace, "--policy", "srtf", "--renewal", "term").code == 0
    assert swept(trace, "--policy", "srtf", "--renewal", "auto").code == 2


@pytest.mark.usefixtures("here")
def test_leases_that_end_together_have_no_renewal_of_their_own(tmp_path: Path) -> None:
    trace = made(tmp_path, jobs=6)
    refused = swept(trace, "--policy", "srtf", "--align", "aligned", "--renewal", "5000")
    assert (refused.code, refused.complaint.strip()) == (
        2,
        "slurm-fair: --renewal is of leases that roll: leave it out, or --align aligned",
    )
    assert swept(trace, "--policy", "srtf", "--align", "aligned").code == 0


@pytest.mark.usefixtures("here")
def test_options_that_say_what_holds_anyway_are_no_other_options(tmp_path: Path) -> None:
    trace = made(tmp_path, jobs=6)
    assert swept(trace, "--policy", "srtf").code == 0
    usual = (
        "--gpus-per-node",
        "8",
        "--restart-cost",
        "0",
        "--align",
        "rolling",
        "--interval",
        "10",
        "--renewal",
        "auto",
    )
    assert swept(trace, "--policy", "srtf", *usual).code == 0


@pytest.mark.usefixtures("here")
def test_another_policy_may_come_with_settings_of_its_own(tmp_path: Path) -> None:
    trace = made(tmp_path, jobs=6)
    assert swept(trace, "--policy", "srtf", "--set", "srtf.placement=relaxed").code == 0
    assert swept(trace, "--policy", "fifo", "--set", "fifo.placement=relaxed").code == 0
    settings = asked(file_of(trace), "select policy, settings from policies order by 1")
    assert [(name, json.loads(text)["placement"]) for name, text in settings] == [
        ("fifo", "relaxed"),
        ("srtf", "relaxed"),
    ]


@pytest.mark.usefixtures("here")
def test_a_file_of_before_a_setting_goes_on_with_what_the_policy_did_then_alone(tmp_path: Path) -> None:
    """It names the settings that were given; what `fair` did before it had the others is known."""
    trace = made(tmp_path, jobs=6)
    then = (
        "--set",
        "fair.repay_leases=0",
        "--set",
        "fair.reserve_part=1e6",
        "--set",
        "fair.unknown_beyond=1",
        "--set",
        "fair.urgent=off",
    )
    assert swept(trace, "--policy", "fair", *then).code == 0
    with sqlite3.connect(file_of(trace)) as db:
        db.execute("update policies set settings = '{}'")
    said = swept(trace, "--policy", "fair", "--seed", "0,1")
    assert said.code == 2
    assert "with other settings (" in said.err
    assert "unknown_beyond=1.0" in said.err
    assert swept(trace, "--policy", "fair", "--seed", "0,1", *then).code == 0


@pytest.mark.usefixtures("here")
def test_another_trace_and_another_file_of_weights_are_refused(tmp_path: Path) -> None:
    trace = made(tmp_path, jobs=6)
    weights = tmp_path / "w"
    tenants = sorted({line.split(",")[1] for line in trace.read_text().splitlines()[1:]})
    weights.write_text("name,share\n" + "".join(f"{tenant},1\n" for tenant in tenants))
    assert swept(trace, "--policy", "fifo", "--weights", str(weights)).code == 0
    weights.rename(tmp_path / "moved")
    assert swept(trace, "--policy", "fifo", "--weights", str(tmp_path / "moved")).code == 0
    weights.write_text("name,share\n" + "".join(f"{tenant},2\n" for tenant in tenants))
    assert "w (sha256" in swept(trace, "--policy", "fifo", "--weights", str(weights)).complaint
    trace.write_text(trace.read_text().rstrip().rpartition("\n")[0] + "\n")
    said = swept(trace, "--policy", "fifo")
    assert (said.code, "another trace (trace.csv, 6 jobs)" in said.complaint) == (2, True)


# -- refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--lease", "300,x"), "'x' is no number of seconds"),
        (("--lease", "300,300"), "300 is there twice"),
        (("--lease", "own,own"), "own is there twice"),
        (("--load", "1,0"), "no list of loads from 0.001 to 1000: write 0.8,1,1.2"),
        (("--load", "nan"), "no list of loads"),
        (("--load", "1,1.0"), "1 is there twice"),
        (("--seed", "4-0"), "no list of seeds: write 0,1,2 or 0-9"),
        (("--seed", "0-9,3"), "3 is there twice"),
        (("--seed", "-1"), "no list of seeds"),
        (("--seed", "0-99999"), "more than 10000 seeds"),
        (("--policy", "srtff"), "did you mean 'srtf'?"),
        (("--processes", "2", "--dask", "tcp://x:1"), "--processes and --dask"),
        (("--rounds", "gavel", "--interval", "5"), "leave --interval out"),
        (("--lease", "60,300", "--restart-cost", "90"), "all of a lease of 60 s under fair"),
    ],
)
def test_what_cannot_be_is_refused_before_any_run(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    trace = made(tmp_path, jobs=6)
    said = swept(trace, *arguments)
    assert (said.code, words in said.complaint) == (2, True), said.err
    assert not file_of(trace).exists()


def test_files_that_are_none_of_a_sweep_are_refused_and_left_alone(tmp_path: Path) -> None:
    trace = made(tmp_path, jobs=6)
    for text in ("no database", ""):
        other = tmp_path / "other"
        other.write_text(text)
        if text:
            said = call("sweep", str(trace), "--gpus", "16", "--out", str(other))
            assert (said.code, "is not the file of a sweep" in said.complaint) == (2, True)
        said = call("sweep", "table", str(other))
        assert (said.code, "is not the file of a sweep" in said.complaint) == (2, True)
        assert other.read_text() == text
    said = call("sweep", str(trace), "--gpus", "16", "--out", str(trace))
    assert (said.code, "is read here too" in said.complaint) == (2, True)
    said = call("sweep", str(trace), "--gpus", "16", "--out", str(tmp_path / "no" / "where"))
    assert (said.code, "cannot be opened" in said.complaint) == (2, True)
    assert call("sweep", "table", str(tmp_path / "none")).code == 2


def test_a_mistyped_command_is_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = call("sweep", "tabel", "sweep.db")
    assert (said.code, "did you mean 'table'?" in said.complaint) == (2, True)
    made(tmp_path, jobs=6).rename("tabel")
    assert "no cluster" in call("sweep", "tabel", "--out", "sweep.db").complaint


def test_a_file_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    trace = made(tmp_path, jobs=6)
    with ResultsFile.to_write(file_of(trace)):
        pass
    asked(file_of(trace), "pragma user_version = 2")
    assert "newer slurm-fair" in swept(trace).complaint


def test_every_option_is_explained_and_the_long_help_has_an_example() -> None:
    said = call("sweep", "run", "--help").out
    assert [o for p in run_command.params for o in p.opts if o.startswith("--") and o not in said] == []
    example = re.search(r"slurm-fair sweep trace.csv.gz .*\\\n.*--out sweep.db", call("sweep", "--help").out)
    assert example is not None
    assert call("sweep").code == 0


# -- several values of a setting --------------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_several_values_of_a_setting_are_simulated_like_several_policies(tmp_path: Path) -> None:
    trace = made(tmp_path, jobs=6)
    listed = ("--set", "fair.price_hours=0.5,10,2", "--set", "fair.solver=off")
    said = swept(trace, "--policy", "fair,srtf", *listed)
    assert (said.code, said.err) == (0, "")
    kept = {
        name: json.loads(text)
        for name, text in asked(file_of(trace), "select policy, settings from policies")
    }
    assert sorted(kept) == ["fair price_hours=0.5", "fair price_hours=10", "fair price_hours=2", "srtf"]
    assert [(kept[name]["price_hours"], kept[name]["solver"]) for name in sorted(kept)[:3]] == [
        (0.5, "off"),
        (10, "off"),
        (2, "off"),
    ]
    with ResultsFile.to_read(Path(file_of(trace))) as results:
        names = [row["policy"] for row in results.rows()]
    assert names == ["fair price_hours=0.5", "fair price_hours=2", "fair price_hours=10", "srtf"]
    again = swept(trace, "--policy", "fair", "--set", "fair.price_hours=0.5,4", "--set", "fair.solver=off")
    assert again.err == f"{file_of(trace)}: 1 of 2 runs are there already\n"


def test_lists_of_several_settings_are_combined_and_brackets_hold_a_value_together() -> None:
    given = ("fair.price_hours=1, 2", "fair.solver=auto,off", "mine.steps=[1, 2],[3]", "mine.one=[1,2]")
    found = variants_of(given, ("fair", "mine", "srtf"))
    assert [one.name for one in found] == [
        "fair price_hours=1 solver=auto",
        "fair price_hours=1 solver=off",
        "fair price_hours=2 solver=auto",
        "fair price_hours=2 solver=off",
        "mine steps=[1, 2]",
        "mine steps=[3]",
        "srtf",
    ]
    assert found[4].settings == ("mine.steps=[1, 2]", "mine.one=[1,2]")
    assert {base_of(one.name) for one in found} == {"fair", "mine", "srtf"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fair.price_hours=1,,2", "an empty value: write fair.price_hours=A,B"),
        ("fair.price_hours=1,2,1.0", "'1.0' is there twice: keep one of them"),
        ("astraea.swap_after=1,2", "'astraea' is not simulated"),
        ("fair.price_hours", "write policy.key=value"),
    ],
)
def test_lists_that_cannot_be_are_refused_in_one_line(text: str, words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        variants_of((text,), ("fair", "srtf"))


def test_a_value_that_the_policy_refuses_is_refused_before_any_run(tmp_path: Path) -> None:
    said = swept(made(tmp_path, jobs=6), "--policy", "fair", "--set", "fair.price_hours=1,-2")
    assert (said.code, "price_hours = -2" in said.err) == (2, True)
