"""The files that daemon, dead-man and commands share in the storage directory."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from slurm_fair import output
from slurm_fair.errors import StoreError
from slurm_fair.locks import is_locked
from slurm_fair.model.counted import cut_at_word

_PAUSE_MODE = 0o644  # root may make the pause, and the daemon's account reads whose it is
_MOST_SAID = 120  # characters of a reason: twelve bytes each at most, so that a heartbeat has its place
_MOST_SECONDS = 1e12


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The daemon lives; while it is blind it does nothing."""

    pid: int
    time: float
    limit_seconds: float
    gate: str
    seen: float = 0.0  # the instant of the last look that was good; the daemon's start before the first one
    blind: str = ""  # why no look was good since then; empty while the daemon sees
    epoch: int = 0  # of its right to write the journal; 0 = not said


@dataclass(frozen=True, slots=True)
class Pause:
    """An admin's wish that nothing is done to any job."""

    why: str = ""
    who: str = ""
    time: float = 0.0

    def in_words(self) -> str:
        """The one who paused, the time and the reason, in one line."""
        when = time.strftime(" at %Y-%m-%d %H:%M:%S", time.localtime(self.time)) if self.time else ""
        return f"{self.who or 'an admin'}{when}{': ' if self.why else ''}{self.why}"


@dataclass(frozen=True, slots=True)
class Places:
    """Names of files under one directory."""

    directory: Path

    @property
    def journal(self) -> Path:
        """The journal, an SQLite file."""
        return self.directory / "journal.db"

    @property
    def heartbeat(self) -> Path:
        """Written at every look of a daemon that is no shadow."""
        return self.directory / "heartbeat.json"

    @property
    def paused(self) -> Path:
        """A file that an admin makes: while it exists nothing is done to any job."""
        return self.directory / "paused"

    @property
    def fail_open(self) -> Path:
        """Asks the daemon to free everything and stop."""
        return self.directory / "fail-open"

    @property
    def deadman_lock(self) -> Path:
        """Held by the one dead-man that watches."""
        return self.directory / "deadman.lock"

    @property
    def freeing(self) -> Path:
        """Locked while the dead-man frees jobs of a daemon that may wake up; its age is that of the last time."""
        return self.directory / "freeing.lock"

    @property
    def all_free(self) -> Path:
        """Left when all jobs of ours were freed and no daemon goes on; its age says up to which submission.

        In it stand the records of older jobs that could not be freed.
        """
        return self.directory / "all-free"

    @property
    def freed_meanwhile(self) -> Path:
        """Left when jobs of a daemon that lives and does nothing were freed: which ones, and what is left."""
        return self.directory / "freed-meanwhile"

    @property
    def deadman_log(self) -> Path:
        """The log of the dead-man."""
        return self.directory / "deadman.log"

    @property
    def slurm_conf(self) -> Path:
        """Our copy of slurm.conf with a short MessageTimeout."""
        return self.directory / "slurm.conf"

    def all_files(self) -> tuple[Path, ...]:
        """The files named above, and those that belong to the journal."""
        beside = (self.journal.with_name(self.journal.name + ending) for ending in output.OF_A_DATABASE)
        named = (
            self.heartbeat, self.paused, self.fail_open, self.deadman_lock, self.freeing, self.all_free,
            self.freed_meanwhile, self.deadman_log, self.slurm_conf,
        )  # fmt: skip
        return (self.journal, *beside, *named)


def write_kept(path: Path, text: str, mode: int = 0o600) -> None:
    """A file of ours, whole or not there."""
    try:
        output.write_text(path, text, mode)
    except OSError as problem:
        raise StoreError(f"{path}: cannot be written: {problem.strerror}") from None


def leave_pause(places: Places, pause: Pause) -> str:
    """Pause; on a full disk the pause stands all the same. Returns why its reason could not be kept."""
    try:
        os.close(output.open_kept(places.paused, os.O_WRONLY, _PAUSE_MODE))
    except OSError as problem:
        raise StoreError(f"{places.paused}: cannot be made: {problem.strerror}") from None
    try:
        write_kept(places.paused, json.dumps(asdict(pause)), _PAUSE_MODE)
    except StoreError as problem:
        return str(problem)
    return ""


def paused_since(places: Places) -> float | None:
    """The instant at which the pause in force began; None where there is none."""
    pause = pause_of(places)
    if pause is None or pause.time:
        return None if pause is None else pause.time
    try:
        return places.paused.stat().st_mtime
    except OSError:
        return None


