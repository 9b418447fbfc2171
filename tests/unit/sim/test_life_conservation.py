"""No work is lost and none is done twice on a virtual cluster, whatever is done to jobs and nodes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_fair.model import Gate, JobState, Result, Snapshot, Verb
from slurm_fair.model.ids import label
from slurm_fair.sim import Books, Costs, Manners, NodeEvent, Outage, Scenario, Simulation, rules_for, simulate
from slurm_fair.sim.world.life import Tally
from slurm_fair.trace import uniform
from tests.support.any_scenario import machines
from tests.support.simulated import Arrival, arrivals, trace
from tests.support.virtual_scene import Scene

STORIES = st.lists(
    st.tuples(
        st.sampled_from(("ask", "requeue", "open", "free", "close", "fail", "drain", "resume", "submit", "hold",
                         "release", "lend")),
        st.integers(0, 5),
        st.sampled_from((0.0, 1.0, 3.0, 7.5, 20.0)),
    ),
    max_size=40,
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    story=STORIES,
    costs=st.builds(
        Costs,
        checkpoint=st.sampled_from((0.0, 4.0)),
        restart=st.sampled_from((0.0, 6.0)),
        requeue_delay=st.sampled_from((0.0, 5.0)),
    ),
    gate=st.sampled_from(Gate),
    leaves_in=st.sampled_from((0.0, 2.0)),
)
def test_whatever_is_done_to_jobs_they_do_their_work_once_and_every_held_second_is_accounted_for(
    story: list[tuple[str, int, float]], costs: Costs, gate: Gate, leaves_in: float
) -> None:
    scene = Scene(costs=costs, manners=Manners(gate, 10_000.0, patience_seconds=15.0))
    keys = [
        scene.submit(gpus, seconds, leaves_in=leaves_in) for gpus, seconds in ((8, 30.0), (4, 50.0), (2, 9.0))
    ]
    now = 0.0
    for what, number, wait in story:
        tell(scene, what, number, keys, leaves_in)
        now += wait
        scene.at(now)
        within_the_machines(scene.look())
    scene.hands.lend("n1", -99)
    for node in ("n1", "n2"):
        scene.hands.resume(node)
    for key in keys:
        scene.hands.release(key)
        if scene.job(key)["state"] == JobState.WAITING:
            scene.act(Verb.FREE, key)
    for _ in range(200):  # whatever is requeued behind a gate again is freed again
        now += 20
        scene.at(now)
        waiting = [key for key in keys if scene.job(key)["state"] == JobState.WAITING]
        for key in waiting:
            scene.act(Verb.FREE, key)
    jobs = scene.cluster.jobs
    assert (jobs.state[: jobs.count] == JobState.DONE).all()
    assert jobs.done[: jobs.count].tolist() == jobs.work[: jobs.count].tolist()
    work = float((jobs.work * jobs.gpus)[: jobs.count].sum())
    held = sum(run.gpus * (run.end - run.start) for run in scene.books.over)
    assert held == pytest.approx(scene.cluster.tally.held_gpu_seconds)
    assert held == pytest.approx(work + scene.lost, abs=1e-3)
    for key in keys:
        chained(scene.books, key)


def tell(scene: Scene, what: str, number: int, keys: list[int], leaves_in: float) -> None:
    """One thing that happens."""
    node = "n1" if number % 2 else "n2"
    key = keys[number % len(keys)]
    if what in ("fail", "drain", "resume"):
        getattr(scene.hands, what)(node)
    elif what == "lend":
        scene.hands.lend(node, number - 2)
    elif what == "submit":
        keys.append(scene.submit(1 + number, 10.0 + number, leaves_in=leaves_in, gated=number % 3 > 0))
    elif what in ("hold", "release"):
        getattr(scene.hands, what)(key)
    else:
        scene.act(Verb(what), key, node, until=scene.clock.now() + 30)


def within_the_machines(snapshot: Snapshot) -> None:
    """Capacity, whole gangs, nobody holds who does not run."""
    jobs, held = snapshot.jobs, snapshot.held
    taken = held.per_node(len(snapshot.nodes)) + snapshot.nodes.gpus_others
    assert (taken <= snapshot.nodes.gpus).all()
    gangs = np.bincount(held.row, held.gpus, len(jobs)).astype(np.int64)
    assert (gangs == np.where(jobs.holds_gpus, jobs.gpus, 0)).all(), [label(key) for key in jobs.key.tolist()]


def chained(books: Books, key: int) -> None:
    """Each run begins with what the one before it saved, and none ran while another did."""
    runs = list(books.of(key))
    assert [run.restarts for run in runs] == list(range(len(runs)))
    assert runs[0].resumed_from == 0
    for before, after in itertools.pairwise(runs):
        assert after.resumed_from == before.saved <= before.reached
        assert after.start >= before.end


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    jobs=arrivals(1200, seconds=(10, 1500), most=10),
    down=st.integers(0, 1500),
    costs=st.builds(Costs, checkpoint=st.sampled_from((0.0, 5.0)), restart=st.sampled_from((0.0, 20.0))),
)
def test_a_simulation_with_an_outage_loses_time_and_no_work_and_is_the_same_twice(
    jobs: list[Arrival], down: int, costs: Costs
) -> None:
    outages = (Outage(down, "n1", NodeEvent.DOWN), Outage(down + 333, "n1", NodeEvent.UP))
    scenario = Scenario(trace(jobs), uniform(8, 4), costs, outages=outages)

    def once() -> tuple[Tally, list[float]]:
        seen: list[Simulation] = []
        rules = rules_for("astraea", {}, lease=300.0, checkpoint_cost=costs.checkpoint)
        result = simulate(scenario, rules, after_look=seen.append)
        assert result.outcomes.completed.all()
        return seen[0].cluster.tally, np.sort(result.outcomes.ended_or_now).tolist()

    tally, ends = once()
    work = sum(job.gpus * job.seconds for job in jobs)
    assert tally.held_gpu_seconds == pytest.approx(work + tally.lost_gpu_seconds, rel=1e-6, abs=0.1)
    assert once() == (tally, ends)


def test_what_is_lost_of_a_run_is_the_time_that_it_took_however_fast_the_gpus() -> None:
    scene = Scene(machines=machines((8,), "f"))
    key = scene.runs(seconds=200, checkpoints=False)
    assert scene.at(40).act(Verb.REQUEUE, key).result is Result.DONE
    assert scene.lost == pytest.approx(8 * 40)
    assert scene.act(Verb.OPEN, key, "n1").result is Result.DONE
    assert scene.at(400).ended(key) == pytest.approx(40 + 200 / 2)
