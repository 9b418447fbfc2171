"""The same scenario once more: with what nobody can know beforehand drawn anew, or with jobs coming faster."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurm_fair.sim.scenario import Scenario


def shaken(scenario: Scenario, interval: float, dice: np.random.Generator) -> Scenario:
    """Everything that comes from outside moved by one phase of the looks, and each submission by its own bit more.

    Single runs are chaotic. Both are less than one interval. What happens between two looks, and so who is in one
    of them together, is as open as it is for a daemon.
    """
    phase = float(dice.uniform(0.0, interval))
    submit = scenario.trace.submit_s + phase + dice.uniform(0.0, interval, len(scenario.trace))
    order = np.argsort(submit, kind="stable")
    return replace(
        scenario,
        trace=scenario.trace.with_columns(submit_s=submit).take(order),
        outages=tuple(replace(outage, time_s=outage.time_s + phase) for outage in scenario.outages),
        until_s=scenario.until_s + phase,
    )


def under_load(scenario: Scenario, load: float) -> Scenario:
    """All jobs submitted so many times as fast, from the first one on; run times, outages and the end stay."""
    submit = scenario.trace.submit_s
    if load == 1 or not len(submit):
        return scenario
    first = submit[0]
    return replace(scenario, trace=scenario.trace.with_columns(submit_s=first + (submit - first) / load))
