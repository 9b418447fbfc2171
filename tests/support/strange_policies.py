"""Policies that break one rule each, and a way to install policies for one test."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from typing import Any, ClassVar, NamedTuple
from unittest.mock import patch

import numpy as np

from slurm_fair.model import Placement, Plan, Verdict
from slurm_fair.model.columns import ranks, take_or
from slurm_fair.policy import Draft, View, contenders, oldest_first, ordered, registry
from slurm_fair.policy.rests import only_renews

_DICE = [np.random.default_rng(1)]  # the same throws in every test


@dataclass(frozen=True)
class Plain:
    """The oldest first, with leases that end."""

    def plan(self, view: View) -> Plan:
        """A plan as it should be."""
        return ordered(view, oldest_first(view, contenders(view)))


@dataclass(frozen=True)
class Raises:
    """Divides by zero once somebody runs."""

    def plan(self, view: View) -> Plan:
        if view.over.any():
            self._share(view)
        return Plain().plan(view)

    def _share(self, view: View) -> float:
        return view.now / 0


@dataclass(frozen=True)
class Exits:
    """Calls sys.exit as if all were well."""

    def plan(self, view: View) -> Plan:
        sys.exit(0)


@dataclass(frozen=True)
class Talks:
    """Prints something at each look."""

    def __post_init__(self) -> None:
        print("here I am")

    def plan(self, view: View) -> Plan:
        """A plan as it should be."""
        print("hello from plan")
        return Plain().plan(view)


@dataclass(frozen=True)
class Nothing:
    def plan(self, view: View) -> Plan:
        return None  # type: ignore[return-value]


@dataclass(frozen=True)
class Crowded:
    """Puts everybody on the first node."""

    def plan(self, view: View) -> Plan:
        """A plan of the jobs that wait."""
        sheet, waits = Draft(view), view.waiting_rows
        sheet.say(waits, Verdict.GRANT, "it is here")
        gpus = view.snapshot.jobs.gpus[waits]
        return sheet.finish(Placement(waits, np.zeros(len(waits), dtype=np.int64), gpus))


@dataclass(frozen=True)
class Twice:
    def plan(self, view: View) -> Plan:
        """One order after the other."""
        rows = oldest_first(view, contenders(view))
        return ordered(view, np.append(rows, rows))


@dataclass(frozen=True)
class OneRank:
    """Gives two jobs the same place in its order."""

    def plan(self, view: View) -> Plan:
        """A plan with ranks of its own."""
        rank = ranks(len(view.waiting), view.waiting_rows)
        plan = Plain().plan(view)
        return replace(plan, why=plan.explanation.with_columns(rank=np.minimum(rank, 0)))


@dataclass(frozen=True)
class Dice:
    """Shuffles with dice of its own."""

    def plan(self, view: View) -> Plan:
        return ordered(view, _DICE[0].permutation(contenders(view)))


@dataclass(frozen=True)
class WaitsByDice:
    """Lets each gang wait for as long as dice of its own say."""

    def plan(self, view: View) -> Plan:
        return replace(Plain().plan(view), reserve_after=_DICE[0].random(len(view.waiting)))


@dataclass(frozen=True)
class WaitsByRow:
    """Lets the gang in the first row wait for longer."""

    def plan(self, view: View) -> Plan:
        return replace(Plain().plan(view), reserve_after=np.arange(len(view.waiting), 0.0, -1.0))


@dataclass(frozen=True)
class WaitsForOne:
    """Says one number for all gangs."""

    def plan(self, view: View) -> Plan:
        return replace(Plain().plan(view), reserve_after=np.array(60.0))


@dataclass(frozen=True)
class Counts:
    """Remembers in itself how often it was asked."""

    asked: ClassVar[list[int]] = []

    def plan(self, view: View) -> Plan:
        """The oldest and the youngest first, by turns."""
        self.asked.append(1)
        rows = oldest_first(view, contenders(view))
        return ordered(view, rows[::-1] if len(self.asked) % 2 else rows)


@dataclass(frozen=True)
class Writes:
    """Sorts the view's own column."""

    def plan(self, view: View) -> Plan:
        """After it has put the submissions in order."""
        view.snapshot.jobs.weight[:] = 2.0
        return Plain().plan(view)


@dataclass(frozen=True)
class ByRow:
    """The first row first."""

    def plan(self, view: View) -> Plan:
        """A plan in the order of rows."""
        return ordered(view, contenders(view))


