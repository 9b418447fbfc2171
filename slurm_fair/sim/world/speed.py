"""Speeds of jobs by GPU type and by placement: as measured, else as users and machines say."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model.columns import Floats
from slurm_fair.trace import Machines, Throughputs, Trace
from slurm_fair.trace.cluster import USUAL_TYPE
from slurm_fair.trace.throughputs import SPREAD


def spread_rates(
    trace: Trace, types: Sequence[str], throughputs: Throughputs | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Speed of each job on more nodes than it needs, on each type, against that of a well-placed gang there.

    As measured on that type, else on the reference type, else one over its sensitivity, else the same. And where
    jobs were measured not to run so at all.
    """
    sensitivity = np.where(np.isnan(trace.sensitivity), 1.0, trace.sensitivity)
    rates = np.tile((1.0 / sensitivity)[:, None], len(types))
    never = np.zeros(rates.shape, dtype=bool)
    if throughputs is None:
        return rates, never
    usual = per_kind(trace, partial(_spread_rate, throughputs, ""))
    for kind, name in enumerate(types):
        own = per_kind(trace, partial(_spread_rate, throughputs, name))
        measured = np.where(np.isnan(own), usual, own)
        never[:, kind] = measured == 0
        rates[:, kind] = np.where(measured > 0, measured, rates[:, kind])
    return rates, never


def _spread_rate(throughputs: Throughputs, name: str, model: str, batch: int, gpus: int) -> float:
    good = throughputs.steps_per_second(model, batch, gpus, name)
    apart = throughputs.steps_per_second(model, batch, gpus, name, SPREAD)
    return min(apart / good, 1.0) if good and apart is not None else math.nan


def scaling_of(trace: Trace, throughputs: Throughputs | None) -> Floats:
    """Speed of each job's gang against that of one GPU; nan where one of the two was not measured."""
    return (
        np.full(len(trace), np.nan)
        if throughputs is None
        else per_kind(trace, partial(_scaling, throughputs))
    )


def _scaling(throughputs: Throughputs, model: str, batch: int, gpus: int) -> float:
    whole, one = (throughputs.steps_per_second(model, batch, count) for count in (gpus, 1))
    return whole / one if whole and one else math.nan


def per_kind(trace: Trace, value: Callable[[str, int, int], float]) -> Floats:
    """`value(model, batch size, GPUs)` of every job, asked once for jobs alike; nan for jobs without a model."""
    known: dict[tuple[int, int, int], float] = {}
    result = np.full(len(trace), np.nan)
    columns = (trace.model.tolist(), trace.batch_size.tolist(), trace.whole_gpus.tolist())
    for row, kind in enumerate(zip(*columns, strict=True)):
        if kind[0] < 0:
            continue
        if kind not in known:
            known[kind] = value(trace.models[kind[0]], kind[1], kind[2])
        result[row] = known[kind]
    return result


def job_rates(
    trace: Trace, machines: Machines, types: Sequence[str], throughputs: Throughputs | None
) -> NDArray[np.float64]:
    """Speed of each job on each type: measured where it was (0 = it does not run), else that of the machines."""
    rates = np.tile(speeds_of(machines, types), (len(trace), 1))
    if throughputs is None:
        return rates
    for kind, name in enumerate(types):
        if name in throughputs.gpu_types:
            measured = per_kind(trace, partial(_type_rate, throughputs, name))
            rates[:, kind] = np.where(np.isnan(measured), rates[:, kind], measured)
    return rates


def speeds_of(machines: Machines, types: Sequence[str]) -> Floats:
    """Speeds of GPU types: those of their slowest machines; 1 for types that there are no machines of."""
    speeds = np.ones(len(types))
    for kind, name in enumerate(machines.gpu_types):
        speeds[types.index(name)] = float(machines.speed[machines.gpu_type == kind].min(initial=np.inf))
    return speeds


def _type_rate(throughputs: Throughputs, name: str, model: str, batch: int, gpus: int) -> float:
    there, reference = (throughputs.steps_per_second(model, batch, gpus, t) for t in (name, ""))
    if there == 0:
        return 0.0
    return there / reference if reference and there is not None else math.nan


def _several_speeds(machines: Machines) -> list[str]:
    """A note for each type whose machines differ in speed."""
    notes = []
    for kind, name in enumerate(machines.gpu_types):
        given = np.unique(machines.speed[machines.gpu_type == kind])
        if len(given) > 1:
            listed = ", ".join(f"{speed:g}" for speed in given.tolist())
            notes.append(
                f"{name} GPUs have several speeds ({listed}): all of them count as {given[0]:g}, the slowest; "
                "give each speed a type of its own"
            )
    return notes


def notes_on_speeds(machines: Machines, throughputs: Throughputs | None) -> list[str]:
    """Notes on speeds that are given twice, or not at all, and which of them counts."""
    measured = set(throughputs.gpu_types) if throughputs else set()
    speeds = dict(zip(machines.gpu_types, speeds_of(machines, machines.gpu_types).tolist(), strict=True))
    twice = [f"{name} ({speed:g})" for name, speed in speeds.items() if name in measured and speed != 1]
    known = measured | {USUAL_TYPE}  # GPUs of which no type is named are the reference
    unknown = [name for name, speed in speeds.items() if name not in known and speed == 1]
    notes = _several_speeds(machines)
    if twice:
        notes.append(
            f"the cluster's speed of {', '.join(twice)} counts only for jobs that the throughputs do not know"
        )
    if unknown and (measured or len(speeds) > 1):
        notes.append(
            f"nobody says how fast {', '.join(unknown)} GPUs are: taken to be as fast as the reference (speed 1)"
        )
    return notes
