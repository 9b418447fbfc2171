"""The program over counts of servers: its size, its optimum, its prices, and uses that are given."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.model.columns import Ints
from slurm_fair.solve import How
from slurm_fair.solve.linear import Effort, Problem, Solution, solve
from slurm_fair.solve.places import PlacesProblem, classes
from slurm_fair.solve.places.fleet import Fleet
from slurm_fair.solve.places.flow import Flow
from slurm_fair.solve.places.prices import priced
from tests.support.any_places import Column, places


def alone(job: int, gpus: int, value: float = 1.0, on: int = 0) -> Column:
    return (job, on, gpus, False, value)


def gang(job: int, gpus: int, value: float = 1.0) -> Column:
    return (job, 0, gpus, True, value)


def answered(program: Problem) -> Solution:
    return solve(program, np.inf, Effort(gap=0.0))


def worth(problem: PlacesProblem, *, whole: bool = True) -> float:
    """The optimum of the program, in the problem's own values; 0 where it has nothing to choose."""
    fleet = Fleet.of(problem)
    return answered(Flow.of(fleet).program(whole=whole)).objective * fleet.ways.unit


BEST: dict[str, tuple[PlacesProblem, float]] = {
    "a server is filled": (places([4], [alone(0, 2, 5.0), alone(1, 2, 3.0), alone(2, 3, 4.0)]), 8.0),
    "one way a job": (places([8], [alone(0, 2, 5.0), alone(0, 3, 6.0)]), 6.0),
    "no server beyond its free GPUs": (places([3, 3], [alone(job, 2, 1.0) for job in range(3)]), 2.0),
    "servers of another kind do not help": (
        places([8, 8], [alone(job, 8, 1.0, on=1) for job in range(2)], kind=[0, 1]),
        1.0,
    ),
    "a gang takes its servers whole": (places([8, 8], [gang(0, 12, 5.0), alone(1, 8, 4.0)]), 5.0),
    "what a gang leaves on its last server is there": (
        places([8, 8], [gang(0, 12, 5.0), alone(1, 4, 4.0), alone(2, 5, 4.5)]),
        9.0,
    ),
    "a gang of four servers leaves no pair": (
        places([8] * 4, [gang(0, 30, 5.0), gang(1, 12, 4.0)]),
        5.0,
    ),
    "gangs of three servers in both groups of four leave no pair": (
        places([8] * 8, [gang(0, 24, 5.0), gang(1, 24, 5.0), gang(2, 12, 4.0)]),
        10.0,
    ),
    "two pairs": (places([8] * 4, [gang(job, 12, 4.0) for job in range(3)]), 8.0),
}


@pytest.mark.parametrize("case", BEST)
def test_the_program_is_worth(case: str) -> None:
    problem, expected = BEST[case]
    assert worth(problem) == pytest.approx(expected)


@pytest.mark.parametrize("case", BEST)
def test_without_whole_numbers_it_is_a_bound(case: str) -> None:
    problem, expected = BEST[case]
    assert worth(problem, whole=False) >= expected - 1e-9


@pytest.mark.parametrize("case", BEST)
def test_the_prices_of_ways_prove_the_bound_of_the_program(case: str) -> None:
    """Lagrange's bound at the dual prices of a linear program is its optimum."""
    fleet = Fleet.of(BEST[case][0])
    flow = Flow.of(fleet)
    found = answered(flow.program(whole=False))
    prices = flow.way_prices(found.price)
    assert len(prices) == len(fleet.ways)
    assert (prices >= 0).all()
    assert priced(fleet, prices).bound == pytest.approx(found.objective * fleet.ways.unit)


def test_its_size_does_not_grow_with_the_number_of_servers() -> None:
    columns = [alone(0, 2), alone(1, 5), gang(2, 12)]
    sizes = set()
    for servers in (2, 200):
        program = Flow.of(Fleet.of(places([8] * servers, columns))).program(whole=True)
        sizes.add((len(program.worth), len(program.most_row), len(program.cells.value)))
    assert len(sizes) == 1


