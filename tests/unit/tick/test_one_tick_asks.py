"""One tick, and jobs that are asked to give their GPUs back."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_fair.model import Action, LeasePhase, Outcome, Result, Standing, Verb
from slurm_fair.model.ids import pack
from slurm_fair.tick import open_requests
from tests.support.builders import lease, leases
from tests.support.tick_bench import BEGAN, StubCluster, TickBench, gated, kinds, running


def test_the_cluster_is_told_whose_answers_are_owed_and_since_when() -> None:
    asked = leases(
        lease(1, {"n1": 1}, phase=LeasePhase.REVOKING, asked=8000.0),
        lease(2, {"n1": 1}, phase=LeasePhase.REVOKING),
        lease(3, {"n1": 1}),
    )
    assert open_requests(Standing.new(BEGAN)._replace(leases=asked)) == {pack(1): 8000.0}


class Prompt(StubCluster):
    """A cluster whose jobs have nothing to save."""

    def actuate(self, actions: Sequence[Action]) -> tuple[Outcome, ...]:
        """A cluster where each job that is asked answers, and is requeued at once."""
        outcomes = StubCluster.actuate(self, actions)
        at_once = [action._replace(verb=Verb.REQUEUE) for action in actions if action.verb is Verb.ASK]
        return outcomes + StubCluster.actuate(self, at_once)


def test_a_job_that_answers_when_it_is_asked_is_requeued_in_the_same_tick() -> None:
    bench = TickBench()
    bench.cluster = Prompt()
    bench.see(gated(1, gpus=8))
    bench.see(running(1, BEGAN + 15, gpus=8), after=10)
    over = bench.standing.leases.end.tolist()[0] - bench.clock.now()
    done = bench.see(running(1, BEGAN + 15, gpus=8), gated(2, gpus=8), after=over)
    assert bench.acts() == ["ask 1", "requeue 1"]
    assert kinds(done)[-2:] == [("asked", 1), ("requeued", 1)]
    asked, requeued = bench.cluster.done
    assert (requeued.submit, requeued.restarts, requeued.record) == (
        asked.submit,
        asked.restarts,
        asked.record,
    )


def _until_over(bench: TickBench) -> float:
    """Seconds to the end of the first lease."""
    return float(bench.standing.leases.end.min()) - bench.clock.now()


def test_a_request_that_a_paused_look_gave_up_is_no_request_the_next_time() -> None:
    bench, runs = TickBench(), running(1, BEGAN + 15, gpus=8)
    bench.see(gated(1, gpus=8))
    bench.see(runs, after=10)
    bench.see(runs, gated(2, gpus=8), after=_until_over(bench))
    assert bench.acts() == ["ask 1"]
    bench.dry_run = True
    bench.see(runs, after=5)
    bench.dry_run = False
    bench.see(runs)
    bench.see(runs, gated(3, gpus=8), after=_until_over(bench))
    assert bench.acts() == ["ask 1"], "and it is not requeued for want of an answer to what nobody asked"


def test_whom_slurm_will_not_stop_is_left_alone_and_another_is_asked() -> None:
    bench = TickBench(judge=lambda action: Result.REFUSED if action.verb is Verb.ASK else Result.DONE)
    asked = []
    bench.see(gated(1), gated(2))
    for _ in range(2):
        bench.see(running(1, BEGAN + 15), running(2, BEGAN + 15), gated(3), after=_until_over(bench))
        asked.append([act for act in bench.acts() if act.startswith("ask")])
    first, second = asked
    assert len(first) == len(second) == 1
    assert first != second
