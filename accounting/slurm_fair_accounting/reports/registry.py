"""The reports by name: each a pure function of what a journal answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from slurm_fair_accounting.reports.fairness import fairness
from slurm_fair_accounting.reports.jobs import jobs, waits
from slurm_fair_accounting.reports.leases import leases
from slurm_fair_accounting.reports.tenants import tenants
from slurm_fair_accounting.reports.usage import usage
from slurm_fair_accounting.source.period import Period
from slurm_fair_accounting.source.source import JournalReader
from slurm_fair_accounting.table import Choice, Report

Make = Callable[[JournalReader, Period, Choice], Report]

REPORTS: Mapping[str, Make] = MappingProxyType(
    {"tenants": tenants, "fairness": fairness, "jobs": jobs, "usage": usage, "waits": waits, "leases": leases}
)
