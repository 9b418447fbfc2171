"""Tables of outcomes for tests: one call a job, unsaid things unknown."""

from __future__ import annotations

from typing import Any

import numpy as np

from slurm_fair.ledger import Outcomes
from slurm_fair.model.columns import Floats

NAN = float("nan")
_WHOLE = ("key", "tenant", "user", "app", "gpus", "runs", "preemptions", "restarts")


def floats(*values: float) -> Floats:
    return np.array(values, dtype=np.float64)


def row(submit: float = 0.0, end: float = NAN, gpus: int = 1, **known: Any) -> dict[str, Any]:
    """One job of the first tenant; it runs from its submission to its end unless `ran` says otherwise."""
    return {"submit": submit, "end": end, "gpus": gpus, "tenant": 0, **known}


def table(*rows: dict[str, Any], until: float | None = None, tenants: tuple[str, ...] = ("a",)) -> Outcomes:
    """Keys 1, 2, 3, ... in the order of the rows; a column that one row names must be named by all."""
    columns: dict[str, Any] = {"key": np.arange(1, len(rows) + 1)}
    for name in rows[0] if rows else row():
        kind = bool if name == "completed" else np.int64 if name in _WHOLE else np.float64
        columns[name] = np.array([each[name] for each in rows], dtype=kind)
    ends = [each["end"] for each in rows if each["end"] == each["end"]]
    now = until if until is not None else max(ends, default=0.0)
    return Outcomes.given(tenants=tenants, until=now, **columns)
