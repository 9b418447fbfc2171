"""The plans of a daemon since its start: how many there were, how many were not made in time, and why."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from slurm_fair.errors import SlurmFairError
from slurm_fair.model import TickRecord
from slurm_fair.output import write_whole

NAME = "plans.json"
_VERSION = 1
_MOST_BYTES = 1 << 16
_MOST_TEXT = 2000
_KEPT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class PlanTally:
    """A plan fails where it was late, its policy raised, its process was killed, or it could not be."""

    since: float
    made: int = 0
    failed: int = 0
    why: str = ""  # of the last that failed
    failed_at: float = 0.0

    def after(self, record: TickRecord) -> Self:
        """The tally with one tick more."""
        if record.plan.is_own:
            return replace(self, made=self.made + 1)
        return replace(
            self,
            made=self.made + 1,
            failed=self.failed + 1,
            why=record.plan.note.strip()[:_MOST_TEXT],
            failed_at=record.time,
        )

    @property
    def last_line(self) -> str:
        """The reason without a traceback."""
        first, _, rest = self.why.partition("Traceback (most recent call last):")
        return " ".join((first + rest.strip().rpartition("\n")[2]).split())

    def document(self) -> dict[str, Any]:
        """The tally as the JSON documents tell it."""
        return {
            "since": self.since,
            "made": self.made,
            "failed": self.failed,
            "why": self.why,
            "failed_at": self.failed_at,
        }

    @classmethod
    def read(cls, path: Path) -> PlanTally | None:
        """The tally that a daemon keeps in its storage; None where there is none that can be read."""
        try:
            with path.open("rb") as file:
                said = json.loads(file.read(_MOST_BYTES))
            return cls.of(said) if said.get("v") == _VERSION else None
        except (OSError, ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError):
            return None

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> PlanTally:
        """The tally in a document; ValueError and its like for what is none."""
        since, failed_at = float(said["since"]), float(said["failed_at"])
        if not (math.isfinite(since) and math.isfinite(failed_at) and isinstance(said["why"], str)):
            raise ValueError("no tally of plans")
        return cls(since, int(said["made"]), int(said["failed"]), said["why"], failed_at)


class TallyKeeper:
    """Counts the plans of one daemon, and writes the tally down for the commands."""

    def __init__(self, directory: Path, began: float) -> None:
        self._file, self.tally = directory / NAME, PlanTally(began)
        self._failed, self._next_write = -1, 0.0

    def hear(self, record: TickRecord) -> None:
        """One tick more; written down when a plan failed, and now and then."""
        self.tally = self.tally.after(record)
        if self.tally.failed != self._failed or not 0 <= self._next_write - record.time <= _KEPT_SECONDS:
            text = json.dumps({"v": _VERSION, **self.tally.document()})
            self._failed, self._next_write = self.tally.failed, record.time + _KEPT_SECONDS
            try:
                write_whole(self._file, lambda file: file.write(text.encode()), 0o600)
            except OSError as problem:
                raise SlurmFairError(f"{self._file}: cannot be written: {problem.strerror}") from None
