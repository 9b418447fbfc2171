"""Acknowledgements: a small file in the job's own folder, or a token in its comment, read without trusting either.

The readers (readers.py) run this file by itself, as a process that may hang and be killed; so it needs the
standard library alone.
"""

from __future__ import annotations

import errno
import json
import os
import pwd
import re
import stat
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, TextIO

FOLDER = ".slurm-fair"  # in the working folder of a job
FILE = "ack.json"
WHAT = "ack"  # what the file says that it is
_MOST_BYTES = 64 * 1024
_BEHIND_SECONDS = 2.0  # the clock of a node may be so much behind ours
_AHEAD_SECONDS = 60.0  # or so much ahead of it
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_TOKEN = re.compile(
    r"(?:^|(?<=\s))slurm_fair_ack:job=([0-9]{1,10}(?:_[0-9]{1,10})?),restart=([0-9]{1,9}),saved=([01]),"
    r"time=([0-9]{1,11}(?:\.[0-9]{1,9})?)(?:,step=[0-9]{1,18})?(?=\s|$)"
)


class Reply(IntEnum):
    """The answer of a run, as `Answer` of the model has it, which a reader cannot import."""

    NONE = 0
    SAVED = 1
    NOT_SAVED = 2


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that a run of a job was sent, and where its answer is looked for."""

    user: str
    work_dir: str
    job: str  # 123, or 123_4
    restarts: int
    time: float  # of the request
    now: float


class _Refused(Exception):
    """The reason why nothing is read in a folder."""


def job_directory(work_dir: str, job: str) -> Path:
    """The folder of a job: its messages lie there."""
    return Path(work_dir) / FOLDER / job


def read_acknowledgement(asked: Asked) -> Reply:
    """The answer of this run to our request."""
    try:
        document = _read(asked.work_dir, asked.job, asked.user)
    except _Refused:
        return Reply.NONE
    run, when = document.get("restart"), document.get("time")
    ours = document.get("what") == WHAT and document.get("job") == asked.job and run == asked.restarts
    if not ours or isinstance(run, bool) or not isinstance(when, int | float):
        return Reply.NONE
    return _answer(asked, when, document.get("saved") is True)


def read_comment(comment: str, asked: Asked) -> Reply:
    """The same answer out of the job's own comment, for sites where we do not see its files."""
    answers = [
        _answer(asked, float(when), saved == "1")
        for job, run, saved, when in _TOKEN.findall(comment)
        if job == asked.job and int(run) == asked.restarts
    ]
    return next((answer for answer in reversed(answers) if answer is not Reply.NONE), Reply.NONE)


def why_unreadable(work_dir: str, job: str, user: str) -> str:
    """The reason why this account would not read an answer in the folder of this job; empty if it would."""
    try:
        _read(work_dir, job, user, may_lack=True)
    except _Refused as reason:
        return str(reason)
    return ""


def _answer(asked: Asked, when: float, saved: bool) -> Reply:
    """An answer to an earlier request does not count, nor one from the future."""
    if not asked.time - _BEHIND_SECONDS <= when <= asked.now + _AHEAD_SECONDS:
        return Reply.NONE
    return Reply.SAVED if saved else Reply.NOT_SAVED


def _read(work_dir: str, job: str, user: str, may_lack: bool = False) -> dict[str, Any]:
    """The document of a job that its user alone could have put there."""
    if not os.path.isabs(work_dir):  # it would be looked for under our own
        raise _Refused("its working folder is not known")
    try:
        owner = pwd.getpwnam(user).pw_uid
    except (KeyError, ValueError):
        raise _Refused(f"this machine does not know the user {user!r}") from None
    folder = _open_folder(work_dir, job, owner)
    try:
        return _read_document(folder, str(job_directory(work_dir, job)), owner, may_lack)
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


def _read_document(folder: int, path: str, owner: int, may_lack: bool) -> dict[str, Any]:
    """The JSON object in its file: regular, with one link, owned by the job's user, at most 64 KiB."""
    place = os.path.join(path, FILE)
    handle = -1
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        handle = os.open(FILE, flags, dir_fd=folder)
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


def question(asked: Asked, why: bool) -> str:
    """The question to a reader: for the answer of a job, or for the reason why none could be read."""
    return json.dumps({"why": why, **asdict(asked)}) + "\n"


def _reply(wanted: Mapping[str, Any]) -> str | int:
    asked = Asked(**{name: value for name, value in wanted.items() if name != "why"})
    if wanted["why"]:
        return why_unreadable(asked.work_dir, asked.job, asked.user)
    return read_acknowledgement(asked)


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
