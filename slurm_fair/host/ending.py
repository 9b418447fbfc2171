"""SIGTERM ends the daemon within five seconds, whatever hangs; SIGHUP has it read its configuration again.

The signal reaches a thread of its own through a pipe, so that a main thread that stands still inside a library or
a file system is no hindrance: first the tick may end in good order, then the command under way is ended, then we
are. What was under way has been written down before, so the next start finds it.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

ORDERLY_SECONDS = 3.0
HARD_SECONDS = 4.5
_HARD_CODE = 1


@dataclass(frozen=True, slots=True)
class SignalWishes:
    """The functions that signals call, each in a thread of its own."""

    stop: Callable[[], None]
    reread: Callable[[], None]
    give_up: Callable[[], None]


def heed_signals(wishes: SignalWishes) -> None:
    """Note signals as wishes from now on, in the main thread."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: None)  # the pipe tells
    threading.Thread(target=_listen, args=(reading, wishes), name="signals", daemon=True).start()


def _listen(reading: int, wishes: SignalWishes) -> None:
    ending = False
    while said := os.read(reading, 64):
        for number in said:
            if number == signal.SIGHUP:
                wishes.reread()
            elif number in (signal.SIGTERM, signal.SIGINT) and not ending:
                ending = True
                threading.Thread(target=_end, args=(wishes,), name="ending", daemon=True).start()


def _end(wishes: SignalWishes) -> None:
    """Ask, then end what is under way, then end ourselves; the last step depends on nothing that may hang."""
    last = threading.Timer(HARD_SECONDS, os._exit, (_HARD_CODE,))
    last.daemon = True
    last.start()
    wishes.stop()
    time.sleep(ORDERLY_SECONDS)
    wishes.give_up()
