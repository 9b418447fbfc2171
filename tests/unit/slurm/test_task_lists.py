"""Lists of array tasks are counted from their text, and one user's arrays have a bound."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.errors import SlurmTextError
from slurm_fair.model.ids import MOST_TASKS
from slurm_fair.slurm.reading.task_lists import (
    OF_A_USER,
    TaskList,
    beyond_a_user,
    read_tasks,
)


@pytest.mark.parametrize(
    ("text", "numbers", "limit", "written"),
    [
        ("5-5", [5], 0, "5"),
        ("0", [0], 0, "0"),
        ("3-4,1%1", [3, 4, 1], 1, "3-4,1"),
        ("0-6:3", [0, 3, 6], 0, "0,3,6"),
        ("0-5:3", [0, 3], 0, "0,3"),
        ("2-4:9", [2], 0, "2"),
        ("2-4:1", [2, 3, 4], 0, "2-4"),
        ("[007-010%0]", [7, 8, 9, 10], 0, "7-10"),
        ("1-2%999999999", [1, 2], 999_999_999, "1-2"),
    ],
)
def test_a_list_is_counted_listed_and_written_alike(
    text: str, numbers: list[int], limit: int, written: str
) -> None:
    listed = read_tasks(text)
    assert (listed.numbers().tolist(), listed.count, listed.limit) == (numbers, len(numbers), limit)
    assert listed.numbers().dtype == np.int64
    assert listed.text() == written


@pytest.mark.parametrize(
    "text",
    [
        "0-4000001", "4000001", "1-3%", "1%%2", "1%2%3", "1,", ",1", "1-2-3", "1:2:3", "1\n", " 1", "٣", "-1",
        "1-123456789", "1%1234567890", "1-3:0", "[[1]]",
    ],
)  # fmt: skip
def test_what_is_no_list_is_refused_with_its_beginning(text: str) -> None:
    with pytest.raises(SlurmTextError, match="is no list of array tasks") as problem:
        read_tasks(text)
    assert len(str(problem.value)) < 100


def test_an_array_has_no_more_tasks_than_slurm_allows() -> None:
    assert read_tasks("0-4000000").count == MOST_TASKS
    assert read_tasks("0-4000000").numbers()[-1] == MOST_TASKS - 1
    for text in ("0-4000000,7", ",".join(["0-3999999"] * 2), "9,0-4000000"):
        with pytest.raises(SlurmTextError, match="more tasks than an array can have"):
            read_tasks(text)


def test_a_text_that_is_too_long_for_a_command_is_none() -> None:
    odd = [str(number) for number in range(1, 1002, 2)]
    assert read_tasks(",".join(odd[:500])).text() == ",".join(odd[:500])
    assert read_tasks(",".join(odd[:501])).text() == ""
    assert read_tasks("0-998:2").text().count(",") == 499
    assert read_tasks("0-1000:2").text() == ""
    assert read_tasks("0-3000000,3000002").text() == "0-3000000,3000002"


def test_tasks_of_a_list_are_told_from_others() -> None:
    listed = read_tasks("0-10:5,20-22")
    assert listed.among([0, 1, 5, 10, 11, 20, 22, 23, -1]) == {0, 5, 10, 20, 22}
    assert listed.among([]) == set()
    nothing = TaskList((), 0, 0)
    assert (nothing.numbers().tolist(), nothing.among([0]), nothing.text()) == ([], set(), "")


def _beyond(*rows: tuple[int, int, int]) -> list[bool]:
    """For rows of user, order and number of tasks."""
    user, order, count = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    lists = [TaskList((range(many),), many, 0) for many in count.tolist()]
    return beyond_a_user(user, order, lists).tolist()  # type: ignore[no-any-return]


def test_a_user_may_have_just_so_many_tasks() -> None:
    half = OF_A_USER // 2
    assert _beyond((1, 0, OF_A_USER)) == [False]
    assert _beyond((1, 0, OF_A_USER + 1)) == [True]
    assert _beyond((1, 0, half), (1, 1, half)) == [False, False]
    assert _beyond((1, 0, half), (1, 1, half + 1)) == [False, True]
    assert beyond_a_user(np.zeros(0, np.int64), np.zeros(0, np.int64), []).tolist() == []


def test_the_first_arrays_count_first_and_a_small_one_fits_behind_one_too_large() -> None:
    most = OF_A_USER
    assert _beyond((1, 2, 10), (1, 0, most - 10), (1, 1, 11)) == [False, False, True]
    assert _beyond((1, 5, most), (1, 3, 1)) == [True, False]
    assert _beyond((1, 7, most), (1, 7, most)) == [False, True]


def test_one_users_arrays_leave_room_for_everybody_elses() -> None:
    most = OF_A_USER
    assert _beyond((9, 0, most + 1), (2, 1, most), (9, 2, most), (2, 3, 1), (5, 4, 3)) == [
        True,
        False,
        False,
        True,
        False,
    ]
