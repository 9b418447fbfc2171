"""Tiresias: least attained GPU service, in discrete queues or continuously (Gu et al., NSDI 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from slurm_fair.model import Plan
from slurm_fair.policy import (
    Bools,
    Floats,
    Ints,
    Order,
    PlacerName,
    Rising,
    View,
    Within,
    Words,
    alike,
    check_settings,
    contenders,
    job_columns,
    keep_job_numbers,
    only_renews,
    ordered,
)

WORDS = Words(
    granted="it is among those that had least GPU time",
    renewed="it is still among those that had least GPU time",
    revoked="a job that had less GPU time needs its GPUs",
    waits="others had less GPU time",
)
RUNS = "runs"  # in memory: what is known of jobs since their first start


@dataclass(frozen=True, slots=True)
class Las:
    """Least attained service first (2D-LAS): GPUs x time had so far, compared continuously.

    Reading: the attained service is compared when a lease is over; between equals the first submitted goes first.
    """

    score_is: ClassVar[Order] = Order("the GPU-seconds that it has had")

    placement: PlacerName = "consolidated"

    def __post_init__(self) -> None:
        check_settings(self, "las")

    def plan(self, view: View) -> Plan:
        """GPUs to those that had the least GPU time."""
        rows = contenders(view)
        had = alike(view.had_gpu_seconds[rows]) if len(rows) else np.zeros(0)
        order = rows[np.lexsort((view.first_submit[rows], had))]
        score = np.full(len(view.waiting), np.nan)
        score[rows] = had
        return ordered(view, order, place=self.placement, score=score, words=WORDS)


@dataclass(frozen=True, slots=True)
class Tiresias:
    """Discretised 2DAS without knowledge of run times (Tiresias-L): two queues by GPU time had, FIFO inside each.

    Reading: the paper names no one threshold; 3,250 GPU-seconds is what its published simulator uses. FIFO inside
    a queue is by first start; jobs that never ran come after those that did, by arrival. The starvation rule lifts
    a job to the first queue, its counts begun anew, once it has waited since its first start `promote_knob` times
    as long as it has run; 0 = off, as in the paper's own runs. Placement by tensor skew needs a profile of the
    model and is not part of this: gangs are consolidated.
    """

    score_is: ClassVar[Order] = Order(
        "the queue that it is in", then="the time of its first start, then of its submission"
    )

    thresholds_gpu_seconds: Annotated[tuple[float, ...], Within(0, 1e15, above=True), Rising()] = (3250.0,)
    promote_knob: Annotated[float, Within(0, 1e9, "run times; 0 = off")] = 0.0
    placement: PlacerName = "consolidated"

    rests = only_renews

    def __post_init__(self) -> None:
        check_settings(self, "tiresias")

    def plan(self, view: View) -> Plan:
        """GPUs to the first queue, then to the next."""
        rows = contenders(view)
        past = _Past(view, self.promote_knob)
        attained = view.had_gpu_seconds[rows] - past.had[rows] if len(rows) else np.zeros(0)
        queue = np.searchsorted(np.array(self.thresholds_gpu_seconds), alike(attained), side="right")
        started = past.start[rows]
        submit = view.first_submit[rows] if len(rows) else np.zeros(0)
        order = rows[np.lexsort((submit, np.where(started > 0, started, np.inf), queue))]
        score = np.full(len(view.waiting), np.nan)
        score[rows] = queue
        memory = past.kept()
        return ordered(view, order, place=self.placement, score=score, memory=memory, words=WORDS)


class _Past:
    """First start of each job, and its counts when it first started or was last lifted to the first queue."""

    def __init__(self, view: View, promote_knob: float) -> None:
        self._view = view
        every = np.arange(len(view.waiting))
        self.start, self.had = job_columns(view, RUNS, every, ("start", "had"))
        jobs = view.snapshot.jobs
        new: Bools = (self.start == 0) & jobs.running
        self.start[new] = jobs.start[new]
        self._changed = bool(new.any())
        if promote_knob > 0:
            self.ran, self.waited = job_columns(view, RUNS, every, ("ran", "waited"))
            self.waited[new] = view.waited_seconds[new]
            self._promote(promote_knob)
        else:
            self.ran = self.waited = np.zeros(len(every))

    def _promote(self, knob: float) -> None:
        view = self._view
        ran, waited = view.ran_seconds - self.ran, view.waited_seconds - self.waited
        starved: Bools = (self.start > 0) & view.waiting & (ran > 0) & (waited >= knob * ran)
        self.had[starved] = view.had_gpu_seconds[starved]
        self.ran[starved] = view.ran_seconds[starved]
        self.waited[starved] = view.waited_seconds[starved]
        self._changed |= bool(starved.any())

    def kept(self) -> Mapping[str, Any]:
        """The runs that the next plan begins with; the old memory where nothing is new."""
        memory = self._view.memory
        known: Ints = np.flatnonzero(self.start > 0)
        if not self._changed and len(memory.get(RUNS, {}).get("key", ())) <= 2 * len(known):
            return memory
        columns: dict[str, Floats] = {
            "start": self.start[known],
            "had": self.had[known],
            "ran": self.ran[known],
            "waited": self.waited[known],
        }
        return {RUNS: keep_job_numbers(self._view, known, **columns)}
