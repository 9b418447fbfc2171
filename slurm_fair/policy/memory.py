"""Numbers that a policy carries from plan to plan, one per job or per tenant, as plain data in its memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from slurm_fair.model.columns import Floats, Ints, find, take_or
from slurm_fair.policy.view import View


def job_numbers(
    view: View,
    name: str,
    rows: Ints,
    default: float = 0.0,
    column: str = "value",
    memory: Mapping[str, Any] | None = None,
) -> Floats:
    """Numbers kept under this name for these rows of the snapshot's jobs; `default` where nothing was.

    `memory` is the view's, unless a fresher one is given.
    """
    return job_columns(view, name, rows, (column,), default, memory)[0]


def job_columns(
    view: View,
    name: str,
    rows: Ints,
    columns: Sequence[str],
    default: float = 0.0,
    memory: Mapping[str, Any] | None = None,
) -> list[Floats]:
    """The same of several columns that were kept together."""
    kept = (view.memory if memory is None else memory).get(name)
    if not kept or not kept["key"]:
        return [np.full(len(rows), default) for _ in columns]
    at = find(np.array(kept["key"], dtype=np.int64), view.snapshot.jobs.key[rows])
    return [take_or(np.array(kept[column], dtype=np.float64), at, default) for column in columns]


def keep_job_numbers(
    view: View, rows: Ints, value: Floats | None = None, **more: Floats
) -> Mapping[str, list[Any]]:
    """One number (or more, in named columns) for each of these rows, for a plan's memory; others are forgotten."""
    key = view.snapshot.jobs.key[rows]
    order = np.argsort(key, kind="stable")
    columns = more if value is None else {"value": value, **more}
    return {"key": key[order].tolist(), **{name: each[order].tolist() for name, each in columns.items()}}


def tenant_numbers(view: View, name: str, default: float = 0.0) -> Floats:
    """Numbers kept under this name for each of the snapshot's tenants."""
    kept = view.memory.get(name, {})
    return np.array([kept.get(tenant, default) for tenant in view.snapshot.tenants.names], dtype=np.float64)


def keep_tenant_numbers(view: View, name: str, values: Floats) -> Mapping[str, float]:
    """One number for each of the snapshot's tenants; what is kept of tenants that are away stays."""
    fresh = dict(zip(view.snapshot.tenants.names, values.tolist(), strict=True))
    return {**view.memory.get(name, {}), **fresh}
