"""Rules for what is known of speeds, whatever jobs report and in whatever order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_fair.throughput import (
    JobClass,
    JobShapes,
    Keeping,
    Known,
    Links,
    Predictions,
    Samples,
    estimator,
    learned,
    predicted,
    speeds_for,
)
from slurm_fair.throughput.timing import StepParts, link_factors, longest_of, step_seconds
from tests.support.speed_samples import BERT, NAN, OTHER, law, samples

NOW = 1e6
KEEPING = Keeping(samples=5, node_samples=2)
CLASSES = (BERT, JobClass("lab", "name=gpt"), OTHER)
SHAPES = ((1, 1), (2, 1), (4, 1), (2, 2), (8, 2), (16, 4))


@st.composite
def reports(draw: st.DrawFn, classes: tuple[JobClass, ...] = CLASSES, wild: bool = True) -> dict[str, Any]:
    """One believable report of a run, if not a true one."""
    gpus, nodes = draw(st.sampled_from(SHAPES))
    rate = 32 * gpus / float(law(gpus, nodes)) * draw(st.floats(0.9, 1.1))
    job = draw(st.integers(1, 6))
    kind = draw(st.sampled_from(("v100", "a100")))
    return {
        "cls": draw(st.sampled_from(classes)),
        "kind": kind,
        "node": draw(st.sampled_from(("", "n1", "n2"))),
        "gpus": gpus,
        "nodes": nodes,
        "job": job + 10 * (kind == "v100"),
        "time": float(draw(st.integers(0, 40))),
        "rate": draw(st.floats(1e-6, 1e12)) if wild and draw(st.booleans()) else rate,
        "batch_size": draw(st.sampled_from((NAN, 32.0 * gpus, 8.0 * gpus))),
    }


def same(one: Samples, other: Samples) -> bool:
    """The very same rows under the very same names."""
    names = ("classes", "gpu_types", "node_names")
    columns = zip(one._arrays().values(), other._arrays().values(), strict=True)
    return all(getattr(one, name) == getattr(other, name) for name in names) and all(
        np.array_equal(mine, its, equal_nan=True) for mine, its in columns
    )


def everything(known: Known, classes: tuple[JobClass, ...] = CLASSES) -> Predictions:
    """All classes in all shapes, measured or not."""
    shapes = (*SHAPES, (3, 1), (3, 3), (64, 8))
    job_class, kind, shape = np.indices((len(classes), 2, len(shapes))).reshape(3, -1)
    gpus, nodes = np.array(shapes)[shape].T
    zeros, usual = np.zeros(len(shape), dtype=np.int64), np.full(len(shape), NAN)
    asked = JobShapes(job_class, kind, gpus, nodes, zeros, usual, zeros - 1, classes, ("a100", "v100"))
    return predicted(estimator(known, Links.unknown(), NOW, KEEPING), asked)


@given(st.lists(reports(), min_size=1, max_size=40), st.randoms(use_true_random=False), st.integers(1, 39))
@settings(max_examples=60, deadline=None)
def test_neither_the_order_of_samples_nor_the_calls_that_bring_them_matter(
    rows: list[dict[str, Any]], dice: Any, cut: int
) -> None:
    """Learning bit by bit comes to what is learned at once from the beginning."""
    at_once = learned(Known(), samples(*rows), NOW, KEEPING)
    # Rows of one report come together: whether a run was over several GPU types is seen from all of them.
    whole: dict[tuple[int, float], list[dict[str, Any]]] = {}
    for row in rows:
        whole.setdefault((row["job"], row["time"]), []).append(row)
    parts = list(whole.values())
    dice.shuffle(parts)
    mixed = [row for part in parts for row in part]
    assert same(learned(Known(), samples(*mixed), NOW, KEEPING).samples, at_once.samples)
    bit_by_bit = Known()
    for part in (parts[:cut], parts[cut:]):
        if part:
            some = samples(*(row for report in part for row in report))
            bit_by_bit = learned(bit_by_bit, some, NOW, KEEPING)
    assert same(bit_by_bit.samples, at_once.samples)


@given(st.lists(reports(), max_size=40))
@settings(max_examples=40, deadline=None)
def test_every_prediction_is_positive_and_finite_and_says_its_doubt(rows: list[dict[str, Any]]) -> None:
    known = learned(Known(), samples(*rows), NOW, KEEPING) if rows else Known()
    answer = everything(known)
    assert (answer.rate > 0).all()
    assert np.isfinite(answer.rate).all()
    assert ((answer.doubt > 0) & (answer.doubt <= 2)).all()
    assert (answer.count >= 0).all()


@given(
    st.lists(reports(CLASSES[:2]), min_size=1, max_size=20),
    st.lists(reports((OTHER,)), min_size=1, max_size=20),
)
@settings(max_examples=25, deadline=None)
def test_whatever_one_tenant_reports_nobody_elses_predictions_move(
    mine: list[dict[str, Any]], lies: list[dict[str, Any]]
) -> None:
    """His jobs have keys of their own."""
    lies = [{**row, "job": row["job"] + 100} for row in lies]
    alone = learned(Known(), samples(*mine), NOW, KEEPING)
    both = learned(alone, samples(*lies), NOW, KEEPING)
    before, after = everything(alone, CLASSES[:2]), everything(both, CLASSES[:2])
    assert after.rate == pytest.approx(before.rate, rel=1e-5)
    assert after.layer.tolist() == before.layer.tolist()


@given(st.lists(reports(wild=False), min_size=1, max_size=40))
@settings(max_examples=25, deadline=None)
def test_a_table_of_speeds_has_no_holes(rows: list[dict[str, Any]]) -> None:
    known = estimator(learned(Known(), samples(*rows), NOW, KEEPING), Links.unknown(), NOW, KEEPING)
    speeds = speeds_for(known, CLASSES, ["a100", "v100"], [1, 2, 4, 8], [8, 8])
    assert len(speeds.rate) == len({row["cls"] for row in rows})
    assert (speeds.rate > 0).all()
    assert np.isfinite(speeds.doubt).all()


def test_a_million_samples_of_one_class_are_bounded() -> None:
    dice, many = np.random.default_rng(5), 100_000
    known, kept = Known(), Keeping()
    for part in range(10):
        gpus = dice.integers(1, 65, many)
        nan, zeros = np.full(many, NAN), np.zeros(many, dtype=np.int64)
        some = Samples(
            job_class=zeros, gpu_type=zeros, node=dice.integers(0, 200, many), gpus=gpus, nodes=zeros + 1,
            most=gpus, job=np.arange(many) + many * part, time=dice.uniform(0, NOW, many),
            rate=dice.uniform(1, 1e6, many),
            batch_size=nan, data=nan, forward=nan, backward=nan, update=nan, sync=nan,
            pattern=np.zeros(many, dtype=np.int8), classes=(BERT,), gpu_types=("a100",),
            node_names=tuple(f"n{node}" for node in range(200)),
        )  # fmt: skip
        known = learned(known, some, NOW, kept)
    assert len(known.samples) <= kept.shapes * kept.samples + kept.node_shapes * kept.node_samples


SECONDS = st.floats(1e-4, 10.0)


@given(
    SECONDS,
    SECONDS,
    SECONDS,
    st.lists(st.floats(0.0, 10.0), min_size=4, max_size=4),
    st.floats(0.0, 1.0),
    st.integers(1, 2),
)
@settings(max_examples=80, deadline=None)
def test_more_gpus_on_a_node_or_on_as_many_nodes_never_shorten_a_step(
    forward: float, backward: float, update: float, links: list[float], wait: float, pattern: int
) -> None:
    """This holds by theory alone; what was measured may say otherwise."""
    one = np.ones(1)
    step = StepParts(forward * one, backward * one, update * one, 0 * one, 0 * one, 0 * one, pattern * one)
    for nodes in (1, 2, 4):
        gpus = np.arange(nodes, 65, nodes, dtype=np.float64)
        factors = link_factors(gpus, np.full(len(gpus), float(nodes)), gpus / nodes)
        seconds = step_seconds(step, factors @ np.array(links), wait * longest_of(gpus))
        assert (np.diff(seconds) >= -1e-9 * seconds[1:]).all()
        assert (seconds >= (forward + backward + update) * (1 - 1e-9)).all()
