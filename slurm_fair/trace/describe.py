"""Describe a trace in numbers: docs/schema/trace-describe.json says what each means."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from slurm_fair.model.columns import Floats, Ints
from slurm_fair.trace.read import Reading
from slurm_fair.trace.status import End
from slurm_fair.trace.table import Trace

_QUANTILES = (0, 50, 95, 100)


@dataclass(frozen=True, slots=True)
class Size:
    """Jobs that ask for one number of GPUs."""

    gpus: int  # a part of a GPU counts as one
    jobs: int
    gpu_seconds: float


@dataclass(frozen=True, slots=True)
class TenantPart:
    """The part of a trace that one tenant asks for."""

    tenant: str
    jobs: int
    gpu_seconds: float
    share: float  # of all GPU-time


@dataclass(frozen=True, slots=True)
class Description:
    """All of it; None for what cannot be said."""

    jobs: int
    tenants: int
    users: int
    models: int
    bad_rows: int
    span_s: float  # from the first submission to the last
    arrivals_per_hour: float | None
    gpu_seconds: float
    jobs_without_duration: int
    jobs_with_fractional_gpus: int
    max_gpus: float
    duration_min_s: float | None
    duration_p50_s: float | None
    duration_p95_s: float | None
    duration_max_s: float | None
    cluster_gpus: float | None
    load: float | None  # GPU-time asked for / GPU-time that the cluster has over the span
    statuses: dict[str, int]
    sizes: tuple[Size, ...]
    per_tenant: tuple[TenantPart, ...]

    def document(self) -> dict[str, Any]:
        """The description as JSON holds it."""
        return asdict(self) | {
            "sizes": [asdict(size) for size in self.sizes],
            "per_tenant": [asdict(part) for part in self.per_tenant],
        }


def describe(reading: Reading, cluster_gpus: float | None = None) -> Description:
    """The numbers of a trace, against a cluster of so many GPUs of the reference type."""
    trace = reading.trace
    asked = np.nan_to_num(trace.gpu_seconds)
    total = float(asked.sum())
    span = float(trace.submit_s.max() - trace.submit_s.min()) if len(trace) else 0.0
    known = trace.duration_s[~np.isnan(trace.duration_s)]
    low, middle, high, top = _quantiles(known)
    return Description(
        jobs=len(trace),
        tenants=len(np.unique(trace.tenant)),
        users=len(np.unique(trace.user)),
        models=len(np.unique(trace.model[trace.model >= 0])),
        bad_rows=len(reading.bad),
        span_s=span,
        arrivals_per_hour=(len(trace) - 1) * 3600 / span if span else None,
        gpu_seconds=total,
        jobs_without_duration=len(trace) - len(known),
        jobs_with_fractional_gpus=int(trace.fractional.sum()),
        max_gpus=float(trace.gpus.max()) if len(trace) else 0.0,
        duration_min_s=low,
        duration_p50_s=middle,
        duration_p95_s=high,
        duration_max_s=top,
        cluster_gpus=cluster_gpus,
        load=total / (cluster_gpus * span) if cluster_gpus and span else None,
        statuses={end.name: int((trace.status == end).sum()) for end in End if (trace.status == end).any()},
        sizes=_sizes(trace.whole_gpus, asked),
        per_tenant=_tenants(trace, asked, total),
    )


def _quantiles(values: Floats) -> list[float | None]:
    if not len(values):
        return [None] * len(_QUANTILES)
    return [float(value) for value in np.percentile(values, _QUANTILES)]


def _sizes(gpus: Ints, asked: Floats) -> tuple[Size, ...]:
    sizes, place = np.unique(gpus, return_inverse=True)
    jobs, seconds = np.bincount(place), np.bincount(place, weights=asked)
    return tuple(map(Size, sizes.tolist(), jobs.tolist(), seconds.tolist()))


def _tenants(trace: Trace, asked: Floats, total: float) -> tuple[TenantPart, ...]:
    """Tenants, the one with the most GPU time first."""
    codes, place = np.unique(trace.tenant, return_inverse=True)
    jobs, seconds = np.bincount(place), np.bincount(place, weights=asked)
    shares = seconds / total if total else np.zeros(len(seconds))
    names = [trace.tenants[code] for code in codes.tolist()]
    parts = map(TenantPart, names, jobs.tolist(), seconds.tolist(), shares.tolist())
    return tuple(sorted(parts, key=lambda part: (-part.gpu_seconds, -part.jobs, part.tenant)))
