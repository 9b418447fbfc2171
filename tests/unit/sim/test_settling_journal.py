"""Runs that no look shows: the simulator's books tell of them, and the ledger is settled at the next look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from slurm_fair.ledger import advance
from slurm_fair.model import Event, EventKind, JobState, Ledger, Snapshot, Standing, TickRecord
from slurm_fair.model.ids import pack
from slurm_fair.ports import EVERYTHING, Want
from slurm_fair.sim import (
    Costs,
    NodeEvent,
    Outage,
    Scenario,
    Simulation,
    SimulationResult,
    rules_for,
    simulate,
)
from slurm_fair.sim.loop.settling_journal import SettlingJournal
from slurm_fair.sim.world.books import Books, Run
from slurm_fair.trace import uniform
from tests.support.builders import JobSpec, job, snapshot
from tests.support.fake_cluster import MemoryJournal
from tests.support.simulated import arrival, trace
from tests.support.virtual_scene import Scene

# -- in a simulation --------------------------------------------------------------------------------------------


def played(
    *outages: tuple[float, NodeEvent], wants: frozenset[Want] = EVERYTHING
) -> tuple[SimulationResult, list[Event]]:
    """One job of 100 s on one GPU, looked at every 10 s; and the events of jobs, in seconds."""
    heard: list[Event] = []
    rules = rules_for("fifo", {}, lease=600.0, aligned=False)
    scenario = Scenario(
        trace([arrival(0, seconds=100)]),
        uniform(1, 1),
        outages=tuple(Outage(at, "n1", event) for at, event in outages),
    )

    def listen(tick: TickRecord, standing: Standing) -> None:
        kinds = (EventKind.STARTED, EventKind.STOPPED, EventKind.FINISHED)
        heard.extend(event for event in tick.events if event.kind in kinds)

    result = simulate(scenario, rules, listen=listen, wants=wants)
    return result, [event._replace(time=event.time - result.epoch) for event in heard]


BETWEEN_LOOKS = ((3.0, NodeEvent.DOWN), (4.0, NodeEvent.UP))
SEEN = ((13.0, NodeEvent.DOWN), (14.0, NodeEvent.UP))


def test_a_run_that_begins_and_is_lost_between_two_looks_is_told_with_its_nodes_and_charged() -> None:
    result, events = played(*BETWEEN_LOOKS)
    assert [(event.kind, event.time) for event in events] == [
        ("started", 0.0), ("stopped", 3.0), ("started", 10.0), ("finished", 110.0),
    ]  # fmt: skip
    begun, lost, again, _ = (event.detail for event in events)
    assert (begun["nodes"], begun["restarts"], again["nodes"]) == (["n1"], 0, ["n1"])
    assert (lost["state"], lost["start"] - result.epoch, lost["had"]) == ("NODE_FAIL", 0.0, 3.0)
    assert result.accounts["a"][0] == pytest.approx(103.0)


def test_a_run_that_a_look_showed_is_told_to_be_lost_with_its_node() -> None:
    _, events = played((25.0, NodeEvent.DOWN), (26.0, NodeEvent.UP))
    stopped = next(event for event in events if event.kind == EventKind.STOPPED)
    assert (stopped.time, stopped.detail["state"]) == (25.0, "NODE_FAIL")
    assert [event.kind for event in events].count("started") == 2


@pytest.mark.parametrize("outages", [BETWEEN_LOOKS, SEEN, (*BETWEEN_LOOKS, *SEEN)])
def test_a_ledger_that_is_folded_in_batches_is_settled_alike(
    outages: Sequence[tuple[float, NodeEvent]],
) -> None:
    at_once, _ = played(*outages)
    in_batches, _ = played(*outages, wants=frozenset({Want.LEASE_EVENTS}))
    assert in_batches.accounts["a"] == pytest.approx(at_once.accounts["a"])
    assert in_batches.runs.start.tolist() == at_once.runs.start.tolist()
    assert in_batches.runs.end.tolist() == at_once.runs.end.tolist()


def test_a_short_job_that_no_look_showed_running_has_its_node_from_the_books() -> None:
    heard: list[Event] = []
    scenario = Scenario(trace([arrival(0, seconds=4)]), uniform(1, 1), Costs())
    simulate(
        scenario,
        rules_for("fifo", {}, lease=600.0, aligned=False),
        listen=lambda tick, standing: heard.extend(tick.events),
    )
    (started,) = (event for event in heard if event.kind == EventKind.STARTED)
    assert started.detail["nodes"] == ["n1"]


# -- by itself --------------------------------------------------------------------------------------------------

T = 1_000_000.0
KEY = pack(1)


def ended(end: float, *, word: str = "REQUEUED", lived_on: bool = True, restarts: int = 0) -> Run:
    """A run of two GPUs that began at 5 s."""
    return Run(KEY, restarts, "a", "a", 2, T, T + 5, ("n1",), 0.0, T + end, word=word, lived_on=lived_on)


def look(after: float, spec: JobSpec | None) -> Snapshot:
    jobs = [] if spec is None else [spec]
    return snapshot(time=T + after, nodes={"n1": 4}, jobs=jobs, weights={"a": 1.0})


WAITS = job(1, gpus=2, submit=T)
RUNS = replace(WAITS, state=JobState.RUNNING, start=T + 5, on={"n1": 2})


class Told:
    """A journal before a kept one, fed with looks; its books hold what a test writes into them."""

    def __init__(self) -> None:
        scene = Scene(uniform(4, 4))
        scene.cluster.population.tenant("a")
        scene.cluster.population.user("a")
        self.books: Books = scene.books
        self.behind = MemoryJournal()
        self.journal = SettlingJournal(self.books, self.behind, None)
        simulation = Simulation(
            Scenario(trace([arrival()]), uniform(4, 4)), rules_for("fifo", {}, lease=600.0), MemoryJournal()
        )
        self._record = simulation.look()
        self._ledger, self._number = Ledger.new(T), 0

    def look(self, after: float, spec: JobSpec | None, *runs: Run) -> list[tuple[str, float]]:
        """The events that the journal behind is given of this look, after these runs have ended."""
        self.books.over += runs
        shown = look(after, spec)
        self._ledger, events = advance(self._ledger, shown)
        of_jobs = tuple(event for event in events if event.kind != EventKind.CAPACITY)
        self._number += 1
        record = self._record._replace(number=self._number, time=shown.time, snapshot=shown, events=of_jobs)
        standing = Standing.new(T)._replace(ledger=self._ledger)
        self.journal.append(record, standing)
        assert self.journal.standing is not None
        assert self.behind.latest() is self.journal.standing
        self._ledger = self.journal.standing.ledger
        return [(str(event.kind), event.time - T) for event in self.behind.records[-1].events]

    @property
    def last(self) -> Sequence[Event]:
        """The events of the last look."""
        return self.behind.records[-1].events

    @property
    def had(self) -> float:
        """GPU-seconds that the tenant has had."""
        return float(self._ledger.tenants.had.sum())


AGAIN = replace(WAITS, submit=T + 9, restarts=1)


def test_what_is_asked_of_the_journal_is_what_the_one_behind_says() -> None:
    told = Told()
    assert told.journal.wants == told.behind.wants
    assert told.journal.latest() is None
    told.look(0, WAITS)
    told.look(10, WAITS)
    assert told.journal.latest() is told.behind.standing
    assert [record.number for record in told.journal.ticks(2)] == [2]
    assert [record.number for record in told.journal.ticks(1, 1)] == [1]


def test_a_run_that_a_restart_betrays_is_told_before_all_else_of_that_look() -> None:
    told = Told()
    told.look(0, WAITS)
    later = replace(AGAIN, state=JobState.RUNNING, start=T + 9, on={"n1": 2})
    events = told.look(10, later, ended(8, word="NODE_FAIL"))
    assert events[:2] == [("started", 5.0), ("stopped", 8.0)]
    assert (told.last[1].detail["had"], told.last[1].detail["state"]) == (6.0, "NODE_FAIL")
    assert told.had == 2 * 3 + 2 * 1


def test_a_run_that_was_stopped_after_the_look_waits_for_the_one_that_shows_it() -> None:
    told = Told()
    told.look(0, WAITS)
    assert told.look(8, WAITS, ended(8.5)) == []
    assert told.had == 0.0
    assert told.look(10, AGAIN) == [("started", 5.0), ("stopped", 8.5)]
    assert told.had == 2 * 3.5
    assert told.look(20, AGAIN) == [], "it is told once"


def test_a_run_that_a_look_shows_to_go_on_needs_nothing_of_the_books() -> None:
    told = Told()
    told.look(0, WAITS)
    assert told.look(8, RUNS, ended(8.5)) == [("started", 5.0)]
    assert told.look(10, AGAIN) == [("stopped", 9.0)], "as looks tell it"
    assert told.had == pytest.approx(2 * 4)


def test_a_run_that_is_shown_and_then_lost_with_its_node_is_told_so() -> None:
    told = Told()
    told.look(0, WAITS)
    told.look(8, RUNS, ended(8.5, word="NODE_FAIL"))
    told.look(10, AGAIN)
    assert [event.detail["state"] for event in told.last if event.kind == EventKind.STOPPED] == ["NODE_FAIL"]


def test_a_run_of_a_job_that_is_gone_is_told_though_no_look_shows_the_job() -> None:
    told = Told()
    told.look(0, WAITS)
    assert told.look(10, None, ended(8))[:2] == [("started", 5.0), ("stopped", 8.0)]


def test_a_run_that_ended_its_job_fills_in_the_nodes_of_its_start_alone() -> None:
    told = Told()
    told.look(0, WAITS)
    over = replace(WAITS, state=JobState.DONE, start=T + 5, end=T + 8, on={})
    assert told.look(10, over, ended(8, word="COMPLETED", lived_on=False)) == [
        ("started", 5.0),
        ("finished", 8.0),
    ]
    assert told.last[0].detail["nodes"] == ["n1"]
    assert told.had == 6.0


def test_what_became_of_leases_meanwhile_is_told_by_the_next_look_and_once() -> None:
    told = Told()
    renewed = Event(T + 3, EventKind.RENEWED, KEY, "a", 2)
    told.journal.meanwhile = (renewed,)
    assert told.look(4, WAITS)[0] == ("renewed", 3.0)
    assert told.look(5, WAITS) == []


def test_weights_of_gpus_count_in_what_an_unseen_run_had() -> None:
    told = Told()
    told.look(0, WAITS)
    told.look(10, AGAIN, ended(8)._replace(gpu_weight=0.5))
    assert [event.detail["gpu_weight"] for event in told.last[:2]] == [0.5, 0.5]
    assert told.last[1].detail["had"] == 3.0
    assert told.had == 3.0
