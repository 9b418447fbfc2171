"""Expected starts as they were first said, and how far off they were."""

from __future__ import annotations

import json
import math
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from slurm_fair.model import Event, EventKind
from slurm_fair.model.spans import DAY_SECONDS

NAME = "estimates.json"
_VERSION = 1
_MOST_JOBS, _MOST_ERRORS = 20_000, 5_000
_OF_A_USER = 10  # one user has at most this part of either, so that nobody's entries push another's out
_MOST_BYTES = 4 * 1024**2


class _Error(NamedTuple):
    """The start of a job, how many seconds late it was, and its user."""

    time: float
    late: float
    user: str


class Estimates:
    """The first estimate of every start that is still to come, and the errors of those of the last day."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[float, str]] = {}  # and whose job it is
        self._open_of: Counter[str] = Counter()
        self._errors: deque[_Error] = deque()
        self._errors_of: Counter[str] = Counter()

    def note(self, starts: Mapping[int, float], whose: Mapping[int, str] | None = None) -> None:
        """Note the starts expected now; the first estimate of each stays."""
        for key, start in starts.items():
            self._say(key, start, (whose or {}).get(key, ""))

    def _say(self, key: int, start: float, user: str) -> None:
        full = len(self._open) >= _MOST_JOBS or self._open_of[user] >= _MOST_JOBS // _OF_A_USER
        if key not in self._open and not full:
            self._open[key] = start, user
            self._open_of[user] += 1

    def _taken_out(self, key: int) -> tuple[float, str] | None:
        """Takes out the estimate of a job that starts no more."""
        said = self._open.pop(key, None)
        if said is not None:
            self._open_of[said[1]] -= 1
        return said

    def _off(self, error: _Error) -> None:
        """One error more; its user's oldest gives way where the user has too many, else the oldest of all."""
        self._errors.append(error)
        self._errors_of[error.user] += 1
        if self._errors_of[error.user] > _MOST_ERRORS // _OF_A_USER:
            oldest = next(one for one in self._errors if one.user == error.user)
        elif len(self._errors) > _MOST_ERRORS:
            oldest = self._errors[0]
        else:
            return
        self._errors.remove(oldest)
        self._errors_of[oldest.user] -= 1

    def hear(self, events: Iterable[Event]) -> None:
        """Settle the estimates of jobs that started, or will not start any more."""
        for event in events:
            if event.kind == EventKind.STARTED:
                said = self._taken_out(event.key)
                if said is not None:
                    self._off(_Error(event.time, event.time - said[0], said[1]))
            elif event.kind == EventKind.FINISHED:
                self._taken_out(event.key)

    def summary(self, now: float) -> dict[str, Any]:
        """Errors of the last day's estimates; empty where no job with an estimate has started."""
        errors = np.array([one.late for one in self._errors if one.time >= now - DAY_SECONDS])
        if not errors.size:
            return {}
        off = np.abs(errors)
        return {
            "n": int(errors.size),
            "median_seconds": float(np.median(off)),
            "p90_seconds": float(np.quantile(off, 0.9)),
            "late_seconds": float(np.median(errors)),
        }

    # -- over a restart -------------------------------------------------------------------------------------

    def text(self) -> str:
        """All of it as one JSON document."""
        open_ = [[key, *said] for key, said in self._open.items()]
        return json.dumps({"v": _VERSION, "open": open_, "errors": [list(one) for one in self._errors]})

    @classmethod
    def read(cls, path: Path) -> Estimates:
        """The estimates that were kept; none where they cannot be read: it is no loss that costs anybody a job."""
        made = cls()
        try:
            with path.open("rb") as file:
                said = json.loads(file.read(_MOST_BYTES))
            if said["v"] != _VERSION:
                return made
            open_ = [(int(key), _number(start), _user(rest)) for key, start, *rest in said["open"]]
            errors = [
                _Error(_number(time), _number(late), _user(rest)) for time, late, *rest in said["errors"]
            ]
        except (OSError, ValueError, TypeError, KeyError, RecursionError, OverflowError):
            return made
        for one in open_:
            made._say(*one)
        for error in errors:
            made._off(error)
        return made


def _user(rest: list[Any]) -> str:
    """The user of an entry; an earlier release wrote none."""
    return str(rest[0]) if rest else ""


def _number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("no number")
    return number
