"""Measured throughputs: CSV(.gz) source,gpu_type,placement,model,batch_size,gpus,steps_per_s."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slurm_fair.errors import InputError
from slurm_fair.trace import cells
from slurm_fair.trace.faults import BadCell, Fault, nearest_of, refuse, shown
from slurm_fair.trace.tabular import read_table

CONSOLIDATED, SPREAD = "consolidated", "unconsolidated"
# Gavel's reference type, by which the published traces give run times.
REFERENCE_TYPE = "v100"

Key = tuple[str, str, str, int, int]  # gpu type, placement, model, batch size (0 = none), GPUs


@dataclass(frozen=True, slots=True)
class Throughputs:
    """Steps per second of one source; 0 = it cannot run there."""

    source: str
    sources: tuple[str, ...]  # all that the file holds
    reference_type: str
    rates: Mapping[Key, float]

    def steps_per_second(
        self, model: str, batch_size: int, gpus: int, gpu_type: str = "", placement: str = CONSOLIDATED
    ) -> float | None:
        """The measured rate; without a type that of the reference type; None where it was not measured."""
        return self.rates.get((gpu_type or self.reference_type, placement, model, batch_size, gpus))

    @property
    def gpu_types(self) -> tuple[str, ...]:
        """The types that were measured."""
        return tuple(sorted({key[0] for key in self.rates}))

    @property
    def models(self) -> tuple[str, ...]:
        """The models that were measured."""
        return tuple(sorted({key[2] for key in self.rates}))


def _placement(text: str) -> str:
    if text not in (CONSOLIDATED, SPREAD):
        raise BadCell(f"{shown(text)} must be {CONSOLIDATED} or {SPREAD}")
    return text


def _gpus(text: str) -> int:
    if cells.whole(text) == 0:
        raise BadCell(f"{shown(text)} must be above 0")
    return cells.whole(text)


_PARSERS: dict[str, Callable[[str], Any]] = {
    "source": cells.name,
    "gpu_type": cells.name,
    "placement": _placement,
    "model": cells.name,
    "batch_size": cells.whole_or_zero,
    "gpus": _gpus,
    "steps_per_s": cells.not_negative,
}


def read_throughputs(path: Path, source: str = "", reference_type: str = "") -> Throughputs:
    """One source of a file (the first, unless named); every bad row is refused."""
    rates: dict[str, dict[Key, float]] = {}
    with read_table(path, tuple(_PARSERS)) as rows:
        for row in rows.rows:
            fault = row if isinstance(row, Fault) else _take(rows.columns, *row, rates)
            refuse(path, [fault] if fault else [], "every row must be right")
    if not rates:
        raise InputError(f"{path}: no row below its header: nothing was measured")
    if source and source not in rates:
        raise InputError(f"{path}: no source {shown(source)}; {nearest_of(source, rates)}")
    chosen = rates[source or next(iter(rates))]
    types = list(dict.fromkeys(key[0] for key in chosen))
    if reference_type and reference_type not in types:
        raise InputError(f"{path}: no GPU type {shown(reference_type)}; {nearest_of(reference_type, types)}")
    usual = REFERENCE_TYPE if REFERENCE_TYPE in types else types[0]
    return Throughputs(source or next(iter(rates)), tuple(rates), reference_type or usual, chosen)


def _take(
    columns: tuple[str, ...], place: str, row: list[str], rates: dict[str, dict[Key, float]]
) -> Fault | None:
    values: dict[str, Any] = {}
    for name, text in zip(columns, row, strict=True):
        try:
            values[name] = _PARSERS.get(name, cells.words)(text)
        except BadCell as bad:
            return Fault(place, name, bad.what)
    key = (values["gpu_type"], values["placement"], values["model"], values["batch_size"], values["gpus"])
    of_source = rates.setdefault(values["source"], {})
    if key in of_source:
        return Fault(place, "row", "the same configuration is there twice: keep one of them")
    of_source[key] = values["steps_per_s"]
    return None
