"""Jobs that ended in the last day, so that their users can still ask what became of them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import Any

from slurm_fair.model import Event, EventKind, label
from slurm_fair.model.spans import DAY_SECONDS

MOST_JOBS = 2000
MOST_OF_A_USER = 200  # one user's array pushes nobody else's jobs out


def finished_row(event: Event) -> dict[str, Any]:
    """One job that ended, as the board shows it."""
    said = event.detail
    return {
        "job": label(event.key),
        "tenant": event.tenant,
        "user": said.get("user") or "",
        "gpus": event.gpus,
        "slurm_state": said.get("state") or "",
        "submit": said.get("submit"),
        "end": said.get("end", event.time),
        "had_gpu_seconds": said.get("had", 0.0),
        "owed_gpu_seconds": said.get("owed", 0.0),
        "waited_seconds": said.get("waited", 0.0),
        "ran_seconds": said.get("ran", 0.0),
        "rho": said.get("rho"),
        "restarts": said.get("restarts", 0),
    }


class Recent:
    """The last ones, in the order in which they were heard of."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._rows: deque[dict[str, Any]] = deque()
        self.hear(events)

    def hear(self, events: Iterable[Event]) -> None:
        """Note the jobs that ended; other events are passed over."""
        self._rows.extend(finished_row(event) for event in events if event.kind == EventKind.FINISHED)

    def rows(self, now: float) -> tuple[dict[str, Any], ...]:
        """Newest first; older than a day, and too many, are forgotten."""
        of_user: Counter[str] = Counter()
        kept: list[dict[str, Any]] = []
        for row in reversed(self._rows):
            of_user[row["user"]] += 1
            if row["end"] >= now - DAY_SECONDS and of_user[row["user"]] <= MOST_OF_A_USER:
                kept.append(row)
        self._rows = deque(reversed(kept[:MOST_JOBS]))
        return tuple(kept[:MOST_JOBS])
