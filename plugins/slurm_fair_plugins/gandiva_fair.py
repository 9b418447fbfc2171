"""Gandiva-fair: tickets by tenant, gang-aware stride (Chaudhary et al., EuroSys 2020, section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from slurm_fair.model import Plan
from slurm_fair.policy import (
    Bools,
    Floats,
    Order,
    View,
    Words,
    alike,
    any_of,
    contenders,
    job_numbers,
    keep_job_numbers,
    ordered,
)
from slurm_fair.solve import Table
from slurm_fair_plugins.rounds import Crowd, InRounds

WORDS = Words(
    granted="its pass is among the lowest",
    renewed="its pass is still among the lowest",
    revoked="a job with a lower pass needs its GPUs",
    waits="others have a lower pass",
)
PASSES = "passes"
_PASS = Order(
    "its pass", then="the size of its gang (the bigger goes first), then the time of its submission"
)


@dataclass(frozen=True, slots=True)
class GandivaFair(InRounds):
    """Stride scheduling of gangs: GPU time by tickets, the lowest pass first.

    `split = "stride"` (the paper): a tenant's tickets are its weight, split over its active jobs by their
    weights; a job's pass grows by the GPU time that it had per ticket, and a job that comes joins at the lowest
    pass there is. Gangs are placed in the order of their passes; one that does not fit is passed over and keeps
    its low pass, so that it comes first as leases end. As in the paper passes advance at each quantum, by the
    tickets that there are then: when a lease is over, and when a job comes. Reading: the paper splits the work
    between a central scheduler for gangs of several servers and one in each server for small ones, to save
    messages; here one walk serves both, and of equal passes the bigger gang goes first. Trading between GPU
    types is left out, as in Astraea's comparison.

    `split = "equal"`: what the simulator published with Shockwave runs under this name, its
    `gandiva_fair_proportional`. Every job, whatever its gang and tenant, is owed the same part of time, the number
    of GPUs over the number of jobs, and Gavel's rounds give it out: `reset_seconds`, `newcomers` and `received`
    are settings of theirs.
    """

    called: ClassVar[str] = "gandiva-fair"
    by_solver: ClassVar[bool] = False
    lease_seconds: ClassVar[float] = 60.0  # the paper's time quantum

    split: Literal["stride", "equal"] = "stride"

    @property
    def score_is(self) -> Order:  # type: ignore[override]
        """Passes, or shares of rounds."""
        return _PASS if self.split == "stride" else InRounds.score_is

    def divide(self, crowd: Crowd) -> tuple[Table, Mapping[str, Any]]:
        """GPUs of each type over the number of jobs, for every job alike, and at most all of its time."""
        share = np.tile(crowd.capacity / max(len(crowd.rows), 1), (len(crowd.rows), 1))
        return share / np.maximum(share.sum(axis=1, keepdims=True), 1.0), {}

    def plan(self, view: View) -> Plan:
        """GPUs to the lowest passes."""
        if self.split == "equal":
            return InRounds.plan(self, view)
        rows = contenders(view)
        if len(rows) == 0 and not view.memory:
            return ordered(view, rows, words=WORDS)
        stride = _Stride(view)
        gpus, passes = view.snapshot.jobs.gpus[rows], stride.passes[rows]
        # The lowest pass is 0, so rounding errors are small only beside the highest.
        passes = alike(passes + passes.max(initial=0.0))
        order = rows[np.lexsort((view.first_submit[rows], -gpus, passes))]
        return ordered(
            view, order, place=self.placement, score=stride.passes, memory=stride.memory, words=WORDS
        )


class _Stride:
    """The pass of every active job, brought up to now; nan for the others."""

    def __init__(self, view: View) -> None:
        active = view.claims
        rows = np.flatnonzero(active)
        had = view.had_gpu_seconds[rows]
        before = job_numbers(view, PASSES, rows, np.nan)
        had_before = job_numbers(view, PASSES, rows, 0.0, column="had")
        passes = before + (had - had_before) / _tickets(view, active)[rows]
        new = np.isnan(before)
        lowest = 0.0 if new.all() else passes[~new].min()
        passes = np.where(new, 0.0, passes - lowest)  # counted from the lowest, so that numbers stay small
        self.passes: Floats = np.full(len(active), np.nan)
        self.passes[rows] = passes
        # What is kept is that of the last quantum, so that looks in between change nothing.
        self.memory: Mapping[str, Any] = view.memory
        if any_of(new) or any_of(view.over) or not view.memory:
            self.memory = {PASSES: keep_job_numbers(view, rows, passes, had=had)}


def _tickets(view: View, active: Bools) -> Floats:
    """Each active job's tickets; a tenant without weight has next to none."""
    jobs, tenants = view.snapshot.jobs, view.snapshot.tenants
    split_by = np.maximum(jobs.weight, 1e-9)
    whole = np.bincount(jobs.tenant[active], weights=split_by[active], minlength=len(tenants))
    of_tenant = np.maximum(tenants.weight, 1e-9) / np.where(whole > 0, whole, 1.0)
    return of_tenant[jobs.tenant] * split_by
