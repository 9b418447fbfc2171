"""Jobs that Slurm alone can place, that are gated although they are not ours, and that ask for their own grace."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from slurm_fair.lab import Lab
from tests.slurm.harness import Site, stays, wait_until

pytestmark = pytest.mark.slurm
BOTH_GATES = pytest.mark.parametrize("gate", ["begin", "hold"])


@pytest.fixture
def features(scenario_lab: Lab) -> Iterator[None]:
    """Two kinds of nodes."""
    kinds = {"n1": "small,old", "n2": "small,new", "n3": "big,new"}
    _tell(scenario_lab, kinds)
    yield
    _tell(scenario_lab, dict.fromkeys(kinds, ""))


def _tell(lab: Lab, features: dict[str, str]) -> None:
    for node, words in features.items():
        lab.run(
            "scontrol", "update", f"nodename={node}", f"availablefeatures={words}", f"activefeatures={words}"
        )


@BOTH_GATES
def test_jobs_with_a_constraint_are_planned_on_nodes_that_have_it(
    new_site: Callable[..., Site], features: None, gate: str
) -> None:
    site = new_site(gate).start()
    wishes = {
        "big": "n3",
        "small&new": "n2",
        "big|small&old": "n1",
        "[big|new]&big": "n3",
        "small*1&old": "n1",
    }
    jobs = [(site.submit(2, "-C", text), node) for text, node in wishes.items()]
    for job, node in jobs:
        job.runs()
        assert site.planned(job) == [(node,)]
        assert job.now().nodes == (node,)
        assert job.now().restarts == 0


@BOTH_GATES
def test_a_job_with_a_constraint_waits_for_its_turn_and_gives_way(
    new_site: Callable[..., Site], features: None, gate: str
) -> None:
    site = new_site(gate).start()
    first = site.submit(8, "-C", "big").runs()
    other = site.submit(8, "-C", "big", tenant="nlp")
    other.runs(6 * site.term)
    wait_until(lambda: "ask done" in site.acts(first), site.term, "it was asked to make room")


@BOTH_GATES
def test_a_job_gated_at_submission_outside_the_scope_is_set_free(
    new_site: Callable[..., Site], gate: str
) -> None:
    site = new_site(gate).start()
    elsewhere = site.submit(1, "-p", "other")
    elsewhere.runs(10)


@BOTH_GATES
def test_a_job_that_names_several_partitions_is_planned_on_the_managed_ones(
    new_site: Callable[..., Site], gate: str
) -> None:
    site = new_site(gate).start()
    either = site.submit(1, "-p", "gpu,other")
    either.runs(10)
    assert site.planned(either)
    assert either.now().nodes in (("n1",), ("n2",), ("n3",))


@BOTH_GATES
def test_a_hold_of_somebody_else_outside_the_scope_stays(new_site: Callable[..., Site], gate: str) -> None:
    site = new_site(gate).start()
    job = site.submit(1, "-p", "other", "-H", gated=False)
    stays(lambda: job.now().priority == 0, 4, "its user's hold")


def test_a_job_that_asks_for_a_longer_grace_gets_it(new_site: Callable[..., Site]) -> None:
    site = new_site("begin", {"grace": 1})
    site.start()
    patient = site.submit(24, "--comment=slurm_fair:v1,signal=USR2,grace=6", manner="deaf", gated=False)
    patient.runs()
    site.submit(24, tenant="nlp")
    wait_until(lambda: "ask done" in site.acts(patient), 3 * site.term, "asked")
    stays(lambda: patient.now().state == "RUNNING", 3, "within its own grace")
    wait_until(lambda: "requeue done" in site.acts(patient), 8, "requeued when its grace is over")


def test_a_job_that_asks_for_a_whole_node_comes_to_another_than_the_one_in_use(
    new_site: Callable[..., Site],
) -> None:
    site = new_site("begin", {"start_timeout": 2}).start()
    neighbour = site.submit(1).runs()
    alone = site.submit(1, "--exclusive", tenant="nlp")
    alone.runs(60)
    assert set(alone.now().nodes).isdisjoint(neighbour.now().nodes)
