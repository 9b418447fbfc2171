"""Policies that say that they solve, and whose plan goes wrong in one way each.

A planning process imports them from here, so they are no local classes.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from slurm_fair.model import Explanation, Placement, Plan, Verdict
from slurm_fair.planner.frames import framed
from slurm_fair.policy import View, contenders, oldest_first, ordered


class Strange:
    """Something that no journal keeps."""


def plain(view: View) -> Plan:
    """The order by time run, then by age."""
    rows = oldest_first(view, contenders(view))
    turn = rows[np.argsort(view.ran_seconds[rows], kind="stable")]
    return ordered(view, turn, memory={"by": "plan"})


def _hang(view: View) -> Plan:
    while True:
        pass


def _wait(view: View) -> Plan:
    time.sleep(3600.0)
    return plain(view)


def _crash(view: View) -> Plan:
    ctypes.string_at(0)
    return plain(view)


def _exit(view: View) -> Plan:
    os._exit(3)


def _quit(view: View) -> Plan:
    sys.exit(5)


def _raise(view: View) -> Plan:
    raise KeyError("no such tenant")


def _bloat(view: View) -> Plan:
    np.ones(1 << 31)  # 16 GB
    return plain(view)


def _bloat_slowly(view: View) -> Plan:
    kept = []
    while True:
        kept.append(np.ones(1 << 24))


def _say_bytes(view: View) -> Plan:
    for number in range(3, 10):
        try:
            os.write(number, b"\x07" * 64)
        except OSError:
            continue
    return plain(view)


def _say_over_and_over(message: Any) -> Callable[[View], Plan]:
    """A policy that knows the pipe, and says this for ever."""

    def plan(view: View) -> Plan:
        while True:
            for number in range(3, 10):
                try:
                    os.write(number, framed(message))
                except OSError:
                    continue

    return plan


def _keep_a_class(view: View) -> Plan:
    return replace(plain(view), memory={"own": Strange()})


def _say_text(view: View) -> Plan:
    rows = len(view.snapshot.jobs)
    why = Explanation(np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64), np.zeros(rows), ("so",))
    return Plan("a" * rows, Placement.none(), why)  # type: ignore[arg-type]


def _say_nothing(view: View) -> Plan:
    return None  # type: ignore[return-value]


def _grant_all(view: View) -> Plan:
    sheet = plain(view)
    return replace(sheet, verdict=np.full(len(sheet.verdict), Verdict.GRANT, dtype=np.int8))


def _print(view: View) -> Plan:
    print("x" * 100_000)
    os.write(1, b"\x07" * 64)
    return plain(view)


def _sleep(view: View) -> Plan:
    time.sleep(1.0)
    return plain(view)


DOES: Mapping[str, Callable[[View], Plan]] = {
    "plans": plain, "hangs": _hang, "crashes": _crash, "exits": _exit, "quits": _quit, "raises": _raise,
    "bloats": _bloat, "bloats slowly": _bloat_slowly, "says bytes": _say_bytes, "keeps a class": _keep_a_class,
    "says text": _say_text, "says nothing": _say_nothing, "grants all": _grant_all, "prints": _print,
    "repeats others": _say_over_and_over(("plan", -1, {})), "repeats itself": _say_over_and_over(("quick", 2, {})),
    "says half": _say_over_and_over(("raised", 2)), "sleeps": _sleep, "waits for ever": _wait,
}  # fmt: skip


@dataclass(frozen=True)
class Solving:
    """Does one thing in the looks whose number is a multiple of `every`, 10 s each; else it plans."""

    does: str = "plans"
    every: int = 1

    solves: ClassVar[bool] = True

    def plan(self, view: View) -> Plan:
        """A plan that is as it should be, or not."""
        odd = round(view.now / 10.0) % self.every == 0
        return DOES[self.does if odd else "plans"](view)


@dataclass(frozen=True)
class SolvingQuick(Solving):
    """The same with a quick plan: whoever waits goes on waiting."""

    quick: str = "plans"

    def quick_plan(self, view: View) -> Plan:
        """The plan that stands in."""
        plan = DOES[self.quick](view)
        return replace(plan, memory={"by": "quick"})


@dataclass(frozen=True)
class Hears(Solving):
    """Remembers how many events it heard of."""

    def plan(self, view: View) -> Plan:
        """A plan with the number of events in its memory."""
        plan = Solving.plan(self, view)
        heard: Any = view.memory.get("heard", 0)
        return replace(plan, memory={"heard": heard + len(view.happened)})
