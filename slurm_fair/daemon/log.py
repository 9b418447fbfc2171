"""The daemon's log lines: each fact is told once, however many looks it lasts."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import numpy as np

from slurm_fair.host.state_folder import Pause
from slurm_fair.model import Outcome, Result, Untried, Verb, Verdict, label
from slurm_fair.tick import TickDone

_AGAIN_SECONDS = 600.0  # after which a trouble that lasts is said again
_ANEW_SECONDS = 60.0  # between two reasons of one trouble
log = logging.getLogger("slurm_fair")


@dataclass(slots=True)
class Trouble:
    """Something that goes wrong at each look until it is over."""

    what: str
    since: float = 0.0
    _said: float = 0.0
    _why: str = ""

    def stands(self, now: float, why: str, level: int = logging.WARNING) -> None:
        """Log a trouble: at once, when its reason changes, and every ten minutes."""
        self.since = self.since or now
        apart = now - self._said
        if not self._why or apart > _AGAIN_SECONDS or (why != self._why and apart > _ANEW_SECONDS):
            lasts = f" (for {now - self.since:.0f} s)" if now > self.since else ""
            log.log(level, "%s%s: %s", self.what, lasts, why)
            self._said, self._why = now, why

    def ended(self, now: float, word: str) -> None:
        """Log once that the trouble is over."""
        if self.since:
            log.warning("%s after %.0f s", word, now - self.since)
        self.since, self._said, self._why = 0.0, 0.0, ""


@dataclass(slots=True)
class Pauses:
    """The pause that is in force."""

    _now: Pause | None = None
    _since: float = 0.0

    def heed(self, pause: Pause | None, now: float) -> bool:
        """True if it is paused; a beginning and an end are said."""
        if pause is not None and pause != self._now:
            log.warning("paused by %s", pause.in_words())
            self._since = now
        if pause is None and self._now is not None:
            log.warning("resumed after %.0f s", now - self._since)
        self._now = pause
        return pause is not None


@dataclass(slots=True)
class TickLog:
    """Lines of the log on acts, refusals and notes; one that stays the same is said again after ten minutes."""

    _said: dict[str, float] = field(default_factory=dict)

    def tell(self, done: TickDone) -> None:
        record = done.record
        if record is None:
            return
        counts = np.bincount(record.plan.verdict, minlength=len(Verdict)).tolist()
        seconds = {part: round(value, 4) for part, value in record.seconds.items()}
        log.debug("tick %d: verdicts %s, seconds %s", record.number, counts, seconds)
        for outcome in record.outcomes:
            if outcome.result is Result.DONE:
                log.info("%s", act_line(outcome))
            elif outcome.untried is Untried.DRY_RUN:
                log.debug("%s", act_line(outcome))
            elif outcome.action.verb is not Verb.FREE:  # of those the cluster says why
                self._once(record.time, act_line(outcome))
        for note in (record.plan.note, record.plan.fault, record.guard):
            if note:
                self._once(record.time, note)
        self._said = {text: at for text, at in self._said.items() if record.time - at <= _AGAIN_SECONDS}

    def _once(self, now: float, text: str) -> None:
        if text not in self._said:
            self._said[text] = now
            log.warning("%s", text)


def act_line(outcome: Outcome) -> str:
    """An act and what came of it, in one line."""
    action = outcome.action
    return f"{action.verb.value} {label(action.key)}: {outcome.result.value} {outcome.detail}".strip()
