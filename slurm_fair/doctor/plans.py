"""Findings on plans: whether the daemon has them in time, and which process makes them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

from slurm_fair.daemon.plan_tally import NAME, PlanTally
from slurm_fair.doctor.facts import Facts
from slurm_fair.doctor.finding import Finding, ok, warning
from slurm_fair.errors import InputError
from slurm_fair.model.counted import counted
from slurm_fair.policy.protocol import QuickPolicy, solves
from slurm_fair.policy.registry import load

_CURE = "see `slurm-fair status`; raise [policy] plan_limit or plan_memory_mb, or mend the policy"


def findings(facts: Facts) -> Iterator[Finding]:
    section = facts.config.policy
    policy: object = None
    with suppress(InputError):  # that it cannot be loaded is a finding among the settings
        policy = load(section.name, section.chosen())
    if solves(policy):
        after = "its quick plan stands in" if isinstance(policy, QuickPolicy) else "leases stay as they are"
        yield ok(
            f"policy {section.name} plans in a process of its own: {section.plan_limit:g} s and "
            f"{section.plan_memory_mb:g} MB at most, else {after}"
        )
    tally = PlanTally.read(facts.places.directory / NAME)
    if tally is not None:
        yield of_tally(tally)


def of_tally(tally: PlanTally) -> Finding:
    """The plans since the last start of the daemon."""
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(tally.since))
    if not tally.failed:
        return ok(f"all plans since {since} were made in time ({tally.made})")
    last = f", the last because {tally.last_line}" if tally.why else ""
    return warning(f"{tally.failed} of {counted(tally.made, 'plan')} since {since} failed{last}", _CURE)
