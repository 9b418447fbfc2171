"""The sources that lease terms are tried on: which can be named together, and when their simulations end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from slurm_fair.cli.replay.case import Origin
from slurm_fair.cli.simulate.case import CaseOptions
from slurm_fair.cli.simulate.given import CostOptions
from slurm_fair.cli.tune.sources import Ground, Subject, ground_of
from slurm_fair.errors import InputError
from tests.support.pasts import BEGAN, run, saved
from tests.support.simulations import written

FILE = Path("f")
NOTHING = CostOptions(None, None, None)
FREE = CostOptions(0.0, 0.0, 0.0)


def subject(
    trace: Path | None = None, history: bool = False, file: Path | None = None, **more: Path
) -> Subject:
    return Subject(trace, history, file, more.get("throughputs"), more.get("regimes"))


@pytest.mark.parametrize(
    ("named", "words"),
    [
        (subject(), "what are the jobs? name one of these: a TRACE.csv, --history, or --sacct FILE"),
        (subject(FILE, history=True), "name only one of these"),
        (subject(FILE, file=FILE), "name only one of these"),
        (subject(history=True, file=FILE), "name only one of these"),
        (subject(FILE, True, FILE), "name only one of these"),
        (
            subject(history=True, regimes=FILE),
            "--throughputs and --regimes belong to a TRACE: leave them out",
        ),
        (subject(file=FILE, throughputs=FILE), "--throughputs and --regimes belong to a TRACE"),
    ],
)
def test_just_one_source_is_named_with_what_belongs_to_it(named: Subject, words: str) -> None:
    with pytest.raises(InputError) as caught:
        named.check()
    assert words in str(caught.value)


def test_each_source_can_be_named_alone() -> None:
    for named in (subject(FILE, throughputs=FILE, regimes=FILE), subject(history=True), subject(file=FILE)):
        named.check()


def test_files_of_jobs_are_those_that_may_not_be_written_over() -> None:
    assert subject(history=True).files == []
    assert subject(Path("a")).files == [Path("a")]
    assert subject(file=Path("b")).files == [Path("b")]


def ground(
    named: Subject, given: CostOptions = FREE, start: str | None = None, skip_bad: bool = False, **wish: Any
) -> Ground:
    """The ground of a command that was given these options."""
    origin = Origin(named.saved, start, None, skip_bad)
    wanted = CaseOptions(**{"gpus": 4, "skip_bad": skip_bad, **wish})
    return ground_of(click.Context(click.Command("tune")), named, origin, wanted, given, BEGAN + 9999.0)


def test_a_trace_is_no_past_and_has_no_period(tmp_path: Path) -> None:
    path = written(tmp_path, "1,a,0,4,100")
    found = ground(subject(path))
    assert (found.is_past, found.source, found.notes) == (False, {"kind": "trace"}, [])
    assert (found.ledger, found.live) == (None, None)
    with pytest.raises(InputError, match="a TRACE has no period: leave --start and --end out"):
        ground(subject(path), start="today")


def test_a_trace_has_no_shares(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--weights shares asks Slurm, which a trace is not"):
        ground(subject(written(tmp_path, "1,a,0,4,100")), weights="shares")


def test_costs_that_are_not_given_are_those_that_others_found(tmp_path: Path) -> None:
    costs = ground(subject(written(tmp_path, "1,a,0,4,100")), NOTHING).case.scenario.costs
    assert (costs.checkpoint, costs.restart, costs.requeue_delay) == (10.0, 35.0, 0.0)


def test_bad_rows_of_a_trace_are_listed_where_they_are_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, "1,a,0,4,100", "2,a,0,none,100")
    with pytest.raises(InputError, match=r"trace\.csv:3: gpus"):
        ground(subject(path))
    assert ground(subject(path), skip_bad=True).case.bad_rows == 1
    assert "trace.csv:3: gpus" in capsys.readouterr().err


CLUSTER = '[[nodes]]\nname = "n1"\ngpus = 2\n[[nodes]]\nname = "n2"\ngpus = 2\ntype = "v100"\nspeed = 0.5\n'


def test_a_simulation_is_given_up_at_ten_times_what_the_work_needs_at_least(tmp_path: Path) -> None:
    """500 GPU-seconds on 4 GPUs and a longest job of 100 s; twice as long on the slowest GPUs."""
    path = written(tmp_path, "1,a,0,4,100", "2,a,100,2,50")
    assert ground(subject(path)).case.scenario.until_s == 100 + 10 * (500 / 4 + 100)
    slow = tmp_path / "c.toml"
    slow.write_text(CLUSTER)
    small = written(tmp_path, "1,a,0,2,100", "2,a,100,2,50", name="small.csv")
    assert ground(subject(small), gpus=None, cluster=slow).case.scenario.until_s == 100 + 10 * (600 / 4 + 200)


def test_parts_of_gpus_count_as_whole_ones(tmp_path: Path) -> None:
    assert ground(subject(written(tmp_path, "1,a,0,0.5,40"))).case.scenario.until_s == 10 * (40 / 4 + 40)


def test_jobs_that_are_left_out_need_no_time(tmp_path: Path) -> None:
    path = written(tmp_path, "1,a,0,4,40", "2,a,9000,5,9000")
    assert ground(subject(path), too_large="drop").case.scenario.until_s == 10 * (40 + 40)


def test_a_file_of_sacct_with_times_is_a_past_with_its_notes(tmp_path: Path) -> None:
    rows = [run("1", 0, 0, 100), run("2", 0, 50, None, state="RUNNING"), run("3", 0, 60, 80)]
    found = ground(subject(file=saved(tmp_path / "s.txt", rows)))
    assert (found.is_past, found.source["kind"], found.source["not_over"]) == (True, "sacct", ["2"])
    assert [note[:38] for note in found.notes] == ["note: 1 job that had not ended by 2026"]
    assert found.case.scenario.until_s == 10 * ((100 + 50 + 20) / 4 + 100)
    assert found.ledger is None


LISTED = ("JobID", "Account", "User", "Submit", "State", "AllocTRES", "ReqTRES", "ElapsedRaw")


def listing(folder: Path, *seconds: str) -> Path:
    """A file that tells how long jobs ran, though not when."""
    rows = [{**run(str(at), 0, 0, 1), "ElapsedRaw": text} for at, text in enumerate(seconds)]
    rows.append({**run("9", 0, 0, 1, gpus=0), "ElapsedRaw": "5"})
    return saved(folder / "listing.txt", rows, LISTED)


def test_a_file_of_sacct_without_times_is_a_list_of_jobs(tmp_path: Path) -> None:
    found = ground(subject(file=listing(tmp_path, "100", "300")), CostOptions(20.0, 30.0, None))
    assert found.case.scenario.trace.duration_s.tolist() == [100.0, 300.0]  # nothing is taken off
    assert found.is_past
    assert found.source == {"kind": "sacct", "rows_left_out": {"without GPUs": 1}}
    assert found.notes == ["note: 1 row left out: jobs without GPUs"]
    assert found.case.scenario.until_s == 10 * (400 / 4 + 300)


def test_bad_rows_of_a_list_of_jobs_are_refused_by_line_or_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = listing(tmp_path, "100", "soon")
    with pytest.raises(InputError, match=r"listing\.txt:3: ElapsedRaw"):
        ground(subject(file=file))
    assert len(ground(subject(file=file), skip_bad=True).case.scenario.trace) == 1
    assert "listing.txt:3: ElapsedRaw" in capsys.readouterr().err


def test_a_list_of_jobs_asks_no_slurm_for_shares(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--weights shares asks Slurm, which a saved file is not"):
        ground(subject(file=listing(tmp_path, "100")), weights="shares")


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    for named in (subject(tmp_path / "gone"), subject(file=tmp_path / "gone")):
        with pytest.raises(InputError, match="gone: cannot be read"):
            ground(named)
