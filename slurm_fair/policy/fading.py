"""Fairness that fades: what tenants had and were owed counts the less for choosing, the longer ago it was.

The ledger itself forgets nothing, and reports tell all of it. Beside it, a plan's memory keeps each tenant's sums
as they have faded: half of them is left after a half-life. Between two plans they change by what the ledger says
came to it, spread evenly over that time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from slurm_fair.ledger.formulas import faded_parts
from slurm_fair.model import TenantAccounts
from slurm_fair.model.columns import Floats
from slurm_fair.policy.view import View

_FADED = "faded"  # in a plan's memory
_SUMS = ("had", "owed_quota", "owed_demand")


def with_fading(view: View, half_life_seconds: float) -> View:
    """The view in which tenants are compared by what is left of their sums; 0 = all of it, for ever."""
    if half_life_seconds <= 0:
        return view
    accounts, kept = view.ledger.tenants, view.memory.get(_FADED)
    if not kept:
        return replace(view, fading=accounts)
    left, added = faded_parts(view.now - float(kept["time"]), half_life_seconds)
    known = {name: row for row, name in enumerate(kept["tenants"])}
    rows = np.array([known.get(name, -1) for name in accounts.names], dtype=np.int64)
    sums = {
        name: left * _of(kept["faded"][name], rows)
        + added * (getattr(accounts, name) - _of(kept["all"][name], rows))
        for name in _SUMS
    }
    return replace(
        view, fading=accounts.with_columns(**{name: np.maximum(sums[name], 0.0) for name in _SUMS})
    )


def _of(column: list[float], rows: np.ndarray[Any, np.dtype[np.int64]]) -> Floats:
    """The numbers kept of these tenants; 0 of one that is new."""
    values = np.array([*column, 0.0])
    return np.where(rows >= 0, values[rows], 0.0)


def with_faded(memory: Mapping[str, Any], view: View) -> Mapping[str, Any]:
    """A plan's memory with the sums as they are at this view."""
    fading = view.fading
    if fading is None:
        return {name: kept for name, kept in memory.items() if name != _FADED} if _FADED in memory else memory
    return {
        **memory,
        _FADED: {
            "time": view.now,
            "tenants": list(fading.names),
            "faded": _columns(fading),
            "all": _columns(view.ledger.tenants),
        },
    }


def _columns(accounts: TenantAccounts) -> dict[str, list[float]]:
    return {name: getattr(accounts, name).tolist() for name in _SUMS}
