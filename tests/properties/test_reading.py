"""A reader of the ledger changes nothing, also while a simulation goes on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from slurm_fair.model import Event, Standing, TickRecord
from tests.support.any_scenario import Case, cases, play
from tests.support.same_ledgers import same_events


@pytest.mark.parametrize("policy", ["fifo", "sjf"])  # they go by no sums, which are rounded otherwise
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=cases())
def test_a_simulation_whose_ledger_is_read_at_every_look_is_the_one_of_which_nobody_asks(
    policy: str, case: Case
) -> None:
    told: list[Event] = []

    def reads(tick: TickRecord, standing: Standing) -> None:
        told.extend(tick.events)
        assert standing.ledger.jobs.key.size <= len(case.jobs)

    untold: list[TickRecord] = []
    often, seldom = play(case, policy, reads), play(case, policy, lambda tick, standing: untold.append(tick))
    assert seldom.simulation.decisions
    assert len(often.simulation.decisions) == len(seldom.simulation.decisions)
    same_events([event for tick in untold for event in tick.events], told)
    for name, column in often.result.outcomes._arrays().items():
        other = getattr(seldom.result.outcomes, name)
        if column.dtype.kind == "f":
            np.testing.assert_allclose(other, column, rtol=1e-9, atol=1e-6, err_msg=name)
        else:
            assert (other == column).all(), name
    for name, sums in often.result.accounts.items():
        assert seldom.result.accounts[name] == pytest.approx(sums, rel=1e-9, abs=1e-6)
