"""Past runs as sacct prints them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.config.sections import ScopeSection
from slurm_fair.errors import SlurmTextError
from slurm_fair.model import Blind, JobState, labels
from slurm_fair.slurm.history import FIELDS, SlurmHistory, runs_from
from slurm_fair.slurm.past import Past, read_past
from tests.support.slurm_samples import VERSIONS, in_epoch_seconds, sample, whole
from tests.support.slurm_stub import Stub

TRES = "billing=1,cpu=1,gres/gpu=2,mem=8000M,node=1"
WORDS = st.text(alphabet="0123456789_[]+%abcPENDIG |=,/", max_size=20)


def line(
    job: str = "7", state: str = "COMPLETED", start: str = "110", end: str = "150", alloc: str = TRES
) -> list[str]:
    """One row of sacct as we ask for it."""
    return [job, "vision", "alice", "100", start, end, state, alloc, TRES]


def said(*rows: list[str]) -> str:
    """The lines that sacct prints."""
    return "".join("|".join(row) + "\n" for row in rows)


def cells(text: str) -> list[list[str]]:
    """The cells of a capture."""
    return [row.split("|") for row in text.splitlines()]


def test_a_capture_of_22_05_reads_run_by_run() -> None:
    runs = runs_from(cells(sample("22.05", "sacct.txt")))
    found = dict(zip(labels(runs.key), range(len(runs)), strict=True))
    requeued, running = found["41"], found["42"]
    assert (int(runs.requeued[requeued]), int(runs.gpus[requeued])) == (1, 4)
    assert (float(runs.end[running]), int(runs.state[running])) == (0.0, JobState.RUNNING)
    assert (runs.tenants, runs.users) == (("vision",), ("root",))


@pytest.mark.parametrize("version", ["24.11", "26.05"])
def test_captures_of_newer_versions_read_the_same_way(version: str) -> None:
    runs = runs_from(cells(in_epoch_seconds(sample(version, "sacct_columns.txt"))))
    found = dict(zip(labels(runs.key), range(len(runs)), strict=True))
    assert "9" not in found
    assert int(runs.gpus[found["9_0"]]) == 8
    assert int(runs.state[found["11"]]) == JobState.DONE
    assert float(runs.end[found["9_0"]]) == 0.0


@pytest.mark.parametrize(
    ("row", "is_a_job"),
    [
        (line(state="FAILED", start="100", end="100", alloc=""), False),
        (line(state="FAILED", start="100", end="100"), True),  # it had nodes
        (line(state="FAILED", start="101", end="101", alloc=""), True),
        (line(state="FAILED", start="100", end="101", alloc=""), True),
        (line(state="CANCELLED by 0", start="100", end="100", alloc=""), True),
    ],
)
def test_a_submission_that_slurm_refused_is_no_job(row: list[str], is_a_job: bool) -> None:
    assert len(runs_from([row])) == is_a_job


@pytest.mark.parametrize("version", VERSIONS)
def test_sacct_has_had_our_columns_in_every_version(version: str) -> None:
    assert set(FIELDS) <= set(whole(version, "sacct.txt").splitlines()[0].split("|"))


@pytest.mark.parametrize(
    ("row", "column", "value"),
    [
        (line(state="CANCELLED by 1000"), "state", JobState.DONE),
        (line(state="REQUEUED"), "requeued", 1),
        (line(state="NODE_FAIL"), "requeued", 1),
        (line(state="FAILED"), "requeued", 0),
        (line(state="PENDING", start="Unknown", end="Unknown"), "state", JobState.WAITING),
        (line(start="None"), "start", 0.0),
        (line(alloc=""), "gpus", 2),
        (line(alloc="cpu=1,gres/gpu:h100=3,gres/gpu=3"), "gpus", 3),
    ],
)
def test_a_run_says_what_it_was(row: list[str], column: str, value: float) -> None:
    assert getattr(runs_from([row]), column).tolist() == [value]


@pytest.mark.parametrize("job", ["9_[1-5%2]", "9+0", "9.batch", "abc"])
def test_rows_that_are_no_run_of_one_job_are_left_out(job: str) -> None:
    assert len(runs_from([line(job)])) == 0


def test_runs_come_sorted_by_job_and_start() -> None:
    runs = runs_from([line("9", start="200"), line("7_2"), line("9", start="120"), line("7_1")])
    assert (labels(runs.key), runs.start.tolist()) == (["7_1", "7_2", "9", "9"], [110.0, 110.0, 120.0, 200.0])


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((1, "", "sacct: error: Problem talking to the database: Connection refused"), "Connection refused"),
        ((0, said(line()), "slurm accounting storage is disabled"), "disabled"),
        ("7|vision\n", "2 columns instead of 9"),
        (said(line(start="yesterday")), "no time in epoch seconds"),
    ],
)
def test_accounting_that_does_not_answer_well_is_blind(
    tmp_path: Path, answer: str | tuple[int, str, str], reason: str
) -> None:
    stub = Stub(tmp_path)
    stub.answers("sacct", answer)
    found = SlurmHistory(stub.commands()).runs(0, 100, ["gpu", "debug"])
    assert isinstance(found, Blind)
    assert reason in found.reason
    assert stub.ran("sacct")[0][5:11] == ["-r", "debug,gpu", "-S", "uts0", "-E", "uts101"]


def test_a_replay_asks_accounting_as_the_daemon_does_for_more_columns_of_its_scope(tmp_path: Path) -> None:
    stub = Stub(tmp_path)
    stub.answers("sacct", "|".join([*line(), "1", "60", "n1"]) + "\n")
    commands = stub.commands()
    commands.draw = lambda: "1"
    past = read_past(commands, 0, 100, ScopeSection(("gpu",), ("vision", "nlp"), ("high",)))
    assert isinstance(past, Past), past
    assert (labels(past.runs.key), past.nodes, past.limit_seconds.tolist()) == (["7"], (("n1",),), [3600.0])
    SlurmHistory(commands).runs(0, 100, ["gpu"])
    ours, daemons = stub.ran("sacct")
    fields = "JobID,Account,User,Submit,Start,End,State,AllocTRES,ReqTRES"
    assert daemons[-1] == fields
    assert ours[-1] == f"{fields},NNodes,TimelimitRaw,NodeList"
    assert [word for word in ours[:-1] if word not in ("-A", "nlp,vision", "-q", "high")] == daemons[:-1]


@pytest.mark.parametrize(
    "bad",
    [
        said(line("9", alloc="gres/gpu=7766279631452241820")),
        said(line("9", alloc="gres/gpu=1000001")),
        said(line("9", end="9" * 400)),
        said(line("9", start="²")),
        said(["9", "a\x1b[2J", *line()[2:]]),
        "9|a\n8|b|c\n",
    ],
)
def test_one_absurd_row_costs_that_row(tmp_path: Path, bad: str, caplog: pytest.LogCaptureFixture) -> None:
    stub = Stub(tmp_path)
    stub.answers("sacct", said(line("7")) + bad + said(line("8")))
    history = SlurmHistory(stub.commands())
    for _ in range(2):
        found = history.runs(0, 100, [])
        assert not isinstance(found, Blind)
        assert labels(found.key) == ["7", "8"]
    assert sum("accounting is left out" in said for said in caplog.messages) in (1, 2)  # each once


def test_no_account_forges_a_run_because_the_separator_is_drawn_anew(tmp_path: Path) -> None:
    stub = Stub(tmp_path)
    stub.answers("sacct", said(line("7")))
    commands = stub.commands()
    commands.draw = iter(["123", "456"]).__next__
    for _ in range(2):
        SlurmHistory(commands).runs(0, 100, [])
    asked = [word for argv in stub.ran("sacct") for word in argv if word.startswith("--delimiter=")]
    assert asked == ["--delimiter=\x1f123", "--delimiter=\x1f456"]


@given(st.lists(st.one_of(st.lists(st.text()), st.lists(WORDS, min_size=9, max_size=9)), max_size=4))
def test_no_row_makes_the_reader_fail_otherwise_than_by_refusing_it(rows: list[list[str]]) -> None:
    with contextlib.suppress(SlurmTextError):
        assert len(runs_from(rows)) <= len(rows)
