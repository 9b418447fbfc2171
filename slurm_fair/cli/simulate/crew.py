"""Several simulations at a time, each in a process of its own."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from slurm_fair.cli.simulate import one_run
from slurm_fair.cli.simulate.one_run import Beat, FinishedRun, SimulationOrder
from slurm_fair.errors import SlurmFairError


class Crew:
    """Processes, so many at a time; when one fails or we are stopped, all of them end."""

    def __init__(self, orders: Sequence[SimulationOrder], workers: int, beat: Beat) -> None:
        self._ahead = list(enumerate(orders))[::-1]
        self._workers, self._beat = workers, beat
        self._done: dict[int, FinishedRun] = {}
        self._running: dict[Connection, tuple[int, str, BaseProcess]] = {}

    def run(self) -> list[FinishedRun]:
        """Run every simulation; the results in the order of the orders."""
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

    def _start(self, at: int, order: SimulationOrder) -> None:
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


def _work(pipe: Connection, order: SimulationOrder) -> None:
    """The life of a process; when nobody listens any more, its next beat ends it."""

    def say(word: str, value: Any) -> None:
        pipe.send((word, value))

    with contextlib.suppress(BrokenPipeError):
        try:
            done = one_run.run_one(order, lambda policy, ended, seconds: say("beat", (ended, seconds)))
        except SlurmFairError as problem:
            say("failed", type(problem)(str(problem)))
        else:
            say("done", done)
