"""Seconds of each step of each job in a real run, for a simulation that is to follow that run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.fidelity_recording import Look, Measured, RealRun, last_before
from slurm_fair.model.columns import Floats
from slurm_fair.sim.port.clock import epoch_for
from slurm_fair.sim.scenario import Costs, Step

_NEAR_SECONDS = 1.0  # a step of the simulation is the recorded one that began so near to it
_EARLIER = 0.001  # than the first look that shows it, or later than the last one that does not
_NEVER = 1e6
_LATE = 0.1  # seconds for which a look may not see what Slurm's log has
Steps = defaultdict[tuple[Step, int], list[tuple[float, float]]]


@dataclass(slots=True)
class DrawnSteps:
    """Each step takes as long as some such step of a real run, else as usual; jobs of one look start together."""

    costs: Costs
    every: Mapping[Step, Sequence[float]]
    dice: np.random.Generator
    _of: dict[float, float] = field(default_factory=dict)

    def __call__(self, step: Step, job: int, restarts: int, now: float) -> float:
        """The seconds of one step."""
        del job, restarts
        if not self.every.get(step):
            return usual(self.costs, step)
        drawn = float(self.dice.choice(self.every[step]))
        return self._of.setdefault(now, drawn) if step is Step.OPENING else drawn


@dataclass(frozen=True, slots=True)
class RecordedSteps:
    """Each step takes as long as the job's own at about the same time; where there is none, as long as usual."""

    costs: Costs
    steps: Mapping[tuple[Step, int], Sequence[tuple[float, float]]]

    def __call__(self, step: Step, job: int, restarts: int, now: float) -> float:
        """The seconds of one step."""
        del restarts
        near = [(abs(at - now), seconds) for at, seconds in self.steps.get((step, job), ())]
        apart, seconds = min(near, default=(np.inf, 0.0))
        return seconds if apart <= _NEAR_SECONDS else usual(self.costs, step)


def usual(costs: Costs, step: Step) -> float:
    """The usual seconds of a step."""
    seconds: float = getattr(costs, step.value)
    return seconds


def steps_as_recorded(run: RealRun, found: Measured) -> RecordedSteps:
    """The steps of one real run, on the simulator's clock."""
    shift = epoch_for(run.way.term) - run.began
    row = {name: at for at, name in enumerate(job.name for job in run.as_submitted())}
    seen, steps = _Seen.of(run), Steps(list)
    for key, job in run.jobs.items():
        over = max(run.logged["ended"][key][-1], seen.last_running[key] + _EARLIER)
        for step, at, seconds in (
            *_starts(run, seen, key, job, over), *_leaves(run, seen, key, over, found.leaving),
        ):  # fmt: skip
            steps[step, row[job["name"]]].append((at + shift, seconds))
    return RecordedSteps(found.costs(), steps)


@dataclass(frozen=True, slots=True)
class _Seen:
    """The looks of a run. What Slurm's log has at an instant, a look just after it may not have seen yet."""

    looks: Sequence[Look]
    times: Floats
    last_running: Mapping[int, float]

    @classmethod
    def of(cls, run: RealRun) -> _Seen:
        """The looks of a real run."""
        last = {key: look.time for look in run.looks for key in look.running}
        return cls(run.looks, np.array([look.time for look in run.looks]), defaultdict(float, last))

    def first_without(self, key: int, instant: float) -> int:
        """The number of the first look from an instant on that did not see a job hold GPUs."""
        at = int(np.searchsorted(self.times, instant, side="right"))
        while at < len(self.looks) and key in self.looks[at].holding:
            at += 1
        return at

    def start(self, key: int, opened: float, start: float) -> float:
        """The instant of a start: no earlier than the looks that saw the job wait."""
        at = int(np.searchsorted(self.times, opened, side="right"))
        while at < len(self.looks) and key not in self.looks[at].running and self.times[at] < start + _LATE:
            start = max(start, float(self.times[at]) + _EARLIER)
            at += 1
        return start


def _starts(
    run: RealRun, seen: _Seen, key: int, job: Mapping[str, Any], over: float
) -> list[tuple[Step, float, float]]:
    """Openings, starts, and when requests were heard.

    A job may wake up late. So its last run begins so that it ends when it did, and one that heard of a request
    when its work was just done begins so that it was not.
    """
    opened, asked, found = run.happened["opened"][key], run.happened["asked"][key], []
    answered = {restart: done for restart, _, done in job["asked"]}
    for (restart, progress, done), start in zip(job["starts"], run.logged["started"][key], strict=True):
        since = last_before(opened, progress)
        if restart == job["end"][-1][0] and restart not in answered:
            progress = over - job["work"] + done
        progress += max(answered.get(restart, 0.0) - job["work"] + _EARLIER, 0.0)
        if since is not None:
            start = seen.start(key, since, start)
            found += [(Step.OPENING, since, start - since), (Step.START, start, progress - start)]
    found += [(Step.HEARING, look, _NEVER) for look in run.happened["stays"][key]]  # it ended before it heard
    for _, time, _ in job["asked"]:
        since = last_before(asked, time)
        if since is not None:
            found.append((Step.HEARING, since, time - since))
    return found


def _leaves(
    run: RealRun, seen: _Seen, key: int, over: float, usually: float
) -> list[tuple[Step, float, float]]:
    """From a requeue until Slurm has it back in the queue; from the end until no look saw it hold GPUs."""
    asked, logged = run.happened["requeued"][key], run.logged["requeued"][key]
    held = [float(seen.times[seen.first_without(key, look) - 1]) + _EARLIER for look in asked]
    backs = [max(back, until) for back, until in zip(logged, held, strict=True)]
    found = [(Step.RETURNING, look, back - look) for look, back in zip(asked, backs, strict=True)]
    stops = zip(asked, run.runs[key], strict=False)  # the last run ended by itself
    found += [(Step.STOPPING, look, max(second - look + _EARLIER, 0.0)) for look, (_, second) in stops]
    at = seen.first_without(key, over)
    least = max(float(seen.times[at - 1]) - over + _EARLIER, 0.0) if at else 0.0
    most = float(seen.times[at]) - over - _EARLIER if at < len(seen.times) else usually
    return [*found, (Step.LEAVING, over, float(np.clip(usually, least, max(most, least))))]
