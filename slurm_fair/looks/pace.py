"""The instant of the daemon's next look, and how many looks slurmctld is asked to bear.

The daemon cannot know when a job ends, arrives or answers. It looks at intervals, and sooner where a lease or a
grace ends or jobs change places. A simulation knows when jobs arrive and end. It leaves out looks that could
change nothing (`sim/loop/drive.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from slurm_fair.looks.ends import next_decision_on_leases
from slurm_fair.model import JobState, LeaseTerms, Result, Standing, TickRecord, Untried, Verb
from slurm_fair.policy.rests import again

_BUSY_SECONDS = 0.12  # at least, between looks while somebody is asked, requeued or about to start
_LEAST_SECONDS = 0.05
_PART_OF_A_CORE = 0.05  # of slurmctld's, that looks may take
_SAVED_SECONDS = 60.0  # in which looks that were not needed are saved up
_ENDING_SECONDS = 0.25  # until the first look at a job that was ending; from look to look twice as long


def next_look(
    standing: Standing,
    terms: LeaseTerms,
    began: float,
    now: float,
    pause_seconds: float = 0.0,
    gates_left: bool = False,
) -> float:
    """An interval after the last look began, or sooner: see the conditions, one by one.

    A lease is due to be decided on, a grace ends, jobs change places, leases that end together do so, or, where
    looks follow changes, the policy asked for an instant.
    `gates_left` = jobs wait without a gate for which the last tick had no time left: the next one follows at once.
    """
    if gates_left:
        return now + _LEAST_SECONDS
    leases = standing.leases
    began = min(began, now)  # the clock may have been set back in this tick
    due = began + terms.interval
    busy = leases.revoking | leases.promised
    if busy.any():
        due = min(due, now + max(_BUSY_SECONDS, pause_seconds))
        due = min(due, _next_grace(standing, terms, now)) if math.isfinite(pause_seconds) else due
    due = min(due, max(_next_decision(standing, terms, began, now), began + terms.interval_min))
    if not terms.grants_at(now):
        due = min(due, terms.next_common_end(now))
    return max(due, now + _LEAST_SECONDS)


def _next_decision(standing: Standing, terms: LeaseTerms, began: float, now: float) -> float:
    """The instant of the next renewal, or at which the policy would plan otherwise though nothing happens.

    Where looks follow changes, a lease that ended during the tick has a look of its own.
    """
    since, leases = began if terms.follows_changes else now, standing.leases
    end = next_decision_on_leases(standing, terms, leases.running, since)
    instant = again(standing.memory) if terms.follows_changes else math.inf
    return min(end, instant) if instant > since else end


@dataclass(frozen=True, slots=True)
class Allowance:
    """CPU seconds of slurmctld that looks may still take: a twentieth of a core, saved up for a minute."""

    seconds: float = _PART_OF_A_CORE * _SAVED_SECONDS
    time: float = -math.inf

    def after(self, cost_seconds: float, now: float) -> Allowance:
        """The rest after a look that ended now; it may be less than nothing."""
        passed = min(max(now - self.time, 0.0), _SAVED_SECONDS)
        saved = min(self.seconds + passed * _PART_OF_A_CORE, _PART_OF_A_CORE * _SAVED_SECONDS)
        return Allowance(saved - cost_seconds, now)

    def wait_seconds(self) -> float:
        """Seconds until another look may follow on the last one."""
        return max(-self.seconds / _PART_OF_A_CORE, 0.0)


@dataclass(frozen=True, slots=True)
class Ending:
    """Jobs that were seen to give their GPUs back while others wait.

    Slurm may not count when they have (slurm-facts: sdiag-counts).
    """

    keys: tuple[int, ...] = ()
    seconds: float = math.inf  # until they are looked at again

    def after(self, record: TickRecord) -> Ending:
        """The jobs that end at this look; those that go on ending are looked at more and more seldom."""
        jobs = record.snapshot.jobs
        ending = tuple(jobs.key[jobs.state == JobState.ENDING].tolist())
        if not ending or not jobs.waiting.any():
            return Ending()
        return Ending(ending, _ENDING_SECONDS if ending != self.keys else 2 * self.seconds)


def _next_grace(standing: Standing, terms: LeaseTerms, now: float) -> float:
    """The end of the next grace among the jobs that were asked."""
    leases = standing.leases
    asked = leases.asked[leases.revoking & (leases.asked > 0)]
    ends = asked[asked + terms.grace > now] + terms.grace
    return float(ends.min(initial=math.inf))


def gates_left(record: TickRecord) -> bool:
    """True if the tick set gates and had no time, or no room, for all jobs that wait without one."""
    closes = [o for o in record.outcomes if o.action.verb is Verb.CLOSE]
    late = any(o.untried is Untried.TOO_LATE for o in closes)
    if not (late or record.guard) or not any(o.result is Result.DONE for o in closes):
        return False
    jobs = record.snapshot.jobs
    bare = jobs.record[jobs.waiting & ~jobs.gated]
    tried = {o.action.record for o in closes if o.untried is not Untried.TOO_LATE}
    return not np.isin(bare, list(tried)).all()


def look_seconds(record: TickRecord, tick_seconds: float) -> float:
    """The seconds of a tick without its acts: the seconds of acts do not predict the next look."""
    return max(tick_seconds - record.seconds.get("act", 0.0), 0.0)
