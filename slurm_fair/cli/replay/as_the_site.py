"""Notes on a replay of the site's own past: leases, settings and jobs that the site has otherwise."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence

from slurm_fair.cli.replay.site import LiveSite
from slurm_fair.cli.simulate.setups import PolicySetup
from slurm_fair.config.sections import Config
from slurm_fair.config.words import toml
from slurm_fair.model import LeaseTerms
from slurm_fair.model.lease import NEVER_ENDS_SECONDS
from slurm_fair.policy.registry import load

ALL_SAVE = (
    "note: every job is simulated as one that saves and is requeued; jobs that cannot would keep their GPUs until "
    "they end, and would start only within their account's own share (--plain 0.2: a fifth of the jobs)"
)


def site_notes(
    live: LiveSite | None, setups: Sequence[PolicySetup], *, lease: bool = True, all_save: bool = True
) -> list[str]:
    """Notes on how the simulation differs from the site, with the options that make it the same.

    `lease` is False where lengths of leases are compared: the length is no difference then. `all_save` is False
    where some jobs are simulated as ones that cannot save.
    """
    options = _of_the_site(live.site.config, setups, lease) if live is not None else []
    about_saving = [ALL_SAVE] if all_save else []
    if not options:
        return about_saving
    return [
        f"note: the site is set otherwise; to simulate it as it is add {' '.join(options)}",
        *about_saving,
    ]


def _of_the_site(config: Config, setups: Sequence[PolicySetup], lease: bool) -> list[str]:
    """The options of the site that no setup has."""
    site = config.lease.terms()
    options: list[str] = []
    for setup in setups:
        terms = setup.rules().terms
        if terms.term < NEVER_ENDS_SECONDS:
            options += _leases(site, terms, lease)
    for setup in setups:
        given, usual = config.policy.settings.get(setup.policy, {}), load(setup.policy, {})
        for key, value in given.items():
            if setup.settings.get(key, getattr(usual, key, None)) != value:
                options.append(f"--set {shlex.quote(f'{setup.policy}.{key}={toml(value)}')}")
    return list(dict.fromkeys(options))


def _leases(site: LeaseTerms, simulated: LeaseTerms, lease: bool) -> Iterator[str]:
    """Options of the site's leases that differ."""
    if lease and site.term != simulated.term:
        yield f"--lease {site.term:g}"
    if site.follows_changes:
        if not simulated.follows_changes:
            yield "--interval auto"
    elif simulated.follows_changes or site.interval != simulated.interval:
        yield f"--interval {site.interval:g}"
    if site.aligned != simulated.aligned:
        yield f"--align {'aligned' if site.aligned else 'rolling'}"
    if site.aligned:
        return
    # A length that is the same part of a lease is the usual one of both.
    if site.renewal / site.term != simulated.renewal / simulated.term:
        yield f"--renewal {'term' if site.renewal >= site.term else f'{site.renewal:g}'}"
    if site.reserve_after / site.term != simulated.reserve_after / simulated.term:
        yield f"--reserve-after {'never' if math.isinf(site.reserve_after) else f'{site.reserve_after:g}'}"
