"""One act: a lab, the submissions at their times, and, in one of the acts, the daemon."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

import slurm_fair_templates as templates
from slurm_fair.board.board import Board, read_board
from slurm_fair.demo.controller import Controller, demo_configuration
from slurm_fair.demo.live import Show
from slurm_fair.demo.picture import Phase, Picture, Seen
from slurm_fair.demo.scenario import PLAIN, STEP_SECONDS, DemoJob, DemoScenario, Scheduler
from slurm_fair.errors import LabError, SlurmFairError, StoreError
from slurm_fair.lab import Lab, LabSpec
from slurm_fair.model import Blind, EventKind, RunTable
from slurm_fair.model.action import NO_ANSWER
from slurm_fair.model.ids import pack
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.history import SlurmHistory
from slurm_fair.slurm_text import hostlist
from slurm_fair.store import open_reader

COUNTER = Path(str(templates.__file__)).with_name("demo_counter.py")
_LOOK_SECONDS = 1.0
_ACCOUNTED_SECONDS = 15.0
_TOGETHER_SECONDS = 150.0  # how long one act waits for the others' labs
_GATE_SECONDS = 3600
_MINUTES_DECLARED = 10
_SETTINGS: Mapping[Scheduler, Mapping[str, str]] = {
    Scheduler.SLURM_FAIR: {},
    Scheduler.FAIR_SHARE: {"PriorityWeightFairshare": "100000", "PriorityCalcPeriod": "1"},
    Scheduler.FIFO: {
        "PriorityType": "priority/basic",
        "PriorityWeightAge": "",
        "PriorityWeightFairshare": "",
    },
}


class Stopped(SlurmFairError):
    """Somebody asked the demo to stop."""


@dataclass(frozen=True, slots=True)
class ActFacts:
    """Facts that an act leaves behind, for proof and comparison."""

    runs: RunTable
    ids: Mapping[str, int]  # job name -> Slurm's id
    folder: Path
    left: tuple[str, ...] = ()  # what is still imposed on a job, or still there
    requeued: int = 0  # pre-emptions in the journal
    unanswered: frozenset[int] = frozenset()  # ids of jobs that let the grace pass at least once
    tick_seconds: tuple[float, ...] = ()
    daemon_code: int = 0
    complaints: tuple[str, ...] = ()
    runs_from: str = "sacct"  # who tells of the runs


class JournalFacts(TypedDict):
    """Facts of an act that its journal holds."""

    requeued: int
    unanswered: frozenset[int]
    tick_seconds: tuple[float, ...]


def facts_of_the_journal(path: Path, ids: Mapping[str, int]) -> JournalFacts:
    """Pre-emptions and ticks, once the daemon has ended."""
    with open_reader(path) as journal:
        requeues = list(journal.events(kinds=(EventKind.REQUEUED,)))
        seconds = tuple(sum(tick.seconds.values()) for tick in journal.ticks())
    late = {event.key for event in requeues if event.detail["why"] == NO_ANSWER}
    unanswered = frozenset(number for number in ids.values() if pack(number) in late)
    return JournalFacts(requeued=len(requeues), unanswered=unanswered, tick_seconds=seconds)


def submission(job: DemoJob, folder: Path, gated: bool, now: float) -> tuple[tuple[str, ...], str]:
    """sbatch's arguments and the batch script, made as fair-sbatch makes them."""
    script = (
        f"#!/bin/sh\nexec {sys.executable} -I -S {COUNTER} --steps {job.steps} --step-seconds {STEP_SECONDS:g} "
        f"--checkpoint-bytes 4096 --directory {job.name}\n"
    )
    words = (
        f"--account={job.tenant}",
        f"--nodes={job.nodes}",
        f"--gpus-per-node={job.gpus_per_node}",
        "--ntasks-per-node=1",
        f"--time={_MINUTES_DECLARED}",
        f"--chdir={folder}",
        f"--output={folder}/{job.name}.out",
        f"--job-name={job.name}",
        "--parsable",
        "job.sh",
    )
    line = templates.split(words, {})
    lease = importlib.util.find_spec("slurm_fair.lease")
    options = templates.Options(
        template="generic",
        gate="begin" if gated else "none",
        gate_seconds=_GATE_SECONDS,
        gpus_reference=job.gpus,
        lease_py=lease.origin or "" if lease else "",
    )
    wrapped = templates.wrap(script, (), options, (folder, folder))  # the package's templates alone
    return templates.submit_argv(line, script, options, now, {}), wrapped


