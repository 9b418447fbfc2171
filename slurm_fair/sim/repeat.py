"""The same scenario once more, with what nobody can know beforehand drawn anew: single runs are chaotic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurm_fair.sim.scenario import Scenario


def shaken(scenario: Scenario, interval: float, dice: np.random.Generator) -> Scenario:
    """Everything that comes from outside moved by one phase of the looks, and each submission by its own bit more.

    Both are less than one interval. What happens between two looks, and so who is in one of them together, is as
    open as it is for a daemon.
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
