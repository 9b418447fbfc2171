"""The option --interval: a simulated controller looks every so many seconds, or when something has changed."""

from __future__ import annotations

import tomllib
from typing import NamedTuple

import click

from slurm_fair.cli.base import find_config
from slurm_fair.config.lease import LeaseSection
from slurm_fair.config.tree import load_config
from slurm_fair.sim.run import USUAL_INTERVAL


class LookDistances(NamedTuple):
    """The distances between looks, as LeaseTerms has them."""

    interval: float = USUAL_INTERVAL
    interval_min: float = 0.0

    @classmethod
    def given(cls, interval: float | str | None) -> LookDistances:
        """The distances of --interval, else those of the file of settings, else every 10 s."""
        if interval is None:
            return _of_the_settings()
        return _following(LeaseSection()) if isinstance(interval, str) else cls(interval)


def _following(lease: LeaseSection) -> LookDistances:
    return LookDistances(USUAL_INTERVAL, lease.interval_min)


def _of_the_settings() -> LookDistances:
    """A file that leaves [lease] interval out says nothing of simulations."""
    context = click.get_current_context(silent=True)
    path = find_config(context.find_root().params.get("config") if context else None)
    if path is None:
        return LookDistances()
    lease = load_config(path).lease
    if "interval" not in tomllib.loads(path.read_text()).get("lease", {}):
        return LookDistances()
    return _following(lease) if lease.follows_changes else LookDistances(lease.longest_interval)
