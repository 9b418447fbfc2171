"""The bound on waiting under rolling leases: nodes that were set aside are had within one term and one grace."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_fair.model import LeaseTerms, Standing, TickRecord
from slurm_fair.model.reservation import reservations
from slurm_fair.policy import registry
from slurm_fair.policy.reserve import reserves
from slurm_fair.sim import Costs
from tests.support.simulated import Arrival, Rounds, arrival, simulated

GRACE = 60.0
ROLLING = LeaseTerms(term=600.0, interval=10.0, grace=GRACE, aligned=False, reserve_after=600.0)
# Guaranteed jobs of `hived` are never stopped, so nobody who must borrow has a bound on waiting.
NO_BOUND = {"hived"}
POLICIES = [
    name for name in registry.names() if name not in NO_BOUND and reserves(ROLLING, registry.load(name, {}))
]
NODES, GPUS = 3, 4


@dataclass
class Watched:
    """The first look at which each gang had nodes set aside, and when it started after that."""

    since: dict[int, float] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)
    last: float = 0.0

    def __call__(self, tick: TickRecord, standing: Standing) -> None:
        jobs, self.last = tick.snapshot.jobs, tick.time
        start = dict(zip(jobs.key[jobs.start > 0].tolist(), jobs.start[jobs.start > 0].tolist(), strict=True))
        for key in [key for key in self.since if key in start]:
            self.waits.append(start[key] - self.since.pop(key))
        for each in reservations(tick.plan.memory):
            self.since.setdefault(each.key, each.since)

    @property
    def longest(self) -> float:
        """The longest wait of those that started, and of those that wait still."""
        return max([*self.waits, *(self.last - since for since in self.since.values())], default=0.0)


# Small jobs that together want more than there is, so that no node is ever empty by itself.
FLOOD = st.builds(
    arrival,
    st.integers(0, 200).map(lambda number: 7.0 * number),
    gpus=st.sampled_from((1, 1, 1, 2, 3)),
    seconds=st.sampled_from((90.0, 700.0, 2_500.0, 6_000.0)),
    tenant=st.sampled_from(("a", "b", "c")),
)
GANG = st.builds(
    arrival,
    st.integers(0, 300).map(lambda number: 5.0 * number),
    gpus=st.sampled_from((4, 8, 12)),
    seconds=st.sampled_from((300.0, 1_500.0)),
    tenant=st.sampled_from(("a", "gangs")),
)
HOW = st.builds(
    Rounds,
    lease=st.sampled_from((300.0, 600.0)),
    interval=st.sampled_from((10.0, 30.0)),
    interval_min=st.sampled_from((0.0, 1.0)),
    aligned=st.just(False),
    reserve_after=st.sampled_from((0.0, 300.0, 600.0)),
    renewal=st.sampled_from((None, None, 300.0)),
    costs=st.builds(
        Costs, checkpoint=st.sampled_from((0.0, 5.0)), requeue_delay=st.sampled_from((0.0, 60.0))
    ),
)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(flood=st.lists(FLOOD, min_size=25, max_size=40), gangs=st.lists(GANG, min_size=1, max_size=3), how=HOW)
def test_a_gang_for_which_nodes_are_set_aside_starts_within_a_term_and_a_grace(
    policy: str, flood: list[Arrival], gangs: list[Arrival], how: Rounds
) -> None:
    watched = Watched()
    jobs = sorted([*flood, *gangs], key=lambda job: job.at)
    simulated(
        jobs, policy, gpus=NODES * GPUS, gpus_per_node=GPUS, how=how, until=12_000.0, listen=watched, wants=()
    )
    assert how.lease is not None
    # The look that is to stop the last jobs there, and the one that finds their GPUs free.
    assert watched.longest <= how.lease + GRACE + 2 * how.interval
