"""A batched ledger is brought up to the looks when somebody reads it, and to plain ones in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from slurm_fair.ledger import LedgerSettings, advance
from slurm_fair.ledger.charging.advance import folded
from slurm_fair.ledger.charging.window_events import Happened, WindowLooks
from slurm_fair.model import Event, JobState, Ledger, Snapshot
from slurm_fair.sim.loop import ledger_batches
from slurm_fair.sim.loop.ledger_batches import LedgerBatches
from tests.support.builders import JobSpec, job, snapshot

BEGAN = 1000.0
WAITS, RUNS = job(1, tenant="a", gpus=2, submit=BEGAN), job(2, tenant="b", gpus=4, submit=BEGAN)


def look(after: float, *jobs: JobSpec) -> Snapshot:
    return snapshot(time=BEGAN + after, nodes={"n1": 4, "n2": 4}, jobs=jobs, weights={"a": 1.0, "b": 1.0})


def running(spec: JobSpec, start: float, node: str = "n1") -> JobSpec:
    return replace(spec, state=JobState.RUNNING, start=BEGAN + start, on={node: spec.gpus})


def over(spec: JobSpec, start: float, end: float) -> JobSpec:
    return replace(spec, state=JobState.DONE, start=BEGAN + start, end=BEGAN + end, on={})


PLAIN = (
    look(0, WAITS),
    look(10, WAITS, RUNS),
    look(20, running(WAITS, 12), RUNS),
    look(30, running(WAITS, 12), running(RUNS, 20, "n2")),
    look(40, over(WAITS, 12, 33), running(RUNS, 20, "n2")),
    look(50, over(RUNS, 20, 44)),
    look(60),
)


@pytest.fixture
def folds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of looks that each pass over the ledger took in."""
    passes: list[int] = []

    def counted(ledger: Ledger, looks: WindowLooks, how: LedgerSettings) -> tuple[Ledger, Happened]:
        passes.append(len(looks.snapshots))
        return folded(ledger, looks, how)

    monkeypatch.setattr("slurm_fair.sim.loop.ledger_batches.folded", counted)
    return passes


class Played:
    """A ledger that was shown some looks, read at each of them or in batches."""

    def __init__(
        self, looks: Sequence[Snapshot], ledger: Ledger | None = None, *, read: bool = False
    ) -> None:
        self.ledger, self._events = ledger or Ledger.new(BEGAN), list[list[Event]]()
        self.batches = LedgerBatches(self._hear)
        for each in looks:
            if read:
                self.ledger, told = advance(self.ledger, each)
                self._events.append([event for event in told if event.kind != "capacity"])
            else:
                self.ledger, _ = self.batches.advance(self.ledger, each, LedgerSettings())

    def _hear(self, happened: Happened, looks: Sequence[int]) -> None:
        self._events += [happened.events[look] for look in looks]

    @property
    def events(self) -> list[list[Event]]:
        """The events of jobs that each look was the first to show."""
        self.batches.tell_all()
        return self._events


def test_nothing_is_folded_until_somebody_reads_and_then_all_in_one_pass(folds: list[int]) -> None:
    ledger = Played(PLAIN).ledger
    assert (ledger.time, ledger.total_gpus) == (BEGAN + 60, 8)
    assert folds == [1], "the first look, which shows what was there before it"
    assert len(ledger.jobs) == 0
    assert ledger.tenants.had.tolist() == [2 * 21, 4 * 24]
    assert folds == [1, 6]


def test_each_look_tells_of_what_it_was_the_first_to_show(folds: list[int]) -> None:
    events = Played(PLAIN).events
    kinds = [[(event.kind, event.time - BEGAN) for event in of_look] for of_look in reversed(events)]
    assert kinds[:-1] == [
        [],
        [("finished", 44)],
        [("finished", 33)],
        [("started", 20)],
        [("started", 12)],
        [("submitted", 0)],
    ]
    assert [event.detail["nodes"] for of_look in events for event in of_look if event.kind == "started"] == [
        ["n1"],
        ["n2"],
    ]
    assert folds == [1, 6]


def test_a_ledger_of_before_is_as_it_was_when_a_later_one_has_been_read() -> None:
    first = Played(PLAIN[:4]).ledger
    second = Played(PLAIN[4:], first).ledger
    assert second.tenants.had.tolist() == [42, 96]
    assert first.tenants.had.tolist() == [2 * 18, 4 * 10]
    assert first.jobs.ran.tolist() == [18, 10]


def test_many_looks_are_folded_before_anybody_asks_so_that_memory_stays_flat(folds: list[int]) -> None:
    Played([look(float(after), WAITS) for after in range(200)])
    assert folds == [1, 63, 64, 64]


