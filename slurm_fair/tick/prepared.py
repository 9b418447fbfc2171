"""A snapshot folded into ledger and leases, and what of it the policy may plan."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from slurm_fair.ledger import Gap, fill_gap, with_those_left_alone
from slurm_fair.model import (
    Event,
    EventKind,
    Snapshot,
    Standing,
)
from slurm_fair.model.columns import Ints, any_of
from slurm_fair.policy import View
from slurm_fair.policy.error_place import where
from slurm_fair.policy.fading import with_fading
from slurm_fair.policy.orders.array_limits import without_limited_tasks
from slurm_fair.policy.own_share import BEYOND, promised_beyond, within_own_share
from slurm_fair.policy.profiling import Profiling, ended_with_turns
from slurm_fair.policy.reach import without_the_impossible, without_the_kept_out
from slurm_fair.policy.reserve import set_aside
from slurm_fair.policy.rests import again
from slurm_fair.ports import EVERYTHING, Want
from slurm_fair.reconcile import (
    follow,
    taken_back,
)
from slurm_fair.reconcile.clock import without_the_future
from slurm_fair.reconcile.events import GATE_WAS_OPENED
from slurm_fair.reconcile.for_whom import Spare, withdrawn
from slurm_fair.reconcile.guard import living
from slurm_fair.reconcile.left_over import left_over
from slurm_fair.reconcile.retries import (
    backoff_after,
    overlaid,
    shunned_after,
    still_resting,
    without_rests_of_others,
)
from slurm_fair.tick.rules import Rules

NO_TURNS = ": this look goes without its turns"


class Prepared(NamedTuple):
    """A standing brought up to a snapshot: what the policy then sees."""

    standing: Standing
    snapshot: Snapshot
    view: View
    events: tuple[Event, ...]
    fault: str = ""  # of the profiler


def open_requests(standing: Standing) -> dict[int, float]:
    """Jobs that were asked to give their GPUs back and still have them, and when they were asked."""
    leases = standing.leases
    asked = leases.revoking.nonzero()[0]
    if not asked.size:
        return {}
    asked = asked[leases.asked[asked] > 0]
    return dict(zip(leases.key[asked].tolist(), leases.asked[asked].tolist(), strict=True))


def with_gap_filled(
    standing: Standing, snapshot: Snapshot, rules: Rules, gap: Gap
) -> tuple[Standing, tuple[Event, ...]]:
    """The standing with the time without us, before a look that shows who lives, and the events of that time."""
    standing = without_rests_of_others(standing, snapshot.jobs)  # accounting may know new bearers of ids
    shown = with_those_left_alone(snapshot).jobs
    until = min(max(gap.until, standing.ledger.time), snapshot.time)
    filled, happened = fill_gap(standing.ledger, gap.runs, until, rules.ledger, shown)
    return standing._replace(ledger=filled, amended=True), tuple(happened)


def prepare(
    standing: Standing, snapshot: Snapshot, rules: Rules, wants: Collection[Want] = EVERYTHING
) -> Prepared:
    """Ledger and leases brought up to the snapshot, and what of it the policy may plan."""
    folded = _folded(standing, snapshot, rules, wants)
    standing, view, fault = folded.standing, _first_view(folded, rules), ""
    followed = folded.followed
    if rules.profiling is not None:
        try:
            leases = ended_with_turns(view, rules.profiling)
        except Exception as error:
            fault = of_profiler(error)
        else:
            standing, view = standing._replace(leases=leases), replace(view, leases=leases)
    if standing.asked_for and any_of(standing.leases.revoking):
        standing, view, stays = _without_needless_requests(standing, view)
        followed += stays
    beyond = promised_beyond(view)
    if beyond.size:
        standing, view, back = _without_promises(standing, view, beyond)
        followed += back
    view = within_own_share(without_the_kept_out(view, rules.policy))
    view = with_fading(set_aside(view, rules.policy), rules.ledger.half_life_seconds)
    return Prepared(standing, folded.shown, view, folded.happened + followed, fault)


class _Folded(NamedTuple):
    """A standing whose ledger and leases have taken in a snapshot, and what that brought."""

    standing: Standing
    seen: Snapshot  # without what no node can run, and what an array's own limit keeps back
    shown: Snapshot  # the same with what failed before, as it was when the look began
    happened: tuple[Event, ...]  # to the ledger
    followed: tuple[Event, ...]  # to the leases
    job_of_lease: Ints
    news: bool  # others wait, hold GPUs or can have them than after the last plan


def _folded(standing: Standing, snapshot: Snapshot, rules: Rules, wants: Collection[Want]) -> _Folded:
    now = snapshot.time
    standing = without_rests_of_others(standing, snapshot.jobs)
    standing = still_resting(without_the_future(standing, rules.terms, now), now)
    seen = without_the_impossible(snapshot, standing.leases, rules.policy)
    seen, shown = without_limited_tasks(seen, overlaid(seen, standing), standing.leases)
    ledger, happened = rules.advance(standing.ledger, shown, rules.ledger)
    leases, followed, job_of_lease = follow(
        standing.leases, shown, rules.terms, tell_ends=Want.LEASE_EVENTS in wants
    )
    failed = [e for e in followed if e.kind == EventKind.TAKEN_BACK and e.detail[GATE_WAS_OPENED]]
    standing = standing._replace(
        ledger=ledger,
        leases=leases,
        tick=standing.tick + 1,
        backoff=backoff_after(standing.backoff, failed, now) if failed else standing.backoff,
        shunned=shunned_after(standing.shunned, failed, shown),
        last_jobs=living(shown),
        amended=False,
    )
    known = rules.terms.beat > 0 and again(standing.memory) > now
    news = not known or left_over(shown, leases, job_of_lease) != standing.left_over
    return _Folded(standing, seen, shown, happened, followed, job_of_lease, news)


def _first_view(folded: _Folded, rules: Rules) -> View:
    """All that a policy may be shown; a start that failed just now rests from now on."""
    standing, now = folded.standing, folded.seen.time
    return View(
        overlaid(folded.seen, standing),
        standing.ledger,
        standing.leases,
        rules.terms,
        now,
        rules.seed,
        now + rules.plan_limit_seconds,
        standing.memory,
        folded.job_of_lease,
        counts_seconds=rules.ledger.counts_seconds,
        news=folded.news,
        happened=rules.show(folded.happened),
    )


def _without_promises(standing: Standing, view: View, at: Ints) -> tuple[Standing, View, tuple[Event, ...]]:
    """Take promises back of work that cannot be taken back, beyond its tenant's own share."""
    leases, events = taken_back(view.leases, at, BEYOND, view.snapshot)
    # Nobody was shown these GPUs before: they are news.
    return standing._replace(leases=leases), replace(view, leases=leases, joined=None, news=True), events


def _without_needless_requests(standing: Standing, view: View) -> tuple[Standing, View, tuple[Event, ...]]:
    """Nobody is stopped for a job that has gone, or that has found its GPUs elsewhere."""
    spare = Spare(view.spare_gpus, view.spare_cpus, view.spare_memory_mb)
    leases, stays = withdrawn(
        standing.leases, view.snapshot, view.terms, standing.asked_for, standing.unsettled, spare
    )
    if not stays:
        return standing, view, ()
    return standing._replace(leases=leases), replace(view, leases=leases), tuple(stays)


def of_profiler(error: Exception) -> str:
    return f"{where(Profiling, error)}: the profiler raised {error!r}{NO_TURNS}"
