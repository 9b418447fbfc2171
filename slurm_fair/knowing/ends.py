"""Run times of jobs that ended, out of the events of a tick."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from slurm_fair.knowing.classes import NO_CLASS
from slurm_fair.model import Event, EventKind
from slurm_fair.model.end_words import COMPLETED
from slurm_fair.throughput import Ends, JobClass


def ends_of(events: Iterable[Event], class_of_job: Callable[[int], JobClass], now: float) -> Ends:
    """The jobs that ended well and whose class is known. Their GPU types are not asked: often they are several."""
    rows: list[tuple[JobClass, int, int, float, float]] = []
    for event in events:
        seconds: Any = event.detail.get("ran", 0.0)
        if event.kind != EventKind.FINISHED or event.detail.get("state") != COMPLETED or not seconds > 0:
            continue
        job_class = class_of_job(event.key)
        if job_class != NO_CLASS:
            rows.append((job_class, event.gpus, event.key, min(event.time, now), float(seconds)))
    classes = tuple(dict.fromkeys(row[0] for row in rows))
    number = {name: at for at, name in enumerate(classes)}
    return Ends(
        job_class=np.array([number[row[0]] for row in rows], dtype=np.int64),
        gpu_type=np.full(len(rows), -1),
        gpus=np.array([row[1] for row in rows], dtype=np.int64),
        job=np.array([row[2] for row in rows], dtype=np.int64),
        time=np.array([row[3] for row in rows], dtype=np.float64),
        seconds=np.array([row[4] for row in rows], dtype=np.float64),
        classes=classes,
    )