class Stage:
    """Runs one act from the lab's start to its end; `picture` is what a spectator sees meanwhile."""

    def __init__(
        self,
        scenario: DemoScenario,
        folder: Path,
        scheduler: Scheduler,
        together: threading.Barrier,
        stop: threading.Event,
    ) -> None:
        self.scenario, self.folder, self.scheduler = scenario, folder, scheduler
        self.picture = Picture(Phase.STARTING_SLURM)
        self._together, self._stop = together, stop
        self._jobs = folder / "jobs"
        self._ids: dict[str, int] = {}
        self._lab = Lab(
            spec=LabSpec(
                scenario.nodes,
                scenario.gpus_per_node,
                tenants=dict(scenario.weights),
                billing="GRES/gpu=1",
                settings=_SETTINGS[scheduler],
            )
        )
        self._controller = Controller(folder)

    def run(self) -> ActFacts:
        """The act; whatever happens, no process of it is left, and a failure ends the other acts too."""
        self._jobs.mkdir(parents=True)
        try:
            return self._run()
        except LabError as problem:
            # The lab's own folder is about to go; its logs stay with ours.
            words = str(problem).replace(str(self._lab.folder / "log"), str(self.folder / "slurm-logs"))
            raise LabError(words) from problem
        finally:
            if self.picture.phase is not Phase.OVER:
                self._stop.set()
                self._together.abort()
            self._keep_logs()
            self._lab.stop()

    def _run(self) -> ActFacts:
        try:
            self._lab.start()
            if self.scheduler.ours:
                self.picture = Picture(Phase.STARTING_DAEMON)
                storage, published = self._controller.places.directory, self._controller.board.parent
                self._controller.start(demo_configuration(self.scenario, self._lab.conf, storage, published))
            self._wait_for_the_others()
            began = self.scenario.begin(time.time())
            if self._stop.wait(began - time.time()):
                raise Stopped("stopped")
            self._play(began)
            facts = self._facts(began)
        finally:
            self._controller.stop()
        self.picture = Picture(Phase.OVER, self.picture.seconds, done=self.picture.done)
        return facts

    def _wait_for_the_others(self) -> None:
        self.picture = Picture(Phase.READY)
        try:
            self._together.wait(_TOGETHER_SECONDS)
        except threading.BrokenBarrierError:
            raise Stopped("another act could not begin") from None

    def _play(self, began: float) -> None:
        """Submit what is due, look, until nothing is left in the queue."""
        due = list(self.scenario.jobs)
        next_look, next_count = began, began + self.scenario.recount_seconds
        while due or self.picture.done < len(self.scenario.jobs):
            now = time.time()
            if now - began > self.scenario.limit_seconds:
                left = len(self.scenario.jobs) - self.picture.done
                raise LabError(f"{left} jobs had not ended after {self.scenario.limit_seconds:.0f} s")
            while due and due[0].at_seconds <= now - began:
                self._submit(due.pop(0))
                now = time.time()
            if self.scheduler is Scheduler.FAIR_SHARE and now >= next_count:
                self._count_usage()
                next_count = time.time() + self.scenario.recount_seconds
            if now >= next_look:
                self._look(began)
                next_look = max(next_look + _LOOK_SECONDS, now + 0.2)
            following = min(next_look, began + due[0].at_seconds if due else next_look)
            if self._stop.wait(max(0.01, following - time.time())):
                raise Stopped("stopped")

    def _count_usage(self) -> None:
        """Make Slurm's fair share count usage now: it does so once a minute at most, and when slurmctld starts.

        A site's jobs take hours and usage is counted every five minutes. The demo's jobs take seconds.
        """
        self._lab.halt("slurmctld")
        self._lab.revive("slurmctld")

    def _submit(self, job: DemoJob) -> None:
        argv, script = submission(job, self._jobs, self.scheduler.ours, time.time())
        said = self._lab.run("sbatch", *argv, input=script).stdout
        self._ids[job.name] = int(said.strip().partition(";")[0])

    def _look(self, began: float) -> None:
        """The queue as squeue shows it, and what the daemon publishes."""
        said = self._lab.run("squeue", "-h", "-o", "%j|%T|%N").stdout
        by_name = {job.name: job for job in self.scenario.jobs}
        rows = [line.split("|") for line in said.splitlines() if line]
        seen = tuple(Seen(by_name[name], state, hostlist.expand(nodes)) for name, state, nodes in rows)
        board = None
        if self.scheduler.ours:
            self._controller.check()
            board = self._board()
        over = len(self._ids) - len(seen)
        self.picture = Picture(Phase.PLAYING, time.time() - began, seen, over, board)

    def _board(self) -> Board | None:
        try:
            return read_board(self._controller.board)
        except StoreError:
            return None

    def _facts(self, began: float) -> ActFacts:
        """Accounting and journal, once both know that everything has ended."""
        self.picture = Picture(Phase.READING, self.picture.seconds, done=self.picture.done)
        runs = self._runs(began)
        left = [
            f"job {name} is still there" for name in self._lab.run("squeue", "-h", "-o", "%j").stdout.split()
        ]
        if not self.scheduler.ours:
            return ActFacts(runs, self._ids, self._jobs, tuple(left))
        left += self._marks_left()
        code = self._controller.stop()
        return ActFacts(
            runs=runs,
            ids=self._ids,
            folder=self._jobs,
            left=tuple(left),
            daemon_code=code,
            complaints=self._controller.complaints(),
            **facts_of_the_journal(self.journal, self._ids),
        )

    def _runs(self, began: float) -> RunTable:
        """Runs from sacct; slurmdbd hears of the last ends a little later."""
        history = SlurmHistory(Commands(self._lab.conf))
        deadline = time.monotonic() + _ACCOUNTED_SECONDS
        while True:
            runs = history.runs(began - 5, time.time(), ())
            if isinstance(runs, Blind):
                why = runs.reason
            elif len(set(runs.key.tolist())) == len(self._ids) and (runs.end > 0).all():
                return runs
            else:
                why = "sacct does not know the end of every job"
            if time.monotonic() > deadline:
                raise LabError(f"accounting is not complete after {_ACCOUNTED_SECONDS:g} s: {why}")
            self._stop.wait(0.3)

    def _marks_left(self) -> list[str]:
        """Marks of the daemon that it has not taken back; those of ended jobs go with its next tick."""
        deadline = time.monotonic() + _ACCOUNTED_SECONDS
        while True:
            with open_reader(self._controller.places.journal) as journal:
                marks = journal.marks()
            if not marks or time.monotonic() > deadline:
                return [f"a mark on job {mark.record}" for mark in marks]
            self._stop.wait(0.3)

    def _keep_logs(self) -> None:
        """Beside the jobs' folders; the lab's own folder goes with the lab."""
        if (self._lab.folder / "log").is_dir():
            shutil.copytree(self._lab.folder / "log", self.folder / "slurm-logs", dirs_exist_ok=True)

    @property
    def journal(self) -> Path:
        """The journal of the demo's daemon."""
        return self._controller.places.journal


