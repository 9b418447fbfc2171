"""Processes that read in folders of users. A process that hangs there is killed, and the daemon goes on.

A user has one read under way at most. A user whose folder hangs is not read again for a while, so that it delays
one look, and nobody else's answers.
"""

from __future__ import annotations

import json
import logging
import os
import select
import subprocess
import sys
import time
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from slurm_fair.slurm.reading import messages
from slurm_fair.slurm.reading.messages import Wanted

_PROGRAM = (sys.executable, "-I", "-S", "-B", messages.__file__)
_ENVIRONMENT = {"LC_ALL": "C.UTF-8"}
_AT_ONCE = 32
_USUAL = 4  # processes, where nothing hangs; they are kept for the next look
_SLOW_SECONDS = 0.05  # a read that takes longer has another process put beside it
_START_SECONDS = 5.0
_PATIENCE_SECONDS = 1.0  # with one read
_BEGIN_SECONDS = 1.5  # in which reads of one look may begin
_REST_SECONDS, _REST_SECONDS_MOST = 30.0, 600.0  # until a user is read again whose folder hung

_log = logging.getLogger("slurm_fair")

Key = int
Message = dict[str, Any]
Reply = str | Message


class _Reader:
    """A process that reads users' folders; it may hang and be killed."""

    def __init__(self, program: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=_ENVIRONMENT,
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._questions, self._answers = self.process.stdin, self.process.stdout
        os.set_blocking(self._answers.fileno(), False)
        self._heard = b""
        # A start touches no folder of users: on a busy machine it may take longer than any read.
        if not select.select([self._answers], [], [], _START_SECONDS)[0] or not self._answers.read():
            self.end()
            self.process.wait()
            raise OSError("a reader does not start")

    def fileno(self) -> int:
        """The descriptor that select waits for."""
        return self._answers.fileno()

    def ask(self, question: str) -> None:
        """One question; a process that is gone is noticed when it is listened to."""
        self._heard = b""
        with suppress(OSError):
            self._questions.write(question.encode())
            self._questions.flush()

    def hear(self) -> Reply | None:
        """The answer, None as long as it is not whole; EOFError from a process that is gone."""
        part = self._answers.read() or b""
        self._heard += part
        if not part:
            raise EOFError
        return json.loads(self._heard) if self._heard.endswith(b"\n") else None

    def end(self) -> None:
        """Kill it and wait for nothing: one that hangs in its file system cannot even die."""
        self.process.kill()
        for pipe in (self._questions, self._answers):
            with suppress(OSError):
                pipe.close()


@dataclass(slots=True)
class _Work:
    """The answer that a process is reading, and since when."""

    key: Key
    user: str
    began: float


@dataclass(slots=True)
class _Rest:
    """The time for which a user's folder is not read, because it hung."""

    until: float
    seconds: float


@dataclass
class Readers:
    """The processes of one daemon."""

    program: Sequence[str] = _PROGRAM
    patience: float = _PATIENCE_SECONDS
    at_once: int = _AT_ONCE
    _idle: list[_Reader] = field(default_factory=list)
    _dying: list[tuple[str, _Reader]] = field(default_factory=list)
    _rests: dict[str, _Rest] = field(default_factory=dict)
    _first: int = 0
    _said: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """No process outlives its owner."""
        self._end = weakref.finalize(self, _end_all, self._idle, self._dying)

    def close(self) -> None:
        self._end()

    def read(self, wanted: Mapping[Key, Wanted], begin_seconds: float = _BEGIN_SECONDS) -> dict[Key, Message]:
        """The messages that can be had now; no read begins later than so many seconds from now."""
        found = self._read(wanted, begin_seconds, why=False)
        return {key: message for key, message in found.items() if isinstance(message, dict)}

    def complaints(self, wanted: Mapping[Key, Wanted]) -> dict[Key, str]:
        """Reasons why the messages of jobs would not be read; empty text for those that would be."""
        answers = self._read(wanted, _BEGIN_SECONDS, why=True)
        return {key: str(answers.get(key, "its file system does not answer")) for key in wanted}

    def _read(self, wanted: Mapping[Key, Wanted], begin_seconds: float, why: bool) -> dict[Key, Reply]:
        self._bury()
        waiting = self._in_line(wanted)
        busy: dict[_Reader, _Work] = {}
        found: dict[Key, Reply] = {}
        last = time.monotonic() + begin_seconds
        while waiting or busy:
            if time.monotonic() > last:
                waiting.clear()
            self._hand_out(waiting, busy, wanted, why)
            self._listen(waiting, busy, found)
        return found

    def hangs(self) -> list[str]:
        """Users whose folders hung and are not read again yet."""
        now = time.monotonic()
        return sorted(user for user, rest in self._rests.items() if rest.until > now)

    def tell_of_hangs(self) -> None:
        """Log each user whose folder hangs, once for as long as it does."""
        hung = set(self.hangs())
        for user in sorted(hung - self._said):
            _log.warning(
                "a folder of %s does not answer; messages there are looked for later", repr(user)[:60]
            )
        self._said = hung

    def _in_line(self, wanted: Mapping[Key, Wanted]) -> dict[str, deque[Key]]:
        """Keys by user; where a look has no time for all, the next one begins with others."""
        by_user: dict[str, deque[Key]] = {}
        for key, message in wanted.items():
            by_user.setdefault(message.user, deque()).append(key)
        self._first += 1
        for keys in by_user.values():
            keys.rotate(self._first)
        resting = set(self.hangs()) | {user for user, _ in self._dying}
        users = deque(user for user in by_user if user not in resting)
        users.rotate(self._first)
        return {user: by_user[user] for user in users}

    def _hand_out(
        self,
        waiting: dict[str, deque[Key]],
        busy: dict[_Reader, _Work],
        wanted: Mapping[Key, Wanted],
        why: bool,
    ) -> None:
        """One read for each user that has none under way, as far as there may be processes."""
        now = time.monotonic()
        slow = sum(now - work.began > _SLOW_SECONDS for work in busy.values())
        room = min(self.at_once, _USUAL + slow) - len(busy)
        served = {work.user for work in busy.values()}
        for user in [user for user in waiting if user not in served][: max(room, 0)]:
            key = waiting[user].popleft()
            if not waiting[user]:
                del waiting[user]
            try:
                reader = self._idle.pop() if self._idle else _Reader(self.program)
            except OSError:  # no process or memory to spare: the next look asks again
                continue
            reader.ask(messages.question(wanted[key], why))
            busy[reader] = _Work(key, user, time.monotonic())

    def _listen(
        self, waiting: dict[str, deque[Key]], busy: dict[_Reader, _Work], found: dict[Key, Reply]
    ) -> None:
        """Take what comes until the first read is out of time."""
        if not busy:
            return
        first = min(work.began for work in busy.values()) + self.patience
        seconds = min(first - time.monotonic(), _SLOW_SECONDS if waiting else self.patience)
        ready, _, _ = select.select(list(busy), [], [], max(seconds, 0.0))
        for reader in ready:
            try:
                reply = reader.hear()
            except (EOFError, OSError, ValueError):
                self._give_up(reader, busy.pop(reader).user)
                continue
            if reply is not None:
                work = busy.pop(reader)
                found[work.key] = reply
                self._rests.pop(work.user, None)
                self._keep(reader)
        late = time.monotonic() - self.patience
        for reader in [reader for reader, work in busy.items() if work.began <= late]:
            user = busy.pop(reader).user
            self._give_up(reader, user)
            waiting.pop(user, None)

    def _keep(self, reader: _Reader) -> None:
        if len(self._idle) < _USUAL:
            self._idle.append(reader)
        else:
            self._dying.append(("", reader))
            reader.end()

    def _give_up(self, reader: _Reader, user: str) -> None:
        """End a process that does not answer; its user rests, longer each time."""
        reader.end()
        self._dying.append((user, reader))
        rest = self._rests.get(user)
        seconds = min(2 * rest.seconds, _REST_SECONDS_MOST) if rest else _REST_SECONDS
        self._rests[user] = _Rest(time.monotonic() + seconds, seconds)

    def _bury(self) -> None:
        """Forget the processes that are dead by now."""
        self._dying[:] = [(user, reader) for user, reader in self._dying if reader.process.poll() is None]


def _end_all(idle: list[_Reader], dying: list[tuple[str, _Reader]]) -> None:
    """Kill the readers at the end of the daemon, and give them a moment, no more."""
    readers = [*idle, *(reader for _, reader in dying)]
    for reader in readers:
        reader.end()
    end = time.monotonic() + 0.5
    for reader in readers:
        with suppress(subprocess.TimeoutExpired):
            reader.process.wait(max(end - time.monotonic(), 0.0))
    idle.clear()
    dying.clear()
