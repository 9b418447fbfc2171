"""Turns of the profiler, and what is remembered of them from plan to plan."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from slurm_fair.model import NO_PLACES, LeaseTerms, Placement
from slurm_fair.model.columns import Floats, Ints, among
from slurm_fair.model.spans import DAY_SECONDS

_KEPT = "profiler"  # in a plan's memory


class Turn(NamedTuple):
    """One job's turn on a GPU type; from its end on it stands until its job has left its GPUs."""

    key: int
    gpu_type: str
    tenant: str
    gpus: int
    since: float  # when it was granted
    over: bool = False


class TurnBook(NamedTuple):
    """All that is remembered from plan to plan."""

    turns: tuple[Turn, ...]
    tries: Mapping[tuple[int, str], int]  # by job and GPU type
    day: int
    spent: Mapping[str, float]  # GPU-seconds of that day, by tenant

    @classmethod
    def kept(cls, memory: Mapping[str, Any], now: float) -> TurnBook:
        """The book as a plan left it; a new day begins with nothing spent."""
        kept, day = memory.get(_KEPT), math.floor(now / DAY_SECONDS)
        if not kept:
            return cls((), {}, day, {})
        tries = {(key, gpu_type): count for key, gpu_type, count in kept["tries"]}
        spent = dict(kept["spent"]) if kept["day"] == day else {}
        return cls(tuple(Turn(*each) for each in kept["turns"]), tries, day, spent)

    def into(self, memory: Mapping[str, Any]) -> Mapping[str, Any]:
        """A plan's memory with this book, as plain data."""
        if not (self.turns or self.tries or self.spent):
            return without_turns(memory)
        tries = [[*of, count] for of, count in self.tries.items()]
        turns = [list(turn) for turn in self.turns]
        return {**memory, _KEPT: {"turns": turns, "tries": tries, "day": self.day, "spent": dict(self.spent)}}

    def without(self, ended: Sequence[Turn], now: float) -> TurnBook:
        """The book once these have given their GPUs back, or hold them like all others."""
        if not ended:
            return self
        spent = dict(self.spent)
        for turn in ended:
            spent[turn.tenant] = spent.get(turn.tenant, 0.0) + turn.gpus * max(now - turn.since, 0.0)
        return self._replace(turns=tuple(turn for turn in self.turns if turn not in ended), spent=spent)


class Turns(NamedTuple):
    """The turns at one look: the book, and what is new in them."""

    book: TurnBook
    new: tuple[Turn, ...] = ()
    places: Placement = NO_PLACES


def has_turns(memory: Mapping[str, Any]) -> bool:
    """True where anybody has had a turn."""
    return _KEPT in memory


def next_renewals(key: Ints, end: Floats, terms: LeaseTerms, memory: Mapping[str, Any]) -> Floats:
    """The instants at which leases are renewed, unless others get their GPUs: beats, but the end of a turn."""
    at = terms.renewed_at(end)
    if _KEPT not in memory:
        return at
    turns = TurnBook.kept(memory, 0.0).turns
    turning = np.array([turn.key for turn in turns if not turn.over], dtype=np.int64)
    return np.where(among(key, turning), end, at)


def with_turns_of(memory: Mapping[str, Any], before: Mapping[str, Any]) -> Mapping[str, Any]:
    """A plan's memory with the turns as an earlier one has them."""
    return {**memory, _KEPT: before[_KEPT]} if _KEPT in before else without_turns(memory)


def without_turns(memory: Mapping[str, Any]) -> Mapping[str, Any]:
    """A plan's memory where nobody has turns."""
    return {name: kept for name, kept in memory.items() if name != _KEPT} if _KEPT in memory else memory
