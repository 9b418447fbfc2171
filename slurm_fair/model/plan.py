"""A plan: one verdict for every managed job, and where the granted ones go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from slurm_fair.model.columns import Code, Codes, Columns, Floats, Ints, any_of
from slurm_fair.model.once import once
from slurm_fair.model.placement import Placement


class Verdict(Code):
    """The decision of a plan on one job."""

    WAIT = 0  # stays behind its gate
    GRANT = 1  # gets a lease on the nodes in `places`
    RENEW = 2  # its lease is over and it keeps its GPUs for another
    KEEP = 3  # untouched: its lease is not over or not renewed yet, or it was promised GPUs earlier
    REVOKE = 4  # its lease is over and others are owed more
    LEAVE = 5  # may not be planned: held, blocked, ending or done


@dataclass(frozen=True)
class Explanation(Columns):
    """Row i says why row i of a plan has its verdict, and where it stands in the order."""

    reason: Ints  # index into `reasons`
    rank: Ints  # position in the order of deservingness, 0 = first; -1 = not ranked
    score: Floats  # what it was ranked by (Astraea: the job's rho); nan = none
    reasons: tuple[str, ...]
    # Keys of jobs that ask for turns of the profiler and get none, by the reason.
    no_turn: Mapping[str, Ints] = field(default_factory=dict)

    def saying(self, more: Iterable[tuple[Ints, str]]) -> Explanation:
        """The same with another reason for some rows."""
        reason, reasons = self.reason.copy(), list(self.reasons)
        for rows, text in more:
            reason[rows] = len(reasons)
            reasons.append(text)
        return self.with_columns(reason=reason, reasons=tuple(reasons))


@dataclass(frozen=True)
class Plan:
    """Row i is about row i of the snapshot's jobs. Values worked out from a plan are kept with it: no slots."""

    verdict: Codes
    places: Placement  # of GRANT rows
    why: Explanation | Callable[[], Explanation]  # the one thing that may be worked out when somebody asks
    memory: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""  # set when this is not the policy's own plan (it raised or was late)
    # Of the profiler, whose turns this plan is then made without; it is the policy's own all the same.
    fault: str = ""
    # The ranks alone, where they cost less than the whole explanation.
    ranked: Callable[[], Ints] | None = None
    # [row] Seconds that a gang waits at most until nodes are set aside for it; nan = as long as the site says.
    reserve_after: Floats | None = None

    @once
    def explanation(self) -> Explanation:
        """The reasons, scores and order of the plan's decisions."""
        found = self.why() if callable(self.why) else self.why
        if len(found) != len(self.verdict):
            raise ValueError(f"Plan: {len(found)} rows are explained of {len(self.verdict)}")
        return found

    @once
    def rank(self) -> Ints:
        """Position of each row in the order of deservingness, as the explanation has it."""
        return self.explanation.rank if self.ranked is None else self.ranked()

    def explained(self) -> Plan:
        """The same plan with its explanation at hand."""
        return replace(self, why=self.explanation, ranked=None)

    @property
    def is_own(self) -> bool:
        """True if the policy made it for this look: it neither failed nor came late."""
        return not self.note

    @property
    def anybody_waited(self) -> bool:
        """True if it was made while a job waited for GPUs, which it may have got."""
        return any_of((self.verdict == Verdict.WAIT) | (self.verdict == Verdict.GRANT))

    @once
    def granted(self) -> Ints:
        """Rows that get a lease."""
        return self._rows_with(Verdict.GRANT)

    @once
    def renewed(self) -> Ints:
        """Rows that keep their GPUs for another lease."""
        return self._rows_with(Verdict.RENEW)

    @once
    def revoked(self) -> Ints:
        """Rows that are to give their GPUs back."""
        return self._rows_with(Verdict.REVOKE)

    def _rows_with(self, verdict: Verdict) -> Ints:
        rows: Ints = (self.verdict == verdict.code).nonzero()[0]
        return rows
