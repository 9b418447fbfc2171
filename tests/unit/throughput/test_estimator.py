"""The estimator: which layer answers, and how far a job of a known law is foretold."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.throughput import JobClass, Keeping, Links, SpeedLayer
from tests.support.speed_samples import BERT, DAY, OTHER, asked, knowing, law, measured

LINKS = Links(
    np.array([15.0]), np.array([1.0]), np.array([np.inf]), np.array([np.inf]), np.ones(1), ("a100",)
)


def speeds_alone(faster: float) -> Links:
    """An A100 is so much faster than a V100; nobody measured links."""
    return Links.unknown(("v100", "a100")).with_columns(speed=np.array([1.0, faster]))


def test_the_node_itself_answers_first_then_its_type_then_the_theory() -> None:
    slow = [measured(1, 1, node="old", job=job) for job in range(3)]
    slow = [{**row, "rate": 0.7 * row["rate"]} for row in slow]
    fast = [measured(1, 1, node="new", job=10 + job) for job in range(9)]
    known = knowing(*slow, *fast)
    of_old, of_type = asked(known, (1, 1), node="old"), asked(known, (1, 1))
    assert of_old.layer.tolist() == [SpeedLayer.ENTITY]
    assert of_old.rate[0] == pytest.approx(0.7 * 160, rel=1e-3)
    assert of_type.layer.tolist() == [SpeedLayer.TYPE]
    assert of_type.rate[0] == pytest.approx(160, rel=0.03)
    assert asked(known, (1, 1), node="another").layer.tolist() == [SpeedLayer.TYPE]
    assert asked(known, (4, 1)).layer.tolist() == [SpeedLayer.THEORY]


def test_one_gpu_and_one_distributed_measurement_foretell_the_other_shapes() -> None:
    known = knowing(measured(1, 1), measured(4, 2), links=LINKS)
    shapes = [(2, 2), (8, 2), (16, 2), (8, 4), (2, 1), (4, 1), (8, 1)]
    answer = asked(known, *shapes)
    gpus, nodes = np.array(shapes).T
    truth = 32 * gpus / law(gpus, nodes)
    assert (answer.layer == SpeedLayer.THEORY).all()
    assert np.abs(answer.rate / truth - 1).max() < 0.15
    assert np.median(np.abs(answer.rate / truth - 1)) < 0.05


def test_more_measurements_leave_less_doubt() -> None:
    few = asked(knowing(measured(1, 1)), (8, 2)).doubt[0]
    more = asked(knowing(measured(1, 1), measured(4, 2)), (8, 2)).doubt[0]
    most = asked(knowing(measured(1, 1), measured(4, 2), measured(16, 2), measured(9, 2)), (8, 2)).doubt[0]
    assert few > 3 * more > 3.3 * most > 0.1


def test_a_class_that_was_never_measured_counts_gpus_and_says_how_little_that_is() -> None:
    links = speeds_alone(2.5)
    known = knowing(measured(1, 1, cls=OTHER), links=links)
    answer = asked(known, (1, 1), (8, 1))
    assert answer.rate.tolist() == [2.5, 20.0]
    assert answer.layer.tolist() == [SpeedLayer.NOTHING] * 2
    assert answer.doubt.tolist() == [0.5, 0.5]


def test_nothing_at_all_is_known_and_all_is_answered() -> None:
    answer = asked(knowing(), (1, 1), (64, 8))
    assert answer.rate.tolist() == [1.0, 64.0]
    assert asked(knowing()).rate.tolist() == []


def test_another_gpu_type_answers_by_the_ratio_of_speeds_and_is_doubted() -> None:
    links = speeds_alone(3.0)
    known = knowing(measured(1, 1, kind="v100"), measured(4, 2, kind="v100"), links=links)
    here, there = asked(known, (3, 1), kind="v100"), asked(known, (3, 1), kind="a100")
    assert there.layer.tolist() == [SpeedLayer.OTHER_TYPE]
    assert there.rate[0] == pytest.approx(3 * here.rate[0])
    assert there.doubt[0] > 0.35


def test_each_batch_size_has_its_own_speed() -> None:
    small = [measured(1, 1, batch=8.0, job=job) for job in range(5)]
    large = {**measured(1, 1, batch=64.0, job=9), "rate": 400.0}
    known = knowing(*small, large)
    assert asked(known, (1, 1)).rate[0] == pytest.approx(8 / 0.2)
    assert asked(known, (1, 1), batch=64.0).rate[0] == pytest.approx(400.0)
    between = asked(known, (1, 1), batch=20.0)
    assert between.layer.tolist() == [SpeedLayer.THEORY]
    assert 8 / 0.2 < between.rate[0] < 400.0
    assert between.doubt[0] > asked(known, (2, 1), batch=64.0).doubt[0] / 4


def test_phases_alone_tell_what_one_gpu_does() -> None:
    phases = {"forward": 0.08, "backward": 0.1, "update": 0.02, "data": 0.05, "pattern": 2}
    known = knowing(measured(8, 2, **phases))
    assert asked(known, (1, 1)).rate[0] == pytest.approx(32 / 0.25, rel=0.15)


def test_data_that_are_loaded_meanwhile_cost_nothing_until_they_are_the_longer() -> None:
    phases = {"forward": 0.08, "backward": 0.1, "update": 0.02, "data": 0.05, "pattern": 1}
    assert asked(knowing(measured(8, 2, **phases)), (1, 1)).rate[0] == pytest.approx(32 / 0.2, rel=0.15)


def test_a_sample_counts_half_after_its_half_life() -> None:
    row = measured(1, 1)
    new, old = knowing(row), knowing(row, now=14 * DAY)
    assert asked(new, (1, 1)).count.tolist() == [1.0]
    assert asked(old, (1, 1)).count[0] == pytest.approx(0.5)
    assert asked(old, (1, 1)).doubt[0] > asked(new, (1, 1)).doubt[0]


def test_a_measurement_that_is_not_renewed_is_left_to_the_theory() -> None:
    assert asked(knowing(measured(2, 1), now=40 * DAY), (2, 1)).layer.tolist() == [SpeedLayer.THEORY]


def test_a_half_life_may_be_counted_in_samples() -> None:
    rows = [measured(1, 1, job=job, time=float(job)) for job in range(3)]
    keeping = Keeping(half_life_days=float("inf"), half_life_samples=1.0)
    known = knowing(*rows, now=3.0, keeping=keeping)
    assert asked(known, (1, 1)).count[0] == pytest.approx(1 + 1 / 2 + 1 / 4)


def test_one_wild_report_among_several_moves_little() -> None:
    honest = [measured(2, 1, job=job) for job in range(7)]
    wild = {**measured(2, 1, job=9), "rate": 1e9}
    before, after = asked(knowing(*honest), (2, 1), (4, 2)), asked(knowing(*honest, wild), (2, 1), (4, 2))
    assert np.abs(after.rate / before.rate - 1).max() < 0.02


def test_a_liar_moves_his_own_class_alone() -> None:
    honest = [measured(1, 1), measured(4, 2)]
    lies = [
        {**measured(gpus, 1, cls=cls, job=90 + gpus), "rate": 1e12}
        for gpus in (1, 2, 4, 8)
        for cls in (OTHER, JobClass("lab", "model=bort"))
    ]
    before, after = knowing(*honest), knowing(*honest, *lies)
    shapes = ((1, 1), (2, 1), (8, 1), (4, 2), (16, 4))
    for name in ("rate", "doubt", "layer", "count"):
        mine, still = getattr(asked(before, *shapes), name), getattr(asked(after, *shapes), name)
        assert still == pytest.approx(mine, rel=1e-6), name
    assert asked(after, *shapes, cls=BERT).rate.max() < 1e4


def test_most_gpus_on_one_node_make_a_shape_of_their_own() -> None:
    rows = [{**measured(8, 2, job=most), "most": most, "rate": 100.0 - most} for most in (4, 6)]
    assert asked(knowing(*rows), (8, 2)).rate[0] == pytest.approx(96.0)
