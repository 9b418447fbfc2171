"""The parameters of a step by class and GPU type: what they say of a shape, and what a fit makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slurm_fair.model.columns import Floats
from slurm_fair.throughput import Keeping, Known, Links, learned
from slurm_fair.throughput.aged import AgedSamples, aged
from slurm_fair.throughput.phases import StepShares
from slurm_fair.throughput.theory import (
    DEFAULT_RATIOS,
    LINKS,
    SHARED,
    Parameter,
    StepShapes,
    Theory,
    log_steps,
    slopes,
    theory,
)
from tests.support.speed_samples import BERT, OTHER, measured, samples

INF = float("inf")
NONE_OF_THE_LINKS = np.full((1, 4), -40.0)  # log of B_net / B: each takes no time
STEP = 0.2  # seconds of one GPU by itself


def shapes(
    *places: tuple[int, int], ratios: Floats = NONE_OF_THE_LINKS, data: float = 0.0, pattern: int = 1
) -> StepShapes:
    """(GPUs, nodes) of one group, whose computing is half backward propagation and a tenth update."""
    gpus, nodes = np.array(places, dtype=np.float64).T
    one = np.ones(1)
    shares = StepShares(
        0.5 * one, 0.1 * one, 0.1 * one, data * one, 0 * one, 0 * one, np.array([pattern], np.int8), one
    )
    return StepShapes(gpus[None], nodes[None], (-(-gpus // nodes))[None], shares, ratios)


def shared(**parameters: float) -> Floats:
    """Backward propagation is half of computing, nobody waits, and P / B_net is a second."""
    row = np.zeros((1, SHARED))
    row[0, Parameter.WAIT], row[0, Parameter.BACKWARD] = -40.0, 0.5
    for name, value in parameters.items():
        row[0, Parameter[name.upper()]] = value
    return row


def seconds(of: StepShapes, parameters: Floats, step: float = STEP) -> list[float]:
    said: list[float] = np.exp(log_steps(of, parameters, np.full(of.gpus.shape, np.log(step))))[0].tolist()
    return said


# -- what parameters say --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("data", "pattern"), [(0.0, 1), (0.3, 1), (3.0, 1), (0.3, 2)])
def test_one_gpu_takes_its_own_step_whatever_the_links_and_the_waiting(data: float, pattern: int) -> None:
    slow = shapes((1, 1), ratios=np.full((1, 4), 3.0), data=data, pattern=pattern)
    assert seconds(slow, shared(scale=5.0, wait=0.0, solo=0.5)) == pytest.approx([STEP])


def test_without_links_and_waiting_every_shape_takes_as_long() -> None:
    assert seconds(shapes((1, 1), (8, 1), (64, 8)), shared()) == pytest.approx([STEP] * 3)


def test_the_net_counts_between_nodes_and_the_link_within_one() -> None:
    """P / B_link is 1 s and P / B_net 10 s; both take (n - 1) / n of it, and hide nothing of 0.1 s beside it."""
    ratios = np.log(np.array([[1.0, 10.0, 1e-20, 1e-20]]))
    within, between = seconds(shapes((2, 1), (2, 2), ratios=ratios), shared())
    assert within == pytest.approx(0.5 + 0.1, rel=0.02)
    assert between == pytest.approx(5.0 + 0.1, rel=0.02)


def test_what_the_gpus_of_a_node_share_grows_with_their_number() -> None:
    """P / B_bus is 1 s for each further GPU; P / B_host nears 1 s."""
    bus, host = (
        np.log(np.array([each])) for each in ([1e-20, 1e-20, 1.0, 1e-20], [1e-20, 1e-20, 1e-20, 1.0])
    )
    assert seconds(shapes((2, 1), (11, 1), ratios=bus), shared()) == pytest.approx([1.1, 10.1], rel=0.02)
    assert seconds(shapes((2, 1), (10, 1), ratios=host), shared()) == pytest.approx([0.6, 1.0], rel=0.02)


def test_the_scale_moves_all_links_and_a_class_may_move_one_of_them() -> None:
    ratios = np.log(np.array([[1.0, 10.0, 1e-20, 1e-20]]))
    of = shapes((2, 1), (2, 2), ratios=ratios)
    assert seconds(of, shared(scale=np.log(2))) == pytest.approx([1.1, 10.1], rel=0.02)
    assert seconds(of, shared(link=np.log(2))) == pytest.approx([1.1, 5.1], rel=0.02)
    assert seconds(of, shared(net=np.log(2))) == pytest.approx([0.6, 10.1], rel=0.02)


def test_a_gpu_among_others_computes_faster_by_its_own_part_alone() -> None:
    alone, among = seconds(shapes((1, 1), (2, 1)), shared(solo=np.log(1.25)))
    assert [alone, among] == pytest.approx([STEP, STEP / 1.25])


def test_waiting_for_the_slowest_counts_in_steps_of_one_gpu() -> None:
    """The larger of two normal numbers is 0.56 above their mean; Blom's formula says 0.59."""
    (two,) = seconds(shapes((2, 1)), shared(wait=np.log(0.5)))
    assert two == pytest.approx(STEP * (1 + 0.5 * 0.59), rel=0.02)
    assert seconds(shapes((64, 1)), shared(wait=np.log(0.5)))[0] > two


