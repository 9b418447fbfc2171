"""The rules of `slurm-fair policies check`, held to every policy that is installed here."""

from __future__ import annotations

from typing import Any

import pytest

from slurm_fair.cli.policies_check import _kept
from slurm_fair.policy import load, names
from slurm_fair.policy.trial import PolicyTrial
from slurm_fair.sim.trial import TrialStage, simulated_views, stages

VIEWS = 6
BY_SOLVER = {"allox", "gavel", "gavel-ftf", "hops", "mst", "ossp", "pollux", "sia"}


@pytest.mark.parametrize("stage", stages(), ids=["one type", "two types"])
@pytest.mark.parametrize("policy", names())
def test_every_policy_keeps_to_every_rule(policy: str, stage: TrialStage) -> None:
    settings: dict[str, Any] = {}
    seen = simulated_views(policy, settings, stage, VIEWS)
    trial = PolicyTrial(lambda: load(policy, settings), _kept)
    trial.on(seen.views)
    assert (seen.error, trial.faults) == (None, ())
    assert set(trial.left_out) == ({"rows"} if policy in BY_SOLVER else set())
    assert len(seen.views) == VIEWS
