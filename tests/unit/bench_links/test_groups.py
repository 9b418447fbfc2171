"""The groups that are measured, and what is made of their times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from slurm_fair.bench_links import Place, rank_groups, timed_groups

TWO_OF_FOUR = [Place(rank, rank // 4) for rank in range(8)]


@dataclass
class Scripted:
    """Ranks whose all-reduces take a start and so much for each parameter."""

    places: Sequence[Place]
    rank: int = 0
    asked: list[tuple[int, ...]] = field(default_factory=list)

    def seconds(self, members: Sequence[int], parameters: int, times: int) -> list[float] | None:
        """One of them is much later than the others."""
        self.asked.append(tuple(members))
        took = 1.0 + 1e-6 * len(members) * parameters
        return [100.0, *[took] * (times - 1)] if self.rank in members else None


def test_groups_double_on_one_node_and_across_nodes() -> None:
    assert rank_groups(TWO_OF_FOUR) == [(0, 1), (0, 1, 2, 3), (0, 4), (0, 1, 4, 5), (0, 1, 2, 3, 4, 5, 6, 7)]
    assert rank_groups([Place(0, 0), Place(1, 1), Place(2, 2)]) == [(0, 1), (0, 1, 2)]
    assert rank_groups([Place(0, 0)]) == []
    assert rank_groups([Place(0, 0), Place(1, 0), Place(2, 0)]) == [(0, 1), (0, 1, 2)]


def test_a_time_is_free_of_its_start_and_of_one_that_is_off() -> None:
    found = timed_groups(Scripted(TWO_OF_FOUR), (10_000, 1_000_000), 5)
    assert [(one.gpus, one.nodes, one.most) for one in found] == [
        (2, 1, 2),
        (4, 1, 4),
        (2, 2, 1),
        (4, 2, 2),
        (8, 2, 4),
    ]
    assert all(abs(one.seconds - 1e-6 * one.gpus) < 1e-12 for one in found)


def test_every_rank_asks_for_all_groups_and_tells_of_its_own() -> None:
    first, last = Scripted(TWO_OF_FOUR), Scripted(TWO_OF_FOUR, rank=7)
    told: list[str] = []
    timed_groups(first, (10, 1000), 3)
    (only,) = timed_groups(last, (10, 1000), 3, told.append)
    assert (only.gpus, only.nodes, only.most) == (8, 2, 4)
    assert first.asked == last.asked
    assert told == ["8 GPUs on 2 nodes: 1000 parameters in 1008.000 ms, 1.25e+05 a second"]


class Flat(Scripted):
    """Ranks whose all-reduces take as long whatever is sent."""

    def seconds(self, members: Sequence[int], parameters: int, times: int) -> list[float] | None:
        return [1.0] * times


def test_a_time_that_does_not_grow_with_what_is_sent_is_none() -> None:
    told: list[str] = []
    found = timed_groups(Flat([Place(0, 0), Place(1, 1)]), (10, 1000), 3, told.append)
    assert [math.isnan(one.seconds) for one in found] == [True]
    assert told == ["2 GPUs on 2 nodes: 1000 parameters in 1000.000 ms, no longer than 10 of them"]