@dataclass(frozen=True)
class WrongAccount:
    """Takes row i of the ledger for job i."""

    def plan(self, view: View) -> Plan:
        """A plan that begins with the job that had least."""
        rows = oldest_first(view, contenders(view))
        had = np.resize(np.append(view.ledger.jobs.had, 0.0), len(view.waiting))
        return ordered(view, rows[np.argsort(had[rows], kind="stable")])


@dataclass(frozen=True)
class RemembersRows:
    """Remembers who waited by their rows, which are those of others when a job came or went."""

    def plan(self, view: View) -> Plan:
        """A plan that begins with those who waited at the last look, the oldest first among them."""
        rows = oldest_first(view, contenders(view))
        behind = ~np.isin(rows, view.memory.get("waited", ()))
        memory = {"waited": view.waiting_rows.tolist()}
        return ordered(view, rows[np.argsort(behind, kind="stable")], memory=memory)


@dataclass(frozen=True)
class RemembersAccounts:
    """Remembers what jobs had by the rows of the ledger, which are those of others when it met a job more."""

    def plan(self, view: View) -> Plan:
        """A plan that begins with those who have had least since the last look."""
        rows = oldest_first(view, contenders(view))
        had, before = view.ledger.jobs.had, view.memory.get("had", ())
        since = take_or(had - np.resize(np.append(before, 0.0), len(had)), view.account_row, 0.0)
        return ordered(view, rows[np.argsort(since[rows], kind="stable")], memory={"had": had.tolist()})


@dataclass(frozen=True)
class KeepsASet:
    def plan(self, view: View) -> Plan:
        """The jobs that it saw."""
        return replace(Plain().plan(view), memory={"seen": set(view.snapshot.jobs.key.tolist())})


class _Note(NamedTuple):
    time: float


@dataclass(frozen=True)
class KeepsItsOwn:
    """Remembers a kind of its own, which comes back as a plain tuple."""

    def plan(self, view: View) -> Plan:
        """A plan with a note."""
        note = view.memory.get("note", _Note(0.0))
        return replace(Plain().plan(view), memory={"note": _Note(note.time + 1.0)})


@dataclass(frozen=True)
class RestsAndCounts:
    """Says that it rests, and counts."""

    rests = only_renews

    def plan(self, view: View) -> Plan:
        memory: Mapping[str, Any] = {"plans": view.memory.get("plans", 0) + 1}
        return replace(Plain().plan(view), memory=memory)


@dataclass(frozen=True)
class NeedsReports:
    """Takes for granted that something was said."""

    def plan(self, view: View) -> Plan:
        """The one with least left."""
        rows = oldest_first(view, contenders(view))
        told = view.snapshot.told
        return ordered(view, rows[np.argsort(told.left_seconds[rows], kind="stable")])  # type: ignore[union-attr]


@dataclass(frozen=True)
class NeedsSomebody:
    """Takes for granted that there is a job."""

    def plan(self, view: View) -> Plan:
        """A plan with the biggest gang."""
        view.snapshot.jobs.gpus.max()
        return Plain().plan(view)


@dataclass(frozen=True)
class NeedsANode:
    """Takes for granted that there is a node."""

    def plan(self, view: View) -> Plan:
        """A plan with the biggest node."""
        view.snapshot.nodes.gpus.max()
        return Plain().plan(view)


@dataclass(frozen=True)
class RemembersNodes:
    """Remembers by its number a node that may have gone."""

    def plan(self, view: View) -> Plan:
        """A plan with what the node of the last plan has."""
        view.snapshot.nodes.gpus[view.memory.get("nodes", [])].sum()
        plan = Plain().plan(view)
        return replace(plan, memory={"nodes": plan.places.node.tolist() or view.memory.get("nodes", [])})


@dataclass(frozen=True)
class _Entry:
    """An entry point of no distribution."""

    kind: Any
    dist: None = None

    @property
    def value(self) -> str:
        """The class as an entry point names it."""
        return f"{self.kind.__module__}:{self.kind.__name__}"

    def load(self) -> Any:
        return self.kind


@contextmanager
def installed(**kinds: type) -> Iterator[None]:
    """These policies beside the others, by name."""
    _DICE[0] = np.random.default_rng(1)
    with _found({name: _Entry(kind) for name, kind in kinds.items()}):
        yield


@contextmanager
def entry(name: str, value: str) -> Iterator[None]:
    """An entry point as a package has it, beside the others."""
    with _found({name: EntryPoint(name, value, registry.GROUP)}):
        yield


@contextmanager
def _found(entries: Mapping[str, Any]) -> Iterator[None]:
    found = {**registry._found(), **entries}
    with patch.object(registry, "_found", lambda: found):
        yield
