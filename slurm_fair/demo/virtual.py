"""The demo without Slurm: the same acts on virtual clusters, faster than life; all else is the real thing."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from slurm_fair.board.board import Board, draw
from slurm_fair.board.publish import Publisher
from slurm_fair.config.sections import Config
from slurm_fair.config.tree import from_tree
from slurm_fair.daemon.loop import Daemon
from slurm_fair.daemon.parts import rules_of
from slurm_fair.demo import live
from slurm_fair.demo.controller import complaints_in
from slurm_fair.demo.counters import leave_behind
from slurm_fair.demo.picture import Phase, Picture, Seen
from slurm_fair.demo.scenario import PLAIN, POLICY, DemoJob, DemoScenario, Scheduler
from slurm_fair.demo.stage import ActFacts, Played, Stopped, facts_of_the_journal
from slurm_fair.errors import SlurmFairError
from slurm_fair.host.state_folder import Places
from slurm_fair.model import Gate, JobState, RunTable, Snapshot, Standing
from slurm_fair.model.ids import pack
from slurm_fair.sim import Costs, Manners, RequeuesAtOnce, Submission, VirtualClock, VirtualCluster
from slurm_fair.slurm.command import Commands
from slurm_fair.store import open_journal
from slurm_fair.trace import uniform

BOOKS = "the virtual cluster's books"
SPEED = 20.0  # of the show against real time
# What real Slurm and a small job take, measured on a laptop.
COSTS = Costs(checkpoint=0.3, restart=0.5)
_GATE_SECONDS = 3600.0
_LISTED_SECONDS = 300.0
_LOOK_SECONDS = 1.0
_WORDS = {JobState.WAITING: "PENDING", JobState.RUNNING: "RUNNING", JobState.ENDING: "COMPLETING"}
# Slurm's own multifactor priority and backfill, as the private Slurm of the other demo is set.
_FAIR_SHARE = {
    "name": "slurm",
    "slurm": {
        "priority_weight_age": 100.0,
        "priority_weight_fairshare": 100000.0,
        "priority_weight_job_size": 0.0,
        "bf_resolution_seconds": 1.0,
    },
}


class Pace:
    """The speed of virtual time: so many times real time, or as fast as it can."""

    def __init__(self, speed: float, stop: threading.Event) -> None:
        self._speed, self._stop, self._began = speed, stop, time.monotonic()

    def reach(self, seconds: float) -> None:
        """Return when the show has come to that second; Stopped when somebody does not want to wait for it."""
        wait = self._began + seconds / self._speed - time.monotonic() if math.isfinite(self._speed) else 0.0
        if self._stop.wait(wait) if wait > 0 else self._stop.is_set():
            raise Stopped("stopped")


class VirtualAct:
    """One act on a cluster of its own; `run` yields the second of the act at which it goes on."""

    def __init__(self, scenario: DemoScenario, folder: Path, scheduler: Scheduler, began: float) -> None:
        self.scenario, self.folder, self.scheduler = scenario, folder, scheduler
        self.picture = Picture(Phase.READY)
        self.facts: ActFacts | None = None
        self.places = Places(folder / "storage")
        self._began, self._clock = began, VirtualClock(began)
        self._cluster = VirtualCluster.bare(
            uniform(scenario.total_gpus, scenario.gpus_per_node),
            self._clock,
            scenario.lease_seconds,
            manners=Manners(Gate.BEGIN, _LISTED_SECONDS, 2 * scenario.grace_seconds),
            costs=COSTS,
            weights=scenario.weights,
        )
        self._books = self._cluster.keep_books()
        self._due = list(scenario.jobs)
        self._ids: dict[str, int] = {}
        self._board: Board | None = None

    @property
    def now(self) -> float:
        """The act's own time."""
        return self._clock.now()

    def run(self) -> Generator[float, None, None]:
        """The act; step by step, so that several of them go side by side."""
        if self.scheduler is Scheduler.FIFO:
            yield from self._play(None)
        else:
            yield from self._play_with_a_daemon()
        facts = ActFacts(self._runs(), self._ids, self.folder / "jobs", self._left(), runs_from=BOOKS)
        if self.scheduler.ours:
            complaints = complaints_in(self.folder / "daemon.log")
            facts = replace(
                facts, complaints=complaints, **facts_of_the_journal(self.places.journal, self._ids)
            )
        self._keep(facts)

    def _play_with_a_daemon(self) -> Iterator[float]:
        self.places.directory.mkdir(mode=0o750, parents=True)
        with (
            _log_to(self.folder / "daemon.log"),
            contextlib.closing(open_journal(self.places.journal)) as journal,
        ):
            config = _config(self.scenario, self.places, self.scheduler)
            daemon = Daemon(
                config,
                self.places,
                self._clock,
                journal,
                Commands(),
                RequeuesAtOnce(self._cluster),
                self._books,
                rules_of(config),
                Standing.new(self._began),
                Publisher("", lambda: True),
            )
            yield from self._play(daemon)

    def _play(self, daemon: Daemon | None) -> Iterator[float]:
        """Submit what is due, let the daemon look when it wants to, until every job is over."""
        next_tick, next_look = self._began if daemon else math.inf, self._began
        while True:
            now = self.now
            if now - self._began > self.scenario.limit_seconds:
                raise SlurmFairError(f"the act was not over after {self.scenario.limit_seconds:.0f} s")
            while self._due and self._began + self._due[0].at_seconds <= now:
                self._submit(self._due.pop(0))
            if daemon and now >= next_tick:
                next_tick = self._tick(daemon)
            if now >= next_look:
                next_look = now + _LOOK_SECONDS
                if self._look() and not self._due:
                    break
            arrival = self._began + self._due[0].at_seconds if self._due else math.inf
            following = min(next_tick, next_look, arrival)
            yield following - self._began
            self._clock.sleep_until(following)
        if daemon:  # it has looked before the last job ended, and is to tell of that end
            yield next_tick - self._began
            self._clock.sleep_until(next_tick)
            self._tick(daemon)

    def _tick(self, daemon: Daemon) -> float:
        done = daemon.once()
        if done.record is not None and self.scheduler.ours:
            self._board = draw(done.record, done.standing)
        return daemon.next_look(self.now)

    def _submit(self, job: DemoJob) -> None:
        self._ids[job.name] = self._cluster.by_hand.submit(
            Submission(
                gpus=job.gpus,
                seconds=job.work_seconds,
                tenant=job.tenant,
                nodes=job.nodes,
                gpus_per_node=job.gpus_per_node,
                gated=self.scheduler is not Scheduler.FIFO,
                gate_seconds=_GATE_SECONDS,
                reports=self.scheduler.ours,
            )
        )

    def _look(self) -> bool:
        """Look, and draw the picture; True once every job that was submitted is over."""
        snapshot = self._cluster.observe({})
        seen = tuple(self._seen(snapshot))
        done = len(self._ids) - len(seen)
        self.picture = Picture(Phase.PLAYING, self.now - self._began, seen, done, self._board)
        return not seen

    def _seen(self, snapshot: Snapshot) -> Iterator[Seen]:
        by_key = {pack(self._ids[job.name]): job for job in self.scenario.jobs if job.name in self._ids}
        for row, key in enumerate(snapshot.jobs.key.tolist()):
            state = JobState(int(snapshot.jobs.state[row]))
            if state in _WORDS:
                nodes = (snapshot.nodes.names[node] for node in snapshot.held.nodes_of(row).tolist())
                yield Seen(by_key[key], _WORDS[state], tuple(nodes))

    # -- what is left of it -----------------------------------------------------------------------------------

    def _keep(self, facts: ActFacts) -> None:
        (self.folder / "jobs").mkdir(parents=True)
        for job in self.scenario.jobs:
            leave_behind(job, list(self._books.of(pack(self._ids[job.name]))), self.folder / "jobs")
        self.facts = facts
        self.picture = Picture(Phase.OVER, self.picture.seconds, done=self.picture.done)

    def _runs(self) -> RunTable:
        return self._books.runs(self._began, self.now)

    def _left(self) -> tuple[str, ...]:
        return tuple(f"job {seen.job.name} is still there" for seen in self._seen(self._cluster.observe({})))


