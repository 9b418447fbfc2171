"""Notes on a replay of the site's own past: leases, settings and jobs that the site has otherwise."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence

from slurm_fair.cli.replay.site import LiveSite
from slurm_fair.cli.simulate.setups import PolicySetup
from slurm_fair.model import LeaseTerms
from slurm_fair.model.lease import NEVER_ENDS_SECONDS
from slurm_fair.policy.registry import load

ALL_SAVE = (
    "note: every job is simulated as one that saves and is requeued; jobs that cannot would keep their GPUs until "
    "they end, and would start only within their account's own share"
)


def site_notes(live: LiveSite | None, setups: Sequence[PolicySetup], *, lease: bool = True) -> list[str]:
    """Say how the simulation differs from the site, with the options that make it the same.

    `lease` = the length of leases is one of the things that may differ: it does not where lengths are compared.
    """
    return [*_of_the_site(live, setups, lease), ALL_SAVE]


def _of_the_site(live: LiveSite | None, setups: Sequence[PolicySetup], lease: bool) -> Iterator[str]:
    if live is None:
        return
    config = live.site.config
    here = config.lease.terms()
    options: list[str] = []
    for setup in setups:
        terms = setup.rules().terms
        if terms.term >= NEVER_ENDS_SECONDS:
            continue
        options += [each for each in _leases(here, terms, lease) if each not in options]
    for setup in setups:
        here_set, usual = config.policy.settings.get(setup.policy, {}), load(setup.policy, {})
        options += [
            f"--set {shlex.quote(f'{setup.policy}.{key}={_toml(value)}')}"
            for key, value in here_set.items()
            if setup.settings.get(key, getattr(usual, key, None)) != value
        ]
    if options:
        yield f"note: the site is set otherwise; to simulate it as it is add {' '.join(options)}"


def _leases(here: LeaseTerms, simulated: LeaseTerms, lease: bool) -> Iterator[str]:
    """Options of the site's leases that differ."""
    if lease and here.term != simulated.term:
        yield f"--lease {here.term:g}"
    if (here.follows_changes, here.follows_changes or here.interval) != (
        simulated.follows_changes, simulated.follows_changes or simulated.interval
    ):  # fmt: skip
        yield "--interval auto" if here.follows_changes else f"--interval {here.interval:g}"
    if here.aligned != simulated.aligned:
        yield f"--align {'aligned' if here.aligned else 'rolling'}"
    if here.aligned:
        return
    if _in_terms(here.renewal, here) != _in_terms(simulated.renewal, simulated):
        yield f"--renewal {'term' if here.renewal >= here.term else f'{here.renewal:g}'}"
    if _in_terms(here.reserve_after, here) != _in_terms(simulated.reserve_after, simulated):
        yield f"--reserve-after {'never' if math.isinf(here.reserve_after) else f'{here.reserve_after:g}'}"


def _in_terms(seconds: float, terms: LeaseTerms) -> float:
    """The length in leases: what is so long as its part of a lease is no difference."""
    return min(seconds / terms.term, math.inf)


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
