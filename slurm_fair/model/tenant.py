"""The tenants: Slurm accounts with their weights."""

from __future__ import annotations

from dataclasses import dataclass

from slurm_fair.model.columns import Columns, Floats


@dataclass(frozen=True, slots=True)
class TenantTable(Columns):
    """One row per account that has a job in the snapshot or a share in Slurm, sorted by name."""

    names: tuple[str, ...]
    weight: Floats
