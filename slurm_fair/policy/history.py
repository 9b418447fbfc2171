"""Memories of policies: jobs that ended and how long they took, and what tenants had lately."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from slurm_fair.model import Event, EventKind
from slurm_fair.model.columns import Floats
from slurm_fair.policy.view import View

MOST_KEPT = 200
_NOTES = 12  # of tenants' accounts in a window


class Ended(NamedTuple):
    """A job that is over."""

    key: int
    tenant: str
    gpus: int
    submit: float
    end: float
    ran_seconds: float  # in all its runs
    waited_seconds: float
    had: float  # GPU-seconds
    owed: float  # GPU-seconds
    declared_seconds: float  # nan = nobody said
    state: str  # Slurm's final state of it; empty where it is not known

    @classmethod
    def of(cls, event: Event) -> Self:
        """An ended job, from the ledger's event of its end."""
        said = event.detail
        declared = float(said.get("declared_seconds", float("nan")))
        return cls(
            event.key, event.tenant, event.gpus, said["submit"], said["end"], said["ran"], said["waited"],
            said["had"], said["owed"], declared, str(said.get("state", "")),
        )  # fmt: skip


def ended_now(view: View) -> tuple[Ended, ...]:
    """The jobs that ended since the last look."""
    return tuple(Ended.of(event) for event in view.happened if event.kind == EventKind.FINISHED)


@dataclass(frozen=True, slots=True)
class JobHistory:
    """Counts since the policy began, and the jobs that ended last, the newest at the end.

    `JobHistory.of(view)` reads it out of the view's memory and adds what happened since the last look; the policy
    puts `kept()` into its plan's memory. A look whose plan was not the policy's own (it raised or was late) is
    missing.
    """

    seen: int  # jobs that were there at first, and all that came since
    ended: int
    last: tuple[Ended, ...]

    @classmethod
    def of(cls, view: View, name: str = "history", most: int = MOST_KEPT) -> Self:
        """Up to this look; `name` is that of its entry in the memory, `most` how many ended jobs it keeps."""
        now, before = ended_now(view), view.memory.get(name)
        if before is None:
            return cls(len(view.ledger.jobs) + len(now), len(now), now[-most:])
        came = sum(event.kind == EventKind.SUBMITTED for event in view.happened)
        last = (*(Ended(*each) for each in before["last"]), *now)
        return cls(before["seen"] + came, before["ended"] + len(now), last[-most:])

    def kept(self) -> Mapping[str, Any]:
        """The history as plain data, for a plan's memory."""
        return {"seen": self.seen, "ended": self.ended, "last": [list(each) for each in self.last]}

    def run_seconds(self, tenant: str | None = None) -> Floats:
        """Run times of the last jobs, or those of one tenant, the newest at the end."""
        ran = [job.ran_seconds for job in self.last if tenant in (None, job.tenant)]
        return np.array(ran, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Lately:
    """GPU time that the snapshot's tenants had and were owed lately: the ledger itself knows sums only.

    `Lately.of(view, 3600.0)` reads it out of the view's memory; the policy puts `kept()` into its plan's memory.
    The window begins at the last note before it, so it is up to a twelfth longer than asked for; at first it is as
    long as the policy has planned.
    """

    seconds: float  # how long the window is in truth
    had: Floats  # GPU-seconds
    owed: Floats  # GPU-seconds by quota (eq. 16)
    _notes: tuple[tuple[float, Mapping[str, tuple[float, float]]], ...]

    @classmethod
    def of(cls, view: View, seconds: float, name: str = "lately") -> Self:
        """Up to this look; `name` is that of its entry in the memory."""
        accounts = view.ledger.tenants
        now = dict(
            zip(
                accounts.names,
                zip(accounts.had.tolist(), accounts.owed_quota.tolist(), strict=True),
                strict=True,
            )
        )
        notes = [(float(time), sums) for time, sums in view.memory.get(name, ())]
        if not notes or view.now - notes[-1][0] >= seconds / _NOTES:
            notes.append((view.now, now))
        inside = sum(time > view.now - seconds for time, _ in notes)
        notes = notes[-(inside + 1) :]
        began, then = notes[0]
        names = view.snapshot.tenants.names
        sums = np.array([now.get(each, (0.0, 0.0)) for each in names]).reshape(-1, 2)
        before = np.array([then.get(each, (0.0, 0.0)) for each in names]).reshape(-1, 2)
        had, owed = (sums - before).T
        return cls(view.now - began, had, owed, tuple(notes))

    def kept(self) -> list[Any]:
        """The notes as plain data, for a plan's memory."""
        return [[time, {name: list(sums) for name, sums in at.items()}] for time, at in self._notes]
