"""The cheap question for change: every act moves a counter, and looks move none."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.slurm.command import CommandResult, Commands
from slurm_fair.slurm.reading.changes import Changes, Counters
from tests.support.slurm_samples import sample

READS = (
    "REQUEST_JOB_INFO",
    "REQUEST_JOB_INFO_SINGLE",
    "REQUEST_NODE_INFO",
    "REQUEST_STATS_INFO",
    "REQUEST_PING",
)
ACTS = (
    "REQUEST_SUBMIT_BATCH_JOB", "REQUEST_UPDATE_JOB", "REQUEST_UPDATE_NODE", "REQUEST_KILL_JOB",
    "REQUEST_JOB_REQUEUE", "REQUEST_COMPLETE_BATCH_SCRIPT", "MESSAGE_EPILOG_COMPLETE",
    "REQUEST_RESOURCE_ALLOCATION", "MESSAGE_NODE_REGISTRATION_STATUS", "REQUEST_SOMETHING_NEW", "3456",
)  # fmt: skip


def said(rows: Mapping[str, tuple[int, int]], jobs: int = 0) -> str:
    """The output of sdiag: calls of each kind with their microseconds."""
    lines = [f"Jobs {word}: {jobs}" for word in ("submitted", "started", "completed", "canceled", "failed")]
    lines += ["Jobs pending: 7", "", "Remote Procedure Call statistics by message type"]
    lines += [
        f"\t{name:40}({4000:5}) count:{n:<6} ave_time:{us // max(n, 1):<6} total_time:{us}"
        for name, (n, us) in rows.items()
    ]
    return "\n".join(
        [*lines, "", "Remote Procedure Call statistics by user", "\troot (  0) count:9 ave_time:1", ""]
    )


class Answers(Commands):
    """sdiag says one after the other."""

    def __init__(self, *texts: str, code: int = 0) -> None:
        super().__init__()
        self.texts, self.code = list(texts), code

    def run(
        self, *argv: str, stdin: str | None = None, timeout_seconds: float | None = None
    ) -> CommandResult:
        assert argv == ("sdiag",)
        return CommandResult(
            argv, self.code, self.texts.pop(0), "" if not self.code else "no controller", 0.01
        )


def asked(*texts: str) -> tuple[bool | None, Changes]:
    changes = Changes(Answers(*texts))
    changes.note()
    return changes.since_noted(), changes


def test_a_real_answer_is_read() -> None:
    counters = Counters.read(sample("22.05", "sdiag.txt"))
    assert counters is not None
    assert counters.moved["Jobs submitted"] == counters.moved["REQUEST_SUBMIT_BATCH_JOB"] == 1
    assert counters.reads["REQUEST_JOB_INFO"] == (1, 180)
    assert not counters.reads.keys() & counters.moved.keys()


counts = st.dictionaries(st.sampled_from(READS), st.tuples(st.integers(1, 99), st.integers(0, 10**6)))


@given(before=counts, after=counts, acts=st.dictionaries(st.sampled_from(ACTS), st.just((5, 50))))
def test_reading_is_no_change(
    before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]], acts: dict[str, tuple[int, int]]
) -> None:
    full = {"REQUEST_CONFIG": (1, 1), **acts}
    assert asked(said(before | full), said(after | full))[0] is False


@given(name=st.sampled_from(ACTS), count=st.integers(0, 9))
def test_every_act_is_a_change_also_one_of_a_name_that_nobody_knows(name: str, count: int) -> None:
    rows = {name: (count, 10)} if count else {}
    full = {"REQUEST_JOB_INFO": (1, 1)}
    assert asked(said(full | rows), said(full | {name: (count + 1, 20)}))[0] is True


def test_a_start_that_nobody_asked_for_is_a_change_and_so_is_a_slurmctld_that_counts_anew() -> None:
    rows = {"REQUEST_UPDATE_JOB": (4, 4)}
    assert asked(said(rows, 3), said(rows, 4))[0] is True
    assert asked(said(rows, 3), said({"REQUEST_PING": (1, 1)}))[0] is True


def test_the_price_of_a_question_is_that_of_the_dearest_kind_since_the_look() -> None:
    before = said({"REQUEST_JOB_INFO": (10, 10_000), "REQUEST_NODE_INFO": (5, 500)})
    after = said({"REQUEST_JOB_INFO": (12, 90_000), "REQUEST_NODE_INFO": (6, 700)})
    _, changes = asked(before, after)
    assert changes.read_seconds == pytest.approx(0.040)


@pytest.mark.parametrize(
    "text", ["", "Jobs submitted: 3\n", "nothing of use", said({"REQUEST_PING": (1, 1)}).replace("\t", "")]
)
def test_an_answer_without_counters_is_none(text: str) -> None:
    answer, changes = asked(text, text)
    assert answer is None
    assert changes.complaint == "sdiag has no counters"


def test_what_could_not_be_noted_has_changed_as_soon_as_slurm_answers() -> None:
    assert asked("", said({"REQUEST_PING": (1, 1)}))[0] is True


def test_a_slurmctld_that_does_not_answer_has_not_changed() -> None:
    changes = Changes(Answers("", "", code=1))
    changes.note()
    assert changes.since_noted() is None
    assert changes.complaint == "sdiag: no controller"
