"""Tenants' weights: CSV name,share."""

from __future__ import annotations

from pathlib import Path

from slurm_fair.errors import InputError
from slurm_fair.trace import cells
from slurm_fair.trace.faults import BadCell, Fault, refuse, shown
from slurm_fair.trace.tabular import read_table


def read_weights(path: Path) -> dict[str, float]:
    """Weight by tenant, in the file's order; every bad row is refused."""
    weights: dict[str, float] = {}
    with read_table(path, ("name", "share"), {"tenant": "name", "weight": "share"}) as rows:
        at_name, at_share = rows.columns.index("name"), rows.columns.index("share")
        for row in rows.rows:
            fault = (
                row if isinstance(row, Fault) else _take(row[0], row[1][at_name], row[1][at_share], weights)
            )
            refuse(path, [fault] if fault else [], "every row must be right")
    if not weights:
        raise InputError(f"{path}: no row below its header: give a name and a share for each tenant")
    return weights


def _take(place: str, name: str, share: str, weights: dict[str, float]) -> Fault | None:
    try:
        tenant = cells.name(name)
    except BadCell as bad:
        return Fault(place, "name", bad.what)
    if tenant in weights:
        return Fault(place, "name", f"{shown(tenant)} is there twice: keep one of them")
    try:
        weights[tenant] = cells.weight(share)
    except BadCell as bad:
        return Fault(place, "share", bad.what)
    return None
