"""The columns of a board that say how far jobs are: what they report, how much of it is believed, what is left."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from slurm_fair.model import Reported, Snapshot

# Numbers of a report as a board has them.
_NUMBERS = (
    "step", "steps", "epoch", "epochs", "steps_per_second", "samples_per_second", "batch_size", "believed",
)  # fmt: skip


def progress_columns(snapshot: Snapshot) -> dict[str, list[Any]]:
    """The report of each job, how much of it is left, and the class by which its speed is known."""
    rows, told, speeds = len(snapshot.jobs), snapshot.told, snapshot.speeds
    left = [None] * rows if told is None else known(told.left_seconds)
    deviation = [None] * rows if told is None else known(told.left_spread)
    classes = [""] * rows if speeds is None else [*speeds.classes, ""]
    number = range(rows) if speeds is None else speeds.job_class.tolist()
    return {
        "reported": _reports(snapshot.reported, snapshot),
        "left_seconds": left,
        "left_spread": deviation,
        "job_class": [classes[at] for at in number],
    }


def _reports(reported: Reported | None, snapshot: Snapshot) -> list[Mapping[str, Any] | None]:
    found: list[Mapping[str, Any] | None] = [None] * len(snapshot.jobs)
    if reported is None:
        return found
    columns = {name: known(getattr(reported, name)) for name in _NUMBERS}
    ages = (snapshot.time - reported.written).tolist()
    for at, row in enumerate(reported.row.tolist()):
        numbers = {name: column[at] for name, column in columns.items()}
        found[row] = {
            **numbers,
            "clamped": bool(reported.clamped[at]),
            "age_seconds": max(ages[at], 0.0),
        }
    return found


def known(values: np.ndarray[Any, Any]) -> list[Any]:
    """The numbers as JSON has them: None where there is none."""
    return [value if math.isfinite(value) else None for value in values.tolist()]
