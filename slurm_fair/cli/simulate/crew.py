"""Several simulations at a time, each in a process of its own."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, Protocol, TypeVar

from slurm_fair.cli.simulate.one_run import Beat
from slurm_fair.cli.stopping import SIGNALS, stop_if_asked
from slurm_fair.errors import SlurmFairError

_FOR_THE_FIRST = (signal.SIGINT, *SIGNALS)


class Named(Protocol):
    """Something to simulate; it travels to a process as it is."""

    @property
    def name(self) -> str:
        """The name in progress lines and errors."""


_Order = TypeVar("_Order", bound=Named)
_Result = TypeVar("_Result")
Work = Callable[[_Order, Beat], _Result]  # a function of a module: processes find it by its name


class _Word(Enum):
    """The words of a process, through its pipe."""

    BEAT = auto()
    FAILED = auto()
    DONE = auto()


@dataclass(frozen=True, slots=True)
class OrderEnd(Generic[_Result]):
    """The end of one order: its place among all, and its result or what went wrong."""

    at: int
    result: _Result | None
    problem: SlurmFairError | None = None


class Crew(Generic[_Order, _Result]):
    """Processes, so many at a time; when we are stopped, all of them end."""

    def __init__(
        self, orders: Sequence[_Order], most: int, work: Work[_Order, _Result], beat: Beat, option: str
    ) -> None:
        self._ahead = list(enumerate(orders))[::-1]
        self._most, self._work, self._beat = most, work, beat
        self._option = option  # that says how many processes there are
        self._running: dict[Connection, tuple[int, str, BaseProcess]] = {}

    def ends(self) -> Generator[OrderEnd[_Result], None, None]:
        """Run every order, and say of each that it has ended; a process that dies takes no other along."""
        try:
            while self._ahead or self._running:
                stop_if_asked()
                while self._ahead and len(self._running) < self._most:
                    self._start(*self._ahead.pop())
                for pipe in wait(list(self._running)):
                    if isinstance(pipe, Connection) and (end := self._hear(pipe)) is not None:
                        yield end
        finally:
            for pipe, (_, _, process) in self._running.items():
                if process.pid is not None:
                    process.kill()
                    process.join()
                pipe.close()

    def _start(self, at: int, order: _Order) -> None:
        # A fresh interpreter: nothing of ours (threads of a progress bar, open files) is taken along.
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_live, args=(theirs, order, self._work), daemon=True)
        self._running[ours] = (at, order.name, process)
        with _interruption_later():
            process.start()
        theirs.close()

    def _hear(self, pipe: Connection) -> OrderEnd[_Result] | None:
        at, name, process = self._running[pipe]
        try:
            word, value = pipe.recv()
        except EOFError:
            word, value = _Word.FAILED, None
        if word is _Word.BEAT:
            self._beat(name, *value)
            return None
        process.join()
        pipe.close()
        del self._running[pipe]
        if word is _Word.FAILED:
            return OrderEnd(at, None, value or self._died(name, process.exitcode or 0))
        return OrderEnd(at, value)

    def _died(self, name: str, code: int) -> SlurmFairError:
        why = f"was there memory enough? try fewer {self._option}" if code < 0 else "see above"
        return SlurmFairError(f"policy {name}: its process ended with code {code} before it was done: {why}")


@contextlib.contextmanager
def _interruption_later() -> Iterator[None]:
    """A terminal's Ctrl-C reaches all processes, as other signals may, and only the first decides what it means.

    Processes that start in here are born with them blocked; one that comes meanwhile is heard at the end, when all
    of them are known.
    """
    resource_tracker.ensure_running()  # it unblocks signals when it starts
    heard: list[int] = []
    before = {
        each: signal.signal(each, lambda number, frame: heard.append(number))
        for each in _FOR_THE_FIRST
        if callable(signal.getsignal(each))
    }
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _FOR_THE_FIRST)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for each, handler in before.items():
            signal.signal(each, handler)
    for number in heard[:1]:
        signal.raise_signal(number)


def _leave_signals_to_the_first() -> None:
    """Heed none of them from now on; what this process starts is born with its usual way of heeding them."""
    for number in _FOR_THE_FIRST[1:]:
        signal.signal(number, lambda number, frame: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FOR_THE_FIRST[1:])


def _live(pipe: Connection, order: _Order, work: Work[_Order, _Result]) -> None:
    """The life of a process; when nobody listens any more, its next beat ends it."""

    def say(word: _Word, value: Any) -> None:
        pipe.send((word, value))

    _leave_signals_to_the_first()
    with contextlib.suppress(BrokenPipeError):
        try:
            done = work(order, lambda policy, ended, seconds: say(_Word.BEAT, (ended, seconds)))
        except SlurmFairError as problem:
            say(_Word.FAILED, type(problem)(str(problem)))
        else:
            say(_Word.DONE, done)
