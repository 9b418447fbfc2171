"""Rows of text become a Trace: the one place where a job's cells are checked, whatever file they are from."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from slurm_fair.model.columns import DTYPES, Ints
from slurm_fair.trace import cells
from slurm_fair.trace.faults import BadCell, nearest_of, shown
from slurm_fair.trace.status import end_of
from slurm_fair.trace.table import OPTIONAL, REQUIRED, Mode, Trace
from slurm_fair.trace.throughputs import Throughputs

_NUMBERED = re.compile(r"(.+?)-[0-9]+")
_WITH_BATCH = re.compile(r"(.+?) \(batch size ([0-9]{1,9})\)")


def _mode(text: str) -> Mode:
    found = Mode.__members__.get(text.upper()) if text else Mode.STATIC
    if found is None:
        raise BadCell(f"{shown(text)} is no mode; {nearest_of(text, map(str.lower, Mode.__members__))}")
    return found


_PARSERS: dict[str, Callable[[str], Any]] = {
    "job_id": cells.name,
    "tenant": cells.name,
    "submit_s": cells.read_instant,
    "gpus": cells.positive,
    "duration_s": cells.duration_or_nan,
    "user": cells.words,
    "gpu_type": cells.words,
    "model": cells.words,
    "status": end_of,
    "weight": cells.weight_or_one,
    "gpus_choices": cells.choices,
    "app": cells.words,
    "mode": _mode,
    "batch_size": cells.whole_or_zero,
    "epochs": cells.whole_or_zero,
    "samples": cells.whole_or_zero,
    "total_steps": cells.whole_or_zero,
    "sensitivity": cells.one_or_more_or_nan,
    "node_count": cells.whole_or_zero,
    "declared_s": cells.duration_or_nan,
    "epoch_seconds": cells.duration_or_nan,
}
_ABSENT = {name: _PARSERS[name]("") for name in OPTIONAL}
_COMPLETED = ("user", "model", "batch_size")  # may follow from other cells


@dataclass(frozen=True, slots=True)
class ColumnRules:
    """The columns that each job must have; without needed durations a job may lack its run time."""

    throughputs: Throughputs | None = None
    need_durations: bool = True


@dataclass(slots=True)
class Collector:
    """Takes rows one by one and keeps only values: strings of a large trace would fill the memory."""

    columns: Sequence[str]  # of the rows to come
    rules: ColumnRules = ColumnRules()
    _seen: dict[str, str] = field(default_factory=dict)  # job id -> place
    _values: dict[str, list[Any]] = field(default_factory=dict)
    _plan: list[tuple[str, Callable[[str], Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._plan = [(name, _PARSERS.get(name, cells.free)) for name in self.columns]
        self._values = {name: [] for name in (*REQUIRED, *_COMPLETED, *self.columns)}

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, place: str, row: Sequence[str]) -> None:
        """One job; BadCell, with its column, when it cannot be used."""
        job, name = dict(_ABSENT), ""
        try:
            for (name, parse), text in zip(self._plan, row, strict=True):
                job[name] = parse(text)
        except BadCell as bad:
            raise BadCell(bad.what, name) from None
        self._complete(job)
        first = self._seen.setdefault(job["job_id"], place)
        if first is not place:
            raise BadCell(
                f"{shown(job['job_id'])} is there twice, first at {first.lstrip(': ')}: "
                "give each job its own",
                "job_id",
            )
        for name, column in self._values.items():
            column.append(job[name])

    def add_together(self, rows: Sequence[tuple[str, Sequence[str]]]) -> bool:
        """Many jobs, column by column: false, with nothing added, where one needs to be looked at by itself."""
        texts = dict(zip(self.columns, zip(*(row for _, row in rows), strict=True), strict=True))
        try:
            values = {name: _parsed(parse, texts[name]) for name, parse in self._plan}
        except BadCell:
            return False
        ids, nothing = values["job_id"], [""] * len(rows)
        alone = len(set(ids)) == len(ids) and self._seen.keys().isdisjoint(ids)
        follows = any(map(math.isnan, values["duration_s"])) or any(
            model.endswith(")") for model in set(values.get("model", ()))
        )
        if follows or not alone:
            return False
        of = zip(values.get("user", nothing), values["tenant"], strict=True)
        values["user"] = [user or tenant for user, tenant in of]
        self._seen.update(zip(ids, (place for place, _ in rows), strict=True))
        for name, column in self._values.items():
            column += values[name] if name in values else [_ABSENT[name]] * len(rows)
        return True

    def _complete(self, job: dict[str, Any]) -> None:
        """Fill in what follows from other cells: user from tenant, batch size and model from names, run time."""
        job["user"] = job["user"] or job["tenant"]
        if job["model"].endswith(")"):
            named = _WITH_BATCH.fullmatch(job["model"])
            if named and job["batch_size"] in (0, int(named[2])):
                job["model"], job["batch_size"] = named[1], int(named[2])
        if not math.isnan(job["duration_s"]):
            return
        numbered = _NUMBERED.fullmatch(job.get("name", ""))
        job["model"] = job["model"] or (cells.words(numbered[1]) if numbered else "")
        if self.rules.throughputs is not None:
            job["duration_s"] = _run_time(job, self.rules.throughputs)
        if math.isnan(job["duration_s"]) and self.rules.need_durations:
            raise BadCell(_no_run_time(job, self.rules.throughputs), "duration_s")

    def trace(self) -> Trace:
        """All rows so far, in order of submission; jobs submitted at once stay in the file's order."""
        of, count = self._values, len(self)
        columns: dict[str, Any] = {
            name: np.array(of[name], dtype) if name in of else np.full(count, _ABSENT[name], dtype)
            for name, dtype in _DTYPES.items()
        }
        for name in ("tenant", "user", "gpu_type", "model", "app"):
            columns[name], columns[f"{name}s"] = _coded(of.get(name, []), "", count)
        columns["choice_set"], columns["choice_sets"] = _coded(of.get("gpus_choices", []), (), count)
        further = {
            name: np.array(of[name], dtype=np.object_) for name in self.columns if name not in _PARSERS
        }
        trace = Trace(**columns, further=further)
        in_order = bool((trace.submit_s[1:] >= trace.submit_s[:-1]).all())
        return trace if in_order else trace.take(np.argsort(trace.submit_s, kind="stable"))


