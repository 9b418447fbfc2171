"""Sentences that explain why a job waits or runs: who holds the GPUs, until when, and who goes before."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import groupby

from slurm_fair.board.board import Board
from slurm_fair.board.row import (
    Row,
    has_lease,
    has_verdict,
    is_in,
    is_starting,
    is_waiting,
    may_be_planned,
)
from slurm_fair.cli.table import clean, instant
from slurm_fair.model import Blocked, JobState, LeasePhase, Verdict
from slurm_fair.model.counted import counted
from slurm_fair.policy.draft import BLOCKED_REASONS, OTHERS_FIRST
from slurm_fair.policy.orders.ordered import LEFT_BY_THOSE_AHEAD
from slurm_fair.reconcile.free import GPUS

# Slurm's reasons of a job that is about to start.
_WAITS_AS_USUAL = re.compile(
    r"(None|BeginTime|Resources|Priority|Cleaning|Prolog|SchedDefer|Nodes_required.*|ReqNodeNotAvail)?$"
)
_NAMED = 6  # jobs listed by name in one sentence
_ENDS_IT = "it can no longer make its deadline: Slurm ends it instead of starting it"
_AGAIN = " and start again before {}"  # what a job with a deadline cannot do, though it may save
OTHER = "another account"


class WayBack(StrEnum):
    """The way in which a job gives its GPUs back; groups of holders are told in this order."""

    AT_LEASE_END = "leased"
    NOW = "leaves"
    NOT_BEFORE_ITS_END = "stays"
    UNKNOWN = "unknown"


class Reasons:
    """Reasons for the jobs of one board; what all of them share is worked out once."""

    def __init__(self, board: Board, now: float | None = None) -> None:
        self._board, self._now = board, time.time() if now is None else now
        self._ranked = sorted((job for job in board.jobs if _in_line(job)), key=lambda job: job["rank"])
        self._place = {job["job"]: at for at, job in enumerate(self._ranked)}
        gpus = [0]
        for job in self._ranked:
            gpus.append(gpus[-1] + job["gpus"])
        self._gpus_before = gpus
        self._holders = [job for job in board.jobs if not is_waiting(job)]
        self._promised = [job for job in board.jobs if is_starting(job)]

    def short(self, row: Row) -> str:
        """The reason in one line of a table."""
        if not is_waiting(row):
            return self._running(row)
        if has_lease(row, LeasePhase.GRANTED):
            return self._starting(row)
        if _waits(row) and self.is_too_late(row):
            return _ENDS_IT
        if row["rank"] < 0 or not _waits(row):
            return self._word(row)
        before = self.before(row)
        if not before:
            return f"next in line: {self._held_in_short(row)}"
        first = before[0]
        return f"{self._those_before(row)}, first {_named(first)}"

    def full(self, row: Row) -> list[str]:
        """All known sentences on a job."""
        if not is_waiting(row):
            return [self._running(row)]
        if has_lease(row, LeasePhase.GRANTED):
            return [self._starting(row)]
        late = [_ENDS_IT] if self.is_too_late(row) else []
        if late and _waits(row):
            return late
        if not _waits(row):
            return [self._word(row), *late]
        own = self._line(row) if row["rank"] >= 0 else self._own_word(row)
        return [*own, *self.held(), *self._of_the_plan()]

    def _of_the_plan(self) -> list[str]:
        """The words of the policy on its whole plan."""
        about = clean(str(self._board.decided.get("about", "")))
        return [about] if about else []

    def before(self, row: Row) -> Sequence[Row]:
        """The waiting jobs that are ahead of it."""
        return self._ranked[: self._place.get(row["job"], 0)]

    def _those_before(self, row: Row) -> str:
        count = self._place.get(row["job"], 0)
        gpus, go = counted(self._gpus_before[count], "GPU"), "goes" if count == 1 else "go"
        return f"{counted(count, 'job')} of {gpus} {go} before it"

    # -- who goes before ------------------------------------------------------------------------------------

    def _line(self, row: Row) -> list[str]:
        before = self.before(row)
        line = "it is next in line: no waiting job goes before it"
        if before:
            line = f"{self._those_before(row)}: first {_named(before[0])}, {self._preferred(before[0], row)}"
        return [line, *self._own_word(row)]

    def _preferred(self, first: Row, row: Row) -> str:
        """The rule that decided between two jobs, with its numbers."""
        first_of_all = f"which the policy {clean(self._board.policy)} puts first"
        rule = self._board.decided
        if rule.get("of_tenants") and first["tenant"] and first["tenant"] == row["tenant"]:
            return _within_tenant(first, row)
        return first_of_all + _by(rule, first["decided"], row["decided"]) if rule.get("by") else first_of_all

    # -- who holds the GPUs ---------------------------------------------------------------------------------

    def held(self) -> list[str]:
        """Sentences on the jobs that have the GPUs, and until when."""
        sentences = [self._group(list(jobs)) for jobs in _grouped(self._holders)]
        promised = sum(job["gpus"] for job in self._promised)
        if promised:
            starts = "starts" if len(self._promised) == 1 else "start"
            sentences.append(f"{_are(promised)} promised to {_listed(self._promised)}, which {starts} first")
        spare = self._board.gpus
        if spare.get("others"):
            sentences.append(f"{_are(spare['others'])} held by jobs that slurm_fair leaves alone")
        if spare.get("out"):
            sentences.append(f"{_are(spare['out'])} on nodes that take no work")
        if self._free > 0:
            sentences.append(f"{_are(self._free)} free and promised to nobody")
        return sentences

    @property
    def _free(self) -> int:
        """GPUs that nobody has; a promise may wait for GPUs that somebody still has."""
        promised = sum(job["gpus"] for job in self._promised)
        return int(max(self._board.gpus.get("free", 0) - promised, 0))

    @property
    def _in_all(self) -> int:
        """GPUs of all nodes, as jobs also run on nodes that take no new work."""
        return int(sum(self._board.gpus.values())) or self._board.total_gpus

    def _group(self, jobs: list[Row]) -> str:
        gpus, has = sum(job["gpus"] for job in jobs), self._in_all
        are = "is" if gpus == 1 else "are"
        return f"{gpus} of {has} GPUs {are} held by {_listed(jobs)}, {self.until(jobs)}"

    def until(self, jobs: Sequence[Row]) -> str:
        """The clause that says until when jobs of one kind keep their GPUs."""
        way, several = _way_back(jobs[0]), len(jobs) > 1
        if way == WayBack.NOT_BEFORE_ITS_END:
            what = "keep their GPUs until they end" if several else "keeps its GPUs until it ends"
            return f"which cannot {_lacking(jobs)} and {what} ({self._limit(jobs)})"
        if way == WayBack.NOW:
            return f"which {'give' if several else 'gives'} them back now"
        if way == WayBack.AT_LEASE_END:
            return f"whose {'leases end' if several else 'lease ends'} {self._at(jobs[0]['lease_end'])}"
        return f"which {'run' if several else 'runs'} without a lease"

    def _limit(self, jobs: Sequence[Row]) -> str:
        """The words on the time limits of jobs: the last of them, where they differ."""
        ends = {job["ends_by"] for job in jobs}
        if None in ends:
            some = "not all of them have a time limit" if len(ends) > 1 else "they have no time limit"
            return some if len(jobs) > 1 else "it has no time limit"
        return f"{'limit' if len(ends) == 1 else 'the last limit'} {self._at(max(ends))}"

    def _held_in_short(self, row: Row) -> str:
        if 0 < self._free < row["gpus"]:
            return f"it wants {counted(row['gpus'], 'GPU')}, {_are(self._free)} free"
        if self._free:
            misfit = (
                ", but its gang does not fit them as they lie" if LEFT_BY_THOSE_AHEAD in row["why"] else ""
            )
            return f"{_are(self._free)} free{misfit}"
        used = sum(job["gpus"] for job in self._holders)
        ends = [job["lease_end"] for job in self._holders if _way_back(job) == WayBack.AT_LEASE_END]
        stays = sum(job["gpus"] for job in self._holders if _way_back(job) == WayBack.NOT_BEFORE_ITS_END)
        parts = [f"{used} of {self._in_all} GPUs are held"]
        parts += [f"the next lease ends {self._at(min(ends))}"] if ends else []
        parts += [f"{stays} by jobs that cannot save"] if stays else []
        return ", ".join(parts)

    # -- what runs, and what is about to ---------------------------------------------------------------------

    def _running(self, row: Row) -> str:
        word = clean(row["why"])
        if _way_back(row) == WayBack.NOT_BEFORE_ITS_END and is_in(row, JobState.RUNNING):
            limit = f" (limit {self._at(row['ends_by'])})" if row["ends_by"] else ""
            near = _AGAIN.format("its deadline") if row["latest_start"] is not None else ""
            return f"it cannot save{near}, so it keeps its GPUs until it ends{limit}"
        if has_lease(row, LeasePhase.REVOKING):
            asked = f"asked to save at {self._at(row['asked'])}: " if row["asked"] else ""
            return asked + self._given_to(row, word)
        return word

    def _given_to(self, row: Row, word: str) -> str:
        whom = row.get("asked_for") or ()
        if not whom:
            return word
        return f"its GPUs go to {_listed(whom)}, which {'is' if len(whom) == 1 else 'are'} owed more"

    def _starting(self, row: Row) -> str:
        nodes = f" on {clean(row['promised_nodes'])}" if row["promised_nodes"] else ""
        if row["slurm_reason"] and not _WAITS_AS_USUAL.match(row["slurm_reason"]):
            return f"its GPUs{nodes} are promised, but Slurm does not start it ({clean(row['slurm_reason'])})"
        awaits = row.get("awaits") or ()
        if awaits and GPUS not in awaits:
            what = " and ".join(clean(word) for word in awaits)
            return f"starting{nodes}: its GPUs are free and promised, it starts when {what} are free too"
        return f"starting{nodes}: its GPUs are promised, it starts when they are free"

    def is_too_late(self, row: Row) -> bool:
        """True for a job that has waited too long for its deadline: no policy changes anything about it."""
        latest = row["latest_start"]
        return is_waiting(row) and latest is not None and latest < self._now

    def _own_word(self, row: Row) -> list[str]:
        """The policy's reason, if it says more than that others go first."""
        word = self._word(row)
        return [] if word == OTHERS_FIRST else [word]

    def _word(self, row: Row) -> str:
        """The policy's word, with the names of the jobs that it means."""
        word = clean(row["why"])
        if _is_limited(row):
            return self._limited(row, word)
        if LEFT_BY_THOSE_AHEAD in word and not self.before(row):
            return word.replace(LEFT_BY_THOSE_AHEAD, "what the jobs that run leave")
        return word

    def _limited(self, row: Row, word: str) -> str:
        """Names the tasks of its array that take up its limit, or go before it."""
        ahead = [job for job in self._ranked if _array(job) == _array(row)]
        tasks = [job for job in (*self._holders, *self._promised) if _array(job) == _array(row)]
        first = f"{_listed(ahead)}, which {'goes' if len(ahead) == 1 else 'go'} before it"
        if tasks:
            return f"{word} by {_listed(tasks)}" + (f" and by {first}" if ahead else "")
        return f"its array's own limit leaves no room beside {first}" if ahead else word

    def _at(self, when: float) -> str:
        ahead = when - self._now
        span = f" (in {_span(ahead)})" if 0 < ahead < 86400 else ""
        text = instant(when)
        return (text[11:] if abs(ahead) < 43200 else text) + span


