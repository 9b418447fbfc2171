"""Messages of a job, read in its user's folder without trusting either: its answer to a request, and its report.

The readers (readers.py) run this file by itself, as a process that may hang and be killed; so it needs the
standard library alone. What a message means is judged elsewhere (acks.py, reports.py).
"""

from __future__ import annotations

import errno
import json
import os
import pwd
import stat
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

FOLDER = ".slurm-fair"  # in the working folder of a job
ACK, REPORT = "ack", "report"  # what a message says that it is; its file is called so too
# All that is read of each; other keys are left where they are.
KEYS = {
    ACK: ("restart", "time", "saved"),
    REPORT: (
        "restart", "time", "epoch", "epochs", "step", "steps", "samples_per_s", "steps_per_s", "batch_size",
        "mode", "model", "pattern", "phases",
    ),
}  # fmt: skip
PHASES = ("data", "forward", "backward", "update", "sync")  # those of `model.reported`
MOST_CHARACTERS = 64  # of a text in a message
_MOST_BYTES = 64 * 1024
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class Wanted:
    """A message of a job, and where it is looked for."""

    user: str
    work_dir: str
    job: str  # 123, or 123_4
    what: str = ACK


class _Refused(Exception):
    """The reason why nothing is read in a folder."""


def job_directory(work_dir: str, job: str) -> Path:
    """The folder of a job: its messages lie there."""
    return Path(work_dir) / FOLDER / job


def read_message(wanted: Wanted) -> dict[str, Any]:
    """The plain values of a message by key; none where there is no such message of this job."""
    try:
        document = _read(wanted)
    except _Refused:
        return {}
    if document.get("what") != wanted.what or document.get("job") != wanted.job:
        return {}
    values = {key: document[key] for key in KEYS[wanted.what] if key in document}
    phases = values.pop("phases", None)
    if isinstance(phases, dict):
        values.update((name, phases[name]) for name in PHASES if name in phases)
    return {key: value for key, value in values.items() if _is_plain(value)}


def why_unreadable(wanted: Wanted) -> str:
    """The reason why this account would not read a message in the folder of this job; empty if it would."""
    try:
        _read(wanted, may_lack=True)
    except _Refused as reason:
        return str(reason)
    return ""


def _is_plain(value: Any) -> bool:
    """True for a short text, a number or a flag."""
    return len(value) <= MOST_CHARACTERS if isinstance(value, str) else isinstance(value, bool | int | float)


def _read(wanted: Wanted, may_lack: bool = False) -> dict[str, Any]:
    """The document of a job that its user alone could have put there."""
    if not os.path.isabs(wanted.work_dir):  # it would be looked for under our own
        raise _Refused("its working folder is not known")
    try:
        owner = pwd.getpwnam(wanted.user).pw_uid
    except (KeyError, ValueError):
        raise _Refused(f"this machine does not know the user {wanted.user!r}") from None
    folder = _open_folder(wanted.work_dir, wanted.job, owner)
    try:
        place = os.path.join(job_directory(wanted.work_dir, wanted.job), f"{wanted.what}.json")
        return _read_document(folder, place, owner, may_lack)
    finally:
        os.close(folder)


def _open_folder(work_dir: str, job: str, owner: int) -> int:
    """A descriptor of the job's folder, if it and the one around it are its user's own; no link is followed."""
    place, flags = work_dir, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
    here = -1
    try:
        here = os.open(place, flags)
        for name in (FOLDER, job):
            place = os.path.join(place, name)
            there = os.open(name, flags | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = there
            facts = os.fstat(here)
            if facts.st_uid != owner or facts.st_mode & _WRITABLE_BY_OTHERS:
                raise _Refused(f"{place} is not its user's alone")
    except (OSError, ValueError) as problem:
        _close(here)
        raise _Refused(_why(place, problem)) from None
    except _Refused:
        _close(here)
        raise
    return here


def _read_document(folder: int, place: str, owner: int, may_lack: bool) -> dict[str, Any]:
    """The JSON object in its file: regular, with one link, owned by the job's user, at most 64 KiB."""
    handle = -1
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        handle = os.open(os.path.basename(place), flags, dir_fd=folder)
        facts = os.fstat(handle)
        plain = stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1 and facts.st_uid == owner
        if not plain or facts.st_size > _MOST_BYTES:
            raise _Refused(f"{place} is no small plain file of its user")
        document = json.loads(os.read(handle, _MOST_BYTES + 1))
    except FileNotFoundError as problem:
        if may_lack:
            return {}
        raise _Refused(_why(place, problem)) from None
    except (OSError, ValueError, RecursionError) as problem:
        raise _Refused(_why(place, problem)) from None
    finally:
        _close(handle)
    if not isinstance(document, dict):
        raise _Refused(f"{place} holds no JSON object")
    return document


def _why(place: str, problem: Exception) -> str:
    """The reason of an error, in one line."""
    if not isinstance(problem, OSError):
        return f"{place} holds no JSON object"
    known = {
        errno.ENOENT: "there is no {}",
        errno.EACCES: "{} is closed to this account",
        errno.ELOOP: "{} is a symbolic link",
        errno.ENOTDIR: "{} is no folder",
    }
    return known.get(problem.errno or 0, "{}: " + str(problem.strerror)).format(place)


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)


# -- the process of a reader: one request a line, one answer a line ------------------------------


def question(wanted: Wanted, why: bool) -> str:
    """The question to a reader: for a message of a job, or for the reason why none could be read."""
    return json.dumps({"why": why, **asdict(wanted)}) + "\n"


def _reply(asked: Mapping[str, Any]) -> str | dict[str, Any]:
    wanted = Wanted(**{name: value for name, value in asked.items() if name != "why"})
    return why_unreadable(wanted) if asked["why"] else read_message(wanted)


def serve(questions: Iterable[str], answers: TextIO) -> None:
    """Say that we are up, then answer until nobody asks any more."""
    answers.write("\n")
    answers.flush()
    for line in questions:
        answers.write(json.dumps(_reply(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    with suppress(BrokenPipeError, KeyboardInterrupt):
        serve(sys.stdin, sys.stdout)