_CODED = ("tenant", "user", "gpu_type", "model", "app", "choice_set")
_DTYPES: dict[str, type[np.generic]] = {
    name: DTYPES[str(kind)]
    for name, kind in Trace.__annotations__.items()
    if str(kind) in DTYPES and name not in _CODED
}


def _parsed(parse: Callable[[str], Any], texts: Sequence[str]) -> list[Any]:
    """The value of each text; one that is there often is parsed once."""
    value = {text: parse(text) for text in set(texts)}
    return [value[text] for text in texts]


def _coded(values: Sequence[Any], nothing: Hashable, count: int) -> tuple[Ints, tuple[Any, ...]]:
    """Each value as its place among the sorted distinct ones; -1 for nothing, and where there are no values."""
    if not values:
        return np.full(count, -1), ()
    names: tuple[Any, ...] = tuple(sorted(set(values) - {nothing}))
    place = {name: at for at, name in enumerate(names)} | {nothing: -1}
    return np.array([place[value] for value in values], dtype=np.int64), names


def _run_time(job: dict[str, Any], throughputs: Throughputs) -> float:
    """Steps over steps per second; NaN where either is not known."""
    batch, steps = job["batch_size"], job["total_steps"]
    if not steps and batch:
        steps = job["epochs"] * math.ceil(job["samples"] / batch)
    rate = throughputs.steps_per_second(job["model"], batch, math.ceil(job["gpus"]))
    seconds = steps / rate if steps and rate else math.nan
    return seconds if seconds <= cells.CENTURY else math.nan


def _no_run_time(job: dict[str, Any], throughputs: Throughputs | None) -> str:
    if not job["model"]:
        return "is empty, and no model is named: give the run time in seconds"
    if throughputs is None:
        return "is empty: give the run time in seconds, or throughputs of the models"
    kind = f"model {shown(job['model'])}, batch size {job['batch_size'] or 'any'}, {job['gpus']:g} GPUs"
    rate = throughputs.steps_per_second(job["model"], job["batch_size"], math.ceil(job["gpus"]))
    if rate is None:
        return f"is empty, and the throughputs have no row for {kind}: add one, or give the run time"
    if not rate:
        reference = throughputs.reference_type
        return f"is empty, and the throughputs say that {kind} cannot run on {reference}: give the run time"
    return "is empty, and so are total_steps, or epochs with samples and batch_size: give one of them"
