"""The answers of a planning process: tuples of a word, the number of the question, and what is said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from slurm_fair.model import Explanation, Placement, Plan, Verdict
from slurm_fair.model.columns import check_lengths

READY, FAILED = "ready", "failed"  # at its start
QUICK, PLAN, RAISED = "quick", "plan", "raised"
_WHOLE = ("row", "node", "gpus", "reason", "rank")


def plan_data(plan: Plan) -> dict[str, Any]:
    """A plan as plain data, with its explanation worked out."""
    said, places = plan.explanation, plan.places
    return {
        "verdict": plan.verdict,
        "row": places.row,
        "node": places.node,
        "gpus": places.gpus,
        "reason": said.reason,
        "rank": said.rank,
        "score": said.score,
        "reasons": said.reasons,
        "memory": _as_kept(plan.memory),
        "reserve_after": plan.reserve_after,
    }


def _as_kept(value: Any) -> Any:
    """The memory as it comes back from the journal: mappings, lists and tuples of no kind of their own."""
    if isinstance(value, Mapping):
        return {key: _as_kept(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_as_kept(inner) for inner in value]
    if isinstance(value, tuple) and not type(value).__module__.startswith("slurm_fair.model."):
        return tuple(_as_kept(inner) for inner in value)
    return value


def plan_of(parts: Any) -> Plan:
    """The plan that parts make; ValueError for what is none."""
    if not isinstance(parts, Mapping):
        raise ValueError("it is no plan")
    whole = {name: _column(parts.get(name), name, "iu").astype(np.int64) for name in _WHOLE}
    verdict = _column(parts.get("verdict"), "verdict", "iu").astype(np.int8)
    score = _column(parts.get("score"), "score", "fiu").astype(np.float64)
    reasons, memory = parts.get("reasons"), parts.get("memory")
    if not isinstance(reasons, tuple) or not all(isinstance(text, str) for text in reasons):
        raise ValueError("its reasons are no texts")
    if not isinstance(memory, Mapping):
        raise ValueError("its memory is no mapping")
    _within(verdict, 0, len(Verdict), "verdict")
    _within(whole["reason"], 0, len(reasons), "reason")
    _within(whole["row"], 0, len(verdict), "row")
    why = Explanation(whole["reason"], whole["rank"], score, reasons)
    places = Placement(whole["row"], whole["node"], whole["gpus"])
    check_lengths(places)
    after = parts.get("reserve_after")
    if after is not None:
        after = _column(after, "reserve_after", "fiu").astype(np.float64)
        if len(after) != len(verdict):
            raise ValueError(f"its reserve_after has {len(after)} entries, its verdict {len(verdict)}")
    return Plan(verdict, places, why, memory, reserve_after=after)


def _column(value: Any, name: str, kinds: str) -> np.ndarray[Any, Any]:
    if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind not in kinds:
        raise ValueError(f"its {name} is no column of numbers")
    return value


def _within(column: np.ndarray[Any, Any], least: int, most: int, name: str) -> None:
    if column.size and (column.min() < least or column.max() >= most):
        raise ValueError(f"its {name} holds numbers that mean nothing")
