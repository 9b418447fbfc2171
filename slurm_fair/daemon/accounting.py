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
from slurm_fair.ledger import Gap, LedgerSettings, fill_late, settle
from slurm_fair.model import Blind, Event, Ledger, RunTable, Snapshot, Standing, Unfilled
from slurm_fair.ports import Clock, History
from slurm_fair.tick import Rules

_LATE_SECONDS = 2.0  # what happened in the last seconds may not have reached accounting yet
_WORTH_A_LINE = 0.5  # GPU-seconds
_PATIENCE_SECONDS = 2.0
PATIENCE_AT_START = 5.0  # nothing is under way yet, and the first plan is better with the gap filled
_BEAT_SECONDS = 0.25
_PAUSE_SECONDS, _LONGEST_PAUSE = 60.0, 960.0
_MOST_REFUSALS = 6
log = logging.getLogger("slurm_fair")


@dataclass(slots=True, eq=False)
class _Absence:
    """A time without us that is not charged yet, and what came of asking for it."""

    before: Ledger  # as it was when the time began
    look: Snapshot | None = None  # the first one after it
    gap: Gap | None = None  # accounting's word on it, before that look
    silent: bool = False  # accounting has not told of it: the next question is of the present
    warned: bool = False  # the log says so
    refusals: int = 0  # accounting told of the present alone
    again: float = 0.0  # no question for it before this instant

    def heard_nothing(self, why: str) -> None:
        """Accounting did not answer; the log says so once."""
        if not self.warned:
            log.warning("accounting does not answer: the time without us is counted from what runs: %s", why)
        self.silent = self.warned = True

    def is_wanted(self, now: float) -> bool:
        """True if the next question is for this time."""
        return self.look is None or not (self.silent or 0 < self.again - now <= _LONGEST_PAUSE)

    def refused(self, now: float) -> bool:
        """Accounting told of the present, though not of this time: True once that happened too often."""
        self.silent, self.refusals = False, self.refusals + 1
        self.again = now + min(_PAUSE_SECONDS * 2**self.refusals, _LONGEST_PAUSE)
        return self.refusals >= _MOST_REFUSALS


