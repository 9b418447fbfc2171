"""Things that must never be at any look of a simulation, watched from outside while it runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from typing import Any, ClassVar

import numpy as np

from slurm_fair.model import (
    JobState,
    LeasePhase,
    Leases,
    LeaseTerms,
    Result,
    Snapshot,
    Standing,
    TickRecord,
    Verb,
    Verdict,
)
from slurm_fair.model.columns import Bools, Floats, find
from slurm_fair.model.reservation import reservations
from slurm_fair.ports import Want
from tests.support.builders import lying
from tests.support.conservation import broken, left_waiting

_STOPS = (Verb.ASK, Verb.REQUEUE)


class Witness:
    """A listener of a simulation; `digest` is a fingerprint of everything that was seen and decided."""

    wants: ClassVar[frozenset[Want]] = frozenset()  # no events

    def __init__(self) -> None:
        self.looks = 0
        self._digest = hashlib.sha256()
        self._dues: set[float] = set()  # instants at which leases end early, for a gang
        self._turns: set[int] = set()  # keys of jobs whose leases end early, as turns of the profiler

    @property
    def digest(self) -> str:
        """The same for two simulations that went the same way."""
        return self._digest.hexdigest()

    def __call__(self, tick: TickRecord, standing: Standing) -> None:
        self.looks += 1
        gangs_are_whole(tick.snapshot)
        one_lease_each(tick.snapshot, standing.leases)
        promises_are_covered(tick, standing.leases)
        self._dues |= {each.due for each in reservations(tick.plan.memory)}
        leases_end_in_time(tick, standing.leases, self._dues, self._turns)
        self._reservations_lead_somewhere(tick)
        nobody_waits_for_nothing(tick, standing.leases)
        self._note(tick, standing)

    def _reservations_lead_somewhere(self, tick: TickRecord) -> None:
        """Each is for a gang that waits, one for a GPU type, on usable nodes, and due within a lease or two."""
        snapshot, terms = tick.snapshot, tick.terms
        standing = reservations(tick.plan.memory)
        assert not (standing and terms.aligned), "nodes are set aside where leases end together"
        assert len({each.gpu_type for each in standing}) == len(standing), "two reservations of one GPU type"
        for each in standing:
            row = snapshot.jobs.key.tolist().index(each.key)
            assert tick.plan.verdict[row] in (Verdict.WAIT, Verdict.LEAVE), (
                "nodes are set aside for who has GPUs"
            )
            nodes = [snapshot.nodes.names.index(name) for name in each.nodes]
            assert len(set(nodes)) == len(nodes), "a node is set aside twice"
            assert snapshot.nodes.usable[nodes].all(), "a node is set aside that takes no work"
            assert tick.time < each.due <= tick.time + max(terms.term, terms.min_runtime), "not due in time"

    def _note(self, tick: TickRecord, standing: Standing) -> None:
        snapshot, plan, why = tick.snapshot, tick.plan, tick.plan.explanation
        for columns in (
            snapshot.jobs._arrays(),
            snapshot.held._arrays(),
            {"verdict": plan.verdict, **why._arrays()},
            plan.places._arrays(),
            standing.leases._arrays(),
        ):
            for name, column in sorted(columns.items()):
                self._digest.update(name.encode() + column.tobytes())
        said: Any = [tick.time, why.reasons, tick.plan.memory, [repr(done) for done in tick.outcomes]]
        self._digest.update(json.dumps(said).encode())


def gangs_are_whole(snapshot: Snapshot) -> None:
    """On nodes that have the GPUs, all of one type that the job takes, spread as it asked."""
    jobs, nodes, held = snapshot.jobs, snapshot.nodes, snapshot.held
    assert (held.per_node(len(nodes)) <= nodes.gpus).all(), "more GPUs held than there are"
    gangs = np.bincount(held.row, held.gpus, len(jobs)).astype(np.int64)
    holds = (jobs.state != JobState.WAITING) & (jobs.state != JobState.DONE)
    assert (gangs == np.where(holds, jobs.gpus, 0)).all(), (
        "a gang is not whole, or one that is off holds GPUs"
    )
    kind = nodes.gpu_type[held.node]
    first = np.zeros(len(jobs), dtype=np.int64)
    first[held.row] = kind
    assert (kind == first[held.row]).all(), "a gang lies on two GPU types"
    asked = jobs.gpu_type[held.row]
    assert ((asked < 0) | (asked == kind)).all(), "a job has GPUs of a type that it did not ask for"
    parts = np.bincount(held.row, minlength=len(jobs))
    assert (parts[holds] >= np.maximum(jobs.nodes[holds], 1)).all(), (
        "a gang lies on fewer nodes than it asked"
    )
    each = jobs.gpus_per_node[held.row]
    assert ((each == 0) | (held.gpus == each)).all(), "a gang is not as even as it asked"


def one_lease_each(snapshot: Snapshot, leases: Leases) -> None:
    """No job has two, and nobody who is gone has one."""
    assert (leases.key[1:] > leases.key[:-1]).all(), "two leases of one job"
    assert np.isin(leases.key, snapshot.jobs.key).all(), "a lease of a job that is not there"
    over = snapshot.jobs.key[snapshot.jobs.state == JobState.DONE]
    assert not np.isin(leases.key, over).any(), "a lease of a job that is over"


def promises_are_covered(tick: TickRecord, leases: Leases) -> None:
    """Promised GPUs, less those that are being given back for them, are there.

    Whom Slurm refused to stop just now keeps his GPUs; what was promised of them is taken back at the next look.
    """
    snapshot = tick.snapshot
    refused = [o.action.key for o in tick.outcomes if o.action.verb in _STOPS and o.result is Result.REFUSED]
    was_to_give = np.isin(leases.key, np.array(refused, dtype=np.int64))
    giving_back = np.flatnonzero((leases.phase == LeasePhase.REVOKING) | was_to_give)
    places = lying(leases, snapshot)
    staying = places.take(~np.isin(places.row, giving_back))
    promised = staying.per_node(len(snapshot.nodes))
    assert (promised <= snapshot.nodes.gpus).all(), "more GPUs promised than there are"
    gangs = np.bincount(places.row, places.gpus, len(leases)).astype(np.int64)
    # A gang that Slurm splits in its own way is promised all that it may come to have, until it runs.
    loose = (leases.phase == LeasePhase.GRANTED) & _splits_as_slurm_likes(snapshot, leases)
    whole = (gangs == leases.gpus) | (loose & (gangs > leases.gpus))
    assert whole.all(), "a promise is not for the gang, or for more where its split is fixed"


def _splits_as_slurm_likes(snapshot: Snapshot, leases: Leases) -> Bools:
    """Gangs on several nodes whose users fixed neither how many these are nor the GPUs on each."""
    jobs, row = snapshot.jobs, find(snapshot.jobs.key, leases.key)
    free_split = (jobs.gpus_per_node[row] == 0) & (jobs.nodes[row] <= 1) & (jobs.most_nodes[row] != 1)
    parts = np.bincount(lying(leases, snapshot).row, minlength=len(leases))
    several: Bools = free_split & (parts > 1)
    return several


def leases_end_in_time(
    tick: TickRecord, leases: Leases, dues: Collection[float] = (), turns: Collection[int] = ()
) -> None:
    """Each ends when the site's rules say, to the second: counted from its grant, its start or its renewal.

    Where renewed leases are shorter, one that is over is renewed a sixteenth of a renewed lease later at most.
    One renewed on a node that is set aside ends sooner, with the last lease that the gang waits for (`dues`).

    What was promised may start later than that, if its gate opened or its GPUs come free in time. Who waits for a
    job that was asked late, because Slurm refused the first request, waits as long as that job may save.
    """
    terms, runs = tick.terms, leases.phase != LeasePhase.REVOKING
    promised = leases.phase == LeasePhase.GRANTED
    over = (_renewed_by(terms, leases.end) <= tick.time - 1e-6) & runs
    assert not (over & ~promised).any(), "a lease that is over was neither renewed nor revoked"
    opened, patience = promised & (leases.opened > 0), max(terms.term, terms.grace + terms.start_timeout)
    in_vain = opened & (tick.time - leases.opened > terms.start_timeout)
    in_vain |= promised & ~opened & (tick.time - leases.granted > patience) & ~_others_may_save(tick, leases)
    assert not in_vain.any(), "a promise stands that Slurm does not keep"
    end, granted, start = leases.end[runs], leases.granted[runs], leases.start[runs]
    first = (leases.phase[runs] == LeasePhase.RUNNING) & (leases.renewals[runs] == 0) & ~leases.adopted[runs]
    # The first lease of a run counts from its start; an aligned one only if its GPUs came free after its end.
    late = first & ((_end_of(terms, granted) <= tick.time) | (not terms.aligned))
    since = np.where(late, np.maximum(start, granted), granted)
    may = (leases.renewals[runs] > 0) | np.isin(leases.key[runs], list(turns))
    should = _end_of(terms, since)
    if not terms.aligned:
        should = np.where(leases.renewals[runs] > 0, np.minimum(should, since + terms.renewal), should)
    early = may & (end < should) & np.isin(end, list(dues))
    assert ((end == should) | early).all(), "a lease ends sooner or later than it should"


def _others_may_save(tick: TickRecord, leases: Leases) -> Bools:
    """Leases on a node of a job that was asked to save and still has the time that it was given."""
    places, graces = lying(leases, tick.snapshot), tick.snapshot.graces
    busy: set[int] = set()
    for row in ((leases.phase == LeasePhase.REVOKING) & (leases.asked > 0)).nonzero()[0].tolist():
        until = leases.asked[row] + tick.terms.grace_of(graces.get(int(leases.key[row]), 0.0))
        if tick.time <= until + tick.terms.start_timeout:
            busy |= set(places.node[places.row == row].tolist())
    waits: Bools = np.zeros(len(leases), dtype=bool)
    waits[places.row[np.isin(places.node, list(busy))]] = True
    return waits


def _renewed_by(terms: LeaseTerms, end: Floats) -> Floats:
    """The latest instants at which leases with these ends are renewed or revoked."""
    if terms.aligned or terms.renewal >= terms.term:
        return end
    return end + min(terms.renewal / 16, 15.0)


def _end_of(terms: LeaseTerms, since: Floats) -> Floats:
    """The end of leases that begin then; aligned ones end at the next multiple of the term not too near."""
    if not terms.aligned:
        return since + max(terms.term, terms.min_runtime)
    least = max(terms.min_runtime, min(terms.interval_min or terms.interval, terms.term / 4))
    end: Floats = np.ceil((since + least) / terms.term) * terms.term
    return end


def nobody_waits_for_nothing(tick: TickRecord, leases: Leases) -> None:
    """No gang waits for what its policy could give it when leases may be granted and nobody changes hands.

    What Slurm refused just now is decided anew at the next look.
    """
    changing = (leases.phase == LeasePhase.REVOKING).any()
    changing |= any(outcome.result is Result.REFUSED for outcome in tick.outcomes)
    if changing or not tick.terms.grants_at(tick.time) or not (tick.plan.verdict == Verdict.WAIT).any():
        return
    snapshot = tick.snapshot
    nodes = len(snapshot.nodes)
    leased = np.isin(snapshot.jobs.key, leases.key)
    unleased = snapshot.held.take(~leased[snapshot.held.row])
    set_aside = {name for each in reservations(tick.plan.memory) for name in each.nodes}
    free = snapshot.nodes.capacity - lying(leases, snapshot).per_node(nodes) - unleased.per_node(nodes)
    free[np.isin(snapshot.nodes.names, list(set_aside))] = 0
    idle = left_waiting(snapshot, tick.plan, free)
    assert broken(tick.policy, snapshot, tick.plan, idle) == [], "a gang waits that fits what is free"
