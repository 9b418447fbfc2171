"""The guard: odd sights and large numbers are held back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.model import Action, JobState, Verb
from slurm_fair.model.ids import pack
from slurm_fair.reconcile import Limits, hold_back
from slurm_fair.reconcile.guard import living, oddity
from tests.support.builders import job, snapshot


def acts(verb: Verb, count: int, first: int = 1) -> list[Action]:
    """So many acts of a kind."""
    return [Action(verb, pack(base), base, 0.0, 0) for base in range(first, first + count)]


SIGHTS = {
    "a queue as long as before": (100, 100, ""),
    "a queue that grew": (100, 150, ""),
    "a queue that lost less than the alarm's part": (100, 71, ""),
    "a queue that lost more": (100, 69, "shrank from 100 to 69"),
    "an empty queue after a long one": (100, 0, "shrank from 100 to 0"),
    "a short queue may empty at once": (19, 0, ""),
    "twenty jobs are no short queue": (20, 13, "shrank from 20 to 13"),
    "the first look": (0, 5, ""),
}


@pytest.mark.parametrize(("before", "now", "said"), SIGHTS.values(), ids=SIGHTS)
def test_an_odd_sight_is_confirmed_first(before: int, now: int, said: str) -> None:
    shown = snapshot(nodes={"n1": 8}, jobs=[job(base) for base in range(1, now + 1)])
    odd = oddity(shown, living(shown), before, Limits(shrink_alarm=0.3))
    assert said in odd
    assert bool(said) == bool(odd)


def test_jobs_that_ended_count_as_gone() -> None:
    shown = snapshot(nodes={"n1": 8}, jobs=[job(base, state=JobState.DONE) for base in range(1, 101)])
    assert oddity(shown, living(shown), 100, Limits())


def test_a_cluster_without_nodes_is_odd() -> None:
    empty = snapshot(nodes={"n1": 8})
    none = empty.nodes.take(np.zeros(0, dtype=np.int64)).with_columns(names=(), why=())
    assert oddity(empty, 0, 0, Limits()) == ""
    assert "no node with GPUs in any partition" in oddity(replace(empty, nodes=none), 0, 0, Limits())
    said = oddity(replace(empty, nodes=none), 0, 0, Limits(partitions=("nosuch", "gpu")))
    assert said.startswith("no node with GPUs in [scope] partitions nosuch, gpu: ")
    assert said.endswith("mend [scope], see `slurm-fair check`")


@pytest.mark.parametrize(
    ("verb", "limits"),
    [
        (Verb.ASK, Limits(revokes=3)),
        (Verb.REQUEUE, Limits(revokes=3)),
        (Verb.OPEN, Limits(opens=3)),
        (Verb.CLOSE, Limits(closes=3)),
        (Verb.FREE, Limits(frees=3)),
    ],
)
def test_no_more_than_the_limit_of_a_kind_is_done_and_the_rest_is_told(verb: Verb, limits: Limits) -> None:
    allowed, note = hold_back(acts(verb, 5), limits)
    assert [a.record for a in allowed] == [1, 2, 3]
    assert note.startswith("2 of 5 acts wait for the next tick")


def test_each_kind_has_its_own_limit_and_the_order_stays() -> None:
    wanted = [*acts(Verb.ASK, 2), *acts(Verb.OPEN, 3, 10), *acts(Verb.CLOSE, 2, 20)]
    allowed, _ = hold_back(wanted, Limits(revokes=1, opens=2, closes=9))
    assert [a.record for a in allowed] == [1, 10, 11, 20, 21]


@pytest.mark.parametrize(
    ("revokes", "done"), [(0, []), (1, [10]), (2, [10, 11]), (3, [1, 10, 11]), (4, [1, 2, 10, 11])]
)
def test_asking_and_requeueing_share_a_limit_and_requeues_come_first(revokes: int, done: list[int]) -> None:
    allowed, note = hold_back([*acts(Verb.ASK, 2), *acts(Verb.REQUEUE, 2, 10)], Limits(revokes=revokes))
    assert [a.record for a in allowed] == done
    left = f"{4 - len(done)} of 4 acts wait for the next tick ([guard] limits)"
    assert note == ("" if len(done) == 4 else left)


def test_nothing_to_do_is_nothing_to_tell() -> None:
    assert hold_back([], Limits()) == ((), "")