def leave_all_free(places: Places, until: float, but: Collection[int] = ()) -> bool:
    """Note that the jobs submitted until then are free `but` these records; False where that cannot be kept.

    It is made anew each time, since root may have made the one before.
    """
    try:
        output.write_text(places.all_free, "".join(f"{record}\n" for record in but), 0o600)
        os.utime(places.all_free, (until, until))
    except OSError:
        return False
    return True


def leave_no_daemon(places: Places, until: float, but: Collection[int] = ()) -> str:
    """Note that all is free, and then take away the heartbeat and the wish to fail open.

    The note comes first: whoever is killed between the two finds the heartbeat again, and nobody is forgotten. On
    a full disk the files that go make room for it. Returns why the note could not be kept.
    """
    noted = leave_all_free(places, until, but)
    for file in (places.fail_open, places.heartbeat, places.freed_meanwhile):
        with suppress(OSError):
            file.unlink()
    if noted or leave_all_free(places, until, but):
        return ""
    return (
        f"{places.all_free}: cannot be written, so no timer frees the jobs that come now: make room; "
        "`slurm-fair fail-open` frees them"
    )


def all_free_until(places: Places) -> float | None:
    """The instant of the last submission that is known as free; None unless all was freed and no daemon began."""
    try:
        return places.all_free.stat().st_mtime
    except OSError:
        return None


def not_yet_free(places: Places) -> tuple[int, ...]:
    """Records submitted before that instant which could not be freed; what cannot be read names none."""
    try:
        with places.all_free.open("rb") as file:
            words = file.read(_MOST_RECORDS_BYTES).split()
    except OSError:
        return ()
    return tuple(int(word) for word in words if word.isdigit() and len(word) <= _RECORD_DIGITS)


def being_freed(places: Places) -> bool:
    """True if the dead-man frees jobs just now."""
    return is_locked(places.freeing)


def pause_of(places: Places) -> Pause | None:
    """The pause in force; one that says nothing readable is one too."""
    try:
        with places.paused.open("rb") as file:
            text = file.read(_MOST_PAUSE_BYTES).decode(errors="replace")
    except FileNotFoundError:
        return None
    except OSError:
        return Pause()
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return Pause(" ".join(text.split()))  # a file made by hand
    if not isinstance(said, dict):
        return Pause()
    when = said.get("time")
    since = float(when) if isinstance(when, int | float) and 0 < when < _MOST_PAUSE_SECONDS else 0.0
    return Pause(str(said.get("why") or ""), str(said.get("who") or ""), since)


_MOST_RECORDS_BYTES, _RECORD_DIGITS = 2**24, 10
_MOST_PAUSE_BYTES = 4096
_MOST_PAUSE_SECONDS = 1e11
_BEAT_BYTES = 2048
_BEAT_TRIES = 3


def beat(places: Places, heartbeat: Heartbeat) -> None:
    """Leave a heartbeat; not synced, because it means nothing after a crash of the machine.

    It is written over the one before, so that a full disk does not look like a dead daemon.
    """
    record = json.dumps(asdict(replace(heartbeat, blind=cut_at_word(heartbeat.blind, _MOST_SAID))))
    try:
        handle = os.open(
            places.heartbeat, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600
        )
        try:
            if os.fstat(handle).st_size != _BEAT_BYTES:
                os.ftruncate(handle, 0)
            os.pwrite(handle, record.encode("ascii").ljust(_BEAT_BYTES)[:_BEAT_BYTES], 0)
        finally:
            os.close(handle)
    except OSError as problem:
        raise StoreError(f"{places.heartbeat}: cannot be written: {problem.strerror}") from None


def last_beat(places: Places) -> Heartbeat | None:
    """The last heartbeat; None when there never was one, or what stands there is none."""
    for attempt in range(_BEAT_TRIES):
        time.sleep(0.01 * attempt)  # it may just be written
        try:
            with places.heartbeat.open("rb") as file:
                found = _heartbeat(json.loads(file.read(2 * _BEAT_BYTES)))
        except OSError:
            return None
        except (ValueError, RecursionError):
            continue
        if found is not None:
            return found
    return None


def _heartbeat(said: object) -> Heartbeat | None:
    """A heartbeat out of what a file says; every value is of its own kind, or there is no heartbeat."""
    if not isinstance(said, dict):
        return None
    kinds = {field.name: (str if field.type == "str" else float) for field in fields(Heartbeat)}
    if not {"pid", "time", "limit_seconds", "gate"} <= said.keys() <= kinds.keys():
        return None
    for name, value in said.items():
        if not is_of_kind(value, kinds[name]):
            return None
    return Heartbeat(**said)


def is_of_kind(value: object, kind: type) -> bool:
    """True for a text, or for a number that a clock, a count or a process can have."""
    if kind is str:
        return isinstance(value, str)
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MOST_SECONDS