def _waits(job: Row) -> bool:
    """True for a job that waits for GPUs alone, also where none could start it now: it is outside of the line."""
    waits = is_waiting(job) and may_be_planned(job) and has_verdict(job, Verdict.WAIT, Verdict.LEAVE)
    return waits and not _is_limited(job)


def _is_limited(job: Row) -> bool:
    """True if it waits for its array's own limit, and for no GPUs: it stands in no line."""
    return bool(job["why"] == BLOCKED_REASONS[Blocked.ARRAY_LIMIT])


def _array(job: Row) -> str:
    return str(job["job"]).partition("_")[0]


def _in_line(job: Row) -> bool:
    return is_waiting(job) and job["rank"] >= 0 and not is_starting(job) and not _is_limited(job)


def _way_back(job: Row) -> WayBack:
    """The way in which a job gives its GPUs back."""
    if has_lease(job, LeasePhase.REVOKING) or is_in(job, JobState.ENDING):
        return WayBack.NOW
    if not job.get("can_be_asked", job.get("checkpoints", True)):
        return WayBack.NOT_BEFORE_ITS_END
    return WayBack.AT_LEASE_END if job["lease_end"] else WayBack.UNKNOWN


def _grouped(jobs: Iterable[Row]) -> Iterable[Iterable[Row]]:
    """Groups of jobs by tenant, way back and its instant; the greatest holders first."""

    def sort(job: Row) -> tuple[str, str, float]:
        way = _way_back(job)
        return _tenant(job), way, (job["lease_end"] or math.inf) if way == WayBack.AT_LEASE_END else 0.0

    groups = [list(group) for _, group in groupby(sorted(jobs, key=sort), sort)]
    return sorted(groups, key=lambda group: -sum(job["gpus"] for job in group))


