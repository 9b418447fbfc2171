"""The accounts of a simulation that was played: work, outages, and seconds that were held."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from slurm_fair.sim import NodeEvent
from slurm_fair.sim.world.books import Run
from tests.support.any_scenario import Case, Played


def every_account(played: Played) -> None:
    """All that must be true at the end of a simulation."""
    everybody_ended(played)
    work_was_done_once(played)
    no_node_out_of_service_took_a_job(played)
    held_time_is_work_and_what_changing_hands_costs(played)
    the_account_says_what_the_books_say(played)


def everybody_ended(played: Played) -> None:
    """All jobs are over, and all that nobody cancelled are complete."""
    outcomes, gone = played.result.outcomes, {row for _, row in played.case.cancels}
    assert len(outcomes) == len(played.case.jobs)
    assert outcomes.over.all(), "a job never ended"
    cut_short = set(played.result.trace_row[~outcomes.completed].tolist())
    assert cut_short <= gone, "a job that nobody cancelled did not complete"


def runs_of(played: Played) -> dict[int, list[Run]]:
    """The runs of every row of the trace, in order."""
    jobs = played.simulation.cluster.jobs
    return {
        row: [run for run in played.over if run.key == jobs.key[row]] for row in range(len(played.case.jobs))
    }


def work_was_done_once(played: Played) -> None:
    """Each run begins with what the one before it saved, and the last one ends with the whole work done."""
    for row, runs in runs_of(played).items():
        work = played.case.jobs[row].seconds
        assert [run.restarts for run in runs] == list(range(len(runs)))
        assert all(run.start >= played.result.epoch + played.case.jobs[row].at for run in runs)
        assert not runs or runs[0].resumed_from == 0
        for before, after in itertools.pairwise(runs):
            assert after.start >= before.end
            assert after.resumed_from == before.saved <= before.reached
        completed = bool(runs) and runs[-1].word == "COMPLETED"
        assert not completed or runs[-1].reached == work
        assert all(run.reached <= work for run in runs)
        assert completed or row in {row for _, row in played.case.cancels}


def no_node_out_of_service_took_a_job(played: Played) -> None:
    """Nobody starts on a node that is drained or down, and nobody runs on one that is down."""
    ups = [each for each in played.case.scenario.outages if each.event is NodeEvent.UP]
    for outage in played.case.scenario.outages:
        if outage.event is NodeEvent.UP:
            continue
        back = next(up.time_s for up in ups if up.node == outage.node)
        first, last = played.result.epoch + outage.time_s, played.result.epoch + back
        for run in itertools.chain(*runs_of(played).values()):
            if outage.node in run.nodes:
                assert not first < run.start < last, "it started on a node that takes no work"
                down = outage.event is NodeEvent.DOWN
                assert not down or run.end <= first or run.start >= last, "it ran on a node that was down"


def held_time_is_work_and_what_changing_hands_costs(played: Played) -> None:
    """Work at the speed that its places allow, and what is counted as lost; in Gavel's rounds, their rest."""
    tally, useful, rests = played.simulation.cluster.tally, 0.0, 0.0
    for row, runs in runs_of(played).items():
        for run in runs:
            kept = run.reached if run.word in ("COMPLETED", "CANCELLED") else run.saved
            needed = (kept - run.resumed_from) / speed(played.case, row, run)
            assert run.end - run.start >= needed - 1e-6, "more work was done than there was time for"
            useful += needed * run.gpus
            rests += played.case.lease * run.gpus if run.word == "COMPLETED" else 0.0
    held = sum(run.gpus * (run.end - run.start) for run in played.over)
    assert held == pytest.approx(tally.held_gpu_seconds)
    over = held - useful - tally.lost_gpu_seconds
    assert -1e-2 <= over <= (rests if played.case.how.rounds == "gavel" else 1e-2)


def speed(case: Case, row: int, run: Run) -> float:
    """The speed of a gang against well placed GPUs of the reference type: the slowest counts, lying apart costs.

    With another size than the usual one it is as fast as was measured, else by the assumed power of its GPUs.
    """
    job, floor, measured = case.jobs[row], case.scenario.machines, case.scenario.throughputs
    nodes = run.nodes
    at = [floor.names.index(name) for name in nodes]
    per_type = {floor.gpu_types[floor.gpu_type[node]]: float(floor.speed[node]) for node in at}
    spread = 1.0 if math.isnan(job.sensitivity) else 1.0 / job.sensitivity
    if measured is not None and job.model:
        alone = measured.steps_per_second(job.model, 16, job.gpus) or 0.0
        there, apart = (
            min(
                measured.steps_per_second(job.model, 16, run.gpus, kind, placement) or 0.0
                for kind in per_type
            )
            for placement in ("consolidated", "unconsolidated")
        )
        slowest, spread = there / alone, apart / there
    else:
        slowest = min(per_type.values()) * (run.gpus / job.gpus) ** case.scenario.elastic_exponent
    sizes = np.cumsum(np.sort(floor.gpus)[::-1])
    fewest = max(int(np.searchsorted(sizes, run.gpus)) + 1, job.nodes)
    if len(set(floor.rack[at].tolist())) > 1:
        return slowest / (1.0 + 3.0 * (1.0 / spread - 1.0))
    return slowest * (spread if len(nodes) > fewest else 1.0)


def the_account_says_what_the_books_say(played: Played) -> None:
    """The ledger's account of every job, and the summary, add up to what the cluster itself noted."""
    outcomes, result = played.result.outcomes, played.result
    runs = runs_of(played)
    if played.case.how.rounds == "conserving":
        by_job = [runs[row] for row in result.trace_row.tolist()]
        for account, weighed in ((outcomes.ran, False), (outcomes.held, True)):
            held, missed = (
                np.array([sum(of(run) * (run.gpus if weighed else 1) for run in of_job) for of_job in by_job])
                for of in (lambda run: run.end - run.start, lambda run: unseen_seconds(run, played.case))
            )
            assert (account <= held + 1e-3).all()
            assert (account >= held - missed - 1e-3).all()
    assert outcomes.waited + outcomes.ran == pytest.approx(outcomes.end - outcomes.submit, abs=1e-3)
    begun = np.array([len(runs[row]) for row in result.trace_row.tolist()])
    assert (outcomes.restarts[outcomes.completed] == begun[outcomes.completed] - 1).all()
    assert result.summary.gpu_seconds == pytest.approx(float(outcomes.held.sum()), rel=1e-6)
    rigid = np.array([not played.case.jobs[row].choices for row in result.trace_row.tolist()])
    assert outcomes.held[rigid] == pytest.approx((outcomes.ran * outcomes.gpus)[rigid], rel=1e-6)


def unseen_seconds(run: Run, case: Case) -> float:
    """Seconds of a run that a failing node ended before a look saw it: then Slurm has forgotten its start."""
    brief = run.word == "NODE_FAIL" and run.end - run.start <= case.how.interval
    return run.end - run.start if brief else 0.0
