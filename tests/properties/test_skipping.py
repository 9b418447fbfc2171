"""Looks that are left out change nothing: a simulation that looks at every interval comes to the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from slurm_fair.model import TickRecord
from slurm_fair.policy import registry
from tests.any_scenario import Case, Peopled, cases, play


class Looking(Peopled):
    """A simulation that leaves no look out."""

    def _next_look(self, record: TickRecord) -> float:
        usual = Peopled._next_look(self, record)
        return min(usual, self._on_grid(self.clock.now() + 1e-6))


@pytest.mark.parametrize("policy", registry.names())
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=cases())
def test_looking_more_often_changes_nothing(policy: str, case: Case) -> None:
    skipping, looking = play(case, policy).result, play(case, policy, kind=Looking).result
    assert len(looking.decisions) >= len(skipping.decisions)
    for name in ("start", "end", "ran", "had", "preemptions"):
        one, two = getattr(skipping.outcomes, name), getattr(looking.outcomes, name)
        assert np.allclose(one, two, atol=1e-3, equal_nan=True), name
