"""Who had what and who was owed what: a pure fold, and every fairness metric in one place."""

from slurm_fair.ledger.fold import advance
from slurm_fair.ledger.gap import fill_gap
from slurm_fair.ledger.lives import JobLives, JobRuns
from slurm_fair.ledger.metrics import (
    jain,
    largest_envy,
    loss_fraction,
    quota,
    rho_for_choosing,
    rho_for_reports,
    tenant_share,
    unfair_fraction,
)
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.ledger.settle import settle
from slurm_fair.ledger.shares import Claims, Cluster, Owed, integrate

__all__ = [
    "Claims",
    "Cluster",
    "JobLives",
    "JobRuns",
    "LedgerSettings",
    "Owed",
    "advance",
    "fill_gap",
    "integrate",
    "jain",
    "largest_envy",
    "loss_fraction",
    "quota",
    "rho_for_choosing",
    "rho_for_reports",
    "settle",
    "tenant_share",
    "unfair_fraction",
]
