"""Events of a tick: what its journal does not want is not told, and nothing else changes."""

from __future__ import annotations

from slurm_fair.model import EventKind, Standing, TickRecord
from slurm_fair.ports import EVERYTHING, Want
from slurm_fair.sim import Scenario, rules_for, simulate
from slurm_fair.sim.scenario import Costs
from slurm_fair.trace import uniform
from tests.support.simulated import arrival, trace

OF_JOBS = {EventKind.SUBMITTED, EventKind.STARTED, EventKind.STOPPED, EventKind.FINISHED}
OF_LEASES = {
    EventKind.GRANTED,
    EventKind.RENEWED,
    EventKind.RETURNED,
    EventKind.OPENED,
    EventKind.ASKED,
    EventKind.REQUEUED,
}
OF_OUTCOMES = {EventKind.REVOKED}  # what outcomes are made of, and no ledger tells


def heard(wants: frozenset[Want]) -> tuple[set[str], list[float]]:
    """The kinds of events of a simulation in which a job gives way, and when its jobs end."""
    kinds: set[str] = set()

    def listen(tick: TickRecord, standing: Standing) -> None:
        kinds.update(event.kind for event in tick.events)

    jobs = [arrival(0.0, gpus=4, seconds=900.0), arrival(5.0, gpus=4, seconds=300.0, tenant="b")]
    scenario = Scenario(trace(jobs), uniform(4, 4), Costs(checkpoint=3.0))
    rules = rules_for("astraea", {}, lease=100.0, checkpoint_cost=3.0)
    result = simulate(scenario, rules, listen=listen, wants=wants)
    return kinds - {EventKind.CAPACITY}, (result.outcomes.end - result.epoch).tolist()


def test_a_journal_is_told_what_it_wants_and_no_more() -> None:
    assert heard(EVERYTHING)[0] == OF_JOBS | OF_LEASES | OF_OUTCOMES
    assert heard(frozenset((Want.LEASE_EVENTS,)))[0] == OF_LEASES | OF_OUTCOMES
    assert heard(frozenset((Want.JOB_EVENTS,)))[0] == OF_JOBS | OF_OUTCOMES
    assert heard(frozenset())[0] == OF_OUTCOMES


def test_what_is_wanted_changes_nothing_else() -> None:
    assert heard(EVERYTHING)[1] == heard(frozenset())[1]
