"""Several policies over one scenario: one after another here, or each in a process of its own."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from slurm_fair.cli.simulate_case import Turn
from slurm_fair.errors import InputError, SlurmFairError
from slurm_fair.model import Events, JobState, Standing, TickRecord
from slurm_fair.sim.clock import epoch_for
from slurm_fair.sim.drive import Simulation
from slurm_fair.sim.result import Result
from slurm_fair.sim.run import simulate
from slurm_fair.sim.scenario import Scenario

if TYPE_CHECKING:
    from slurm_fair.cli.simulate_events import EventsOut

# Of a policy: jobs that ended, and seconds of virtual time.
Beat = Callable[[str, int, float], None]
_BEAT_SECONDS = 0.2
_DONE = int(JobState.DONE)


@dataclass(frozen=True, slots=True)
class Grant:
    """A lease as it was granted: whose, when, and on which nodes."""

    key: int
    time: float
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """What one policy came to, and where each of its leases lay."""

    result: Result
    grants: tuple[Grant, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """Everything that one simulation needs to know; it travels to a process as it is."""

    scenario: Scenario
    turn: Turn
    events_to: Path | None = None
    label: str = ""  # what it is called while it runs; its policy where nothing is said

    @property
    def name(self) -> str:
        """How beats and errors speak of it."""
        return self.label or self.turn.policy


class _Ear:
    """Hears of every tick: keeps the nodes of leases."""

    def __init__(self, events: EventsOut | None) -> None:
        self.grants: list[Grant] = []
        self._events = events

    def __call__(self, tick: TickRecord, standing: Standing) -> None:
        events = tick.events
        for event in events.at_hand if isinstance(events, Events) else events:
            if event.kind == "granted":
                self.grants.append(Grant(event.key, event.time, tuple(event.detail["nodes"])))
        if self._events is not None:
            self._events.take(tick, standing)


class _Pulse:
    """Called at every look; says now and then how far it is."""

    def __init__(self, policy: str, beat: Beat) -> None:
        self._policy, self._beat, self._last = policy, beat, 0.0

    def __call__(self, simulation: Simulation) -> None:
        now = time.perf_counter()
        if now - self._last < _BEAT_SECONDS:
            return
        self._last = now
        jobs = simulation.cluster.jobs
        ended = int(np.count_nonzero(jobs.state[: jobs.count] == _DONE))
        self._beat(self._policy, ended, simulation.clock.now() - simulation.epoch)


def run_one(order: Order, beat: Beat) -> Done:
    """One policy, in this process."""
    if order.events_to is None:
        return _run(order, beat, None)
    from slurm_fair.cli.simulate_events import (
        EventsOut,  # only who wants the events waits for the journal's code
    )

    epoch = epoch_for(order.turn.rules().terms.term)
    with EventsOut(order.events_to, order.scenario, epoch) as events:
        return _run(order, beat, events)


def _run(order: Order, beat: Beat, events: EventsOut | None) -> Done:
    rules = order.turn.rules()
    ear = _Ear(events)
    result = simulate(order.scenario, rules, watch=_Pulse(order.name, beat), listen=ear)
    return Done(result, tuple(ear.grants))


def run_all(orders: Sequence[Order], workers: int, beat: Beat) -> list[Done]:
    """All of them, in the order given, whoever is ready first."""
    for order in orders:
        _check_time_to_work(order)
    if workers <= 1 or len(orders) == 1:
        return [run_one(order, beat) for order in orders]
    return _Crew(orders, workers, beat).run()


def _check_time_to_work(order: Order) -> None:
    """Refuse leases in which nobody would get anywhere: under some policies such a simulation never ends."""
    costs, term = order.scenario.costs, order.turn.rules().terms.term
    change = costs.checkpoint + costs.restart
    if change >= term:
        raise InputError(
            f"a change of hands costs {change:g} s (checkpoint and restart), all of a lease of {term:g} s "
            f"under {order.turn.policy}: give a longer --lease"
        )


class _Crew:
    """Processes, so many at a time; when one fails or we are stopped, all of them end."""

    def __init__(self, orders: Sequence[Order], workers: int, beat: Beat) -> None:
        self._ahead = list(enumerate(orders))[::-1]
        self._workers, self._beat = workers, beat
        self._done: dict[int, Done] = {}
        self._running: dict[Connection, tuple[int, str, BaseProcess]] = {}

    def run(self) -> list[Done]:
        """Until all are done."""
        try:
            while self._ahead or self._running:
                while self._ahead and len(self._running) < self._workers:
                    self._start(*self._ahead.pop())
                for pipe in wait(list(self._running)):
                    if isinstance(pipe, Connection):
                        self._hear(pipe)
        finally:
            for pipe, (_, _, process) in self._running.items():
                if process.pid is not None:
                    process.kill()
                    process.join()
                pipe.close()
        return [self._done[at] for at in sorted(self._done)]

    def _start(self, at: int, order: Order) -> None:
        # A fresh interpreter: nothing of ours (threads of a progress bar, open files) is taken along.
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(theirs, order), daemon=True)
        self._running[ours] = (at, order.name, process)
        with _interruption_later():
            process.start()
        theirs.close()

    def _hear(self, pipe: Connection) -> None:
        at, policy, process = self._running[pipe]
        try:
            word, value = pipe.recv()
        except EOFError:
            process.join()
            why = (
                "was there memory enough? try fewer --workers" if (process.exitcode or 0) < 0 else "see above"
            )
            raise SlurmFairError(
                f"policy {policy}: its process ended with code {process.exitcode} before it was done: {why}"
            ) from None
        if word == "beat":
            self._beat(policy, *value)
            return
        process.join()
        pipe.close()
        del self._running[pipe]
        if word == "failed":
            raise value
        self._done[at] = value


@contextlib.contextmanager
def _interruption_later() -> Iterator[None]:
    """A terminal's Ctrl-C reaches all processes, and only the first one decides what it means.

    Processes that start in here are born with it blocked; one that comes meanwhile is heard at the end, when all
    of them are known.
    """
    resource_tracker.ensure_running()  # it unblocks the signal when it starts
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, before)
    if heard:
        raise KeyboardInterrupt


def _work(pipe: Connection, order: Order) -> None:
    """The life of a process; when nobody listens any more, its next beat ends it."""

    def say(word: str, value: Any) -> None:
        pipe.send((word, value))

    with contextlib.suppress(BrokenPipeError):
        try:
            done = run_one(order, lambda policy, ended, seconds: say("beat", (ended, seconds)))
        except SlurmFairError as problem:
            say("failed", type(problem)(str(problem)))
        else:
            say("done", done)
