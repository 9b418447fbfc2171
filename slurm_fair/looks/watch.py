"""The daemon between two looks: it waits until the next one is due, or until something has changed."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from slurm_fair.looks.bell import Bell
from slurm_fair.looks.pace import Allowance, Ending
from slurm_fair.model import LeaseTerms
from slurm_fair.ports import Clock
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.reading.changes import Changes
from slurm_fair.tick import TickDone

_CONFIRM_SECONDS = 1.0  # until an odd look is confirmed: no user keeps the others waiting
_UNANSWERED = 5  # times the least interval, until a question that had no answer is asked again
log = logging.getLogger("slurm_fair")


@dataclass(slots=True)
class Watch:
    """Asks for changes, listens to the bell, and bounds what looks cost slurmctld."""

    clock: Clock
    commands: Commands
    bell: Bell = field(default_factory=Bell)
    allowance: Allowance = field(default_factory=Allowance)
    ending: Ending = field(default_factory=Ending)
    changes: Changes = field(init=False)
    _calls: int = 0
    _complaint: str = ""

    def __post_init__(self) -> None:
        self.changes = Changes(self.commands)

    def look_begins(self, terms: LeaseTerms, directory: str) -> None:
        """A look begins: what has happened until now is what it will show."""
        self.bell.hang(directory if terms.follows_changes else "")
        self.bell.answer()
        if terms.follows_changes:
            self.changes.note()
        self._calls = self.commands.calls

    def look_ended(self, done: TickDone, look_seconds: float, terms: LeaseTerms) -> float:
        """A look is over; the seconds until another one follows whatever else happens."""
        calls = self.commands.calls - self._calls
        cost = min(calls * self.changes.read_seconds or look_seconds, look_seconds)
        # Nobody can tell what a look without an answer costs; with a debt for each the next ones would be late.
        self.allowance = self.allowance.after(0.0 if done.blind else cost, self.clock.now())
        self.ending = self.ending.after(done.record) if done.record is not None else Ending()
        if done.odd or not terms.follows_changes:
            return _CONFIRM_SECONDS if done.odd else math.inf
        if done.record is not None:
            self._say()
        return max(self.ending.seconds, self.pause_seconds(0.0, terms))

    def pause_seconds(self, least: float, terms: LeaseTerms) -> float:
        """Seconds between two looks while jobs change places: at least so many, and what slurmctld can bear."""
        return max(least, self.allowance.wait_seconds()) if terms.follows_changes else least

    def wait_until(self, due: float, began: float, terms: LeaseTerms, stops: Callable[[], bool]) -> None:
        """Return at that instant, or when something has changed since a look that began then.

        Also when the clock was set back: those instants mean nothing any more, and all is asked of Slurm again.
        """
        if not terms.follows_changes:
            self.clock.sleep_until(due)
            return
        earliest = max(began + terms.interval_min, self.clock.now() + self.allowance.wait_seconds())
        ask_at, before = earliest, -math.inf
        while not stops() and before <= (now := self.clock.now()) < due:
            if now >= earliest and self.bell.rung:
                return
            if now >= ask_at:
                changed = self.changes.since_noted()
                if changed:
                    return
                ask_at = now + terms.interval_min * (_UNANSWERED if changed is None else 1)
            before = now
            self.clock.sleep_until(min(due, earliest if self.bell.rung else ask_at))

    def _say(self) -> None:
        """Warn once for each reason that Slurm answers and yet does not say if something has changed."""
        if self.changes.complaint != self._complaint and self.changes.complaint:
            log.warning("looks cannot follow changes: %s", self.changes.complaint)
        self._complaint = self.changes.complaint
