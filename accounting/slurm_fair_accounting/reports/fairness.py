"""The report on fairness: sharing loss, unfair hours, finish-time fairness and latency, by tenant and in all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from slurm_fair.ledger.formulas import rho_for_reports
from slurm_fair.ledger.metrics.summary import Fates, summarise
from slurm_fair.ledger.outcomes.outcomes import Outcomes
from slurm_fair.model.columns import Bools
from slurm_fair_accounting.reports.measured import Measured, measured
from slurm_fair_accounting.reports.weighed import marked
from slurm_fair_accounting.source.period import Period
from slurm_fair_accounting.source.source import JournalReader
from slurm_fair_accounting.table import Choice, Column, Kind, Report, Row

ALL = "(all)"  # the total's name, which no Slurm account has
COLUMNS = (
    Column("tenant", "Tenant", Kind.TEXT),
    Column("jobs", "Jobs", Kind.COUNT),
    Column("rho", "rho", Kind.RATIO),
    Column("ltgf_job_loss_fraction", "Loss(%)", Kind.PART),
    Column("ltgf_tenant_unfair_fraction", "UnfairHours(%)", Kind.PART),
    Column("jain_tenants", "Jain", Kind.RATIO),
    Column("largest_envy_gpu_seconds", "Envy(GPUh)", Kind.GPU_HOURS, wide=True),
    Column("latency_ratio_mean", "MeanLR", Kind.RATIO),
    Column("latency_ratio_max", "MaxLR", Kind.RATIO),
    Column("latency_ratio_recent", "LR24h", Kind.RATIO, wide=True),
    *(
        Column(f"ftf_{name}_{key}", title.format(word), kind, wide=bool(word))
        for name, word in (
            ("static", ""),
            ("shockwave", "/Shockwave"),
            ("themis", "/Themis"),
            ("sia", "/Sia"),
        )
        for key, title, kind in (
            ("mean", "MeanFTF{}", Kind.RATIO),
            ("worst", "WorstFTF{}", Kind.RATIO),
            ("unfair", "UnfairFTF{}(%)", Kind.PART),
        )
    ),
)


def fairness(source: JournalReader, period: Period, choice: Choice) -> Report:
    """One row per tenant, of the jobs that ended in the period, and one for all of them together."""
    found = measured(source, period, choice.share)
    fates = Fates.of(found.outcomes, found.facts.total_gpus)
    known = found.accounts.keys() | set(found.outcomes.tenants)
    rows = []
    for name in sorted(known):
        mine = _jobs_of(name, found.outcomes, choice.user)
        if choice.takes(name, None) and (choice.user is None or mine.any()):
            rows.append(_tenant(name, found, fates, mine))
    total = _total(found)
    report = Report(
        "fairness", "Fairness", COLUMNS, tuple(rows), period, found.covered, found.note, total=total
    )
    return marked(report, source)


def _jobs_of(tenant: str, outcomes: Outcomes, user: str | None) -> Bools:
    mine: Bools = np.array([name == tenant for name in outcomes.tenants], dtype=bool)[outcomes.tenant]
    if user is not None:
        mine &= np.array([*(name == user for name in outcomes.users), False])[outcomes.user]
    return mine


def _tenant(name: str, found: Measured, fates: Fates, mine: Bools) -> Row:
    windows, row, account = found.facts.windows, found.windows.get(name), found.accounts.get(name)
    unfair = math.nan if row is None or windows is None else windows.unfair_of(row)
    return _row(
        name,
        int((found.outcomes.over & mine).sum()),
        (account.had, account.owed) if account else (math.nan, math.nan),
        fates.figures(mine) | {"ltgf_tenant_unfair_fraction": unfair},
    )


def _total(found: Measured) -> Row:
    outcomes, facts = found.outcomes, found.facts
    accounts = found.accounts.values()
    sums = math.fsum(each.had for each in accounts), math.fsum(each.owed for each in accounts)
    if not accounts:
        return _row(ALL, 0, (math.nan, math.nan), {})
    return _row(ALL, int(outcomes.over.sum()), sums, summarise(outcomes, facts).to_dict())


def _row(
    name: str, jobs: int, account: tuple[float, float], figures: Mapping[str, float | int | None]
) -> dict[str, Any]:
    """Values by their columns' keys; None = not known, or nothing to speak of."""
    had, owed = account
    rho = None if math.isnan(had) else float(rho_for_reports(np.array([had]), np.array([owed]))[0])
    keys = (column.key for column in COLUMNS[3:])
    return {"tenant": name, "jobs": jobs, "rho": rho} | {key: _known(figures.get(key)) for key in keys}


def _known(value: float | int | None) -> float | int | None:
    return None if value is None or math.isnan(value) else value