def test_looks_at_many_jobs_are_not_kept(folds: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_batches, "_MOST_ROWS", 6)
    Played([look(float(after), WAITS, RUNS) for after in range(9)])
    assert folds == [1, 2, 3]


def stopped(spec: JobSpec, at: float, restarts: int = 1) -> JobSpec:
    return replace(spec, submit=BEGAN + at, restarts=restarts)


ROUND = (  # one gives its GPUs back at the instant of a look, which is looked at once more
    look(0, WAITS, RUNS),
    look(10, running(WAITS, 0), RUNS),
    look(20, running(WAITS, 0), RUNS),
    look(20, stopped(WAITS, 20), RUNS),
    look(30, stopped(WAITS, 20), running(RUNS, 20)),
)


def test_a_job_that_stops_at_the_instant_up_to_which_it_was_charged_is_plain(folds: list[int]) -> None:
    first = Played(ROUND[:3]).ledger
    assert first.tenants.had.tolist() == [2 * 20, 0]
    folds.clear()
    played = Played(ROUND[3:], first)
    ledger, events = played.ledger, played.events
    assert ledger.tenants.had.tolist() == [2 * 20, 4 * 10]
    assert ledger.closed.end.tolist() == [BEGAN + 20]
    assert folds == [2]
    assert [[(event.kind, event.time - BEGAN) for event in of_look] for of_look in events] == [
        [("stopped", 20)],
        [("started", 20)],
    ]


RESIZED = replace(look(10, WAITS), resized=((BEGAN + 4, 1), (BEGAN + 7, 8)))
AGAIN, AHEAD = job(2, tenant="a", gpus=1, submit=BEGAN + 45), replace(WAITS, submit=BEGAN + 25)
ODD = {
    "nodes that went and came back": (look(0, WAITS), look(5, WAITS), RESIZED, look(20, WAITS)),
    "an id that is used again": (
        look(0, WAITS), look(10, WAITS, RUNS), look(20, WAITS, running(RUNS, 15)),
        look(30, WAITS, over(RUNS, 15, 25)),
        look(40, WAITS), look(50, WAITS, AGAIN), look(60, WAITS, over(AGAIN, 50, 55)), look(70, WAITS),
    ),
    "an end that lies ahead": (
        look(0, WAITS), look(10, WAITS), look(20, running(WAITS, 15)), look(30, over(WAITS, 15, 35)), look(40),
    ),
    "a stop since the last look": (
        look(0, RUNS), look(10, running(RUNS, 0)), look(20, stopped(RUNS, 15)), look(30, stopped(RUNS, 15)),
    ),
    "a stop at the instant of a start": (
        look(0, RUNS), look(10, RUNS), look(10, running(RUNS, 10)), look(10, stopped(RUNS, 10)),
        look(20, running(stopped(RUNS, 10), 10)),
    ),
    "two stops at one instant": (
        look(0, WAITS, RUNS), look(10, running(WAITS, 0), running(RUNS, 0, "n2")),
        look(10, stopped(WAITS, 10), running(RUNS, 0, "n2")), look(10, stopped(WAITS, 10), stopped(RUNS, 10)),
        look(20, running(stopped(WAITS, 10), 10), stopped(RUNS, 10)),
        look(20, stopped(WAITS, 20, 2), running(stopped(RUNS, 10), 20)),
        look(30, stopped(WAITS, 20, 2), over(stopped(RUNS, 10), 20, 25)), look(40, stopped(WAITS, 20, 2)),
    ),
    "a stop and another claim at one instant": (
        look(0, RUNS), look(10, running(RUNS, 0)), look(10, replace(stopped(RUNS, 10), gpus=2)),
        look(20, replace(stopped(RUNS, 10), gpus=2)),
    ),
    "an arrival that lies ahead": (look(0), look(10), look(20, AHEAD), look(40, AHEAD)),
}  # fmt: skip


@pytest.mark.parametrize("looks", ODD.values(), ids=ODD)
def test_what_is_not_plain_counts_from_the_look_that_shows_it(looks: Sequence[Snapshot]) -> None:
    at_once, in_batches = Played(looks, read=True), Played(looks)
    often, seldom = at_once.ledger, in_batches.ledger
    assert seldom.tenants.had.tolist() == pytest.approx(often.tenants.had.tolist())
    assert seldom.tenants.owed_quota.tolist() == pytest.approx(often.tenants.owed_quota.tolist())
    assert seldom.tenants.owed_demand.tolist() == pytest.approx(often.tenants.owed_demand.tolist())
    assert [*map(kind_of, in_batches.events)] == [*map(kind_of, at_once.events)]


def kind_of(events: Sequence[Event]) -> list[tuple[str, float, int]]:
    return [(event.kind, event.time, event.key) for event in events]
