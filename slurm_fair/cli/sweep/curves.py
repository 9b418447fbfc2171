"""The curves of a sweep's charts: which groups are joined, where their points lie, and what they are called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from slurm_fair.cli.simulate.table import Metric, unit_of
from slurm_fair.cli.sweep.groups import Group
from slurm_fair.cli.sweep.variants import base_of
from slurm_fair_accounting.drawing import plot
from slurm_fair_accounting.drawing.panels import Panel, Points
from slurm_fair_accounting.drawing.plot import Axis, Numbers

_MUCH_LONGER = 4.0  # lease terms that differ so much lie on a logarithmic axis
_NEAR_NOTHING = 0.5  # an axis whose least value is below this part of its largest begins at 0


@dataclass(frozen=True, slots=True)
class Across:
    """The x axis of all charts: where a group lies on it, and what tells the curves of one policy apart."""

    axis: Axis
    at: Callable[[Group], float]
    curve_of: Callable[[Group], tuple[str, str]]  # the policy, and the words of the curve among its own


def load_curves(groups: Sequence[Group]) -> Across:
    """Loads along the x axis, each lease term a curve."""
    loads = [group.load for group in groups]
    return Across(
        plot.linear_axis("load", min(loads), max(loads)), lambda group: group.load, _by_lease(groups)
    )


def by_lease(groups: Sequence[Group]) -> Across:
    """Lease terms along the x axis, each load a curve; leases without end lie nowhere."""
    terms = np.array([group.lease_s for group in groups if group.lease_s is not None], dtype=np.float64)
    if terms.max() >= _MUCH_LONGER * terms.min():
        axis = plot.logarithmic("lease term, log", terms, seconds=True)
    else:
        axis = plot.linear_axis("lease term, s", float(terms.min()), float(terms.max()))
    return Across(axis, lambda group: np.nan if group.lease_s is None else group.lease_s, _by_load(groups))


def by_metric(groups: Sequence[Group], metric: Metric) -> Across:
    """A metric along the x axis: settings that differ are joined, else lease terms, else loads."""
    terms = {group.lease_s for group in groups}
    values = np.array([_mean(group, metric) for group in groups])
    if any(base_of(group.policy) != group.policy for group in groups):
        curve_of = _by_both(groups)
    else:
        curve_of = _by_load(groups) if len(terms) > 1 else _by_lease(groups)
    return Across(_axis(metric, values), lambda group: _mean(group, metric), curve_of)


def panel(metric: Metric, groups: Sequence[Group], across: Across) -> Panel:
    """The chart of one metric."""
    curves: dict[tuple[str, str], list[Group]] = {}
    for group in groups:
        curves.setdefault(across.curve_of(group), []).append(group)
    points = [
        _points(metric, some, across, ", ".join(filter(None, name)), place)
        for place, (name, some) in enumerate(curves.items())
    ]
    reach = [side for one in points for side in (one.series.y, one.series.y + np.nan_to_num(one.whisker))]
    return Panel(metric.title, points, across.axis, _axis(metric, np.concatenate(reach)))


def _points(metric: Metric, groups: Sequence[Group], across: Across, name: str, place: int) -> Points:
    factor = unit_of(metric).factor
    x = np.array([across.at(group) for group in groups], dtype=np.float64)
    y = np.array([_mean(group, metric) for group in groups])
    deviation = np.array([group.deviation(metric.key) * factor for group in groups])
    words = [
        f"{group.name}: {plot.axis_number(value)}" for group, value in zip(groups, y.tolist(), strict=True)
    ]
    return Points(plot.Series(name, x, y, place), deviation, words)


def _mean(group: Group, metric: Metric) -> float:
    return group.mean(metric.key) * unit_of(metric).factor


def _axis(metric: Metric, values: Numbers) -> Axis:
    unit, known = unit_of(metric).name, values[np.isfinite(values)]
    label = f"{metric.title}, {unit}" if unit else metric.title
    if not known.size:
        return plot.linear_axis(label, 0.0, 1.0)
    low, high = float(known.min()), float(known.max())
    return plot.linear_axis(label, 0.0 if 0 <= low < _NEAR_NOTHING * high else low, high, 5)


def _by_lease(groups: Sequence[Group]) -> Callable[[Group], tuple[str, str]]:
    many = _with_several(groups, lambda group: group.lease_s)
    return lambda group: (group.policy, f"lease {group.lease_words}" if group.policy in many else "")


def _by_load(groups: Sequence[Group]) -> Callable[[Group], tuple[str, str]]:
    many = _with_several(groups, lambda group: group.load)
    return lambda group: (group.policy, f"load {group.load:g}" if group.policy in many else "")


def _by_both(groups: Sequence[Group]) -> Callable[[Group], tuple[str, str]]:
    """A curve for each lease term and load, through all settings of a policy."""
    terms, loads = {group.lease_s for group in groups}, {group.load for group in groups}

    def curve_of(group: Group) -> tuple[str, str]:
        lease = f"lease {group.lease_words}" if len(terms) > 1 else ""
        load = f"load {group.load:g}" if len(loads) > 1 else ""
        return base_of(group.policy), ", ".join(filter(None, (lease, load)))

    return curve_of


def _with_several(groups: Sequence[Group], value: Callable[[Group], float | None]) -> set[str]:
    """The policies of which several groups differ in this."""
    first: dict[str, float | None] = {}
    return {group.policy for group in groups if first.setdefault(group.policy, value(group)) != value(group)}
