"""The promises of every Cluster, held up to the fake, the virtual cluster and a real Slurm under both gates.

This is what makes the first two trustworthy: where one of them differs from Slurm, it is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from slurm_fair.lab import Lab, available
from slurm_fair.model import Blind, JobState, Result, Verb
from tests.contract.others import RUNNING
from tests.contract.stages import SPEC, FakeStage, Job, RealStage, Sentence, Stage, action, do, state, until
from tests.contract.surroundings import SURROUNDINGS
from tests.contract.virtual import VirtualStage
from tests.contract.waiting import WAITING

needs_slurm = [pytest.mark.slurm, pytest.mark.skipif(available() is not None, reason=str(available()))]
STAGES = {
    "fake begin": [],
    "fake hold": [],
    "virtual begin": [],
    "virtual hold": [],
    "slurm begin": needs_slurm,
    "slurm hold": needs_slurm,
}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """One Slurm for all sentences."""
    with Lab(spec=SPEC) as private:
        yield private


@pytest.fixture
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """The fake, the virtual cluster or a real Slurm, with one of the gates."""
    kind, gate = request.param.split()
    made: Stage
    if kind == "slurm":
        made = RealStage(request.getfixturevalue("lab"), gate)
    else:
        made = FakeStage(gate) if kind == "fake" else VirtualStage(gate)
    yield made
    made.clear()


def cases() -> Iterator[object]:
    """Every sentence on every stage; a real Slurm keeps those that have nothing to do with the gate once."""
    for promises in (WAITING, RUNNING, SURROUNDINGS):
        for holds in promises.all:
            for stage, marks in STAGES.items():
                if promises is SURROUNDINGS and stage.startswith("virtual"):
                    continue  # it has none of these
                if stage != "slurm hold" or holds.__name__ not in promises.of_any_gate:
                    yield pytest.param(stage, holds, marks=marks, id=f"{stage}: {holds.__name__}")


@pytest.mark.parametrize(("stage", "holds"), list(cases()), indirect=["stage"])
def test_every_cluster(stage: Stage, holds: Sentence) -> None:
    holds(stage)


@pytest.mark.parametrize(
    "stage",
    [pytest.param(stage, marks=marks, id=stage) for stage, marks in STAGES.items() if stage != "slurm hold"],
    indirect=True,
)
def test_a_cluster_without_its_controller_is_blind_and_nothing_is_done_to_it(stage: Stage) -> None:
    label = stage.submit(Job())
    planned = action(stage, Verb.OPEN, label, nodes=("n1",))
    stage.cut(dead=True)
    try:
        blind = stage.cluster.observe({})
        assert isinstance(blind, Blind)
        assert blind.reason
        assert do(stage, planned).result is not Result.DONE
    finally:
        stage.cut(dead=False)
    until(stage, lambda: not isinstance(stage.cluster.observe({}), Blind), "it is seen again", 20)
    assert state(stage, label) == JobState.WAITING