@pytest.mark.parametrize("place", [(1, 1), (2, 1), (8, 2)])
def test_slopes_say_what_a_small_change_of_each_parameter_does(place: tuple[int, int]) -> None:
    of = shapes(place, ratios=np.log(np.array([[0.1, 0.3, 0.05, 0.05]])))
    at, alone = shared(wait=np.log(0.05), solo=0.02), np.full((1, 1), np.log(STEP))
    found = slopes(of, at, alone)
    assert found.shape == (1, 1, SHARED + 1)
    for parameter in Parameter:
        step = 1e-4 * np.eye(SHARED)[parameter]
        wanted = (log_steps(of, at + step, alone) - log_steps(of, at - step, alone)) / 2e-4
        assert found[0, 0, parameter] == pytest.approx(wanted[0, 0], abs=1e-3), parameter.name
    wanted = (log_steps(of, at, alone + 1e-4) - log_steps(of, at, alone - 1e-4)) / 2e-4
    assert found[0, 0, SHARED] == pytest.approx(wanted[0, 0], abs=1e-3)


def test_one_gpu_hangs_on_its_own_step_alone() -> None:
    found = slopes(shapes((1, 1)), shared(), np.full((1, 1), np.log(STEP)))[0, 0]
    assert found[:SHARED] == pytest.approx(np.zeros(SHARED), abs=1e-6)
    assert found[SHARED] == pytest.approx(1.0, abs=1e-4)


# -- the fit --------------------------------------------------------------------------------------------------


def known(*rows: dict[str, Any]) -> AgedSamples:
    return aged(learned(Known(), samples(*rows), 0.0, Keeping()).samples, 0.0, Keeping())


def fitted_to(*rows: dict[str, Any], links: Links | None = None) -> Theory:
    return theory(known(*rows), links or Links.unknown())


def test_nothing_that_was_measured_is_a_theory_of_nothing() -> None:
    empty = samples({"rate": 1.0}).take(np.zeros(0, dtype=np.int64))
    found = theory(aged(empty, 0.0, Keeping()), Links.unknown())
    assert len(found.fits.parameters) == len(found.ratios) == 0


def test_each_class_on_each_type_has_parameters_of_its_own() -> None:
    rows = [measured(1, 1), measured(1, 1, cls=OTHER), measured(1, 1, kind="v100", job=50)]
    found = fitted_to(*rows)
    assert len(found.fits.parameters) == 3
    assert found.fits.covariance.shape == (3, SHARED + 1, SHARED + 1)


def test_one_measurement_sets_the_step_and_leaves_the_rest_as_it_was_guessed() -> None:
    (parameters,) = fitted_to(measured(1, 1)).fits.parameters
    assert np.exp(parameters[SHARED]) == pytest.approx(0.2)
    assert np.exp(parameters[Parameter.SCALE]) == pytest.approx(0.3 * 0.2)
    assert parameters[LINKS] == pytest.approx(np.zeros(4), abs=1e-6)
    assert parameters[Parameter.BACKWARD] == pytest.approx(0.5)


