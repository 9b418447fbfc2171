"""Samples of speeds for tests: rows as dicts with quiet defaults, and jobs of a known law."""

from __future__ import annotations

from typing import Any

import numpy as np

from slurm_fair.model.columns import Floats
from slurm_fair.throughput import (
    Ends,
    Estimator,
    JobClass,
    JobShapes,
    Keeping,
    Known,
    Links,
    Predictions,
    Samples,
    estimator,
    learned,
    predicted,
)

NAN = float("nan")
DAY = 86_400.0
BERT = JobClass("lab", "model=bert")
OTHER = JobClass("rival", "model=bert")
_QUIET: dict[str, Any] = {
    "cls": BERT, "kind": "a100", "node": "", "gpus": 1, "nodes": 1, "most": 0, "job": 1, "time": 0.0,
    "rate": 100.0, "batch_size": NAN,
    "data": NAN, "forward": NAN, "backward": NAN, "update": NAN, "sync": NAN, "pattern": 0,
}  # fmt: skip
_WHOLE = ("gpus", "nodes", "most", "job")


def samples(*rows: dict[str, Any]) -> Samples:
    """One sample per dict."""
    full = [{**_QUIET, **row} for row in rows]
    classes = tuple(dict.fromkeys(row["cls"] for row in full))
    kinds = tuple(dict.fromkeys(row["kind"] for row in full))
    nodes = tuple(dict.fromkeys(row["node"] for row in full if row["node"]))
    columns: dict[str, Any] = {
        name: np.array([row[name] for row in full], dtype=np.int64 if name in _WHOLE else np.float64)
        for name in _QUIET
        if name not in ("cls", "kind", "node", "pattern")
    }
    return Samples(
        job_class=np.array([classes.index(row["cls"]) for row in full], dtype=np.int64),
        gpu_type=np.array([kinds.index(row["kind"]) for row in full], dtype=np.int64),
        node=np.array([nodes.index(row["node"]) if row["node"] else -1 for row in full], dtype=np.int64),
        pattern=np.array([row["pattern"] for row in full], dtype=np.int8),
        classes=classes,
        gpu_types=kinds,
        node_names=nodes,
        **columns,
    )


def ends(seconds: list[float], cls: JobClass = BERT, time: float = 0.0, job: int = 1) -> Ends:
    """Jobs that ended after so long."""
    many = len(seconds)
    zeros = np.zeros(many, dtype=np.int64)
    return Ends(
        zeros, zeros - 1, zeros + 1, job + np.arange(many), np.full(many, time), np.array(seconds), (cls,)
    )


def knowing(
    *rows: dict[str, Any], now: float = 0.0, keeping: Keeping | None = None, links: Links | None = None
) -> Estimator:
    """The estimator that learned these."""
    keeping = keeping or Keeping()
    known = learned(Known(), samples(*rows), now, keeping)
    return estimator(known, links or Links.unknown(), now, keeping)


def asked(
    of: Estimator,
    *shapes: tuple[int, int],
    cls: JobClass = BERT,
    kind: str = "a100",
    node: str = "",
    batch: float = NAN,
) -> Predictions:
    """Predictions for (GPUs, nodes)."""
    count = len(shapes)
    zeros = np.zeros(count, dtype=np.int64)
    gpus, nodes = np.array(shapes, dtype=np.int64).reshape(-1, 2).T
    names = (node,) if node else ()
    return predicted(
        of,
        JobShapes(
            zeros, zeros, gpus, nodes, zeros, np.full(count, batch), zeros - (not node), (cls,), (kind,), names
        ),
    )  # fmt: skip


def law(
    gpus: Floats | int, nodes: Floats | int, one: float = 0.2, link: float = 0.02, net: float = 0.3
) -> Floats:
    """Seconds of a step of a made-up job: eq. 1 of pattern 1 without data, half of it backward propagation."""
    gpus, nodes = np.asarray(gpus, dtype=np.float64), np.asarray(nodes, dtype=np.float64)
    communication = np.where(nodes > 1, net, link) * (gpus - 1) / gpus
    back = np.maximum(0.5 * one + 0.2 * communication, communication)
    seconds: Floats = back + 0.5 * one
    return seconds


def measured(gpus: int, nodes: int, batch: float = 32.0, **changed: Any) -> dict[str, Any]:
    """A sample of that job."""
    rate = gpus * batch / float(law(gpus, nodes))
    return {"gpus": gpus, "nodes": nodes, "rate": rate, "batch_size": gpus * batch, **changed}
