"""What a real run left behind, read again: its numbers, the instants of its looks, and what its starts and stops cost."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fidelity_stage import Way
from benchmarks.fidelity_trace import WEIGHTS, PlannedJob
from slurm_fair.model import EventKind
from slurm_fair.model.ids import pack
from slurm_fair.sim import Costs
from slurm_fair.state_folder import Places
from slurm_fair.store import open_reader

HOUR = 3600.0
_CUT = 0.5  # seconds that Slurm cuts off an instant, on average


@dataclass(frozen=True, slots=True)
class Look:
    """One look of the daemon: its instant, how long it and its tick took, who held GPUs and who was listed."""

    time: float
    look_seconds: float
    tick_seconds: float
    holding: frozenset[int]
    listed: frozenset[int]


@dataclass(frozen=True, slots=True)
class RealRun:
    """One real run; instants in epoch seconds, jobs by their keys."""

    way: Way
    began: float
    jobs: Mapping[int, Mapping[str, Any]]
    looks: Sequence[Look]
    happened: Mapping[str, Mapping[int, Sequence[float]]]  # kind of event -> key -> instants of looks
    started: Mapping[int, Sequence[float]]  # by Slurm, in whole seconds
    accounts: Mapping[str, tuple[float, float]]  # had and owed by the ledger
    billed: Mapping[str, float]  # GPU-seconds of each tenant by sacct
    load: float  # of the machine, on average

    @classmethod
    def read(cls, folder: Path) -> RealRun:
        """From the folder in which it was played."""
        said = json.loads((folder / "recording.json").read_text())
        happened: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        with open_reader(Places(folder / "storage").journal) as journal:
            looks = [_look(tick) for tick in journal.ticks()]
            for event in journal.events():
                happened[str(event.kind)][event.key].append(event.time)
            standing = journal.latest()
        assert standing is not None
        tenants, billed = standing.ledger.tenants, dict.fromkeys(WEIGHTS, 0.0)
        started: dict[int, list[float]] = defaultdict(list)
        for key, tenant, gpus, start, end in sorted(said["runs"]):
            billed[tenant] += gpus * (end - start)
            started[key].append(start)
        columns = zip(tenants.names, tenants.had.tolist(), tenants.owed_demand.tolist(), strict=True)
        return cls(
            Way(**said["way"]), said["began"], {pack(job["id"]): job for job in said["jobs"]}, looks, happened, started,
            {name: (had, owed) for name, had, owed in columns}, billed, float(np.mean(said["load"])),
        )  # fmt: skip

    def numbers(self) -> dict[str, float]:
        """Of the table, by their names."""
        ends = np.array([job["end"][-1][1] for job in self.jobs.values()])
        submitted = np.array([job["submitted"] for job in self.jobs.values()])
        stops = sum(len(times) for times in self.happened[EventKind.REQUEUED].values())
        return numbers_of(ends, submitted, stops, self.billed, self.accounts)

    def as_submitted(self) -> tuple[PlannedJob, ...]:
        """The jobs at the instants at which Slurm had them, by the run's own clock: no later than a look listed them."""
        first: dict[int, float] = {}
        for look in self.looks:
            for key in look.listed - first.keys():
                first[key] = look.time
        return tuple(
            PlannedJob(
                job["name"], job["tenant"], min(job["submitted"], first[key]) - self.began, job["gpus"], job["work"]
            )
            for key, job in self.jobs.items()
        )


def numbers_of(
    ends: np.ndarray[Any, Any],
    submitted: np.ndarray[Any, Any],
    preemptions: float,
    gpu_seconds: Mapping[str, float],
    accounts: Mapping[str, tuple[float, float]],
) -> dict[str, float]:
    """The rows of the table, of a real run and of a simulation alike."""
    return {
        "makespan": float(ends.max() - submitted.min()),
        "mean JCT": float((ends - submitted).mean()),
        "pre-emptions": float(preemptions),
        **{f"GPU-hours {name}": gpu_seconds[name] / HOUR for name in WEIGHTS},
        **{f"rho {name}": accounts[name][0] / accounts[name][1] for name in WEIGHTS},
    }


def _look(tick: Any) -> Look:
    jobs = tick.snapshot.jobs
    took = sum(tick.seconds.values())
    holding = set(jobs.key[np.unique(tick.snapshot.held.row)].tolist())
    return Look(
        tick.time, took - tick.seconds.get("act", 0.0), took, frozenset(holding), frozenset(jobs.key.tolist())
    )


# -- what starts and stops cost ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds on average, over all that happened in some real runs."""

    opening: float  # from the look that opened a gate until Slurm started the job
    starting: float  # from then until it made progress
    saving: float  # from the look that asked a job until it had saved
    requeue: float  # from that look to the one that requeued it
    leaving: float  # from the end of a job's work until its GPUs were free
    look: float  # the seconds of a look
    tick: float  # the seconds of a look and all that follows from it

    def costs(self) -> Costs:
        """As a scenario has them."""
        return Costs(self.saving, 0.0, 0.0, self.starting, self.opening, self.leaving)


def measured(runs: Iterable[RealRun]) -> Measured:
    """From the journals, sacct and the jobs' own clocks."""
    found: dict[str, list[float]] = defaultdict(list)
    free: list[tuple[float, bool]] = []
    for run in runs:
        for key, job in run.jobs.items():
            _of_job(run, key, job, found)
        free += _after_ends(run)
        found["look"] += [look.look_seconds for look in run.looks]
        found["tick"] += [look.tick_seconds for look in run.looks]
    mean = {name: float(np.mean(values)) for name, values in found.items()}
    return Measured(
        mean["opening"], mean["starting"], mean.get("saving", 0.0), mean.get("requeue", 0.0), _threshold(free),
        float(np.median(found["look"])), float(np.median(found["tick"])),
    )  # fmt: skip


def _of_job(run: RealRun, key: int, job: Mapping[str, Any], found: dict[str, list[float]]) -> None:
    """What one job adds to each list."""
    opened, asked, requeued = (run.happened[kind][key] for kind in ("opened", "asked", "requeued"))
    for (_, progress, _), start in zip(job["starts"], run.started[key], strict=False):
        since = _last_before(opened, progress)
        if since is not None:
            found["opening"].append(start + _CUT - since)
            found["starting"].append(progress - start - _CUT)
    for _, time, _ in job["asked"]:
        since = _last_before(asked, time)
        if since is not None:
            found["saving"].append(time - since)
    found["requeue"] += [then - since for then in requeued if (since := _last_before(asked, then)) is not None]


def _last_before(times: Sequence[float], instant: float) -> float | None:
    return max((time for time in times if time < instant), default=None)


def _after_ends(run: RealRun) -> list[tuple[float, bool]]:
    """Of each job's end: the seconds until the first look after it, and whether that one still saw it hold GPUs."""
    times, seen = np.array([look.time for look in run.looks]), []
    for key, job in run.jobs.items():
        at = int(np.searchsorted(times, job["end"][-1][1]))
        if at < len(times):
            seen.append((float(times[at]) - job["end"][-1][1], key in run.looks[at].holding))
    return seen


def _threshold(seen: Sequence[tuple[float, bool]]) -> float:
    """The delay that tells best those that were still seen to hold GPUs from those that were not."""
    delays = sorted(delay for delay, _ in seen)
    return min(delays, key=lambda delay: sum(held != (after < delay) for after, held in seen), default=0.0)
