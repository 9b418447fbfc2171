"""Acts that Slurm refuses or leaves without an answer, in whole simulations: nobody waits for them without end."""

from __future__ import annotations

import pytest

from slurm_fair.model import Verb
from slurm_fair.sim import Hitch, Scenario
from slurm_fair.trace import uniform
from tests.support.any_scenario import Case, Hitches, play
from tests.support.simulated import Arrival, Rounds, arrival, trace
from tests.support.witness import Witness

LONG = Rounds(lease=600.0, aligned=False)


def starts(jobs: list[Arrival], hitches: Hitches, gpus: int = 2) -> list[float]:
    """The first start of each job, watched by a witness; a job that has saved waits for a minute."""
    case = Case(Scenario(trace(jobs), uniform(gpus, 1)), LONG, tuple(jobs), (), hitches, 60.0)
    result = play(case, "astraea", Witness(), wants=Witness.wants).result
    assert result.outcomes.completed.all()
    begun: list[float] = (result.outcomes.start - result.epoch).tolist()
    return begun


@pytest.mark.parametrize("verb", [Verb.ASK, Verb.REQUEUE])
def test_who_was_promised_the_gpu_of_a_job_that_never_stops_takes_the_next_that_comes_free(
    verb: Verb,
) -> None:
    """The first lease is over at 600 s and its job stays; the other GPU comes free at 700 s."""
    jobs = [
        arrival(0, seconds=2000),
        arrival(300, seconds=400, tenant="b"),
        arrival(310, seconds=50, tenant="c"),
    ]
    assert starts(jobs, Hitches(never_stops=0, verb=verb)) == [0.0, 300.0, 700.0]


@pytest.mark.parametrize(
    ("hitch", "start"),
    [(Hitch.NEVER, 10.0), (Hitch.LATER, 10.0), (Hitch.UNHEARD, 0.0), (Hitch.LOST, 100.0)],
)
def test_a_start_that_was_refused_or_lost_is_tried_again(hitch: Hitch, start: float) -> None:
    """At the next look; what may have been done is waited for a minute, and half a minute more."""
    assert starts([arrival(0, seconds=50)], Hitches({(Verb.OPEN, 0): hitch})) == [start]


@pytest.mark.parametrize("hitch", list(Hitch))
@pytest.mark.parametrize("verb", [Verb.ASK, Verb.REQUEUE])
def test_a_stop_that_was_refused_or_lost_once_is_made_good(verb: Verb, hitch: Hitch) -> None:
    """The two share the one GPU in each case; a refusal for good costs the one that waits two more leases."""
    jobs = [arrival(0, seconds=2500), arrival(10, seconds=300, tenant="b")]
    _, second = starts(jobs, Hitches({(verb, 0): hitch}), gpus=1)
    assert second == pytest.approx(1800.0 if hitch is Hitch.NEVER else 600.0, abs=60.0)
