"""Read what a real run left behind: its numbers, the instants of its looks, what its starts and stops cost."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.fidelity_compare import Numbers
from benchmarks.fidelity_stage import Way
from benchmarks.fidelity_trace import WEIGHTS, PlannedJob
from slurm_fair.host.state_folder import Places
from slurm_fair.model import EventKind
from slurm_fair.model.ids import pack
from slurm_fair.sim import Costs
from slurm_fair.sim.scenario import Step
from slurm_fair.store import open_reader

HOUR = 3600.0
_MOMENT = 0.001
_CUT = 0.5  # seconds that accounting cuts off an instant, on average
_STAMP = len("[2026-11-24T06:00:00.000] ")
_LINES = {
    "started": re.compile(r"sched(?:/backfill)?: (?:Allocate|_start_job: Started) JobId=([0-9]+) "),
    "requeued": re.compile(r"Requeuing JobId=([0-9]+)"),
    "ended": re.compile(r"_job_complete: JobId=([0-9]+) done"),
}


@dataclass(frozen=True, slots=True)
class Look:
    """One look of the daemon: its instant, how long it and its tick took, who held GPUs and who was listed."""

    time: float
    look_seconds: float
    tick_seconds: float
    acts: int  # that followed from it
    running: frozenset[int]
    holding: Mapping[int, Mapping[int, int]]  # GPUs by node of each job that holds some
    left: Mapping[int, int]  # GPUs by node that it saw in use, and saw no job that holds them
    listed: frozenset[int]
    settled: bool  # with accounting, just before it


class Grant(NamedTuple):
    """A lease that was granted: when, to which job, on which nodes."""

    time: float
    job: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RealRun:
    """One real run; instants in epoch seconds, jobs by their keys."""

    way: Way
    began: float
    jobs: Mapping[int, Mapping[str, Any]]
    looks: Sequence[Look]
    grants: Sequence[Grant]
    happened: Mapping[str, Mapping[int, Sequence[float]]]  # kind of event -> key -> instants of looks
    logged: Mapping[
        str, Mapping[int, Sequence[float]]
    ]  # started, requeued, ended: by Slurm, as its log has it
    runs: Mapping[int, Sequence[tuple[float, float]]]  # start and end of each run, by sacct in whole seconds
    accounts: Mapping[str, tuple[float, float]]  # had and owed by the ledger
    billed: Mapping[str, float]  # GPU-seconds of each tenant by sacct
    load: float  # of the machine, on average

    @classmethod
    def read(cls, folder: Path) -> RealRun:
        """From the folder in which it was played."""
        said = json.loads((folder / "recording.json").read_text())
        jobs = {pack(job["id"]): job for job in said["jobs"]}
        happened: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        grants: list[Grant] = []
        with open_reader(Places(folder / "storage").journal) as journal:
            looks = [_look(tick) for tick in journal.ticks()]
            for event in journal.events():
                happened[str(event.kind)][event.key].append(event.time)
                if event.kind == EventKind.GRANTED:
                    grants.append(Grant(event.time, jobs[event.key]["name"], tuple(event.detail["nodes"])))
            standing = journal.latest()
        assert standing is not None
        tenants, billed = standing.ledger.tenants, dict.fromkeys(WEIGHTS, 0.0)
        for _, tenant, gpus, start, end in said["runs"]:
            billed[tenant] += gpus * (end - start)
        columns = zip(tenants.names, tenants.had.tolist(), tenants.owed_demand.tolist(), strict=True)
        logged, runs = read_log(folder / "slurmctld.log"), _runs(said["runs"])
        _to_the_second(logged, runs)
        return cls(
            Way(**said["way"]), said["began"], jobs, looks, grants, happened, logged, runs,
            {name: (had, owed) for name, had, owed in columns}, billed, float(np.mean(said["load"])),
        )  # fmt: skip

    def numbers(self) -> Numbers:
        """The numbers of the table, by their names."""
        ends = np.array([job["end"][-1][1] for job in self.jobs.values()])
        submitted = np.array([job["submitted"] for job in self.jobs.values()])
        stops = sum(len(times) for times in self.happened[EventKind.REQUEUED].values())
        return numbers_of(ends, submitted, stops, self.billed, self.accounts)

    def as_submitted(self) -> tuple[PlannedJob, ...]:
        """The jobs at the instants at which Slurm had them."""
        before, first = -np.inf, dict[int, tuple[float, float]]()
        for look in self.looks:
            first |= dict.fromkeys(look.listed - first.keys(), (before, look.time))
            before = look.time
        jobs = [
            PlannedJob(
                job["name"], job["tenant"], self._submitted(key, *first[key]), job["gpus"], job["work"]
            )
            for key, job in self.jobs.items()
        ]
        return tuple(sorted(jobs, key=lambda job: job.at))

    def _submitted(self, key: int, unseen: float, seen: float) -> float:
        """In the second that Slurm says, and between the last look that did not list it and the first that did."""
        second = self.happened[EventKind.SUBMITTED][key][0]
        least, most = max(unseen, second) + _MOMENT, min(seen, second + 1) - _MOMENT
        return float(np.clip(self.jobs[key]["submitted"], least, max(least, most))) - self.began


def numbers_of(
    ends: np.ndarray[Any, Any],
    submitted: np.ndarray[Any, Any],
    preemptions: float,
    gpu_seconds: Mapping[str, float],
    accounts: Mapping[str, tuple[float, float]],
) -> Numbers:
    """The rows of the table, of a real run and of a simulation alike."""
    return {
        "makespan": float(ends.max() - submitted.min()),
        "mean JCT": float((ends - submitted).mean()),
        "pre-emptions": float(preemptions),
        **{f"GPU-hours {name}": gpu_seconds[name] / HOUR for name in WEIGHTS},
        **{f"rho {name}": accounts[name][0] / accounts[name][1] for name in WEIGHTS},
    }


def read_log(log: Path) -> dict[str, dict[int, list[float]]]:
    """The instants at which Slurm started, requeued and ended each job, to the thousandth, from its log."""
    found: dict[str, dict[int, list[float]]] = {kind: defaultdict(list) for kind in _LINES}
    for line in log.read_text(errors="replace").splitlines():
        for kind, pattern in _LINES.items():
            if match := pattern.match(line, _STAMP):
                found[kind][pack(int(match[1]))].append(
                    datetime.fromisoformat(line[1 : _STAMP - 2]).timestamp()
                )
    return found


def _runs(rows: Iterable[Sequence[Any]]) -> dict[int, list[tuple[float, float]]]:
    """The runs of each job, in their order."""
    found: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for key, _, _, start, end in rows:
        found[key].append((start, end))
    return {key: sorted(of_job) for key, of_job in found.items()}


def _to_the_second(
    logged: Mapping[str, dict[int, list[float]]], runs: Mapping[int, Sequence[tuple[float, float]]]
) -> None:
    """Move instants that the log tells late into the second that accounting has."""
    for key, of_job in runs.items():
        pairs = zip(logged["started"][key], of_job, strict=True)
        logged["started"][key] = [_within(late, second) for late, (second, _) in pairs]
        logged["ended"][key] = [_within(logged["ended"][key][-1], of_job[-1][1])]


def _within(instant: float, second: float) -> float:
    return float(np.clip(instant, second, second + 1 - _MOMENT))


def _look(tick: Any) -> Look:
    jobs = tick.snapshot.jobs
    took = sum(tick.seconds.values())
    held, others = tick.snapshot.held, tick.snapshot.nodes.gpus_others
    holding: dict[int, dict[int, int]] = defaultdict(dict)
    for row, node, gpus in zip(held.row.tolist(), held.node.tolist(), held.gpus.tolist(), strict=True):
        holding[int(jobs.key[row])][node] = gpus
    left = {node: int(others[node]) for node in np.flatnonzero(others > 0).tolist()}
    running, listed = frozenset(jobs.key[jobs.running].tolist()), frozenset(jobs.key.tolist())
    return Look(
        tick.time, took - tick.seconds.get("act", 0.0), took, len(tick.outcomes), running, holding, left, listed,
        tick.amended is not None,
    )  # fmt: skip


def seen_holding(looks: Sequence[Look], ended: Mapping[int, Sequence[float]]) -> list[frozenset[int]]:
    """The jobs that each look saw hold GPUs, or saw gone and did not see their GPUs free.

    Nodes are read a moment before jobs. What is still in use there belongs to those that ended last.
    """
    found: list[frozenset[int]] = []
    before: Mapping[int, Mapping[int, int]] = {}
    for look in looks:
        holding, left = dict(look.holding), dict(look.left)
        gone = sorted(before.keys() - look.holding.keys(), key=lambda key: -max(ended.get(key, [0.0])))
        for key in gone:
            there = before[key]
            if all(left.get(node, 0) >= gpus for node, gpus in there.items()):
                holding[key] = there
                left |= {node: left[node] - gpus for node, gpus in there.items()}
        before = holding
        found.append(frozenset(holding))
    return found


# -- what starts and stops cost ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds on average, over all that happened in some real runs."""

    opening: float  # from the look that opened a gate until Slurm started the job
    starting: float  # of each run that was no work: until it made progress, and from its end until Slurm knew
    hearing: float  # from the look that asked a job until it heard of it; it saves in no time
    requeue: float  # from that look to the one that requeued it
    leaving: float  # from the end of a job's work until its GPUs were free
    look: float  # the seconds of a look
    tick: float  # the seconds of a look and all that follows from it, where nothing is done to a job
    acting: float  # the same where something is
    act: float  # more for each act
    stopping: float  # from the look that requeued a job until accounting has its run as over
    returning: float  # from that look until Slurm has it back in the queue
    every: Mapping[
        Step, tuple[float, ...]
    ]  # all that some of these are means of; openings of one look are one

    def costs(self) -> Costs:
        """The seconds of starts and stops as a scenario takes them."""
        return Costs(
            start=self.starting, hearing=self.hearing, opening=self.opening, stopping=self.stopping,
            returning=self.returning, leaving=self.leaving,
        )  # fmt: skip


