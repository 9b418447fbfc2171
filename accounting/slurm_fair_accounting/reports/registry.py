"""The reports by name: each a pure function of what a journal answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from slurm_fair_accounting.fairness import fairness
from slurm_fair_accounting.jobs import jobs, waits
from slurm_fair_accounting.leases import leases
from slurm_fair_accounting.period import Period
from slurm_fair_accounting.source import JournalReader
from slurm_fair_accounting.table import Choice, Report
from slurm_fair_accounting.tenants import tenants
from slurm_fair_accounting.usage import usage

Make = Callable[[JournalReader, Period, Choice], Report]

REPORTS: Mapping[str, Make] = MappingProxyType(
    {"tenants": tenants, "fairness": fairness, "jobs": jobs, "usage": usage, "waits": waits, "leases": leases}
)
