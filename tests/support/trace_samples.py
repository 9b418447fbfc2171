"""Samples of the files that traces and what lies beside them are read from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from slurm_fair.errors import InputError
from slurm_fair.trace import Trace, TraceWish, generate, read_throughputs
from slurm_fair.trace.convert import convert
from slurm_fair.trace.write import columns_of

DATA = Path(__file__).parents[1] / "data" / "traces"
OF_SOURCES = {
    "philly": "philly.json",
    "helios": "helios.csv",
    "swf": "log.swf",
    "sacct": "sacct.txt",
    "gavel": "gavel.trace",
    "shockwave": "shockwave.trace",
    "pollux": "workload-3.csv",
    "sia": "philly_list.csv",
}


def converted(source: str) -> list[dict[str, str]]:
    """The sample of a source as a person would read its trace."""
    rates = read_throughputs(DATA / "throughputs.csv") if source == "gavel" else None
    columns = columns_of(convert(source, DATA / OF_SOURCES[source], throughputs=rates).trace)
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def changed(folder: Path, name: str, old: str, new: str) -> Path:
    """A sample with one thing wrong."""
    text = (DATA / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1))
    return folder / name


def refusal(run: Callable[[], object]) -> str:
    """The one line of a refusal; nothing where there was none. Whatever else is raised fails the test."""
    try:
        run()
    except InputError as refused:
        return str(refused)
    return ""


def made(wish: TraceWish, seed: int = 1) -> Trace:
    return generate(wish, np.random.default_rng(seed))
