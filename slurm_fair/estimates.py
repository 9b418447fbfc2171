"""Expected starts as they were first said, and how far off they were."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from slurm_fair.model import Event

NAME = "estimates.json"
DAY_SECONDS = 86_400.0
_VERSION = 1
_MOST_JOBS = 20_000
_MOST_ERRORS = 5_000
_MOST_BYTES = 4 * 1024**2


class Estimates:
    """The first estimate of every start that is still to come, and the errors of those of the last day."""

    def __init__(self) -> None:
        self._open: dict[int, float] = {}
        self._errors: deque[tuple[float, float]] = deque(maxlen=_MOST_ERRORS)  # when it started, seconds late

    def note(self, starts: Mapping[int, float]) -> None:
        """What is expected now; what was said first of a start stays."""
        for key, start in starts.items():
            if key not in self._open and len(self._open) < _MOST_JOBS:
                self._open[key] = start

    def hear(self, events: Iterable[Event]) -> None:
        """Of starts, and of jobs that will not start any more."""
        for event in events:
            if event.kind == "started":
                expected = self._open.pop(event.key, None)
                if expected is not None:
                    self._errors.append((event.time, event.time - expected))
            elif event.kind == "finished":
                self._open.pop(event.key, None)

    def summary(self, now: float) -> dict[str, Any]:
        """Of the last day; empty where no job with an estimate has started."""
        errors = np.array([error for time, error in self._errors if time >= now - DAY_SECONDS])
        if not errors.size:
            return {}
        off = np.abs(errors)
        return {
            "n": int(errors.size), "median_seconds": float(np.median(off)),
            "p90_seconds": float(np.quantile(off, 0.9)), "late_seconds": float(np.median(errors)),
        }  # fmt: skip

    # -- over a restart -------------------------------------------------------------------------------------

    def text(self) -> str:
        """All of it as one JSON document."""
        open_ = [[key, start] for key, start in self._open.items()]
        return json.dumps({"v": _VERSION, "open": open_, "errors": [list(pair) for pair in self._errors]})

    @classmethod
    def read(cls, path: Path) -> Estimates:
        """What was kept; nothing where it cannot be read: it is no loss that costs anybody a job."""
        made = cls()
        try:
            with path.open("rb") as file:
                said = json.loads(file.read(_MOST_BYTES))
            if said["v"] != _VERSION:
                return made
            pairs = [(int(key), _number(start)) for key, start in said["open"]]
            errors = [(_number(time), _number(error)) for time, error in said["errors"]]
        except (OSError, ValueError, TypeError, KeyError, RecursionError, OverflowError):
            return made
        made._open.update(pairs[:_MOST_JOBS])
        made._errors.extend(errors)
        return made


def _number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("no number")
    return number