def test_a_measurement_on_several_nodes_makes_the_scale_surer_and_truer() -> None:
    """The made-up job says P / B_net = 0.3 s."""
    links = Links(np.array([15.0]), np.array([1.0]), np.array([INF]), np.array([INF]), np.ones(1), ("a100",))
    one, two = (
        fitted_to(*rows, links=links).fits for rows in ([measured(1, 1)], [measured(1, 1), measured(8, 8)])
    )
    scales = [np.exp(fits.parameters[0, Parameter.SCALE]) for fits in (one, two)]
    assert scales[0] == pytest.approx(0.06)
    assert scales[1] == pytest.approx(0.3, rel=0.2)
    doubts = [fits.covariance[0, Parameter.SCALE, Parameter.SCALE] ** 0.5 for fits in (one, two)]
    assert doubts[1] < 0.25 * doubts[0]


def test_a_class_that_was_measured_on_several_gpus_alone_has_a_step_too() -> None:
    (parameters,) = fitted_to(measured(8, 2)).fits.parameters
    assert np.isfinite(parameters).all()
    assert np.exp(parameters[SHARED]) <= 8 * 32 / measured(8, 2)["rate"]


def test_each_batch_size_has_a_step_and_one_that_is_missing_a_likely_one() -> None:
    found = fitted_to(measured(1, 1, batch=32.0), measured(4, 1, batch=64.0))
    steps = np.exp(found.fits.parameters[0, SHARED:])
    assert len(steps) == 2
    assert steps[0] == pytest.approx(0.2, rel=0.02)
    assert 0.1 < steps[1] < 0.4


def test_a_fit_hangs_on_no_other_class() -> None:
    mine = [measured(1, 1), measured(8, 2)]
    wild = [{**measured(gpus, 1, cls=OTHER), "rate": 1e12} for gpus in (1, 2, 4)]
    alone, beside = fitted_to(*mine), fitted_to(*mine, *wild)
    at = known(*mine, *wild)
    (row,) = np.flatnonzero(at.job_class == at.samples.classes.index(BERT))
    many = alone.fits.parameters.shape[1]
    assert beside.fits.parameters[row, :many] == pytest.approx(alone.fits.parameters[0], rel=1e-6)


@pytest.mark.parametrize(
    ("links", "ratios"),
    [
        (Links.unknown(), DEFAULT_RATIOS),
        (Links.unknown(("a100",)), DEFAULT_RATIOS),
        (Links.given({"h100": {"link": 1.0, "net": 9.0}}), DEFAULT_RATIOS),
        (Links.given({"a100": {"link": 12.0, "net": 3.0}}), [np.log(0.25), 0.0, *DEFAULT_RATIOS[2:]]),
        (
            Links.given({"h100": {"net": 9.0}, "a100": {"net": 3.0, "bus": 6.0, "host": 1.5}}),
            [DEFAULT_RATIOS[0], 0.0, np.log(0.5), np.log(2.0)],
        ),
        (Links.given({"a100": {"link": INF, "net": 3.0}}), [-12.0, 0.0, *DEFAULT_RATIOS[2:]]),
    ],
    ids=["no links", "nobody measured", "of another type", "of this type", "some of them", "no time at all"],
)
def test_links_that_were_measured_take_the_place_of_usual_ones(links: Links, ratios: Any) -> None:
    assert fitted_to(measured(1, 1), links=links).ratios[0] == pytest.approx(np.array(ratios))


def test_a_link_that_was_measured_is_doubted_less() -> None:
    given = Links.given({"a100": {"link": 12.0, "net": 3.0}})
    deviations = [
        np.sqrt(np.diagonal(fitted_to(measured(1, 1), links=links).fits.covariance[0]))[LINKS]
        for links in (Links.unknown(), given)
    ]
    assert deviations[0] == pytest.approx([0.8, 0.3, 1.0, 1.0])
    assert deviations[1] == pytest.approx([0.2, 0.3, 1.0, 1.0])
