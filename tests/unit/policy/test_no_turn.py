"""Each job that asked for a turn and has none is told the one reason that stands first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.model import JobState, Profiles
from slurm_fair.model.ids import label
from slurm_fair.policy import View, no_turn
from slurm_fair.policy.no_turn import TurnBounds, TurnsLeft, reasons, switched_off
from tests.support.accounts import view
from tests.support.builders import JobSpec, job, node, snapshot

BOUNDS = TurnBounds(gpus=4, hours=1.5, tries=2)
NODES = {"n1": node(8, gpu_type="x"), "n2": node(8, gpu_type="y")}


def seen(
    *jobs: JobSpec, asked: Iterable[int] = (0,), known: Any = ((False, False),)
) -> tuple[View, Profiles]:
    """The rows that asked for turns, and what is known of each on both GPU types."""
    rows = np.array(list(asked), dtype=np.int64)
    profiles = Profiles.asked(rows, 2).with_columns(measured=np.array(known, dtype=bool).reshape(-1, 2))
    shown = view(snapshot(nodes=NODES, jobs=jobs))
    return replace(shown, snapshot=replace(shown.snapshot, profiles=profiles)), profiles


def left(rows: int = 1, tenants: int = 1, **changes: Any) -> TurnsLeft:
    """Room for turns of everybody."""
    usual: dict[str, Any] = {
        "gpus": 4.0, "day": 4.0, "had": np.zeros(tenants), "tried": np.zeros((rows, 2), dtype=bool),
        "offered": np.ones((rows, 2), dtype=bool), "free": np.array([8, 8]),
    }  # fmt: skip
    return TurnsLeft(**(usual | changes))


def told(shown: View, profiles: Profiles, room: TurnsLeft, with_turns: Iterable[int] = ()) -> dict[str, str]:
    """The reason of each job by its label."""
    found = reasons(shown, profiles, BOUNDS, room, with_turns)
    return {label(key): text for text, keys in found.items() for key in keys.tolist()}


def flags(*rows: tuple[int, int]) -> Any:
    return np.array(rows, dtype=bool)


WAITS = job(1, gpus=2)
CASES: dict[str, tuple[JobSpec, Any, TurnsLeft, str]] = {
    "known on every type": (WAITS, flags((1, 1)), left(), no_turn.KNOWN),
    "known on one of two": (WAITS, flags((1, 0)), left(), no_turn.NO_PLACE),
    "bigger than turns are": (replace(WAITS, gpus=5), flags((0, 0)), left(day=9.0, gpus=9.0), "the 4 GPUs"),
    "as big as turns are": (replace(WAITS, gpus=4), flags((0, 0)), left(), no_turn.NO_PLACE),
    "it does not save": (replace(WAITS, checkpoints=False), flags((0, 0)), left(), no_turn.STAYS),
    "tried on every type": (WAITS, flags((0, 0)), left(tried=flags((1, 1))), "on a GPU type (2)"),
    "tried on one, known on the other": (
        WAITS,
        flags((0, 1)),
        left(tried=flags((1, 0))),
        "on a GPU type (2)",
    ),
    "tried on one of two": (WAITS, flags((0, 0)), left(tried=flags((1, 0))), no_turn.NO_PLACE),
    "its class has the turn": (WAITS, flags((0, 0)), left(offered=flags((0, 0))), no_turn.CLASS),
    "the day has less": (WAITS, flags((0, 0)), left(day=1.9), "the 1.5 GPU-hours"),
    "the day has just enough": (WAITS, flags((0, 0)), left(day=2.0), no_turn.NO_PLACE),
    "its account had its part": (WAITS, flags((0, 0)), left(had=np.array([2.1])), no_turn.OWN),
    "its account has just enough": (WAITS, flags((0, 0)), left(had=np.array([2.0])), no_turn.NO_PLACE),
    "others have turns": (WAITS, flags((0, 0)), left(gpus=1.0), "at a time"),
    "others leave just enough": (WAITS, flags((0, 0)), left(gpus=2.0), no_turn.NO_PLACE),
    "nothing is free": (WAITS, flags((0, 0)), left(free=np.array([0, 0])), no_turn.NOT_FREE),
    "nothing is free of what is offered": (
        WAITS,
        flags((0, 1)),
        left(offered=flags((1, 0)), free=np.array([0, 8])),
        no_turn.NOT_FREE,
    ),
}


@pytest.mark.parametrize(("spec", "known", "room", "said"), CASES.values(), ids=CASES)
def test_it_is_told(spec: JobSpec, known: Any, room: TurnsLeft, said: str) -> None:
    (text,) = told(*seen(spec, known=known), room).values()
    assert said in text


def test_of_many_reasons_the_first_is_told() -> None:
    """All of them hold of the first job, and one less of each that follows."""
    big, stays = {"gpus": 5}, {"checkpoints": False}
    shown, profiles = seen(
        job(1, **big, **stays), job(2, **big, **stays), job(3, **stays), job(4), job(5), job(6),
        asked=range(6), known=[(1, 1), *[(0, 0)] * 5],
    )  # fmt: skip
    tried, offered = np.ones((6, 2), dtype=bool), np.zeros((6, 2), dtype=bool)
    tried[4:], offered[5] = False, True
    room = left(6, gpus=0.0, day=0.0, tried=tried, offered=offered, free=np.zeros(2, dtype=np.int64))
    first = ["is known", "more than the 4", "cannot save", "told no speed", "of its class", "GPU-hours"]
    found = told(shown, profiles, room)
    assert all(part in found[str(base)] for base, part in enumerate(first, 1))


def test_those_who_do_not_wait_are_told_only_what_a_later_turn_would_not_change() -> None:
    runs = JobState.RUNNING
    shown, profiles = seen(
        job(1, state=runs), job(2, gpus=5, state=runs), job(3, state=runs), job(4),
        asked=range(4), known=[(0, 0), (0, 0), (1, 1), (0, 0)],
    )  # fmt: skip
    offered, tried = np.zeros((4, 2), dtype=bool), np.ones((4, 2), dtype=bool)
    found = told(shown, profiles, left(4, tried=tried, offered=offered, day=0.0))
    assert sorted(found) == ["2", "3", "4"]
    assert found["3"] == no_turn.KNOWN


def test_nobody_is_told_who_has_a_turn_or_did_not_ask() -> None:
    jobs = [job(base) for base in (1, 2, 3, 4)]
    shown, profiles = seen(*jobs, asked=(1, 3), known=[(0, 0), (0, 0)])
    assert told(shown, profiles, left(2)) == {"2": no_turn.NO_PLACE, "4": no_turn.NO_PLACE}
    assert told(shown, profiles, left(2), with_turns=[1]) == {"4": no_turn.NO_PLACE}
    assert told(shown, profiles, left(2), with_turns=[1, 3]) == {}
    assert told(*seen(*jobs, asked=(), known=()), left(0)) == {}


def test_each_account_is_measured_by_what_it_had_itself() -> None:
    """The first job has not asked."""
    jobs = [job(1, gpus=9), job(2, tenant="b"), job(3, tenant="a"), job(4, tenant="b")]
    shown, profiles = seen(*jobs, asked=(1, 2, 3), known=[(0, 0)] * 3)
    found = told(shown, profiles, left(3, had=np.array([4.0, 0.0])))
    assert found == {"2": no_turn.NO_PLACE, "3": no_turn.OWN, "4": no_turn.NO_PLACE}


def test_without_a_profiler_all_who_asked_are_told_so() -> None:
    shown, _ = seen(job(1), job(2), job(3), asked=(0, 2), known=[(0, 0), (1, 1)])
    ((text, keys),) = switched_off(shown).items()
    assert (text, [label(key) for key in keys.tolist()]) == (no_turn.OFF, ["1", "3"])
    assert switched_off(view(snapshot(jobs=[job(1)]))) == {}
