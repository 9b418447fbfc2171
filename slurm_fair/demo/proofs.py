"""The proof that nothing was lost and nobody was wronged."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slurm_fair.demo.measure import Measures
from slurm_fair.demo.scenario import DemoJob, DemoScenario, Scheduler
from slurm_fair.demo.stage import ActFacts
from slurm_fair.model.counted import counted, first_of
from slurm_fair_templates.demo_counter import verify

_NAMED = 3  # offenders that a line names
_STARVED = 0.8  # a tenant that goes without so much of its due is never treated fairly


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must hold, and what was found."""

    title: str
    holds: bool
    found: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """The files that one job left in its folder."""

    job: DemoJob
    result: dict[str, Any]
    steps: tuple[tuple[int, int], ...]  # (restart, step), as executed
    starts: tuple[int, ...]  # restart counts, as started

    @property
    def right(self) -> bool:
        """The hash is that of every step counted once."""
        return verify(self.result, self.job.steps)

    @property
    def repeated(self) -> int:
        """Steps executed more often than once: work that was lost."""
        return len(self.steps) - len({step for _, step in self.steps})

    @property
    def started_twice(self) -> bool:
        """Two runs under one restart count would be two at once."""
        return max(Counter(self.starts).values(), default=0) > 1


def evidence(job: DemoJob, folder: Path) -> Evidence:
    """Read what the counter wrote; what is missing reads as nothing."""
    own = folder / job.name
    try:
        result = json.loads((own / "result.json").read_text())
    except (OSError, ValueError):
        result = {}
    steps = tuple((int(words[0]), int(words[1])) for words in _words(own / "steps.log"))
    return Evidence(job, result, steps, tuple(int(words[0]) for words in _words(own / "starts.log")))


def _words(path: Path) -> Iterator[list[str]]:
    if path.exists():
        yield from (line.split() for line in path.read_text().splitlines() if line)


def prove(scenario: DemoScenario, facts: ActFacts, measures: Measures) -> tuple[Check, ...]:
    """Everything that must hold of the act under slurm_fair."""
    found = [evidence(job, facts.folder) for job in scenario.jobs]
    return (
        *_same_work(found),
        _only_unanswered_lose(found, facts),
        _books_agree(found, facts, measures),
        Check(
            "nothing of ours is left on any job",
            not facts.left,
            first_of(facts.left, _NAMED) or "no job, no mark",
        ),
        *_parted_fairly(scenario, measures),
        Check(
            "the daemon ran to its end without an error",
            facts.daemon_code == 0 and not facts.complaints,
            f"exit code {facts.daemon_code}, {len(facts.complaints)} errors in its log"
            + (f", the last: {facts.complaints[-1]}" if facts.complaints else ""),
        ),
    )


def prove_plain(scenario: DemoScenario, scheduler: Scheduler, facts: ActFacts) -> tuple[Check, ...]:
    """An act of Slurm alone has only to be the same work."""
    found = [evidence(job, facts.folder) for job in scenario.jobs]
    return tuple(
        Check(f"{scheduler.value}: {check.title}", check.holds, check.found) for check in _same_work(found)
    )


def _same_work(found: Sequence[Evidence]) -> tuple[Check, ...]:
    wrong = [each.job.name for each in found if not each.right]
    twice = [each.job.name for each in found if each.started_twice]
    steps = sum(each.job.steps for each in found)
    return (
        Check(
            "every job ended with the hash of all its steps, each counted once",
            not wrong,
            f"{len(found) - len(wrong)} of {len(found)} jobs, {steps} steps" + _not_so(wrong),
        ),
        Check(
            "no job ran twice under one restart count",
            not twice,
            f"{sum(len(each.starts) for each in found)} starts" + _not_so(twice),
        ),
    )