def _lacking(jobs: Sequence[Row]) -> str:
    """The words on what jobs cannot do that are never asked to give way."""
    near = [job["latest_start"] is not None for job in jobs]
    if not any(near):
        return "save"
    again = _AGAIN.format("their deadlines" if len(jobs) > 1 else "its deadline")
    return f"save{again}" if all(near) else f"save, or not{again.removeprefix(' and')},"


def _within_tenant(first: Row, row: Row) -> str:
    if not first["ran_seconds"] and row["ran_seconds"]:
        return "which is of its own tenant and has not run yet"
    one, other = first["rho"], row["rho"]
    if one is None or other is None or one >= other:
        return "which is of its own tenant and comes first there"
    return f"which is of its own tenant and is owed more (rho {_apart(one, other)})"


def _by(rule: Row, one: float | None, other: float | None) -> str:
    """The numbers by which one job goes before another, or the tie-break where they do not say so."""
    name, then = clean(rule["by"]), clean(rule.get("then") or "")
    otherwise = f" by {then}" if then else ""
    if one is None or (other is None and not then):
        return otherwise
    if other is None:
        return f" by {name}: {_plain(one)} against none"
    if math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9):
        return f"{otherwise}, since {name} is {_plain(one)} for both"
    both = _apart(one, other)
    if "highest_first" not in rule or (one > other) is bool(rule["highest_first"]):
        return f" by {name}: {both}"
    return f"{otherwise}, though {name} is {both}"


