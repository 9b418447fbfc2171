"""A board for everybody on a site that hides jobs and people from each other: numbers and job ids, no names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NOTE = "names, tenants and reasons are left out: Slurm's PrivateData hides them"
_CLOSED = frozenset(
    {"job", "by", "state", "slurm_state", "verdict", "blocked", "lease", "policy"}
)  # their values are ids or words of ours
_REASON = "the reason may name other jobs, which Slurm's PrivateData hides"
_SAID = {"why": _REASON, "reason": "is left to plain Slurm"}
_LEFT_OUT = ("tenants", "nodes_out")


def nameless(document: Mapping[str, Any]) -> dict[str, Any]:
    """The same keys with the texts that cannot name anybody, and nothing about tenants and nodes."""
    kept = {name: _bare(name, value) for name, value in document.items()}
    kept["jobs"] = [{**job, "decided": None} for job in kept.get("jobs", ())]  # the number is a tenant's
    return kept | dict.fromkeys(_LEFT_OUT, ()) | {"note": NOTE}


def _bare(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return value if name in _CLOSED else _SAID.get(name, "")
    if isinstance(value, Mapping):
        return {key: _bare(key, inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_bare(name, inner) for inner in value]
    return value
