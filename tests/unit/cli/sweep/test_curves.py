"""The curves of a sweep's charts: groups that are joined, their names, and where their points lie."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan

import numpy as np
import pytest

from slurm_fair.cli.simulate.table import Metric, metrics
from slurm_fair.cli.sweep.curves import Across, by_lease, by_metric, load_curves, panel
from slurm_fair.cli.sweep.groups import Group

KNOWN = {metric.key: metric for metric in metrics()}
JCT, SLOWDOWN = KNOWN["jct_mean_s"], KNOWN["slowdown_mean"]


def group(
    policy: str = "las",
    lease: float | None = 900.0,
    load: float = 1.0,
    *,
    spread: float | None = None,
    **mean: float | None,
) -> Group:
    """A policy whose JCT has this spread."""
    over_seeds = {"runs": 1, "mean": mean, "spread": {"jct_mean_s": spread}}
    return Group(policy, lease, load, (0,), (), over_seeds)


def curves(groups: Sequence[Group], across: Across, metric: Metric = JCT) -> dict[str, list[float]]:
    """The x of each curve's points."""
    return {each.series.name: each.series.x.tolist() for each in panel(metric, groups, across).points}


# -- loads ----------------------------------------------------------------------------------------------------


def test_a_policy_is_one_curve_over_loads_and_one_for_each_lease_term_that_it_has() -> None:
    groups = [
        group("las", 300.0, 1.0),
        group("las", 300.0, 2.0),
        group("las", 900.0, 1.0),
        group("fifo", None, 2.0),
    ]
    across = load_curves(groups)
    assert curves(groups, across) == {
        "las, lease 300 s": [1.0, 2.0],
        "las, lease 900 s": [1.0],
        "fifo": [2.0],
    }
    assert (across.axis.label, across.axis.low, across.axis.high) == ("load", 1.0, 2.0)


def test_leases_without_end_are_a_curve_beside_those_of_a_term() -> None:
    groups = [group("las", None), group("las", 900.0)]
    assert list(curves(groups, load_curves(groups))) == ["las, lease never ends", "las, lease 900 s"]


def test_one_load_has_an_axis_too() -> None:
    axis = load_curves([group(load=0.8)]).axis
    assert axis.low <= 0.8 < axis.high


# -- lease terms ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terms", "log", "label"),
    [
        ([300.0], False, "lease term, s"),
        ([300.0, 1199.0], False, "lease term, s"),
        ([300.0, 1200.0], True, "lease term, log"),
        ([60.0, 900.0, 7200.0], True, "lease term, log"),
    ],
)
def test_lease_terms_that_differ_much_lie_on_a_logarithmic_axis(
    terms: list[float], log: bool, label: str
) -> None:
    axis = by_lease([group(lease=term) for term in terms]).axis
    assert (axis.log, axis.label) == (log, label)
    assert axis.low <= min(terms)
    assert axis.high >= max(terms)


def test_a_policy_is_one_curve_over_lease_terms_and_one_for_each_load_that_it_has() -> None:
    groups = [group("las", 300.0), group("las", 900.0), group("las", 300.0, 1.5), group("srtf", 600.0)]
    assert curves(groups, by_lease(groups)) == {
        "las, load 1": [300.0, 900.0],
        "las, load 1.5": [300.0],
        "srtf": [600.0],
    }


def test_leases_without_end_lie_nowhere_on_the_axis() -> None:
    groups = [group("fifo", None), group("las", 300.0)]
    across = by_lease(groups)
    assert isnan(across.at(groups[0]))
    assert across.at(groups[1]) == 300.0
    assert across.axis.high < 1000


# -- metrics --------------------------------------------------------------------------------------------------


def test_along_a_metric_settings_that_differ_are_joined() -> None:
    groups = [
        group("fair x=1", jct_mean_s=3600.0),
        group("fair x=2", jct_mean_s=7200.0),
        group("srtf", jct_mean_s=1800.0),
    ]
    assert curves(groups, by_metric(groups, JCT), SLOWDOWN) == {"fair": [1.0, 2.0], "srtf": [0.5]}


def test_settings_are_joined_within_one_lease_term_and_load() -> None:
    groups = [
        group(f"fair x={x}", lease, load, jct_mean_s=3600.0)
        for x in (1, 2)
        for lease, load in ((300.0, 1.0), (900.0, 1.0), (900.0, 2.0))
    ]
    found = curves(groups, by_metric(groups, JCT))
    assert {name: len(x) for name, x in found.items()} == {
        "fair, lease 300 s, load 1": 2,
        "fair, lease 900 s, load 1": 2,
        "fair, lease 900 s, load 2": 2,
    }


def test_along_a_metric_lease_terms_are_joined_else_loads() -> None:
    terms = [group("las", lease, load) for lease in (300.0, 900.0) for load in (1.0, 2.0)]
    assert list(curves(terms, by_metric(terms, JCT))) == ["las, load 1", "las, load 2"]
    loads = [group("las", 900.0, load) for load in (1.0, 2.0)]
    assert list(curves(loads, by_metric(loads, JCT))) == ["las"]


def test_an_axis_of_a_metric_has_its_unit_and_begins_at_nothing_where_that_is_near() -> None:
    def axis(*seconds: float | None) -> tuple[str, float, float]:
        found = by_metric([group(jct_mean_s=value) for value in seconds], JCT).axis
        return found.label, found.low, found.high

    assert axis(3600.0, 36_000.0) == ("JCT, mean, h", 0.0, 10.0)
    assert axis(36_000.0, 18_000.0)[1] == 5.0, "half as much is not near"
    assert axis(36_000.0, 17_900.0)[1] == 0.0
    assert axis(None, nan) == ("JCT, mean, h", 0.0, 1.0), "of nothing that is known"
    assert axis(7200.0)[1:] == (2.0, 3.0)
    assert by_metric([group(slowdown_mean=1.0)], SLOWDOWN).axis.label == "slowdown, mean"


# -- a chart --------------------------------------------------------------------------------------------------


def test_a_chart_has_means_in_their_unit_and_bars_of_one_deviation_within_it() -> None:
    groups = [group(load=1.0, jct_mean_s=7200.0, spread=3600.0), group(load=2.0, jct_mean_s=36_000.0)]
    chart = panel(JCT, groups, load_curves(groups))
    (points,) = chart.points
    assert (chart.caption, points.series.y.tolist()) == ("JCT, mean", [2.0, 10.0])
    assert points.whisker.tolist()[0] == 1.0
    assert np.isnan(points.whisker[1])
    assert list(points.words) == ["las, lease 900 s, load 1: 2", "las, lease 900 s, load 2: 10"]


def test_the_y_axis_reaches_to_the_end_of_the_highest_bar() -> None:
    groups = [group(jct_mean_s=36_000.0, spread=7200.0)]
    assert panel(JCT, groups, load_curves(groups)).y.high >= 12.0


def test_a_metric_that_no_run_has_is_a_chart_without_points() -> None:
    groups = [group(jct_mean_s=None), group("srtf")]
    chart = panel(JCT, groups, load_curves(groups))
    assert [each.series.name for each in chart.points] == ["las", "srtf"]
    assert all(np.isnan(each.series.y).all() for each in chart.points)


def test_each_curve_has_a_place_of_its_own_in_the_order_of_the_groups() -> None:
    groups = [group("srtf"), group("las"), group("srtf", load=2.0), group("fifo")]
    chart = panel(JCT, groups, load_curves(groups))
    assert [(each.series.name, each.series.place) for each in chart.points] == [
        ("srtf", 0), ("las", 1), ("fifo", 2),
    ]  # fmt: skip