def _plain(value: float) -> str:
    """Two places, or as many as a small number needs."""
    return f"{value:.2f}" if value == 0 or abs(value) >= 0.1 else f"{value:.3g}"


def _apart(one: float, other: float) -> str:
    """Two numbers with as many places as it takes to tell them apart."""
    texts = [_plain(one), _plain(other)]
    for places in range(3, 18):
        if texts[0] != texts[1]:
            break
        texts = [f"{value:.{places}g}" for value in (one, other)]
    return " against ".join(texts)


def _tenant(job: Row) -> str:
    return clean(job.get("tenant") or OTHER)


def _named(job: Row) -> str:
    return f"job {job['job']} ({_tenant(job)})"


def _listed(jobs: Sequence[Row]) -> str:
    """`jobs 1, 2 and 5 more (vision)`."""
    names = [str(job["job"]) for job in jobs[:_NAMED]]
    more = f" and {len(jobs) - _NAMED} more" if len(jobs) > _NAMED else ""
    tenants = list(dict.fromkeys(_tenant(job) for job in jobs))
    whose = ", ".join(tenants[:_NAMED]) + (", ..." if len(tenants) > _NAMED else "")
    return f"{'job' if len(jobs) == 1 else 'jobs'} {', '.join(names)}{more} ({whose})"


def _are(count: int) -> str:
    return f"{counted(count, 'GPU')} {'is' if count == 1 else 'are'}"


def _span(seconds: float) -> str:
    """`26 s`, `4 min`, `3 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
