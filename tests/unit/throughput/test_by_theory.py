"""The theory answers of shapes that were not measured, and says how much it doubts that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slurm_fair.throughput import JobShapes, Keeping, Known, Links, learned
from slurm_fair.throughput.aged import AgedSamples, aged
from slurm_fair.throughput.by_theory import (
    LEAST_DOUBT,
    OTHER_TYPE_DOUBT,
    best_groups,
    theory_answers,
    type_speeds,
)
from slurm_fair.throughput.theory import Theory, theory
from tests.support.speed_samples import BERT, NAN, OTHER, measured, samples

UNKNOWN = Links.unknown()
Answers = tuple[list[float], list[float], list[float]]


def known(*rows: dict[str, Any]) -> tuple[AgedSamples, Theory]:
    of = aged(learned(Known(), samples(*rows), 0.0, Keeping()).samples, 0.0, Keeping())
    return of, theory(of, UNKNOWN)


def answers(
    of: tuple[AgedSamples, Theory],
    *shapes: tuple[int, int],
    kind: str = "a100",
    batch: float = NAN,
    most: int = 0,
    links: Links = UNKNOWN,
    group: int = 0,
) -> Answers:
    """Rates, doubts and observations for (GPUs, nodes), as one group foretells them."""
    count = len(shapes)
    zeros = np.zeros(count, dtype=np.int64)
    gpus, nodes = np.array(shapes, dtype=np.int64).reshape(-1, 2).T
    asked = JobShapes(
        zeros, zeros, gpus, nodes, zeros + most, np.full(count, batch), zeros - 1, (BERT,), (kind,)
    )
    rate, doubt, seen = theory_answers(*of, links, asked, zeros + group)
    return rate.tolist(), doubt.tolist(), seen.tolist()


# -- speeds of types ------------------------------------------------------------------------------------------


def test_a_type_that_nobody_measured_is_as_fast_as_the_reference() -> None:
    links = Links.given({"v100": {"speed": 0.4}, "a100": {"net": 1.0}})
    assert type_speeds(links, ("a100", "h100", "v100")).tolist() == [1.0, 1.0, 0.4, 1.0]
    assert type_speeds(links, ()).tolist() == [1.0]
    assert type_speeds(UNKNOWN, ("a100",)).tolist() == [1.0, 1.0]


# -- the group that answers -----------------------------------------------------------------------------------


def best(*rows: dict[str, Any]) -> dict[str, str]:
    """The GPU type by which each class is answered."""
    of, fitted = known(*rows)
    found = best_groups(of, fitted, np.arange(len(of.samples.classes)))
    kinds = [of.samples.gpu_types[of.gpu_type[group]] for group in found.tolist()]
    return dict(zip([each.tenant for each in of.samples.classes], kinds, strict=True))


def test_the_type_of_which_most_shapes_are_known_answers_for_a_class() -> None:
    rows = [measured(1, 1), measured(1, 1, kind="v100", job=50), measured(4, 2, kind="v100", job=50)]
    assert best(*rows) == {"lab": "v100"}
    assert best(*rows, measured(2, 1), measured(8, 2), measured(1, 1, cls=OTHER)) == {
        "lab": "a100",
        "rival": "a100",
    }


def test_many_samples_of_one_shape_are_one_observation() -> None:
    rows = [measured(1, 1, job=job) for job in range(9)]
    assert best(*rows, measured(1, 1, kind="v100", job=50), measured(2, 1, kind="v100", job=50)) == {
        "lab": "v100"
    }


def test_a_class_of_which_nothing_is_known_has_no_group() -> None:
    of, fitted = known(measured(1, 1))
    assert best_groups(of, fitted, np.array([-1, 0, -1])).tolist() == [-1, 0, -1]
    assert best_groups(of, fitted, np.zeros(0, dtype=np.int64)).tolist() == []


# -- answers --------------------------------------------------------------------------------------------------


def test_no_question_and_no_group_have_no_answer_but_the_quiet_one() -> None:
    of = known(measured(1, 1))
    assert answers(of) == ([], [], [])
    assert answers(of, (1, 1), (8, 2), group=-1) == ([1.0, 1.0], [1.0, 1.0], [0.0, 0.0])


def test_one_gpu_is_answered_as_it_was_measured_and_hardly_doubted() -> None:
    (rate,), (doubt,), (seen,) = answers(known(*[measured(1, 1, job=job) for job in range(20)]), (1, 1))
    assert rate == pytest.approx(32 / 0.2, rel=1e-3)
    assert LEAST_DOUBT < doubt < 0.1
    assert seen == 1


def test_the_answer_counts_the_observations_behind_it() -> None:
    of = known(measured(1, 1), measured(1, 1, job=2), measured(4, 2), measured(8, 2))
    assert answers(of, (1, 1), (64, 8))[2] == [3.0, 3.0]


def test_more_gpus_are_faster_less_than_in_proportion_and_more_doubted() -> None:
    rates, doubts, _ = answers(known(measured(1, 1)), (1, 1), (2, 1), (8, 1), (64, 8))
    each = np.array(rates) / [1, 2, 8, 64]
    assert (np.diff(rates) > 0).all()
    assert (np.diff(each) < 0).all()
    assert (np.diff(doubts) > 0).all()


def test_links_that_may_be_slow_are_doubted_though_they_cost_little_as_they_are_guessed() -> None:
    """At 0.06 s communication hides behind 0.1 s of computing, and slower by a deviation it does not."""
    _, (doubt,), _ = answers(known(measured(1, 1)), (2, 2))
    assert doubt > 0.4


def test_where_much_was_measured_what_the_theory_leaves_over_is_doubted_far_away() -> None:
    """Its own error is 0.2 in a shape like none that was measured, and next to none in one that was."""
    places = [(1, 1), (2, 1), (4, 1), (8, 1), (2, 2), (4, 2), (8, 2), (16, 2)]
    of = known(*[measured(*place, job=job) for job in range(12) for place in places])
    _, (here, near, far), _ = answers(of, (8, 2), (10, 2), (512, 64))
    assert here < 0.1 < near < 0.2 < far < 0.3


def test_on_another_type_the_rate_is_in_proportion_and_the_doubt_that_of_the_ratio() -> None:
    of = known(measured(1, 1))
    links = Links.given({"h100": {"speed": 3.0}, "a100": {"speed": 1.5}})
    (mine,), (sure,), _ = answers(of, (4, 1), links=links)
    (other,), (doubt,), _ = answers(of, (4, 1), kind="h100", links=links)
    assert other == pytest.approx(2 * mine)
    assert doubt**2 - sure**2 == pytest.approx(OTHER_TYPE_DOUBT**2 - LEAST_DOUBT**2)


@pytest.mark.parametrize("kind", ["", "no such type", "a100=1\x1b[31m" * 99])
def test_a_type_of_which_nobody_heard_counts_as_the_reference(kind: str) -> None:
    of = known(measured(1, 1))
    assert answers(of, (4, 1), kind=kind)[0] == pytest.approx(answers(of, (4, 1))[0])


def test_a_batch_that_nobody_named_is_the_usual_one() -> None:
    rows = [measured(1, 1, batch=16.0, job=job) for job in range(5)] + [measured(1, 1, batch=64.0)]
    of = known(*rows)
    assert answers(of, (1, 1)) == answers(of, (1, 1), batch=16.0)
    assert answers(of, (1, 1), batch=64.0)[0] == pytest.approx([64 / 0.2], rel=0.02)


@pytest.mark.parametrize("batch", [1.0, 320.0, 3.2e6])
def test_beyond_the_batches_that_were_measured_a_step_grows_by_a_power_and_is_doubted(batch: float) -> None:
    """A step takes 0.2 s with 32 and grows by the power 0.8."""
    of = known(measured(1, 1, batch=32.0))
    (rate,), (doubt,), _ = answers(of, (1, 1), batch=batch)
    assert rate == pytest.approx(batch / (0.2 * (batch / 32) ** 0.8), rel=0.03)
    (before,) = answers(of, (1, 1), batch=32.0)[1]
    assert doubt**2 - before**2 > 0.9 * (0.3 * np.log(batch / 32)) ** 2


def test_gpus_that_lie_unevenly_are_another_shape() -> None:
    """GPUs of one node share something, which takes longer where more of them are on it."""
    of = known(measured(1, 1))
    (even,), (uneven,) = answers(of, (8, 2))[0], answers(of, (8, 2), most=7)[0]
    assert uneven < even
    assert answers(of, (8, 2), most=4)[0] == [even]


def test_each_question_is_answered_by_its_own_group() -> None:
    of = known(measured(1, 1), {**measured(1, 1, cls=OTHER), "rate": 3200.0})
    slow, fast = (answers(of, (1, 1), group=group)[0][0] for group in (0, 1))
    assert [slow, fast] == pytest.approx([160.0, 3200.0], rel=0.01)
