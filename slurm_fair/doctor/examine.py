"""All findings of one visit, area by area."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from slurm_fair.config.sections import Config
from slurm_fair.doctor import (
    hook,
    host,
    machines,
    node_lists,
    plans,
    published,
    rights,
    rivals,
    scheduler,
    sizes,
    storage,
    terms,
    versions,
)
from slurm_fair.doctor.facts import Facts, gather
from slurm_fair.doctor.finding import Finding, Level
from slurm_fair.host.state_folder import Places

AREAS: tuple[tuple[str, Callable[[Facts], Iterable[Finding]]], ...] = (
    ("here", host.findings),
    ("Slurm", versions.findings),
    ("rights", rights.findings),
    ("settings", terms.findings),
    ("scheduler", scheduler.findings),
    ("hook", hook.findings),
    ("nodes", machines.findings),
    ("storage", storage.findings),
    ("node lists", node_lists.findings),
    ("plans", plans.findings),
    ("sizes", sizes.findings),
    ("published", published.findings),
    ("daemons", rivals.findings),
)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Findings with their areas."""

    findings: tuple[tuple[str, Finding], ...]

    def count(self, level: Level) -> int:
        """The number of findings of a level."""
        return sum(finding.level is level for _, finding in self.findings)

    @property
    def sound(self) -> bool:
        """True if nothing was found that cannot work."""
        return self.count(Level.ERROR) == 0


def examine(config: Config, places: Places, now: float) -> Diagnosis:
    """Look at the whole site."""
    return diagnose(gather(config, places, now))


def diagnose(facts: Facts) -> Diagnosis:
    """The findings that the facts lead to."""
    return Diagnosis(tuple((area, finding) for area, look in AREAS for finding in look(facts)))