def test_no_cell_is_said_twice() -> None:
    """A window over three servers takes two that look alike, and leaves one of the same kind."""
    cells = Flow.of(Fleet.of(places([8, 8, 8, 8], [gang(0, 20), alone(1, 3)]))).program(whole=True).cells
    pairs = set(zip(cells.row.tolist(), cells.column.tolist(), strict=True))
    assert len(pairs) == len(cells.row)


def test_columns_are_whole_numbers_only_where_that_is_asked() -> None:
    flow = Flow.of(Fleet.of(places([8], [alone(0, 2)])))
    whole = flow.program(whole=True).whole
    assert flow.program(whole=False).whole is None
    assert whole is not None
    assert whole.all()


# --- uses that are given


def with_given(uses: list[int], given: list[int]) -> Solution:
    """The answer where these uses may be chosen and those are given; a server of 8 and five jobs of 3 GPUs."""
    fleet = Fleet.of(places([8], [alone(job, 3, 1.0 + job) for job in range(5)]))
    return answered(Flow.of(fleet, np.array(uses, dtype=np.int64), ints(*given)).program(whole=True))


def ints(*numbers: int) -> Ints:
    return np.array(numbers, dtype=np.int64)


def test_what_is_given_takes_its_gpus_from_those_who_choose() -> None:
    unit = 5.0 / 1000.0
    assert with_given([3, 4], []).objective * unit == pytest.approx(9.0)
    assert with_given([3, 4], [0]).objective * unit == pytest.approx(5.0), "room for two in all"
    assert with_given([3, 4], [0, 1]).objective == pytest.approx(0.0)


def test_more_given_than_there_is_room_for_has_no_answer() -> None:
    assert not with_given([4], [0, 1, 2]).found


def test_only_the_uses_that_may_be_chosen_are_columns() -> None:
    fleet = Fleet.of(places([8], [alone(0, 3, 9.0), alone(1, 3, 1.0), alone(2, 3, 5.0)]))
    flow = Flow.of(fleet, ints(1, 2))
    x, arcs, windows = flow.parts(answered(flow.program(whole=True)).x)
    assert x.tolist() == pytest.approx([1.0, 1.0])
    assert (len(arcs), len(windows)) == (len(fleet.arc_way), 0)
    assert arcs.sum() == 2


def test_parts_of_an_answer_are_choices_arcs_and_windows_in_whole_numbers() -> None:
    fleet = Fleet.of(places([8, 8], [gang(0, 12), alone(1, 4)]))
    flow = Flow.of(fleet)
    arcs = len(fleet.arc_way)
    solution = np.concatenate([[0.25, 1.0], np.full(arcs, 0.9999999), [2.0000001]])
    x, some, windows = flow.parts(solution)
    assert x.tolist() == [0.25, 1.0]
    assert (some.tolist(), windows.tolist()) == ([1] * arcs, [2])
    assert some.dtype == windows.dtype == np.int64


def test_prices_are_in_the_problems_values_and_never_below_nothing() -> None:
    fleet = Fleet.of(places([8], [alone(0, 3, 50.0), alone(1, 2, 5.0)]))
    flow = Flow.of(fleet)
    rows = len(flow.program(whole=False).most_row)
    price = np.arange(rows, dtype=np.float64)  # two rows of jobs, then the ways
    assert flow.way_prices(price).tolist() == pytest.approx([2.0 * 0.05, 3.0 * 0.05])
    assert flow.way_prices(-price).tolist() == [0.0, 0.0]


def test_thousands_of_servers_and_jobs_that_look_alike_are_one_small_program() -> None:
    problem = places([8] * 2000, [alone(job, 3, 1.0) for job in range(10)])
    answer = classes(problem)
    assert (answer.objective, answer.how) == (10.0, How.EXACT)
