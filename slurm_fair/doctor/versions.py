"""Slurm itself: does it answer, how fast, in which release, with which clock and accounting."""

from __future__ import annotations

import re
from collections.abc import Iterator

from slurm_fair.doctor.facts import Facts
from slurm_fair.doctor.finding import Finding, error, ok, warning

OLDEST, NEWEST = (22, 5), (26, 5)
_SLOW_SECONDS = 2.0
_CLOCK_WARNING_SECONDS, _CLOCK_ERROR_SECONDS = 2.0, 30.0


def release(text: str) -> tuple[int, int]:
    """Major release of a version: 22.05.8 and pyslurm's 22.5.0 are both (22, 5)."""
    match = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def findings(facts: Facts) -> Iterator[Finding]:
    if not facts.reachable:
        yield error(
            f"Slurm does not answer ({facts.silence}): what needs it is not looked at",
            "look at slurmctld and munge with `scontrol ping`, or name its slurm.conf in [slurm] conf",
        )
        if facts.client:
            yield client_version(facts.client)
        return
    yield client_version(facts.client)
    yield controller_version(facts)
    yield latency(facts)
    yield clock(facts)
    yield accounting(facts)


def client_version(text: str) -> Finding:
    """Check that the commands here are of a release that we know."""
    if release(text) < OLDEST:
        return error(f"Slurm's commands are {text or 'of an unknown release'}", "use Slurm 22.05 or newer")
    if release(text) > NEWEST:
        return warning(
            f"Slurm's commands are {text}, newer than any tried (26.05)",
            "run in shadow mode first: run --dry-run",
        )
    return ok(f"Slurm's commands are {text}")


def controller_version(facts: Facts) -> Finding:
    """Check that these commands can talk to the controller."""
    controller = facts.value("SLURM_VERSION")
    if release(controller) < OLDEST:
        return error(f"slurmctld is {controller or 'of an unknown release'}", "use Slurm 22.05 or newer")
    if release(facts.client) > release(controller):
        return warning(
            f"Slurm's commands ({facts.client}) are newer than slurmctld ({controller})",
            "Slurm supports older clients, not newer ones: upgrade slurmctld or use its own release here",
        )
    return ok(f"slurmctld is {controller}, cluster {facts.value('ClusterName')}")


def latency(facts: Facts) -> Finding:
    """Check how long one look takes."""
    found = ", ".join(f"{name} {took * 1000:.0f} ms" for name, took in facts.seconds.items())
    interval, look = facts.config.lease.longest_interval, facts.seconds.get("a whole look", 0.0)
    if look > interval / 2:
        return warning(
            f"a look takes {look:.1f} s of the {interval:g} s between two: {found}", "raise [lease] interval"
        )
    if max(facts.seconds.values(), default=0.0) > _SLOW_SECONDS:
        return warning(
            f"Slurm answers slowly: {found}", "look at `sdiag`; a busy slurmctld starts jobs late too"
        )
    return ok(f"answers in {found}")


def clock(facts: Facts) -> Finding:
    """Check that slurmctld's clock is ours: begin times and lease ends are compared across them."""
    off = facts.clock_ahead
    found = f"slurmctld's clock is {abs(off):.0f} s {'ahead of' if off > 0 else 'behind'} this machine's"
    cure = "run an NTP client on both machines"
    if abs(off) > _CLOCK_ERROR_SECONDS:
        return error(found, cure)
    return (
        warning(found, cure)
        if abs(off) > _CLOCK_WARNING_SECONDS
        else ok("slurmctld's clock agrees with ours")
    )


def accounting(facts: Facts) -> Finding:
    """Check that slurmdbd answers; without it time that we do not see is not counted."""
    if "slurmdbd" not in facts.value("AccountingStorageType"):
        return warning(
            "Slurm keeps no accounting (AccountingStorageType)",
            "set up slurmdbd: without it accounts are not checked and time without the daemon is not counted",
        )
    if facts.history:
        return warning(
            f"accounting does not answer: {facts.history}", "look at slurmdbd; scheduling goes on meanwhile"
        )
    return ok("accounting answers")
