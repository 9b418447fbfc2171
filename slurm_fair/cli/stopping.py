"""SIGTERM and SIGHUP end a long command as Ctrl-C does: nothing half-made stays, and what was done is told."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGHUP)  # of scancel and time limits, and of a terminal that is closed


class StoppedBySignal(KeyboardInterrupt):
    """A signal other than Ctrl-C's has come, which asks for the same."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def like_ctrl_c() -> Iterator[None]:
    """Inside it these signals interrupt; those that somebody ignores, as nohup does, stay ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = [number for number in SIGNALS if signal.getsignal(number) is signal.SIG_DFL]

    def interrupt(number: int, frame: FrameType | None) -> None:
        for each in ours:
            signal.signal(each, signal.SIG_IGN)  # once is enough: files and processes are being cleared away
        raise StoppedBySignal(number)

    for number in ours:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def code_and_words(problem: BaseException) -> tuple[int, str]:
    """The exit code of what was stopped so, and what to say; click has put its own error round it."""
    found = problem if isinstance(problem, StoppedBySignal) else problem.__cause__
    if isinstance(found, StoppedBySignal):
        return 128 + found.number, f"stopped by {signal.Signals(found.number).name}"
    return 128 + signal.SIGINT, "stopped"
