"""Trace CSV out: the required columns, and each other column that says something."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Any

from slurm_fair.errors import InputError
from slurm_fair.model.columns import Ints
from slurm_fair.trace.cells import free
from slurm_fair.trace.files import write_with
from slurm_fair.trace.status import End
from slurm_fair.trace.table import Mode, Trace

ENDINGS = (".csv", ".csv.gz")


def check_target(path: Path) -> Path:
    """Refuse a file that could not be written before any work is done for it."""
    if not path.name.endswith(ENDINGS):
        raise InputError(f"{path}: a trace is written to a name ending in {' or '.join(ENDINGS)}")
    if os.path.isdir(path):
        raise InputError(f"{path}: is a directory: name a file in it")
    if not os.path.isdir(path.parent):
        raise InputError(f"{path.parent}: no such directory: make it first")
    return path


def write_trace(trace: Trace, path: Path) -> None:
    """The file is whole or not there; what read_trace reads back is the same trace, byte for byte alike."""
    fill_file(trace, check_target(path))


def fill_file(trace: Trace, path: Path) -> None:
    """The same into a file of any name, which is to become the trace."""
    columns = columns_of(trace)
    write_with(path, lambda text: write_rows(text, list(columns), zip(*columns.values(), strict=True)))


def write_rows(text: IO[str], header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table as CSV, whose lines end alike on every system."""
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)


def columns_of(trace: Trace) -> dict[str, list[str]]:
    """Each column as text, in the order of the schema."""
    tenants = _names(trace.tenant, trace.tenants)
    users = _names(trace.user, trace.users)
    needed = {
        "job_id": [str(job) for job in trace.job_id],
        "tenant": tenants,
        "submit_s": _numbers(trace.submit_s),
        "gpus": _numbers(trace.gpus),
        "duration_s": _numbers(trace.duration_s),
    }
    optional = {
        "user": ["" if user == tenant else user for user, tenant in zip(users, tenants, strict=True)],
        "gpu_type": _names(trace.gpu_type, trace.gpu_types),
        "model": _names(trace.model, trace.models),
        "status": _words(trace.status, lambda code: End(code).name if code else ""),
        "weight": _numbers(trace.weight) if (trace.weight != 1).any() else [],
        "gpus_choices": _names(trace.choice_set, ["|".join(map(str, sizes)) for sizes in trace.choice_sets]),
        "app": _names(trace.app, trace.apps),
        "mode": _words(trace.mode, lambda code: Mode(code).name.lower() if code else ""),
        **{
            name: _wholes(getattr(trace, name)) for name in ("batch_size", "epochs", "samples", "total_steps")
        },
        "sensitivity": _numbers(trace.sensitivity),
        "node_count": _wholes(trace.node_count),
        "declared_s": _numbers(trace.declared_s),
        "epoch_seconds": _numbers(trace.epoch_seconds),
    }
    telling = {name: column for name, column in optional.items() if any(column)}
    return (
        needed
        | telling
        | {name: [free(str(text)) for text in texts] for name, texts in trace.further.items()}
    )


def number_text(value: float) -> str:
    """The shortest text that reads back as the same number; nothing for NaN."""
    if math.isnan(value):
        return ""
    return str(int(value)) if value == int(value) else repr(value)


def _numbers(values: Any) -> list[str]:
    return [number_text(value) for value in values.tolist()]


def _wholes(values: Ints) -> list[str]:
    return [str(value) if value else "" for value in values.tolist()]


def _names(codes: Ints, names: Sequence[str]) -> list[str]:
    return ["" if code < 0 else names[code] for code in codes.tolist()]


def _words(codes: Any, word: Callable[[int], str]) -> list[str]:
    return [word(code) for code in codes.tolist()]
