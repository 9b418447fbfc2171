"""Orders run in processes of their own: each is told of once, and all end with the one who asked for them."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import closing
from dataclasses import dataclass

from slurm_fair.cli.simulate.crew import Crew, OrderEnd
from slurm_fair.cli.simulate.one_run import Beat
from slurm_fair.errors import PolicyError, SlurmFairError


@dataclass(frozen=True)
class Wish:
    """An order that says itself what becomes of it."""

    name: str
    does: str = "ends"


def work(wish: Wish, beat: Beat) -> tuple[str, int]:
    """Done in a process; the result names that process."""
    beat("unheard", 3, 4.5)
    match wish.does:
        case "refuses":
            raise PolicyError(f"{wish.name} will not")
        case "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        case "leaves":
            sys.exit(7)
        case "waits":
            time.sleep(600)
    return wish.name, os.getpid()


def ends(
    *wishes: Wish, most: int = 2, beats: list[tuple[str, int, float]] | None = None
) -> dict[int, OrderEnd[tuple[str, int]]]:
    """The end of each order, by its place."""

    def beat(*said: object) -> None:
        if beats is not None:
            beats.append(said)  # type: ignore[arg-type]

    with closing(Crew(wishes, most, work, beat, "--workers").ends()) as found:
        told = list(found)
    by_place = {end.at: end for end in told}
    assert len(by_place) == len(told), "an order ends once"
    return by_place


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def test_each_order_has_a_process_of_its_own_that_is_gone_afterwards() -> None:
    beats: list[tuple[str, int, float]] = []
    found = ends(Wish("a"), Wish("b"), Wish("c"), beats=beats)
    results = [found[at].result for at in range(3)]
    assert [result and result[0] for result in results] == ["a", "b", "c"]
    processes = {result[1] for result in results if result}
    assert len(processes - {os.getpid()}) == 3
    assert all(map(gone, processes))
    assert sorted(beats) == [(name, 3, 4.5) for name in "abc"], "by the name of the order"


def test_no_orders_have_no_ends() -> None:
    assert ends() == {}


def test_those_that_fail_are_told_with_the_reason_and_take_no_other_along() -> None:
    found = ends(*(Wish(f"odd {does}", does) for does in ("refuses", "dies", "leaves")), Wish("well"))
    problems = [found[at].problem for at in range(3)]
    assert [(type(problem), str(problem), problem and problem.exit_code) for problem in problems] == [
        (PolicyError, "odd refuses will not", 2),
        (
            SlurmFairError,
            "policy odd dies: its process ended with code -9 before it was done: "
            "was there memory enough? try fewer --workers",
            1,
        ),
        (
            SlurmFairError,
            "policy odd leaves: its process ended with code 7 before it was done: see above",
            1,
        ),
    ]
    assert [found[at].result for at in range(3)] == [None] * 3
    assert (found[3].problem, found[3].result and found[3].result[0]) == (None, "well")


def test_whoever_asks_no_more_ends_those_that_still_run() -> None:
    crew: Crew[Wish, tuple[str, int]] = Crew(
        [Wish("slow", "waits"), Wish("quick"), Wish("never")], 2, work, lambda *said: None, "--workers"
    )
    found = crew.ends()
    assert next(found).at == 1
    began = time.monotonic()
    slow = next(process.pid for _, name, process in crew._running.values() if name == "slow")
    found.close()
    assert slow is not None
    assert gone(slow)
    assert time.monotonic() - began < 60