def _config(scenario: DemoScenario, places: Places, scheduler: Scheduler) -> Config:
    lease = {
        "term": scenario.lease_seconds,
        "interval": scenario.interval_seconds,
        "grace": scenario.grace_seconds,
        "align": "aligned",
    }
    tree: dict[str, Any] = {"lease": lease, "storage": {"dir": str(places.directory)}}
    if scheduler.ours:
        tree["policy"] = {"name": POLICY, POLICY: dict(scenario.policy_settings)}
    elif scheduler is Scheduler.FAIR_SHARE:
        tree["policy"] = _FAIR_SHARE
    return from_tree(tree, "the demo")


@contextlib.contextmanager
def _log_to(path: Path) -> Iterator[None]:
    """The daemon's log lines go to a file, as that of a daemon with a process of its own."""
    log = logging.getLogger("slurm_fair")
    before = (log.handlers[:], log.propagate, log.level)
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.handlers[:], log.propagate = [handler], False
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.handlers[:], log.propagate = before[:2]
        log.setLevel(before[2])
        handler.close()


def play_virtual(
    scenario: DemoScenario, folder: Path, with_plain: bool, console: Console, fast: bool
) -> Played:
    """All acts side by side: shown at a pace that can be followed, or told in lines, as fast as it can."""
    began, stop = scenario.begin(time.time()), threading.Event()
    plain = PLAIN if with_plain else ()
    acts = [
        VirtualAct(scenario, folder / scheduler.folder, scheduler, began)
        for scheduler in (Scheduler.SLURM_FAIR, *plain)
    ]
    pace = Pace(SPEED if console.is_terminal and not fast else math.inf, stop)
    tell = (lambda: None) if console.is_terminal else live.ActLines(console, acts)
    with ThreadPoolExecutor(1, thread_name_prefix="acts") as pool:
        acting = pool.submit(_in_step, acts, pace, tell)
        try:
            if console.is_terminal:
                live.show_acts(console, acts, acting.done)
            acting.result()
        finally:
            stop.set()  # it is over, or nobody watches any more
    facts = [act.facts for act in acts if act.facts is not None]
    return Played(facts[0], acts[0].places.journal, dict(zip(plain, facts[1:], strict=True)), acts[0].now)


def _in_step(acts: Sequence[VirtualAct], pace: Pace, tell: Callable[[], None]) -> None:
    """Always the act that is behind goes on."""
    steps, next_line = [act.run() for act in acts], 0.0
    try:
        due = [0.0 for _ in steps]
        while (second := min(due)) < math.inf:
            pace.reach(second)
            if second >= next_line:
                next_line = second + live.LINE_SECONDS
                tell()
            at = due.index(second)
            due[at] = next(steps[at], math.inf)
    finally:
        for each in steps:
            each.close()
