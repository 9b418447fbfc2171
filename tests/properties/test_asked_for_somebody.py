"""Nobody gives GPUs back for nobody: whenever a job is requeued, another has been promised GPUs of its nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from slurm_fair.model import LeasePhase, Standing, TickRecord
from slurm_fair.model.columns import find
from tests.support.any_scenario import Case, Hitches, cases, play
from tests.support.every_policy import EVERY, MOVE_JOBS


class ForSomebody:
    """A listener of a simulation that looks at each requeue."""

    def __init__(self) -> None:
        self.requeues = 0

    def __call__(self, tick: TickRecord, standing: Standing) -> None:
        asked = [event for event in tick.events if event.kind == "requeued"]
        jobs, leases = tick.snapshot.jobs, standing.leases
        promised = leases.phase == LeasePhase.GRANTED
        places = leases.promises_by(leases.key, tick.snapshot.nodes.names)
        for event in asked:
            self.requeues += 1
            row = int(find(jobs.key, np.array([event.key]))[0])
            nodes = tick.snapshot.held.nodes_of(row)
            theirs = (
                np.isin(places.node, nodes) & promised[places.row] & (leases.key[places.row] != event.key)
            )
            assert theirs.any(), f"{event.key} gives way to nobody on {nodes.tolist()} at {tick.time}"
            assert event.key not in standing.asked_for[event.key], "it is to move"


@pytest.mark.parametrize("policy", [name for name in EVERY if name not in MOVE_JOBS])
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=cases())
def test_a_job_is_requeued_only_for_another(policy: str, case: Case) -> None:
    quiet = replace(case, hitches=Hitches(), scenario=replace(case.scenario, outages=()))
    play(quiet, policy, ForSomebody())
