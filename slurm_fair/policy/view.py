"""The view of a policy: everything about one instant, aligned to the rows of the snapshot's jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from slurm_fair.ledger.charging.quotas import quotas_now
from slurm_fair.model import (
    NO_PLACES,
    Blocked,
    Event,
    JobAccounts,
    LeasePhase,
    Leases,
    LeaseTerms,
    Ledger,
    Placement,
    ReservedNodes,
    Snapshot,
    TenantAccounts,
    Told,
)
from slurm_fair.model.columns import (
    NO_ROWS,
    Bools,
    Codes,
    Floats,
    Ints,
    absent,
    all_of,
    any_of,
    find,
    take_or,
)
from slurm_fair.model.once import once
from slurm_fair.model.sizes import Resource, shares
from slurm_fair.policy.ahead import LeaseEnds
from slurm_fair.policy.situations import MAY_START, NO_LEASE, Shorts, situations
from slurm_fair.policy.turns import next_renewals

Number = TypeVar("Number", Ints, Codes)


# No slots: every join below is made at most once per view and kept in the instance's __dict__.
@dataclass(frozen=True)
class View:
    """Snapshot, ledger and leases joined; row i is row i of `snapshot.jobs` everywhere."""

    snapshot: Snapshot
    ledger: Ledger
    leases: Leases
    terms: LeaseTerms
    now: float
    seed: int = 0
    deadline: float = float("inf")
    memory: Mapping[str, Any] = field(default_factory=dict)
    joined: Ints | None = None  # `job_of_lease`, where it was worked out before
    reserved: tuple[ReservedNodes, ...] = ()  # nodes set aside for gangs
    fading: TenantAccounts | None = None  # what is left of the tenants' sums, where fairness fades
    counts_seconds: float = float("inf")  # a tenant without jobs counts in quotas for so long; inf = always
    turns: Placement = NO_PLACES  # GPUs that the profiler gives away, by row of `snapshot.jobs`
    # False if nothing changed since the last plan: of the leases that are over only those are decided on whose
    # beat has come.
    news: bool = True
    happened: Sequence[Event] = ()  # since the last look: submitted, started, stopped, finished, and others

    @once
    def job_of_lease(self) -> Ints:
        """Row of each lease's job, -1 when it is not listed."""
        return find(self.snapshot.jobs.key, self.leases.key) if self.joined is None else self.joined

    @once
    def lease_row(self) -> Ints:
        """Row of each job's lease, -1 without one."""
        return self._of_lease(np.arange(len(self.leases.key)), absent(len(self.snapshot.jobs.key) + 1))

    @once
    def account_row(self) -> Ints:
        """Row of each job in the ledger's jobs, -1 when the ledger has not met it."""
        met, seen = self.ledger.jobs.key, self.snapshot.jobs.key
        if len(met) == len(seen) and not (met != seen).nonzero()[0].size:
            return np.arange(len(seen))
        # The ledger keeps no account of a job that is over.
        lives = (~self.snapshot.jobs.done).nonzero()[0]
        if len(met) != len(lives) or any_of(met != seen[lives]):
            return find(met, seen)
        row = absent(len(seen))
        row[lives] = np.arange(len(lives))
        return row

    @once
    def tenant_account(self) -> Ints:
        """Row of each of the snapshot's tenants in the ledger's tenants, -1 when it has not met it."""
        seen, met = self.snapshot.tenants.names, self.ledger.tenants.names
        if seen == met:
            return np.arange(len(seen))
        known = {name: row for row, name in enumerate(met)}
        return np.array([known.get(name, -1) for name in seen], dtype=np.int64)

    @once
    def tenant_sums(self) -> TenantAccounts:
        """The ledger's tenants with what they had and were owed, as far as it counts for choosing."""
        return self.ledger.tenants if self.fading is None else self.fading

    @once
    def tenant_row(self) -> Ints:
        """Row of each job's tenant in the ledger's tenants."""
        return self.tenant_account[self.snapshot.jobs.tenant]

    @once
    def leased(self) -> Bools:
        """Jobs that have a lease."""
        leased: Bools = self.lease_phase != NO_LEASE
        return leased

    @once
    def told(self) -> Told:
        """Declarations and reports on the work; a job's time limit stands for a run time that nobody declared."""
        snapshot, told = self.snapshot, self.told_alone
        declared = _said(told.declared_seconds, lambda: snapshot.jobs.time_limit_seconds)
        done = _said(told.done_seconds, lambda: self.ran_seconds)
        left = _said(told.left_seconds, lambda: np.maximum(declared - done, 1.0))
        return told.with_columns(declared_seconds=declared, done_seconds=done, left_seconds=left)

    @once
    def told_alone(self) -> Told:
        """Users' declarations and jobs' reports alone: nan where there is none."""
        snapshot = self.snapshot
        return snapshot.told or Told.nothing(len(snapshot.jobs), len(snapshot.gpu_types))

    @once
    def tenant_quota(self) -> Floats:
        """GPUs by weight that each of the snapshot's tenants is owed now: its part of the cluster (eq. 6).

        Those share the cluster that count, by the ledger's own rule; one that does not is owed nothing.
        """
        here = self.tenant_row[self.snapshot.jobs.active]
        total, tenants = self.snapshot.weighted_gpus, self.ledger.tenants
        quotas = quotas_now(total, tenants, here, self.now, self.counts_seconds)
        return take_or(quotas, self.tenant_account, 0.0)

    @once
    def tenant_gpus(self) -> Ints:
        """GPUs that each of the snapshot's tenants holds or was promised now, by jobs left alone too."""
        jobs, held = self.snapshot.jobs, self.holdings
        tenants = len(self.snapshot.tenants)
        gpus: Ints = np.bincount(jobs.tenant[held.row], held.gpus, tenants).astype(np.int64)
        return gpus + self.snapshot.tenant_gpus_aside

    @once
    def tenant_used(self) -> Floats:
        """The same in the unit of quotas: by the weight of the GPUs."""
        snapshot, held = self.snapshot, self.holdings
        tenants = len(snapshot.tenants)
        gpus = held.gpus * self.held_weight
        used = np.bincount(snapshot.jobs.tenant[held.row], gpus, tenants).astype(np.float64)
        aside = snapshot.aside
        if aside is None:
            return used
        gpus = aside.held.gpus * aside.jobs.gpu_weight[aside.held.row]
        return used + np.bincount(aside.jobs.tenant[aside.held.row], gpus, tenants)

    @once
    def held_weight(self) -> Floats:
        """The weight of each GPU of the holdings."""
        snapshot, held = self.snapshot, self.holdings
        if snapshot.gpu_weights is None:
            return np.ones(len(held))
        return snapshot.gpu_weights[snapshot.nodes.gpu_type[held.node]]

    @once
    def weighed_gpus(self) -> Ints | Floats:
        """The gang of each job by weight: of the GPUs that it holds, else of those that it asks for."""
        jobs = self.snapshot.jobs
        return jobs.gpus if self.snapshot.gpu_weights is None else jobs.gpus * jobs.gpu_weight

    @once
    def lease_end(self) -> Floats:
        """The end of each job's lease; inf for a job without one."""
        return take_or(self.leases.end, self.lease_row, np.inf)

    @once
    def lease_ends(self) -> LeaseEnds:
        """Nodes and instants at which leases end, the earliest first."""
        return LeaseEnds.of(self.lease_places, self.lease_end)

    @once
    def ran_seconds(self) -> Floats:
        """Seconds that each job has run in all, as the ledger has it."""
        return self._of_account(self.ledger.jobs.ran)

    @once
    def waited_seconds(self) -> Floats:
        """Seconds that each job has waited in all, as the ledger has it."""
        return self._of_account(self.ledger.jobs.waited)

    @once
    def had_gpu_seconds(self) -> Floats:
        """GPU-seconds that each job has had in all, as the ledger has it."""
        return self._of_account(self.ledger.jobs.had)

    @once
    def first_submit(self) -> Floats:
        """The first submit time of each job."""
        jobs = self.snapshot.jobs
        if not np.count_nonzero(jobs.restarts):  # each is as it came, and nobody need ask the ledger
            return jobs.submit
        return first_submitted(self.ledger.jobs, self.account_row, jobs.submit)

    @once
    def waiting_rows(self) -> Ints:
        """Rows of the jobs that could be granted a lease now: mostly they are few."""
        rows: Ints = (self.situation == MAY_START).nonzero()[0]
        return rows

    @once
    def situation(self) -> Shorts:
        """Each job's lease phase, state and block in one number."""
        jobs = self.snapshot.jobs
        return situations(self.lease_phase, jobs.state, jobs.blocked, self.over_rows)

    @once
    def claims(self) -> Bools:
        """Jobs among which GPUs are shared out: the active ones, but for those that others keep out.

        Nor does one that has to wait for its tenant's own share.
        """
        jobs = self.snapshot.jobs
        active = jobs.active
        kept_out = (jobs.blocked == Blocked.KEPT) | (jobs.blocked == Blocked.OWN_SHARE)
        return active & ~(kept_out & jobs.waiting) if any_of(kept_out) else active

    @once
    def waiting(self) -> Bools:
        """Jobs that could be granted a lease now."""
        return self.flags(self.waiting_rows)

    @once
    def over_rows(self) -> Ints:
        """Rows of the running jobs whose lease is over and who may have to give way."""
        if not self.reserved or not self.kept_until_gang.size:
            return self.decided_rows
        return self.decided_rows[~self.flags(self.kept_until_gang)[self.decided_rows]]

    @once
    def decided_rows(self) -> Ints:
        """Rows of the running jobs whose lease is over and that this plan decides on.

        Jobs on nodes that are set aside are among them. Without news there are only those whose beat has come; the
        others wait for theirs.
        """
        rows, terms = self._past_their_end, self.terms
        every = not terms.beat or self.news or any(each.due <= self.now for each in self.reserved)
        if every or not rows.size:
            return rows
        return rows[self.renews_now(rows)]

    @once
    def undecided_rows(self) -> Ints:
        """Rows of the running jobs whose lease is over and is not decided on at this look."""
        over = self._past_their_end
        return over[~self.flags(self.decided_rows)[over]] if len(self.decided_rows) < len(over) else NO_ROWS

    def renews_now(self, rows: Ints) -> Bools:
        """True where a lease that is over would be renewed now, and not at a later beat."""
        key, end = self.snapshot.jobs.key[rows], self.lease_end[rows]
        return next_renewals(key, end, self.terms, self.memory) <= self.now

    @once
    def _past_their_end(self) -> Ints:
        """Rows of the running jobs whose lease is over."""
        leases, end = self.leases, self.leases.end
        if not end.size or end.item(end.argmin()) > self.now:
            return NO_ROWS
        over = (leases.running & (end <= self.now)).nonzero()[0]
        rows: Ints = self.job_of_lease[over]
        if rows.size:
            runs = (rows >= 0) & self.snapshot.jobs.running[rows]
            if not all_of(runs):
                rows = rows[runs]
        return rows

    @once
    def over(self) -> Bools:
        """Running jobs whose lease is over and who may have to give way."""
        return self.flags(self.over_rows)

    @once
    def only_renewable(self) -> Bools:
        """Jobs whose lease is over and must be renewed: they would lose work, or Slurm would not requeue them."""
        if not self.over_rows.size:
            return self.over
        jobs, over = self.snapshot.jobs, self.over_rows
        return self.flags(over[~jobs.revocable[over]])

    @once
    def stranded(self) -> Bools:
        """Leases that are over on nodes that take no new work: nobody could use what they would give back."""
        if not self.over_rows.size:
            return self.over
        places, usable = self.lease_places, self.snapshot.nodes.usable
        of_use = self.flags(places.row if all_of(usable) else places.row[usable[places.node]])
        return self.over & ~of_use

    @once
    def contested(self) -> Bools:
        """Jobs whose lease is over and whose GPUs others may have now."""
        return self.over & ~self.only_renewable & ~self.stranded

    def flags(self, rows: Ints) -> Bools:
        """[job]: true for these rows of the snapshot, false for all others."""
        flags = np.zeros(len(self.snapshot.jobs.key), dtype=bool)
        flags[rows] = True
        return flags

    @once
    def free_gpus(self) -> Ints:
        """GPUs of each node that no lease holds and nobody uses; leases that are over still count as held."""
        spare = self.spare_gpus
        return np.maximum(spare, 0) if spare.size and spare.item(spare.argmin()) < 0 else spare

    @once
    def free_in_all(self) -> int:
        """Free GPUs of all nodes together."""
        return int(self.free_gpus.sum())

    @once
    def spare_gpus(self) -> Ints:
        """The same as `free_gpus`, but below zero where more was promised than has come free yet."""
        return self._unreserved(Resource.GPUS, self.bare_gpus)

    @once
    def bare_gpus(self) -> Ints:
        """The same with what is set aside for gangs."""
        return self.snapshot.nodes.capacity - self.holdings.per_node(len(self.snapshot.nodes.names))

    @once
    def bare_cpus(self) -> Ints:
        """CPUs of each node that nobody has or was promised, with what is set aside; may be below zero."""
        return self._spare(self.snapshot.nodes.cpus_left, self.snapshot.jobs.cpus, Resource.CPUS)

    @once
    def bare_memory_mb(self) -> Ints:
        """Memory of each node that nobody has or was promised, with what is set aside; may be below zero."""
        return self._spare(self.snapshot.nodes.memory_left_mb, self.snapshot.jobs.memory_mb, Resource.MEMORY)

    @once
    def wants_more_than_gpus(self) -> bool:
        """True if some job asks for CPUs or memory."""
        jobs = self.snapshot.jobs
        return any_of(jobs.cpus > 0) or any_of(jobs.memory_mb > 0)

    @once
    def lease_amounts(self) -> tuple[Ints, Ints, Ints]:
        """GPUs, CPUs and memory of each of the lease places."""
        places = self.lease_places
        return shares(places, places.row, self.snapshot.jobs, self.snapshot.sizes)

    def _unreserved(self, resource: Resource, bare: Ints) -> Ints:
        """The part of what is free that is not set aside; what leases give back in time is set aside first."""
        standing = [each for each in self.reserved if each.due > self.now and each.amounts[resource]]
        if not standing:
            return bare
        left, places = bare.copy(), self.lease_places
        for each in standing:
            nodes, ends = self._nodes_of(each), self.lease_end[places.row] <= each.due
            back = np.bincount(places.node[ends], self.lease_amounts[resource][ends], len(left))[nodes]
            left[nodes] -= np.clip(
                each.amounts[resource] - back.astype(np.int64), 0, np.maximum(left[nodes], 0)
            )
        return left

    @once
    def kept_until_gang(self) -> Ints:
        """Rows whose lease is over on nodes that are set aside: they keep their GPUs until the gang goes first."""
        rows = [self.over_on_nodes_of(each) for each in self.reserved if each.due > self.now]
        return np.unique(np.concatenate(rows)) if rows else NO_ROWS

    def over_on_nodes_of(self, reserved: ReservedNodes) -> Ints:
        """The leases that are over on the nodes of one reservation."""
        if not self.decided_rows.size:
            return NO_ROWS
        here = np.zeros(len(self.snapshot.nodes.names), dtype=bool)
        here[self._nodes_of(reserved)] = True
        places = self.lease_places
        there = self.flags(places.row[here[places.node]])
        return self.decided_rows[there[self.decided_rows]]

    @once
    def due_gangs(self) -> Ints:
        """Rows of gangs whose nodes were set aside and are to be had now: these go before all."""
        keys = np.array([each.key for each in self.reserved if each.due <= self.now], dtype=np.int64)
        return find(self.snapshot.jobs.key, keys) if keys.size else NO_ROWS

    def _nodes_of(self, reserved: ReservedNodes) -> Ints:
        names = self.snapshot.nodes.names
        return np.array([names.index(name) for name in reserved.nodes], dtype=np.int64)

    @once
    def owes(self) -> bool:
        """True if on some node more was promised than has come free yet."""
        return self.free_gpus is not self.spare_gpus

    @once
    def anything_to_have(self) -> bool:
        """True if a lease is over, or a job waits that asks for no more than is free."""
        return self.over_rows.size > 0 or any_of(
            self.snapshot.jobs.gpus[self.waiting_rows] <= self.free_in_all
        )

    @once
    def spare_cpus(self) -> Ints:
        """CPUs of each node that nobody has or was promised; may be below zero."""
        return self._unreserved(Resource.CPUS, self.bare_cpus)

    @once
    def spare_memory_mb(self) -> Ints:
        """Memory of each node that nobody has or was promised; may be below zero."""
        return self._unreserved(Resource.MEMORY, self.bare_memory_mb)

    @once
    def holdings(self) -> Placement:
        """All that managed jobs have or were promised, by row of `snapshot.jobs`."""
        if self.lease_places is self.snapshot.held and not len(self.turns):
            return self.lease_places
        holders = ~self.leased & self.snapshot.jobs.holds_gpus
        return self.lease_places.plus(self._held_by(holders)).plus(self.turns)

    @once
    def lease_places(self) -> Placement:
        """Places of the leases: Slurm's own word for running jobs, the promise for the others."""
        seen = self._held_by(self.lease_phase > LeasePhase.GRANTED.code)
        promises = self.leases.promises_by(self.snapshot.jobs.key, self.snapshot.nodes.names)
        return seen.plus(promises) if len(promises) else seen

    @once
    def renewals(self) -> Ints:
        """Renewals of each job's lease, 0 without one."""
        return self._of_lease(self.leases.renewals, np.zeros(len(self.snapshot.jobs.key) + 1, dtype=np.int64))

    @once
    def promised(self) -> Bools:
        """Jobs with a lease that have not been seen running yet."""
        granted: Bools = self.lease_phase == LeasePhase.GRANTED.code
        return granted

    @once
    def revoking(self) -> Bools:
        """Jobs that were asked to give their GPUs back."""
        revoking: Bools = self.lease_phase == LeasePhase.REVOKING.code
        return revoking

    @once
    def lease_phase(self) -> Codes:
        """Phase of each job's lease, -1 without one."""
        phases = np.empty(len(self.snapshot.jobs.key) + 1, dtype=np.int8)
        phases.fill(NO_LEASE)
        return self._of_lease(self.leases.phase, phases)

    def _held_by(self, jobs: Bools) -> Placement:
        """The places that these jobs hold, as Slurm says it."""
        held = self.snapshot.held
        theirs = jobs[held.row]
        return held if all_of(theirs) else held.take(theirs)

    def _of_lease(self, column: Number, values: Number) -> Number:
        """A column of the leases by job; `values` are those of jobs without one, and one more."""
        values[self.job_of_lease] = column  # a lease whose job is not listed goes behind the last row
        return values[:-1]

    def _of_account(self, column: Floats) -> Floats:
        return take_or(column, self.account_row, 0.0)

    def _spare(self, total: Ints, of_job: Ints, resource: Resource) -> Ints:
        """`total` less what holders have beside their GPUs."""
        if not of_job.size or not of_job.item(of_job.argmax()):
            return total
        taken = np.bincount(self.holdings.node, weights=self._shares[resource], minlength=len(total))
        return total - taken.astype(np.int64)

    @once
    def _shares(self) -> tuple[Ints, Ints, Ints]:
        """GPUs, CPUs and memory of each of the holdings."""
        held = self.holdings
        return shares(held, held.row, self.snapshot.jobs, self.snapshot.sizes)


def first_submitted(accounts: JobAccounts, row: Ints, seen: Floats) -> Floats:
    """Submit times of jobs before any requeue. Row -1 of the accounts = as `seen`."""
    return np.where(row >= 0, take_or(accounts.submit, row, 0.0), seen)


def _said(column: Floats, otherwise: Callable[[], Floats]) -> Floats:
    """A column with its unknown values filled in."""
    unsaid = np.isnan(column)
    return np.where(unsaid, otherwise(), column) if any_of(unsaid) else column
