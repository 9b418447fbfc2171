"""Jobs that Slurm alone can place, that are gated although they are not ours, and that ask for their own grace."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.slurm.harness import Site, stays, wait_until

pytestmark = pytest.mark.slurm
BOTH_GATES = pytest.mark.parametrize("gate", ["begin", "hold"])


@BOTH_GATES
def test_a_job_with_a_constraint_is_left_to_slurm_and_its_gate_is_taken_away(
    new_site: Callable[..., Site], gate: str
) -> None:
    site = new_site(gate)
    site.lab.run("scontrol", "update", "nodename=n3", "availablefeatures=big", "activefeatures=big")
    site.start()
    job = site.submit(1, "-C", "big")
    job.runs(10)
    assert job.now().nodes == ("n3",)
    assert "constraint" in site.cli("explain", job.label).stdout


@BOTH_GATES
def test_a_job_gated_at_submission_outside_the_scope_is_set_free(
    new_site: Callable[..., Site], gate: str
) -> None:
    site = new_site(gate).start()
    elsewhere = site.submit(1, "-p", "other")
    either = site.submit(1, "-p", "gpu,other")
    for job in (elsewhere, either):
        job.runs(10)


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
