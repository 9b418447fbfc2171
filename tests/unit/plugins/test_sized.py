"""Sia and Pollux: sizes by counting GPUs, places afterwards."""

from __future__ import annotations

import pytest

from slurm_fair.model import JobState, Verdict
from slurm_fair.policy import load
from tests.support.accounts import places, verdicts
from tests.support.builders import NodeSpec, job, node
from tests.support.sized_views import NOW, TYPES, granted, sight


@pytest.mark.parametrize("name", ["sia", "pollux"])
def test_gpus_are_shared_out_in_sizes_rather_than_to_the_first(name: str) -> None:
    jobs = [job(1, gpus=8), job(2, gpus=8)]
    seen = sight(jobs, {"n1": 8}, {0: (2, 4, 8), 1: (2, 4, 8)})
    assert granted(name, seen) == {"1": {"n1": 4}, "2": {"n1": 4}}


@pytest.mark.parametrize("name", ["sia", "pollux"])
def test_a_running_job_that_keeps_its_size_stays(name: str) -> None:
    jobs = [job(1, gpus=4, state=JobState.RUNNING, start=0, on={"n2": 4}), job(2, gpus=4)]
    seen = sight(jobs, {"n1": 4, "n2": 4}, over={1: {"n2": 4}})
    made = load(name, {}).plan(seen)
    assert verdicts(seen.snapshot, made) == {"1": Verdict.RENEW, "2": Verdict.GRANT}
    assert places(seen.snapshot, made) == {"2": {"n1": 4}}


def test_a_change_that_costs_more_than_it_gains_is_not_made() -> None:
    running = job(1, gpus=4, state=JobState.RUNNING, start=NOW - 100, submit=NOW - 100, on={"n1": 4})
    seen = sight([running], TYPES, rates=[[1.0, 1.2]], over={1: {"n1": 4}})
    cheap = load("sia", {"restart_seconds": 0.0}).plan(seen)
    assert verdicts(seen.snapshot, cheap) == {"1": Verdict.REVOKE}
    dear = load("sia", {"restart_seconds": 30.0}).plan(seen)
    assert verdicts(seen.snapshot, dear) == {"1": Verdict.RENEW}


def test_a_chosen_job_for_which_there_is_no_place_waits() -> None:
    """Eight GPUs are free, and four jobs of two on nodes that have three or one free."""
    nodes: dict[str, int | NodeSpec] = {
        "n1": node(4, gpus_others=1),
        "n2": node(4, gpus_others=1),
        "n3": node(4, gpus_others=2),
    }
    found = granted("sia", sight([job(base, gpus=2) for base in (1, 2, 3, 4)], nodes))
    assert sorted(found) == ["1", "2", "3"]


def test_a_gang_larger_than_a_node_takes_idle_nodes() -> None:
    assert granted("sia", sight([job(1, gpus=6)], {"n1": 4, "n2": 4})) == {"1": {"n1": 4, "n2": 2}}
