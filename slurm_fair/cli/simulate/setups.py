"""Setups of policies: which are simulated, with which settings and leases."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slurm_fair.cli.simulate.given import LeaseOptions, RunOptions
from slurm_fair.cli.simulate.look_distances import LookDistances
from slurm_fair.errors import InputError
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.model import NEVER_ENDS_SECONDS
from slurm_fair.policy import registry
from slurm_fair.sim.loop.drive import LookAfter
from slurm_fair.sim.loop.paces import DaemonsLooks
from slurm_fair.sim.run import rules_for, with_looks_at_changes, with_renewal, with_reserve_after
from slurm_fair.tick import Rules
from slurm_fair.trace.faults import nearest_of, shown

_USUAL = LedgerSettings()


@dataclass(frozen=True, slots=True)
class PolicySetup:
    """One policy that is to be simulated, and how its leases go; a process of its own can be given it."""

    policy: str
    settings: Mapping[str, object]
    lease: float | None
    interval: float
    aligned: bool
    gavel_rounds: bool
    checkpoint_cost: float
    seed: int
    ledger: LedgerSettings = _USUAL
    reserve_after: float | None = None
    interval_min: float = 0.0
    renewal: float | None = None
    look_seconds: float | None = None  # of a look of the daemon; None = looks at the instants of changes

    def looks(self) -> LookAfter | None:
        """The daemon's looks; None where the simulation has those at which something could change."""
        if self.look_seconds is None:
            return None
        seconds = self.look_seconds
        return DaemonsLooks(self.rules().terms, seconds, seconds, seconds)

    def rules(self) -> Rules:
        """The rules of the simulated controller."""
        rules = rules_for(
            self.policy,
            dict(self.settings),
            lease=self.lease,
            interval=self.interval,
            aligned=self.aligned,
            gavel_rounds=self.gavel_rounds,
            checkpoint_cost=self.checkpoint_cost,
            seed=self.seed,
            ledger=self.ledger,
        )
        rules = with_looks_at_changes(rules, 0.0 if self.gavel_rounds else self.interval_min)
        return with_renewal(with_reserve_after(rules, self.reserve_after), self.renewal)


def setups_of(
    policies: Sequence[str],
    leases: LeaseOptions,
    run: RunOptions,
    checkpoint_cost: float,
    ledger: LedgerSettings,
    *,
    gavel_rounds: bool = False,
) -> list[PolicySetup]:
    """One setup for each policy; none is returned where one of them cannot be."""
    leases.refuse_idle(gavel_rounds)
    given, looks = given_settings(run.settings, policies), LookDistances.given(leases.interval)
    aligned, waits = leases.align == "aligned" or gavel_rounds, leases.reserve_after
    how = leases.lease, looks.interval, aligned, gavel_rounds, checkpoint_cost, run.seed, ledger, waits
    seconds = leases.look_seconds(gavel_rounds=gavel_rounds)
    renewal = None if aligned else leases.renewal_seconds
    setups = [PolicySetup(name, given[name], *how, looks.interval_min, renewal, seconds) for name in policies]
    for setup in setups:
        check_setup(setup)
    return setups


def policies_of(text: str) -> tuple[str, ...]:
    """`A,B`: each once; whether there are such policies shows when they are loaded."""
    wanted = tuple(name.strip() for name in text.split(","))
    for at, name in enumerate(wanted):
        if not name:
            raise InputError(f"--policy {shown(text)}: an empty name: write A or A,B")
        if name in wanted[:at]:
            raise InputError(f"--policy {shown(text)}: {shown(name)} is there twice: keep one of them")
    return wanted


def given_settings(given: Sequence[str], policies: Sequence[str]) -> dict[str, dict[str, object]]:
    """`policy.key=value` of --set, by policy; values as TOML writes them, and plain words."""
    settings: dict[str, dict[str, object]] = {policy: {} for policy in policies}
    for text in given:
        path, equals, value = text.partition("=")
        policy, dot, key = path.strip().partition(".")
        if not (equals and dot and key):
            raise InputError(f"--set {shown(text)}: write policy.key=value")
        if policy not in settings:
            raise InputError(
                f"--set {shown(text)}: {shown(policy)} is not simulated; {nearest_of(policy, policies)}"
            )
        if key in settings[policy]:
            raise InputError(f"--set {shown(text)}: {shown(key)} is set twice: keep one of them")
        settings[policy][key] = _setting(value.strip())
    return settings


def _setting(text: str) -> object:
    """A TOML value; what is none is a word."""
    try:
        return tomllib.loads(f"value = {text}")["value"] if "\n" not in text else text
    except (ValueError, RecursionError):
        return text


def check_setup(setup: PolicySetup) -> None:
    """Refuse a policy that cannot be loaded, and leases that cannot be."""
    terms = setup.rules().terms
    if setup.gavel_rounds and terms.term >= NEVER_ENDS_SECONDS:
        raise InputError(
            f"--rounds gavel: {setup.policy} has leases without end: give the length of a round with --lease"
        )
    if setup.renewal is not None and terms.term < setup.renewal < math.inf:
        raise InputError(
            f"--renewal {setup.renewal:g} must not exceed the lease of {terms.term:g} s under {setup.policy}: "
            "give a shorter one, or --renewal term"
        )
    if setup.look_seconds is not None and setup.look_seconds > terms.term:
        raise InputError(
            f"--look-cost {setup.look_seconds:g} must not exceed the lease of {terms.term:g} s "
            f"under {setup.policy}"
        )
    if terms.interval > terms.term:
        raise InputError(
            f"--interval {terms.interval:g} must not exceed the lease of {terms.term:g} s under {setup.policy}: "
            "give a shorter --interval or longer leases"
        )


def makeshift_of(policy: str) -> str:
    """The way in which a policy that goes by run times treats jobs of unknown ones; "" = it goes by none."""
    known = policy in registry.names()  # what accounting recorded is shown beside policies
    return str(getattr(registry.load(policy, {}), "unknown_run_time", "")) if known else ""


def usual_lease(term: float) -> float | None:
    """A lease term as documents tell it; None where leases have no end."""
    return term if term < NEVER_ENDS_SECONDS else None
