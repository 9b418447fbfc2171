"""A tenant's account at one instant: two of them give a report over the period between."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TenantMoment:
    """Integrals in GPU-seconds since the beginning, counts in GPUs now."""

    time: float
    tenant: str
    weight: float
    had: float
    owed_quota: float
    owed_demand: float
    gpus: float  # held now
    demand: float  # wanted now, running and waiting
