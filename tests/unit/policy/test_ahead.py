"""The ends of leases, node by node."""

from __future__ import annotations

from math import inf

import numpy as np

from slurm_fair.model import Placement
from slurm_fair.policy.ahead import LeaseEnds

# Job 0 on nodes 0 and 2, job 1 on node 0, job 2 on node 2; they end in the order 1, 2, 0.
ENDS = LeaseEnds.of(Placement.of([(0, 0, 4), (0, 2, 1), (1, 0, 2), (2, 2, 3)]), np.array([30.0, 10.0, 20.0]))


def test_they_stand_in_the_order_of_their_ends() -> None:
    assert ENDS.end.tolist() == [10, 20, 30, 30]
    assert list(zip(ENDS.row, ENDS.node, ENDS.gpus, strict=True)) == [
        (1, 0, 2),
        (2, 2, 3),
        (0, 0, 4),
        (0, 2, 1),
    ]


def test_gpus_come_free_at_the_instant_at_which_a_lease_ends() -> None:
    assert ENDS.gpus_until(9.9, 3).tolist() == [0, 0, 0]
    assert ENDS.gpus_until(20.0, 3).tolist() == [2, 0, 3]
    assert ENDS.gpus_until(inf, 4).tolist() == [6, 0, 4, 0]


def test_the_first_end_on_a_node() -> None:
    assert [ENDS.first_of(node) for node in range(3)] == [10, inf, 20]