@dataclass(frozen=True, slots=True)
class Played:
    """Facts of the acts that were played: all, or the first."""

    fair: ActFacts
    journal: Path
    plain: Mapping[Scheduler, ActFacts] = field(default_factory=dict)
    until: float | None = None  # when the acts were over by a clock of their own


def play(scenario: DemoScenario, folder: Path, with_plain: bool, show: Show) -> Played:
    """All acts at the same time, each on its own Slurm; `show` shows them until they are over."""
    plain = PLAIN if with_plain else ()
    stop, together = threading.Event(), threading.Barrier(1 + len(plain))
    stages = [
        Stage(scenario, folder / scheduler.folder, scheduler, together, stop)
        for scheduler in (Scheduler.SLURM_FAIR, *plain)
    ]
    with ThreadPoolExecutor(len(stages), thread_name_prefix="act") as pool:
        acts = [pool.submit(stage.run) for stage in stages]
        try:
            show(stages, lambda: all(act.done() for act in acts))
        finally:
            stop.set()  # it is over, or nobody watches any more
            together.abort()
    failures = [failure for act in acts if (failure := act.exception()) is not None]
    for failure in sorted(failures, key=lambda failure: isinstance(failure, Stopped)):
        raise failure
    facts = [act.result() for act in acts]
    return Played(facts[0], stages[0].journal, dict(zip(plain, facts[1:], strict=True)))
