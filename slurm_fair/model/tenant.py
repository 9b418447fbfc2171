"""The tenants: Slurm accounts with their weights."""

from __future__ import annotations

from dataclasses import dataclass

from slurm_fair.model.columns import Columns, Floats

LEAST_WEIGHT = 1e-12  # what is divided by less than this, and then squared, is beyond any number


@dataclass(frozen=True)
class TenantTable(Columns):
    """One row per account that has a job in the snapshot or a share in Slurm, sorted by name.

    It seldom changes between two looks, so values worked out from it are kept with it: no slots.
    """

    names: tuple[str, ...]
    weight: Floats
