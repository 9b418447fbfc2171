"""Regimes: how jobs change their batch size while they run, as JSON lines (.jsonl or .jsonl.gz).

{"job_id", "model", "mode", "gpus", "samples_per_epoch", "regimes_epochs_batch_secperepoch": [[epochs, batch size,
seconds per epoch], ...]}, one object a job.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slurm_fair.errors import InputError
from slurm_fair.trace import cells
from slurm_fair.trace.faults import BadCell, Fault, nearest_of, refuse, shown
from slurm_fair.trace.files import reading
from slurm_fair.trace.table import Mode, Trace

REGIMES = "regimes_epochs_batch_secperepoch"
_ROUNDING = 0.01  # run times are written with few digits, and so are seconds per epoch
_KEYS = ("job_id", "model", "mode", "gpus", "samples_per_epoch", REGIMES)


@dataclass(frozen=True, slots=True)
class Regime:
    """Epochs in a row with one batch size."""

    epochs: int
    batch_size: int
    seconds_per_epoch: float

    @property
    def seconds(self) -> float:
        """Seconds that the regime lasts on the asked-for GPUs."""
        return self.epochs * self.seconds_per_epoch


@dataclass(frozen=True, slots=True)
class JobRegimes:
    """The regimes of one job, in order."""

    job_id: str
    model: str
    mode: Mode
    gpus: float
    samples_per_epoch: int
    regimes: tuple[Regime, ...]

    @property
    def epochs(self) -> int:
        """Epochs of the whole job."""
        return sum(regime.epochs for regime in self.regimes)

    @property
    def seconds(self) -> float:
        """The run time of the whole job on the asked-for GPUs, adaptation included."""
        return math.fsum(regime.seconds for regime in self.regimes)


def read_regimes(path: Path) -> dict[str, JobRegimes]:
    """Regimes by job id; every bad line is refused."""
    found: dict[str, JobRegimes] = {}
    with reading(path) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                job = _job(_object(line))
                if job.job_id in found:
                    raise BadCell(f"{shown(job.job_id)} is there twice: keep one of them", "job_id")
            except BadCell as bad:
                refuse(path, [Fault(f":{number}", bad.column, bad.what)], "every line must be right")
            else:
                found[job.job_id] = job
    if not found:
        raise InputError(f"{path}: no line in it: give one JSON object for each job")
    return found


def refuse_foreign(path: Path, found: Mapping[str, JobRegimes], trace: Trace, *, whole: bool) -> None:
    """Regimes that are not those of this trace: each job's must add up to what the trace says of it.

    With `whole`, every job of the file must be in the trace: no row of the trace was left out.
    """
    row_of = {str(name): row for row, name in enumerate(trace.job_id.tolist())}
    strange = [job for job in found if job not in row_of]
    if len(strange) == len(found):
        raise InputError(f"{path}: names no job of the trace: give the regimes of this trace")
    if strange and whole:
        more = f" and {len(strange) - 1} more jobs" if len(strange) > 1 else ""
        raise InputError(
            f"{path}: job {shown(strange[0])}{more} not in the trace: give the regimes of this trace"
        )
    for name, job in found.items():
        wrong = _disagreement(job, trace, row_of[name]) if name in row_of else ""
        if wrong:
            raise InputError(f"{path}: job {shown(name)}: {wrong}: give the regimes of this trace")


def _disagreement(job: JobRegimes, trace: Trace, row: int) -> str:
    """The difference between a job's regimes and from its row of the trace, in one clause."""
    epochs, seconds = int(trace.epochs[row]), float(trace.duration_s[row])
    if epochs and epochs != job.epochs:
        return f"its regimes have {job.epochs} epochs and the trace says {epochs}"
    if abs(job.seconds - seconds) > _ROUNDING * seconds:
        return f"its regimes take {job.seconds:g} s and the trace's duration_s is {seconds:g}"
    if job.gpus != float(trace.gpus[row]):
        return f"its regimes are those of {job.gpus:g} GPUs and the trace says {trace.gpus[row]:g}"
    return ""


def _object(line: str) -> dict[str, Any]:
    try:
        tree = json.loads(line)
    except (ValueError, RecursionError):
        raise BadCell("is no JSON object: write one object on one line", "line") from None
    if not isinstance(tree, dict):
        raise BadCell("is no JSON object: write one object on one line", "line")
    for key in tree:
        if key not in _KEYS:
            raise BadCell(f"unknown key: {nearest_of(key, _KEYS)}", shown(key))
    for key in _KEYS:
        if key not in tree:
            raise BadCell("is missing", key)
    return tree


def _job(tree: Mapping[str, Any]) -> JobRegimes:
    regimes = tree[REGIMES]
    if not isinstance(regimes, list) or not regimes:
        raise BadCell("must be a list of [epochs, batch size, seconds per epoch]", REGIMES)
    return JobRegimes(
        _text(tree, "job_id"),
        _text(tree, "model"),
        _mode(tree["mode"]),
        _number(tree["gpus"], "gpus"),
        _whole(tree["samples_per_epoch"], "samples_per_epoch"),
        tuple(map(_regime, regimes)),
    )


def _regime(value: Any) -> Regime:
    if not isinstance(value, list) or len(value) != 3:
        raise BadCell(f"{_seen(value)} is not [epochs, batch size, seconds per epoch]", REGIMES)
    return Regime(_whole(value[0], REGIMES), _whole(value[1], REGIMES), _number(value[2], REGIMES))


def _seen(value: Any) -> str:
    return shown(repr(value)) if isinstance(value, (str, int, float)) else f"a {type(value).__name__}"


def _text(tree: Mapping[str, Any], key: str) -> str:
    value = tree[key]
    if (
        isinstance(value, bool)
        or not isinstance(value, (str, int))
        or (isinstance(value, int) and abs(value) > cells.MOST)
    ):
        raise BadCell(f"must be a text or a whole number, not {type(value).__name__}", key)
    try:
        return cells.name(str(value).strip())
    except BadCell as bad:
        raise BadCell(bad.what, key) from None


def _mode(value: Any) -> Mode:
    found = Mode.__members__.get(value.upper()) if isinstance(value, str) else None
    if found is None:
        raise BadCell(f"must be one of {', '.join(map(str.lower, Mode.__members__))}", "mode")
    return found


def _number(value: Any, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= cells.MOST:
        raise BadCell(f"{_seen(value)[:80]} must be a number above 0", key)
    return float(value)


def _whole(value: Any, key: str) -> int:
    if _number(value, key) != int(value):
        raise BadCell(f"{_seen(value)} must be a whole number", key)
    return int(value)
