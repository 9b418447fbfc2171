"""The progress of a job in sentences: what it reports, what of it is believed, and how long it still takes."""

from __future__ import annotations

import math

from slurm_fair.board.row import Row
from slurm_fair.cli.table import clean, duration


def said_of_progress(row: Row) -> list[str]:
    """No line where nobody knows anything."""
    return [*_of_report(row), *_of_what_is_left(row), *_of_class(row)]


def _of_report(row: Row) -> list[str]:
    said = row["reported"]
    if said is None:
        return []
    parts = [
        _part("step", said["step"], said["steps"]),
        _part("epoch", said["epoch"], said["epochs"]),
        _number(said["steps_per_second"], "steps/s"),
        _number(said["samples_per_second"], "samples/s"),
        _number(said["batch_size"], "samples a step"),
    ]
    progress = ", ".join(part for part in parts if part) or "that it runs"
    unit = "epoch" if said["step"] is None else "step"
    believed = ""
    if said["clamped"] and said["believed"] is not None:
        believed = (
            f"; believed: {unit} {said['believed']:.6g}, as fast as jobs of its class have been seen to be"
        )
    return [f"it reported {progress} ({duration(said['age_seconds'])} ago){believed}"]


def _part(unit: str, done: float | None, whole: float | None) -> str:
    if done is None:
        return ""
    return f"{unit} {done:.6g}" + (f" of {whole:.6g}" if whole is not None else "")


def _number(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:.4g} {unit}"


def _of_what_is_left(row: Row) -> list[str]:
    left, deviation = row["left_seconds"], row["left_spread"]
    if left is None:
        return []
    if deviation is None:
        return [f"about {duration(left)} of its work is left"]
    span = f"{duration(left / math.exp(deviation))} to {duration(left * math.exp(deviation))}"
    return [f"jobs like it that ended would have about {duration(left)} left ({span})"]


def _of_class(row: Row) -> list[str]:
    return [f"its speed is known by its class: {clean(row['job_class'])}"] if row["job_class"] else []
