"""The ledger's columns: what tenants and jobs have had and were owed (docs/metrics.md says what each means)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from slurm_fair.model.columns import Bools, Columns, Floats, Ints


@dataclass(frozen=True)
class TenantAccounts(Columns):
    """One row per tenant ever seen, sorted by name; all integrals in GPU-seconds since the beginning."""

    names: tuple[str, ...]
    weight: Floats
    had: Floats  # integral of A_j
    owed_quota: Floats  # integral of Q_j: eq. 16, for choosing
    owed_demand: Floats  # integral of min(D_j, Q_j): eq. 8, for reports
    last_job: Floats  # instant at which it last had an active job


@dataclass(frozen=True)
class JobAccounts(Columns):
    """One row per job that lives, sorted by key; all integrals in GPU-seconds since its submission."""

    key: Ints
    submit: Floats  # of the job, not moved by requeues
    incarnation: Floats  # SubmitTime last seen: with `restarts` it tells a requeue from a reused id
    restarts: Ints
    tenant: Ints  # row of the tenants' table
    gpus: Ints  # D_i: of an elastic job its usual size
    weight: Floats
    had: Floats  # integral of A_i, all runs
    owed: Floats  # integral of min(D_i, S_i)
    waited: Floats  # seconds in which it waited for GPUs
    ran: Floats  # seconds running
    run_start: Floats  # start of the open run, 0 = not running
    run_had: Floats  # part of `had` that belongs to the open run
    active: Bools  # whether it claims a share, as last seen
    waits: Bools  # whether it waits for GPUs while it does not run, as last seen
    # What each of its GPUs counts: of a run that is open from its start on, else as last seen.
    gpu_weight: Floats
    run_gpus: Ints  # GPUs of the open run, 0 = not running


@dataclass(frozen=True)
class ClosedRuns(Columns):
    """Runs that are over and what they were charged, until accounting settles them."""

    key: Ints
    submit: Floats  # SubmitTime of the incarnation
    start: Floats  # 0 = this incarnation ended without a run
    end: Floats
    gpus: Ints
    tenant: Ints  # row of the tenants' table
    charged: Floats  # GPU-seconds by weight, part of the tenant's `had`
    gpu_weight: Floats  # what each of its GPUs counted
    since: float = 0.0  # runs that ended before this instant are forgotten and charged no more


@dataclass(frozen=True, slots=True)
class Ledger:
    """Everything owed and had, up to one instant."""

    time: float
    began: float
    total_gpus: float  # M, as last seen; -1 before the first look
    tenants: TenantAccounts
    jobs: JobAccounts
    closed: ClosedRuns = field(default_factory=ClosedRuns.none)
    weighted_gpus: float = -1.0  # M by weight, as last seen; -1 = each GPU counts 1

    @property
    def shared_gpus(self) -> float:
        """M by weight: what is shared out; 0 before the first look."""
        return max(self.total_gpus if self.weighted_gpus < 0 else self.weighted_gpus, 0.0)

    @property
    def mean_gpu_weight(self) -> float:
        """The weight of a GPU of which nobody knows where it was."""
        return self.weighted_gpus / self.total_gpus if self.weighted_gpus >= 0 < self.total_gpus else 1.0

    @classmethod
    def new(cls, time: float) -> Self:
        """A ledger that has seen nothing yet."""
        return cls(time, time, -1.0, TenantAccounts.none(), JobAccounts.none(), ClosedRuns.none(since=time))
