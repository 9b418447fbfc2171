"""Facts that the doctor learned of a sound site, for tests of what it makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from slurm_fair.config.sections import Config
from slurm_fair.doctor import Finding, Level
from slurm_fair.doctor.facts import Facts
from slurm_fair.host.state_folder import Places

OK, WARNING, ERROR = Level.OK, Level.WARNING, Level.ERROR
BASE = {
    "SLURM_VERSION": "25.11.2", "SchedulerType": "sched/backfill", "SelectType": "select/cons_tres",
    "AccountingStorageType": "accounting_storage/slurmdbd", "AccountingStorageTRES": "cpu,gres/gpu",
    "AccountingStorageEnforce": "associations", "SlurmUser": "slurm(500)", "KillWait": "30 sec",
    "PreemptType": "preempt/none", "PreemptMode": "OFF", "JobRequeue": "1", "MinJobAge": "300 sec",
    "AuthInfo": "(null)", "SlurmctldParameters": "(null)", "PrivateData": "none",
}  # fmt: skip
FACTS = Facts(
    Config(), Places(Path("/nowhere")), 1000.0, 1000, "ctl", silence="", client="25.11.2", slurm=BASE
)


def facts(
    slurm: Mapping[str, str] | None = None,
    config: Config | None = None,
    uid: int = 1000,
    level: str = "Operator",
) -> Facts:
    """Facts of a sound site, but for these."""
    known = BASE | dict(slurm or {})
    return replace(FACTS, config=config or Config(), uid=uid, admin_level=level, slurm=known)


def worst(found: Finding | Iterable[Finding]) -> Level:
    """The most serious level."""
    levels = {f.level for f in ([found] if isinstance(found, Finding) else found)}
    return next((level for level in (ERROR, WARNING) if level in levels), OK)
