"""The next instant at which leases are decided on: a beat, the end of a turn, or nodes that are to be had."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from slurm_fair.looks.ends import next_decision_on_leases
from slurm_fair.model import LeasePhase, LeaseTerms, Standing
from slurm_fair.model.ids import pack
from slurm_fair.model.reservation import ReservedNodes, with_reservations
from slurm_fair.policy.turns import Turn, TurnBook
from tests.support.builders import lease, leases

ROLLING = LeaseTerms(term=900.0, aligned=False, renewal=225.0)  # a beat of 14 s
AT_ONCE = LeaseTerms(term=900.0, aligned=False)
HELD = leases(
    lease(1, {"n1": 1}, end=1000.0),
    lease(2, {"n1": 1}, end=1200.0),
    lease(3, {"n1": 1}, phase=LeasePhase.REVOKING, end=900.0),
)
NOBODY: Mapping[str, Any] = {}
SET_ASIDE = with_reservations({}, [ReservedNodes(pack(9), 0.0, 1003.0, ("n1",), 1, 0)])


def turns(over: bool) -> Mapping[str, Any]:
    """The memory of a plan with a turn of job 1."""
    return TurnBook((Turn(pack(1), "a100", "a", 1, 0.0, over),), {}, 0, {}).into({})


@pytest.mark.parametrize(
    ("terms", "memory", "since", "end"),
    [
        (ROLLING, NOBODY, -math.inf, 1008.0),
        (AT_ONCE, NOBODY, -math.inf, 1000.0),
        (ROLLING, NOBODY, 1008.0, 1204.0),
        (ROLLING, NOBODY, 1204.0, math.inf),
        (ROLLING, SET_ASIDE, -math.inf, 1003.0),
        (ROLLING, SET_ASIDE, 1003.0, 1008.0),
        (ROLLING, turns(over=False), -math.inf, 1000.0),
        (ROLLING, turns(over=True), -math.inf, 1008.0),
    ],
)
def test_it_is_the_first_beat_but_for_turns_and_nodes_that_are_set_aside(
    terms: LeaseTerms, memory: Mapping[str, Any], since: float, end: float
) -> None:
    standing = Standing.new(0.0)._replace(leases=HELD, memory=memory)
    assert next_decision_on_leases(standing, terms, HELD.running, since) == end
