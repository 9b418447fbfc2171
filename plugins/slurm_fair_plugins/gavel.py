"""Gavel's policies: max-min, finish-time fairness and throughput (Narayanan et al., OSDI 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from slurm_fair.policy import Floats
from slurm_fair.solve import Table, finish_time, max_min, max_sum
from slurm_fair_plugins.received import UNKNOWN, Crowd
from slurm_fair_plugins.rounds import InRounds, limit_of

_LEAST_WEIGHT = 1e-6


@dataclass(frozen=True, slots=True)
class Gavel(InRounds):
    """Max-min fairness (section 4.1): it makes the least of the jobs' ratios as large as it can.

    The ratio is  throughput / (weight x throughput under equal shares). The throughput is multiplied by the
    gang, so that jobs get equal GPU-time. Water-filling: then it raises the next least. On one GPU type rates
    cancel out: every job gets the same GPU-time per weight, or all of its time. Readings: a job's weight is its
    own, tenants play no part; a job's progress and batch size play none either.
    """

    called: ClassVar[str] = "gavel"

    def divide(self, crowd: Crowd) -> tuple[Table, Mapping[str, Any]]:
        return _max_min(crowd)


@dataclass(frozen=True, slots=True)
class GavelFtf(InRounds):
    """Finish-time fairness (section 4.2): the peak of Themis' rho, over fractions of time, as low as can be.

    rho = (age + left / throughput) / (time alone so far + left / throughput alone), where alone = on 1/n of
    every GPU type. Time alone so far adds up, from one computation to the next, the steps that are left less
    over the throughput alone of then (so a batch size that doubles counts as half of them done). Once a job that
    has all of its time sets the peak, what is left over goes out in equal parts of GPU-time. What is left to do
    is told at the present batch size: changes ahead are not known. With `alone = "whole"` a job alone has the
    entire cluster, and n times as long is fair (Astraea, section 4.1.2): then a gang's size plays no part.
    """

    called: ClassVar[str] = "gavel-ftf"
    unknown_run_time: ClassVar[str] = UNKNOWN

    alone: Literal["part", "whole"] = "part"

    def divide(self, crowd: Crowd) -> tuple[Table, Mapping[str, Any]]:
        alone = alone_rate(crowd) if self.alone == "part" else whole_cluster_rate(crowd)
        return _finish_time(crowd, alone)


@dataclass(frozen=True, slots=True)
class MaxSumThroughput(InRounds):
    """The largest sum of throughputs (MST; Gavel section 4.4 with equal costs): no fairness at all.

    Throughput is in steps per second at the present batch size, as the published simulators have it, so models
    with short steps win. Readings: jobs alike share alike; where nobody told a speed, the median of the others.
    """

    called: ClassVar[str] = "mst"

    def divide(self, crowd: Crowd) -> tuple[Table, Mapping[str, Any]]:
        return _max_sum(crowd)


def _max_min(crowd: Crowd) -> tuple[Table, Mapping[str, Any]]:
    weight = np.maximum(crowd.view.snapshot.jobs.weight[crowd.rows], _LEAST_WEIGHT)
    shares = max_min(crowd.rate, crowd.gang, crowd.capacity, weight, limit_of(crowd.view))
    return shares.fraction, {}


def _finish_time(crowd: Crowd, rate_alone: Floats) -> tuple[Table, Mapping[str, Any]]:
    pace = crowd.view.told.steps_per_second[crowd.rows]
    pace = np.where(np.isfinite(pace) & (pace > 0), pace, 1.0)
    alone, steps = np.maximum(rate_alone, 1e-12), crowd.left * pace
    done = crowd.remembered("steps", np.nan) - steps
    so_far = crowd.remembered("alone", 0.0) + np.nan_to_num(done / crowd.remembered("pace", np.inf))
    in_all = np.maximum(so_far + crowd.left / alone, crowd.left)
    limit = limit_of(crowd.view)
    shares = finish_time(
        crowd.rate, crowd.gang, crowd.capacity, crowd.age, crowd.left, in_all, limit_seconds=limit
    )
    return shares.fraction, crowd.to_remember(alone=so_far, steps=steps, pace=alone * pace)


def alone_rate(crowd: Crowd) -> Floats:
    """Throughput of each job if it had 1/n of every GPU type to itself."""
    part = crowd.capacity / max(len(crowd.rows), 1) / crowd.gang[:, None]
    part = part / np.maximum(part.sum(axis=1, keepdims=True), 1.0)
    rate: Floats = (part * crowd.rate).sum(axis=1)
    return rate


def whole_cluster_rate(crowd: Crowd) -> Floats:
    """Throughput of each job if it had the entire cluster to itself, 1/n of the time."""
    rate: Floats = crowd.rate.max(axis=1, initial=0.0) / max(len(crowd.rows), 1)
    return rate


def _max_sum(crowd: Crowd) -> tuple[Table, Mapping[str, Any]]:
    steps = crowd.view.told.steps_per_second[crowd.rows]
    known = np.isfinite(steps)
    steps = np.where(known, steps, float(np.median(steps[known])) if known.any() else 1.0)
    value = steps[:, None] * crowd.rate
    return max_sum(value, crowd.gang, crowd.capacity, limit_of(crowd.view)).fraction, {}
