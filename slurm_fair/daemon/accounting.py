"""The ledger beside Slurm's accounting: the time without a daemon, and charges that were not quite right.

Accounting is asked by a thread of its own. A look waits two seconds for it at most, and not at all for one that
was slow the last time: then a later look takes the answer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event as Bell
from threading import Thread

from slurm_fair.errors import SlurmFairError
from slurm_fair.ledger import Gap, LedgerSettings, Unfilled, fill_late, settle
from slurm_fair.model import Blind, Event, Ledger, RunTable, Snapshot, Standing
from slurm_fair.ports import Clock, History
from slurm_fair.tick import Rules

_LATE_SECONDS = 2.0  # what happened in the last seconds may not have reached accounting yet
_WORTH_A_LINE = 0.5  # GPU-seconds
_PATIENCE_SECONDS = 2.0
PATIENCE_AT_START = 5.0  # nothing is under way yet, and the first plan is better with the gap filled
_BEAT_SECONDS = 0.25
_PAUSE_SECONDS, _LONGEST_PAUSE = 60.0, 960.0
log = logging.getLogger("slurm_fair")


@dataclass(slots=True)
class _Question:
    """A question that a thread puts to accounting, and the answer once there is one."""

    start: float
    asked: float
    bell: Bell = field(default_factory=Bell)
    answered: float = 0.0
    answer: RunTable | Blind | None = None
    problem: Exception | None = None

    def ask(self, history: History, clock: Clock, partitions: Sequence[str]) -> None:
        try:
            self.answer = history.runs(self.start, self.asked, partitions)
        except Exception as problem:  # raised where the answer is taken
            self.problem = problem
        finally:
            self.answered = clock.now()
            self.bell.set()

    def is_over(self, patience: float, meanwhile: Callable[[], None]) -> bool:
        """True if the answer is there, or comes within so many seconds."""
        until = time.monotonic() + patience
        while not self.bell.wait(min(max(until - time.monotonic(), 0.0), _BEAT_SECONDS)):
            if time.monotonic() >= until:
                return False
            meanwhile()
        return True


@dataclass(slots=True)
class Accounting:
    """Slurm's accounting, and what the ledger still wants to know of it."""

    history: History
    clock: Clock
    meanwhile: Callable[[], None]  # called again and again while an answer is waited for
    _before: Ledger | None = None  # the ledger as it was before a gap that is not filled yet
    _look: Snapshot | None = None  # the first look after it
    _gap: Gap | None = None  # accounting's word on it, before that look
    _question: _Question | None = None
    _asked: float = 0.0
    _pause: float = _PAUSE_SECONDS
    _slow: bool = False  # the last answer was not there when it was wanted

    def begin(self, standing: Standing, partitions: Sequence[str], rules: Rules, patience: float) -> None:
        """Ask for the time without us, which the first look ends."""
        ledger = standing.ledger
        if standing.tick == 0 or self.clock.now() - ledger.time < 2 * rules.terms.interval:
            return
        self._before = ledger
        self._ask_for_gap(partitions, rules.ledger, patience)

    def gap(self, partitions: Sequence[str], settings: LedgerSettings) -> Gap | None:
        """The gap that the look which comes now is the first to follow, where accounting has told of it."""
        if self._before is not None and self._look is None and self._gap is None and self.is_due():
            self._ask_for_gap(partitions, settings, 0.0)
        return self._gap

    def looked(self, snapshot: Snapshot) -> None:
        """A look was written down: it has filled the gap, or is the first one after a gap that is filled later."""
        if self._gap is not None:
            self._before = self._gap = None
        elif self._before is not None and self._look is None:
            self._look = snapshot
            log.warning("accounting has not told of the time without us: until then it counts what runs")

    def is_due(self) -> bool:
        """True if there is an answer to take, or it is time to ask again."""
        if self._question is not None:
            return self._question.bell.is_set()
        return not 0 <= self.clock.now() - self._asked <= self._pause

    def settle(
        self, standing: Standing, partitions: Sequence[str], settings: LedgerSettings
    ) -> tuple[Standing, tuple[Event, ...]]:
        """The standing with accounting's word on it, and events that no look has shown."""
        answer = self._answer(partitions, settings, 0.0 if self._slow else _PATIENCE_SECONDS)
        if self._before is None:
            return _with_charges_settled(standing, answer, settings), ()
        gap = self._hear_of_gap(answer)
        if gap is None or self._look is None:
            return standing, ()
        filled, happened = fill_late(standing.ledger, Unfilled(self._before, self._look), gap, settings)
        self._before = self._look = self._gap = None
        return standing._replace(ledger=filled, amended=True), happened

    def _ask_for_gap(self, partitions: Sequence[str], settings: LedgerSettings, patience: float) -> None:
        """Nothing that goes wrong here keeps us from the look that comes now."""
        try:
            self._hear_of_gap(self._answer(partitions, settings, patience))
        except SlurmFairError as problem:
            self._hear_of_gap(Blind(self._asked, str(problem)))
        except Exception:
            log.exception("asking accounting failed in a way that is a bug")

    def _hear_of_gap(self, answer: RunTable | Blind | None) -> Gap | None:
        if isinstance(answer, Blind):
            log.warning(
                "accounting does not answer: the time without us is counted from what runs: %s", answer.reason
            )
        if not isinstance(answer, RunTable) or self._before is None:
            return None
        until = max(self._asked - _LATE_SECONDS, self._before.time)
        self._gap = Gap(answer, until)
        log.info("accounting told of %.0f s without us", until - self._before.time)
        return self._gap

    def _answer(
        self, partitions: Sequence[str], settings: LedgerSettings, patience: float
    ) -> RunTable | Blind | None:
        """Accounting's answer to what is under way, else to a new question; None while there is none."""
        question = self._question
        if question is None:
            question = self._question = self._begun(partitions, settings)
        if not question.is_over(patience, self.meanwhile):
            self._slow = True
            return None
        self._question, silent = None, not isinstance(question.answer, RunTable)
        self._slow = question.answered - question.asked > _PATIENCE_SECONDS
        self._pause = min(2 * self._pause, _LONGEST_PAUSE) if self._slow and silent else _PAUSE_SECONDS
        if question.problem is not None:
            raise question.problem
        return question.answer

    def _begun(self, partitions: Sequence[str], settings: LedgerSettings) -> _Question:
        self._asked = now = self.clock.now()
        start = now - settings.closed_memory_seconds if self._before is None else self._before.time
        question = _Question(start, now)
        asking = (self.history, self.clock, tuple(partitions))
        Thread(target=question.ask, args=asking, name="accounting", daemon=True).start()
        return question


def _with_charges_settled(
    standing: Standing, runs: RunTable | Blind | None, settings: LedgerSettings
) -> Standing:
    """The standing with accounting's word on runs that it counted otherwise."""
    if isinstance(runs, Blind):
        log.info("accounting does not answer; charges settle later: %s", runs.reason)
    if not isinstance(runs, RunTable):
        return standing
    known = standing.ledger  # an account that no look has shown may be made up
    ledger, moved = settle(known, runs.of_tenants(known.tenants.names), known.time)
    if moved > _WORTH_A_LINE:
        log.info("settled %.1f GPU-seconds with accounting", moved)
    return standing._replace(ledger=ledger, amended=True) if moved > 0 else standing
