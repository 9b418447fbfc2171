"""Acknowledgements: one small file in the job's own directory, read without trusting it."""

from __future__ import annotations

import json
import os
import pwd
import re
import stat
from pathlib import Path
from typing import Any

_MOST_BYTES = 64 * 1024
_CLOCKS_DIFFER_SECONDS = 2.0
_TOKEN = re.compile(
    r"(?:^|(?<=\s))slurm_fair_ack:restart=([0-9]{1,9}),saved=([01]),time=([0-9]{1,11}(?:\.[0-9]{1,9})?)"
    r"(?:,step=[0-9]{1,18})?(?=\s|$)"
)
SAVED, NOT_SAVED, NO_ANSWER = 1, 2, 0


def job_directory(work_dir: str, label: str) -> Path:
    """Where a job keeps its side of the protocol, by default."""
    return Path(work_dir) / ".slurm-fair" / label


def read_acknowledgement(directory: Path, user: str, restarts: int, asked: float) -> int:
    """The answer of this run to our request: SAVED, NOT_SAVED or NO_ANSWER."""
    # A job without a known directory would be looked for under our own.
    document = read_document(directory / "ack.json", user) if directory.is_absolute() else None
    if document is None:
        return NO_ANSWER
    when, run = document.get("time"), document.get("restart")
    if isinstance(run, bool) or not isinstance(when, int | float):
        return NO_ANSWER
    return _answer(run == restarts, when, document.get("saved") is True, asked)


def _answer(this_run: bool, when: float, saved: bool, asked: float) -> int:
    if not this_run or not when >= asked - _CLOCKS_DIFFER_SECONDS:
        return NO_ANSWER  # of an earlier run, or to an earlier request of this one
    return SAVED if saved else NOT_SAVED


def read_comment(comment: str, restarts: int, asked: float) -> int:
    """The same answer out of the job's own Comment, for sites where we do not see its files."""
    answers = [
        _answer(int(run) == restarts, float(when), saved == "1", asked)
        for run, saved, when in _TOKEN.findall(comment)
    ]
    return next((answer for answer in reversed(answers) if answer != NO_ANSWER), NO_ANSWER)


def read_document(path: Path, user: str) -> dict[str, Any] | None:
    """A JSON object from a file that its user alone could have put there; None for anything else.

    By descriptor: no symbolic link, a regular file with one link, owned by the job's user, at most 64 KiB.
    """
    try:
        owner = pwd.getpwnam(user).pw_uid
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, KeyError, ValueError):
        return None
    try:
        facts = os.fstat(handle)
        plain = stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1 and facts.st_uid == owner
        if not plain or facts.st_size > _MOST_BYTES:
            return None
        document = json.loads(os.read(handle, _MOST_BYTES + 1))
    except (OSError, ValueError, RecursionError):
        return None
    finally:
        os.close(handle)
    return document if isinstance(document, dict) else None