def _only_unanswered_lose(found: Sequence[Evidence], facts: ActFacts) -> Check:
    """A pre-emption that the job answered with `saved` costs no step; one after the grace may."""
    excused = {name for name, number in facts.ids.items() if number in facts.unanswered}
    guilty = [each.job.name for each in found if each.repeated and each.job.name not in excused]
    lost = sum(each.repeated for each in found)
    late = f", {len(excused)} jobs let the grace pass" if excused else ""
    return Check(
        "no pre-emption that was answered lost a step",
        not guilty,
        f"{facts.requeued} pre-emptions{late}, {lost} steps run again" + _not_so(guilty),
    )


def _books_agree(found: Sequence[Evidence], facts: ActFacts, measures: Measures) -> Check:
    """Jobs and accounting counted each for itself; the journal has those whose end the daemon saw, and no more."""
    restarts = sum(int(each.result.get("restarts", 0)) for each in found)
    return Check(
        "jobs, accounting and journal tell of the same pre-emptions",
        restarts == measures.preemptions >= facts.requeued,
        f"{restarts} counted by the jobs, {measures.preemptions} in {facts.runs_from}, "
        f"{facts.requeued} in the journal",
    )


def _parted_fairly(scenario: DemoScenario, measures: Measures) -> tuple[Check, ...]:
    """Checks of how GPU time was parted, and how much there was: hand-overs cost a second or two each."""
    weights = sum(tenant.weight for tenant in measures.tenants)
    due = {each.name: each.weight / weights for each in measures.tenants}
    astray = sum(max(0.0, each.hungry_share - due[each.name]) for each in measures.tenants)
    most, why = most_astray(scenario, measures.hungry_seconds)
    parts = (f"{each.name} {each.hungry_share / due[each.name]:.0%} of its due" for each in measures.tenants)
    rho = ", ".join(f"{tenant.name} {tenant.hungry_rho:.2f}" for tenant in measures.tenants)
    over = f"over {measures.hungry_seconds:.0f} s"
    return (
        Check(
            "each tenant's part of the GPU time was its due while everybody was hungry, but for one lease of the "
            "biggest gang and one of waiting for it",
            measures.hungry_seconds > 0 and astray <= most,
            f"{', '.join(parts)} {over}; {astray:.1%} of the GPU time went to others than it was due to, of at "
            f"most {most:.1%} ({why})",
        ),
        Check(
            f"no tenant's rho was below {scenario.least_rho:g} while everybody was hungry",
            measures.hungry_seconds > 0 and measures.worst_rho >= scenario.least_rho,
            f"rho {rho} {over}",
        ),
    )


def most_astray(scenario: DemoScenario, window_seconds: float) -> tuple[float, str]:
    """The part of a window's GPU time that may go to others than it is due to, and why so much.

    GPUs are parted by leases of whole gangs, so a tenant lags by up to one lease of the biggest one. All leases of
    the demo end together. A needier tenant may go first at such an end, and the biggest gang then waits for the
    next one: its tenant lags by its own due of one more lease. Of a window of few leases that is a great part, and
    yet nobody may be starved in it.
    """
    window, total = max(window_seconds, 1e-9), sum(scenario.weights.values())
    due = (
        max(scenario.weights[job.tenant] for job in scenario.jobs if job.gpus == scenario.biggest_gang)
        / total
    )
    of_a_lease = scenario.lease_seconds * (scenario.biggest_gang / scenario.total_gpus + due) / window
    of_the_least = _STARVED * min(scenario.weights.values()) / total
    if of_a_lease <= of_the_least:
        return of_a_lease, f"one lease of {scenario.biggest_gang} GPUs and {due:.0%} of the next"
    return of_the_least, f"{_STARVED:.0%} of the smallest due"


def _not_so(names: Sequence[str]) -> str:
    return f"; not so: {_first(names)}" if names else ""


def _first(names: Sequence[str]) -> str:
    return first_of(names, _NAMED)


def ticks(seconds: Sequence[float]) -> str:
    """The times of the daemon's ticks, in words."""
    if not seconds:
        return "no ticks"
    ordered = sorted(seconds)
    return (
        f"{counted(len(ordered), 'tick')}, median {statistics.median(ordered):.2f} s, "
        f"95 % below {ordered[int(0.95 * (len(ordered) - 1))]:.2f} s, longest {ordered[-1]:.2f} s"
    )
