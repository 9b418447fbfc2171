"""The ledger of what everybody had and was owed: a pure fold, and every fairness metric in one place."""

from slurm_fair.ledger.charging.advance import advance
from slurm_fair.ledger.charging.downtime import Gap, fill_gap
from slurm_fair.ledger.charging.late_gap import fill_late
from slurm_fair.ledger.charging.left_alone import with_those_left_alone
from slurm_fair.ledger.charging.quotas import quotas_now
from slurm_fair.ledger.charging.set_back import seconds_set_back
from slurm_fair.ledger.charging.settle import settle
from slurm_fair.ledger.charging.shares import Owed, integrate
from slurm_fair.ledger.charging.timeline import ActiveSpans, ClusterInWindow
from slurm_fair.ledger.charging.window import JobLives, JobRuns
from slurm_fair.ledger.formulas import (
    loss_fraction,
    quota,
    rho_for_choosing,
    rho_for_reports,
    tenant_share,
    unfair_fraction,
)
from slurm_fair.ledger.metrics.efficiency import Distribution
from slurm_fair.ledger.metrics.evenness import could_be_added, jain, largest_envy
from slurm_fair.ledger.metrics.finish_time import ratio_of
from slurm_fair.ledger.metrics.latency import latency_ratio, recent_latency_ratio
from slurm_fair.ledger.metrics.summary import RunFacts, Summary, summarise
from slurm_fair.ledger.metrics.windows import (
    Steps,
    TenantWindows,
    edges_of,
    exact_windows,
    quotas_of,
    sampled_windows,
)
from slurm_fair.ledger.outcomes.expected import expected_seconds
from slurm_fair.ledger.outcomes.outcomes import Outcomes, Runs, outcomes_of, recorded
from slurm_fair.ledger.settings import LedgerSettings

__all__ = [
    "ActiveSpans",
    "ClusterInWindow",
    "Distribution",
    "Gap",
    "JobLives",
    "JobRuns",
    "LedgerSettings",
    "Outcomes",
    "Owed",
    "RunFacts",
    "Runs",
    "Steps",
    "Summary",
    "TenantWindows",
    "advance",
    "could_be_added",
    "edges_of",
    "exact_windows",
    "expected_seconds",
    "fill_gap",
    "fill_late",
    "integrate",
    "jain",
    "largest_envy",
    "latency_ratio",
    "loss_fraction",
    "outcomes_of",
    "quota",
    "quotas_now",
    "quotas_of",
    "ratio_of",
    "recent_latency_ratio",
    "recorded",
    "rho_for_choosing",
    "rho_for_reports",
    "sampled_windows",
    "seconds_set_back",
    "settle",
    "summarise",
    "tenant_share",
    "unfair_fraction",
    "with_those_left_alone",
]
