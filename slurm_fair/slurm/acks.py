"""Acknowledgements: one small file in the job's own directory, read without trusting it."""

from __future__ import annotations

import json
import os
import pwd
import stat
from pathlib import Path
from typing import Any

_MOST_BYTES = 64 * 1024
SAVED, NOT_SAVED, NO_ANSWER = 1, 2, 0


def job_directory(work_dir: str, label: str) -> Path:
    """Where a job keeps its side of the protocol, by default."""
    return Path(work_dir) / ".slurm-fair" / label


def read_acknowledgement(directory: Path, user: str, restarts: int, asked: float) -> int:
    """The answer of this run to our request: SAVED, NOT_SAVED or NO_ANSWER."""
    document = read_document(directory / "ack.json", user)
    if document is None or document.get("restart") != restarts:
        return NO_ANSWER
    when = document.get("time")
    if not isinstance(when, int | float) or when < asked - 2.0:
        return NO_ANSWER  # it answers an earlier request of this run
    return SAVED if document.get("saved") is True else NOT_SAVED


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