def measured(runs: Iterable[RealRun]) -> Measured:
    """From the journals, sacct and the jobs' own clocks."""
    found: dict[str, list[float]] = defaultdict(list)
    free: list[tuple[float, bool]] = []
    acting: list[tuple[int, float]] = []
    for run in runs:
        for key, job in run.jobs.items():
            _of_job(run, key, job, found)
        free += _after_ends(run)
        found["look"] += [look.look_seconds for look in run.looks]
        found["tick"] += [look.tick_seconds for look in run.looks if not look.acts]
        acting += [(look.acts, look.tick_seconds) for look in run.looks if look.acts]
    mean = defaultdict(float, {name: float(np.mean(values)) for name, values in found.items() if values})
    every = {
        Step.OPENING: _by_look(found["opened"], found["opening"]),
        Step.HEARING: tuple(found["hearing"]),
        Step.RETURNING: tuple(found["returning"]),
    }
    return Measured(
        mean["opening"], mean["starting"], mean["hearing"], mean["requeue"], threshold(free), mean["look"],
        mean["tick"], *with_acts(acting), mean["stopping"], mean["returning"], every,
    )  # fmt: skip


def with_acts(acting: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Seconds of a tick with acts, and of each act: the line through all of them."""
    if not acting:
        return 0.0, 0.0
    acts, ticks = np.array(acting, dtype=np.float64).T
    each, first = np.polyfit(acts, ticks, 1)
    return float(first), float(each)


def _by_look(opened: Sequence[float], delays: Sequence[float]) -> tuple[float, ...]:
    """The jobs of one look start together, as a rule: one delay, in the middle, of each look."""
    of: dict[float, list[float]] = defaultdict(list)
    for look, delay in zip(opened, delays, strict=True):
        of[look].append(delay)
    return tuple(float(np.median(each)) for each in of.values())


def _of_job(run: RealRun, key: int, job: Mapping[str, Any], found: dict[str, list[float]]) -> None:
    """Add the instants of one job to each list."""
    opened, asked, requeued = (run.happened[kind][key] for kind in ("opened", "asked", "requeued"))
    last = job["starts"][-1][0]
    over = run.logged["ended"][key][-1] - job["work"] + job["starts"][-1][2]  # less the work of the last run
    for (restart, progress, _), start in zip(job["starts"], run.logged["started"][key], strict=True):
        since = last_before(opened, progress)
        if since is not None:
            found["opened"].append(since)
            found["opening"].append(start - since)
            found["starting"].append((progress if restart < last or job["asked"] else over) - start)
    for _, time, _ in job["asked"]:
        since = last_before(asked, time)
        if since is not None:
            found["hearing"].append(time - since)
    found["requeue"] += [then - since for then in requeued if (since := last_before(asked, then)) is not None]
    found["returning"] += [
        back - look for look, back in zip(requeued, run.logged["requeued"][key], strict=True)
    ]
    ends = zip(requeued, run.runs[key], strict=False)  # the last run ended by itself
    found["stopping"] += [second + _CUT - look for look, (_, second) in ends]


def last_before(times: Sequence[float], instant: float) -> float | None:
    """The last of some instants before another one."""
    return max((time for time in times if time < instant), default=None)


def _after_ends(run: RealRun) -> list[tuple[float, bool]]:
    """Seconds from each job's end to the first look after it, and whether that one still saw it hold GPUs."""
    times, seen = np.array([look.time for look in run.looks]), []
    holding = seen_holding(run.looks, run.logged["ended"])
    for key, job in run.jobs.items():
        at = int(np.searchsorted(times, job["end"][-1][1]))
        if at < len(times):
            seen.append((float(times[at]) - job["end"][-1][1], key in holding[at]))
    return seen


def threshold(seen: Sequence[tuple[float, bool]]) -> float:
    """The delay that tells best those that were still seen to hold GPUs from those that were not."""
    delays = sorted(delay for delay, _ in seen)
    return min(delays, key=lambda delay: sum(held != (after < delay) for after, held in seen), default=0.0)
