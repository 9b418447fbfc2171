"""How long each step of each job took in a real run, for a simulation that is to follow that run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.fidelity_recording import Measured, RealRun, last_before
from slurm_fair.sim.port.clock import epoch_for
from slurm_fair.sim.scenario import Costs, Step

_NEAR_SECONDS = 1.0  # a step of the simulation is the recorded one that began so near to it
_EARLIER = 0.001  # than the first look that shows it
Steps = dict[tuple[Step, int], list[tuple[float, float]]]


@dataclass(slots=True)
class DrawnSteps:
    """Slurm starts the jobs of one look together, after a delay that it had in some real run; else as usual."""

    costs: Costs
    delays: Sequence[float]
    dice: np.random.Generator
    _of: dict[float, float] = field(default_factory=dict)

    def __call__(self, step: Step, job: int, restarts: int, now: float) -> float:
        """Seconds."""
        del job, restarts
        if step is not Step.OPENING:
            return usual(self.costs, step)
        if now not in self._of:
            self._of[now] = float(self.dice.choice(self.delays))
        return self._of[now]


@dataclass(frozen=True, slots=True)
class RecordedSteps:
    """As long as the same step of the same job at about the same time; where there is none, as long as usual."""

    costs: Costs
    steps: Mapping[tuple[Step, int], Sequence[tuple[float, float]]]

    def __call__(self, step: Step, job: int, restarts: int, now: float) -> float:
        """Seconds."""
        del restarts
        near = [(abs(at - now), seconds) for at, seconds in self.steps.get((step, job), ())]
        apart, seconds = min(near, default=(np.inf, 0.0))
        return seconds if apart <= _NEAR_SECONDS else usual(self.costs, step)


def usual(costs: Costs, step: Step) -> float:
    """What a step costs as a rule."""
    seconds: float = getattr(costs, step.value)
    return seconds


def steps_as_recorded(run: RealRun, found: Measured) -> RecordedSteps:
    """Those of one real run, on the simulator's clock."""
    shift = epoch_for(run.way.term) - run.began
    row = {name: at for at, name in enumerate(job.name for job in run.as_submitted())}
    times = np.array([look.time for look in run.looks])
    steps: Steps = defaultdict(list)
    for key, job in run.jobs.items():
        for step, at, seconds in (*_starts(run, key, job), *_leaves(run, key, job, times, found.leaving)):
            steps[step, row[job["name"]]].append((at + shift, seconds))
    return RecordedSteps(found.costs(), steps)


def _starts(run: RealRun, key: int, job: Mapping[str, Any]) -> list[tuple[Step, float, float]]:
    """Openings, starts, and when requests were heard.

    A job may wake up late. So its last run begins so that it ends when Slurm says that it did, and one that heard
    of a request when its work was just done begins so that it was not.
    """
    opened, asked, found = run.happened["opened"][key], run.happened["asked"][key], []
    answered = {restart: done for restart, _, done in job["asked"]}
    for (restart, progress, _), start in zip(job["starts"], run.logged["started"][key], strict=True):
        since = last_before(opened, progress)
        if restart == job["end"][-1][0] and restart not in answered:
            progress += run.logged["ended"][key][-1] - progress - job["work"] + job["starts"][-1][2]
        progress += max(answered.get(restart, 0.0) - job["work"] + _EARLIER, 0.0)
        if since is not None:
            found += [(Step.OPENING, since, start - since), (Step.START, start, progress - start)]
    for _, time, _ in job["asked"]:
        since = last_before(asked, time)
        if since is not None:
            found.append((Step.HEARING, since, time - since))
    return found


def _leaves(
    run: RealRun, key: int, job: Mapping[str, Any], times: Any, usually: float
) -> list[tuple[Step, float, float]]:
    """From a requeue until Slurm has it back in the queue; from the end until the GPUs were free.

    That is after the last look that saw them held.
    """
    asked, logged = run.happened["requeued"][key], run.logged["requeued"][key]
    found = [(Step.LEAVING, look, back - look) for look, back in zip(asked, logged, strict=True)]
    stops = zip(asked, run.runs[key], strict=False)  # the last run ended by itself
    found += [(Step.STOPPING, look, max(second - look + _EARLIER, 0.0)) for look, (_, second) in stops]
    over = run.logged["ended"][key][-1]
    at = first = int(np.searchsorted(times, over, side="right"))
    while at < len(times) and key in run.looks[at].holding:
        at += 1
    least = float(times[at - 1]) - over + _EARLIER if at > first else 0.0
    most = float(times[at]) - over - _EARLIER if at < len(times) else usually
    return [*found, (Step.LEAVING, over, float(np.clip(usually, least, max(most, least))))]