@dataclass(slots=True)
class _Question:
    """A question that a thread puts to accounting, and the answer once there is one."""

    start: float
    end: float
    asked: float
    absence: _Absence | None = None  # the time that it is of; None = the present
    bell: Bell = field(default_factory=Bell)
    answered: float = 0.0
    answer: RunTable | Blind | None = None
    problem: Exception | None = None

    def ask(self, history: History, clock: Clock, partitions: Sequence[str]) -> None:
        try:
            self.answer = history.runs(self.start, self.end, partitions)
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
    _absences: list[_Absence] = field(default_factory=list)  # the earliest first
    _question: _Question | None = None
    _asked: float = 0.0
    _pause: float = _PAUSE_SECONDS
    _slow: bool = False  # the last answer was not there when it was wanted

    def begin(self, standing: Standing, partitions: Sequence[str], rules: Rules, patience: float) -> None:
        """Ask for the time without us, which the first look ends."""
        self._absences = [_Absence(*unfilled) for unfilled in standing.unfilled]
        ledger = standing.ledger
        if standing.tick == 0 or self.clock.now() - ledger.time < 2 * rules.terms.interval:
            return
        self._absences.append(_Absence(ledger))
        self._ask_for_gap(partitions, rules.ledger, patience)

    @property
    def _unseen(self) -> _Absence | None:
        """The time without us that no look has ended yet."""
        return next((absence for absence in self._absences if absence.look is None), None)

    @property
    def ends_absence(self) -> bool:
        """True if the look that comes now is the first one after a time without us."""
        return self._unseen is not None

    def gap(self, partitions: Sequence[str], settings: LedgerSettings) -> Gap | None:
        """The gap that the look which comes now is the first to follow, where accounting has told of it."""
        absence = self._unseen
        if absence is not None and absence.gap is None and self.is_due():
            self._ask_for_gap(partitions, settings, 0.0)
        return None if absence is None else absence.gap

    def looked(self, snapshot: Snapshot) -> None:
        """A look was written down: it has filled the gap, or is the first one after a gap that is filled later."""
        absence = self._unseen
        if absence is None:
            return
        if absence.gap is not None:
            self._absences.remove(absence)
            return
        absence.look = snapshot
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
        question = self._answered(partitions, settings, 0.0 if self._slow else _PATIENCE_SECONDS)
        if question is None:
            return standing, ()
        if question.absence is None:
            since = self._hear_of_present(question.answer)
            standing = _with_charges_settled(standing, question.answer, settings, since)
            return self._with_unfilled(standing), ()
        absence, gap = question.absence, self._hear_of_gap(question)
        if absence.look is None or gap is None or absence not in self._absences:
            return standing, ()
        filled, happened = fill_late(standing.ledger, Unfilled(absence.before, absence.look), gap, settings)
        self._absences.remove(absence)
        return self._with_unfilled(standing._replace(ledger=filled, amended=True)), happened

    def _with_unfilled(self, standing: Standing) -> Standing:
        """The standing with the times that accounting is still to tell of: a restart asks for them again."""
        left = tuple([Unfilled(a.before, a.look) for a in self._absences if a.look is not None])
        return standing if len(left) == len(standing.unfilled) else standing._replace(unfilled=left)

    def _ask_for_gap(self, partitions: Sequence[str], settings: LedgerSettings, patience: float) -> None:
        """Nothing that goes wrong here keeps us from the look that comes now."""
        try:
            question = self._answered(partitions, settings, patience)
            if question is not None:
                self._hear_of_gap(question)
        except SlurmFairError as problem:
            if (absence := self._unseen) is not None:
                absence.heard_nothing(str(problem))
        except Exception:
            log.exception("asking accounting failed in a way that is a bug")

    def _hear_of_gap(self, question: _Question) -> Gap | None:
        absence, answer = question.absence, question.answer
        if absence is None or answer is None:
            return None
        if isinstance(answer, Blind):
            absence.heard_nothing(answer.reason)
            return None
        until = max(question.asked - _LATE_SECONDS, absence.before.time)
        absence.gap = Gap(answer, until)
        log.info("accounting told of %.0f s without us", until - absence.before.time)
        return absence.gap

    def _hear_of_present(self, answer: RunTable | Blind | None) -> float:
        """The instant since when charges settle: the time before it is filled, or given up."""
        looks = [absence.look.time for absence in self._absences if absence.look is not None]
        for absence in tuple(self._absences):
            if not isinstance(answer, RunTable):
                absence.silent = False  # it is silent of everything, so this time is asked for again
            elif absence.silent and absence.refused(self.clock.now()):
                log.warning(
                    "the time without us stays as it is counted: accounting tells of later times alone"
                )
                self._absences.remove(absence)
        return max(looks, default=0.0)

    def _answered(
        self, partitions: Sequence[str], settings: LedgerSettings, patience: float
    ) -> _Question | None:
        """The question that is under way, else a new one, with accounting's answer; None while there is none."""
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
            for absence in self._absences if question.absence is None else [question.absence]:
                absence.silent = question.absence is not None
            raise question.problem
        return question

    def _begun(self, partitions: Sequence[str], settings: LedgerSettings) -> _Question:
        """A question for the time without us up to the look that ended it, or for the present since then."""
        self._asked = now = self.clock.now()
        start = now - settings.closed_memory_seconds
        wanted = [absence for absence in self._absences if absence.is_wanted(now)]
        absence = self._unseen or next(iter(wanted), None)  # the look that comes now ends that one
        if absence is None:
            looks = [absence.look.time for absence in self._absences if absence.look is not None]
            question = _Question(min(max([start, *looks]), now), now, now)
        else:
            end = now if absence.look is None else min(absence.look.time, now)
            question = _Question(absence.before.time, end, now, absence)
        asking = (self.history, self.clock, tuple(partitions))
        Thread(target=question.ask, args=asking, name="accounting", daemon=True).start()
        return question


def _with_charges_settled(
    standing: Standing, runs: RunTable | Blind | None, settings: LedgerSettings, since: float
) -> Standing:
    """The standing with accounting's word on runs that it counted otherwise, and that ended since an instant."""
    if isinstance(runs, Blind):
        log.info("accounting does not answer; charges settle later: %s", runs.reason)
    if not isinstance(runs, RunTable):
        return standing
    known = standing.ledger  # an account that no look has shown may be made up
    runs = runs.take(runs.end > since).of_tenants(known.tenants.names)
    ledger, moved = settle(known, runs, known.time)
    if moved > _WORTH_A_LINE:
        log.info("settled %.1f GPU-seconds with accounting", moved)
    return standing._replace(ledger=ledger, amended=True) if moved > 0 else standing
