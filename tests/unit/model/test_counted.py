"""Numbers of things in words."""

from __future__ import annotations

import pytest

from slurm_fair.model.counted import counted, cut_at_word, first_of, first_sayings, one_of


def test_one_thing_is_single_and_any_other_number_is_many() -> None:
    assert [counted(number, "job") for number in (0, 1, 2)] == ["0 jobs", "1 job", "2 jobs"]


@pytest.mark.parametrize(
    ("most", "names", "sayings"),
    [(3, "a, b, c", "a; b; c"), (2, "a, b and 1 more", "a; b; and 1 more")],
)
def test_a_long_list_is_cut_and_says_how_many_are_left(most: int, names: str, sayings: str) -> None:
    assert (first_of(["a", "b", "c"], most), first_sayings(["a", "b", "c"], most)) == (names, sayings)


def test_sayings_that_are_some_of_many_say_how_many_there_are() -> None:
    assert first_sayings(["a", "b"], 2, of=7) == "a; b; and 5 more"
    assert first_sayings([], 2) == ""


def test_a_thing_has_its_article() -> None:
    assert [one_of(thing) for thing in ("object", "set", "Event", "ndarray")] == [
        "an object",
        "a set",
        "an Event",
        "a ndarray",
    ]


@pytest.mark.parametrize(
    ("text", "most", "kept"),
    [
        ("the disk is full", 16, "the disk is full"),
        ("the disk is full", 15, "the disk is..."),
        ("the disk is full", 14, "the disk is..."),
        ("the disk is full", 13, "the disk..."),
        ("x" * 30, 10, "xxxxxxx..."),
    ],
)
def test_a_long_text_is_cut_at_a_word_and_says_so(text: str, most: int, kept: str) -> None:
    assert cut_at_word(text, most) == kept
