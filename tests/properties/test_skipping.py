"""Looks that are left out change nothing: a simulation that looks at every interval comes to the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_fair.sim import Costs, NodeEvent, Outage, Result, Simulation
from tests.simulated import Arrival, Rounds, arrival, simulated

ARRIVALS = st.lists(
    st.builds(
        arrival,
        st.integers(0, 120).map(lambda tens: tens * 10.0 + 3.0),
        gpus=st.sampled_from((1, 1, 2, 4, 6, 8)),
        seconds=st.integers(3, 90).map(lambda tens: tens * 10.0 + 7.0),
        tenant=st.sampled_from(("a", "b")),
    ),
    min_size=2,
    max_size=10,
)
OUTAGES = st.sampled_from(((), (Outage(400.0, "n1", NodeEvent.DOWN), Outage(700.0, "n1", NodeEvent.UP))))


@pytest.mark.parametrize("policy", ["astraea", "fifo", "srtf", "tiresias"])
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(jobs=ARRIVALS, outages=OUTAGES, restart=st.sampled_from((0.0, 20.0)))
def test_looking_more_often_changes_nothing(
    policy: str, jobs: list[Arrival], outages: tuple[Outage, ...], restart: float
) -> None:
    how = Rounds(lease=300.0, costs=Costs(restart=restart))

    def run() -> Result:
        return simulated(jobs, policy, gpus=16, gpus_per_node=4, how=how, outages=outages)

    skipping = run()
    with pytest.MonkeyPatch.context() as patch:
        usual = Simulation._next_look
        patch.setattr(
            Simulation,
            "_next_look",
            lambda self, record: min(usual(self, record), self._on_grid(self.clock.now() + 1e-6)),
        )
        looking = run()
    assert len(looking.decisions) >= len(skipping.decisions)
    for name in ("start", "end", "ran", "had", "preemptions"):
        one, two = getattr(skipping.outcomes, name), getattr(looking.outcomes, name)
        assert np.allclose(one, two, atol=1e-3, equal_nan=True), name
