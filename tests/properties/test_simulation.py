"""Every policy owes this in every simulation, whatever arrives and whatever breaks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from slurm_fair.policy import registry
from slurm_fair.sim import Costs, NodeEvent
from tests.support.any_scenario import Case, Hitches, cases, play
from tests.support.played_accounts import (
    every_account,
)
from tests.support.proofs import proved
from tests.support.witness import Witness

POLICIES = registry.names()
SHORT, LONG = 25, 400  # examples for each policy: in the suite, and under `make prove`
each_policy = pytest.mark.parametrize("policy", POLICIES)


def some(examples: int) -> settings:
    """Examples are whole simulations: their time is no measure of anything."""
    return settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))


def every_promise(case: Case, policy: str) -> None:
    """One simulation, watched at every look and audited at its end."""
    every_account(play(case, policy, Witness(), wants=Witness.wants))


@each_policy
@some(SHORT)
@given(case=cases())
def test_every_policy_keeps_every_promise_in_any_scenario(policy: str, case: Case) -> None:
    every_promise(case, policy)


@pytest.mark.prove
@each_policy
def test_every_policy_keeps_every_promise_in_hundreds_of_scenarios(
    policy: str, request: pytest.FixtureRequest
) -> None:
    examples = max(round(LONG * request.config.getoption("--part")), 1)
    some(examples)(given(case=cases())(lambda case: every_promise(case, policy)))()
    claim = f"`{policy}` keeps every promise in any simulation"
    proved(claim, "0 broken", f"0 broken in {examples} simulations drawn at random")


@each_policy
@some(4)
@given(case=cases())
def test_the_same_twice_is_the_same_to_the_last_byte(policy: str, case: Case) -> None:
    def once() -> tuple[str, str, list[bytes]]:
        witness = Witness()
        result = play(case, policy, witness, wants=Witness.wants).result
        columns = [column.tobytes() for _, column in sorted(result.outcomes._arrays().items())]
        return witness.digest, repr(result.summary), columns

    assert once() == once()


@each_policy
@some(4)
@given(case=cases())
def test_where_nothing_costs_anything_every_held_second_is_work(policy: str, case: Case) -> None:
    """A node that fails costs work, and so does a requeue that is refused: the job has saved, and waits for it."""
    free = Costs()
    calm = tuple(outage for outage in case.scenario.outages if outage.event is not NodeEvent.DOWN)
    scenario = replace(case.scenario, costs=free, outages=calm)
    how = replace(case.how, costs=free)
    played = play(replace(case, scenario=scenario, how=how, hitches=Hitches()), policy)
    assert played.simulation.cluster.tally.lost_gpu_seconds == pytest.approx(0.0, abs=1e-3)
