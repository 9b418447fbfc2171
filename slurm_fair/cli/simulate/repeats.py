"""Each simulation several times: mean and spread in the place of one number that chance has made."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import numpy as np

from slurm_fair.cli.simulate.one_run import Beat, FinishedRun, SimulationOrder
from slurm_fair.cli.simulate.runs import run_all
from slurm_fair.cli.simulate.setups import PolicySetup
from slurm_fair.sim.repeat import shaken
from slurm_fair.sim.scenario import Scenario

Row = Mapping[str, Any]


def run_repeated(
    orders: Sequence[SimulationOrder], repeat: int, workers: int, beat: Beat
) -> list[list[FinishedRun]]:
    """The runs of each order; the first is as it was ordered, the others are shaken.

    The dice depend on the seed and on the number of the run alone: all policies meet the same chances.
    """
    every = [each for order in orders for each in _repeats(order, repeat)]
    done = run_all(every, workers, beat)
    return [done[at : at + repeat] for at in range(0, len(done), repeat)]


def _repeats(order: SimulationOrder, repeat: int) -> list[SimulationOrder]:
    return [order] + [
        replace(
            order,
            scenario=scenario_of_run(order.scenario, order.setup, number),
            setup=replace(order.setup, seed=order.setup.seed + number),
            events_to=None,
            keeps_grants=False,
        )
        for number in range(1, repeat)
    ]


def scenario_of_run(scenario: Scenario, setup: PolicySetup, number: int) -> Scenario:
    """The scenario of one of several runs: 0 is as it is, the others are shaken."""
    if not number:
        return scenario
    drawn = replace(scenario, truthfulness=scenario.truthfulness.again(number))
    return shaken(drawn, setup.rules().terms.interval, np.random.default_rng([setup.seed, number]))


def merged_row(
    runs: Sequence[FinishedRun], row_of: Callable[[FinishedRun], dict[str, Any]]
) -> dict[str, Any]:
    """The row of the first run, and what all runs came to."""
    rows = [row_of(run) for run in runs]
    return {**rows[0], "repeated": over_runs(rows) if len(rows) > 1 else None}


def over_runs(rows: Sequence[Row]) -> dict[str, Any]:
    """Mean and standard deviation of each number, for JSON; null where a run has none."""
    numbers = [key for key, value in rows[0].items() if _is_number(value)]
    columns = {key: [row[key] for row in rows] for key in numbers}
    known = {key: column for key, column in columns.items() if all(map(_is_number, column))}
    return {
        "runs": len(rows),
        "mean": {key: fmean(known[key]) if key in known else None for key in numbers},
        "spread": {key: stdev(known[key]) if key in known and len(rows) > 1 else None for key in numbers},
    }


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def mean_of(row: Row, key: str) -> float | None:
    """A metric over all runs; that of the only one where there is one."""
    repeated = row.get("repeated")
    value: float | None = repeated["mean"].get(key) if repeated else row[key]
    return value


def deviation_of(row: Row, key: str) -> float:
    """The standard deviation of a metric over the runs; 0 where there is one."""
    repeated = row.get("repeated")
    return (repeated["spread"].get(key) or 0.0) if repeated else 0.0


def repeat_note(repeat: int) -> list[str]:
    """Caveats for a reader of means."""
    if repeat == 1:
        return []
    return [
        f"note: mean and standard deviation of {repeat} runs: in each but the first, the looks begin at an "
        "instant of their own and each submission is late by up to one interval"
    ]
