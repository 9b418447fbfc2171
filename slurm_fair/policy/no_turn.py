"""Sentences on jobs that asked for turns of the profiler and have none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from slurm_fair.model import Profiles
from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.policy.view import View

OFF = "this site's profiler is switched off"
KNOWN = "the speed of its class is known on every GPU type"
TOO_BIG = "it asks for more than the {gpus} GPUs that turns may have"
STAYS = "it cannot save and be requeued"
TRIED = "its turns told no speed, and it had as many as a job may have on a GPU type ({tries})"
CLASS = "another job of its class has its turn on the GPU types that are left"
DAY = "too little is left of the {hours:g} GPU-hours that turns may have on one day (UTC)"
OWN = "its account has had more of this day's turns (UTC) than would be left for the others"
FULL = "the turns of other jobs leave it too few of the {gpus} GPUs that turns may have at a time"
NOT_FREE = "no GPU is free of a type on which its speed is not known"
NO_PLACE = "other jobs have their turns first, or the free GPUs do not suit it"


class TurnsLeft(NamedTuple):
    """The room for further turns after those of this look."""

    gpus: float  # at a time
    day: float  # GPUs for which the day has room for whole turns
    had: Floats  # turns that each tenant had of the day, in the same unit
    tried: Bools  # [row of the profiles, GPU type] as often as a job may
    offered: Bools  # [the same] neither known, nor under way, nor tried so often
    free: Ints  # GPUs of each type


class TurnBounds(NamedTuple):
    """The settings of the site that the sentences name."""

    gpus: int
    hours: float
    tries: int


def reasons(
    view: View, profiles: Profiles, bounds: TurnBounds, left: TurnsLeft, with_turns: Iterable[int]
) -> Mapping[str, Ints]:
    """The keys of the jobs by the reason why they have no turn; `with_turns` are the rows of jobs that have.

    Of a job that does not wait only what a later turn would not change is told.
    """
    jobs, row = view.snapshot.jobs, profiles.row
    gpus, open_to = jobs.gpus[row], ~profiles.measured
    waits, had = view.waiting[row], left.had[jobs.tenant[row]]
    why = {
        KNOWN: ~open_to.any(axis=1),
        TOO_BIG: gpus > bounds.gpus,
        STAYS: ~jobs.revocable[row],
        TRIED: waits & ~(open_to & ~left.tried).any(axis=1),
        CLASS: waits & ~left.offered.any(axis=1),
        DAY: waits & (gpus > left.day),
        OWN: waits & (gpus > left.day - had),
        FULL: waits & (gpus > left.gpus),
        NOT_FREE: waits & ~(left.offered & (left.free > 0)).any(axis=1),
        NO_PLACE: waits,
    }
    said = ~np.isin(row, [*with_turns])
    keys: dict[str, Ints] = {}
    for text, holds in why.items():
        if (said & holds).any():
            keys[text.format(**bounds._asdict())] = jobs.key[row[said & holds]]
        said = said & ~holds
    return keys


def switched_off(view: View) -> Mapping[str, Ints]:
    """The same where nobody gets a turn, because there is no profiler."""
    profiles = view.snapshot.profiles
    return {} if profiles is None else {OFF: view.snapshot.jobs.key[profiles.row]}
