"""The known name that somebody may have meant."""

from __future__ import annotations

import pytest

from slurm_fair.suggest import did_you_mean

KNOWN = ("astraea", "gavel", "tiresias")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("gavle", "did you mean 'gavel'?"),
        ("astrea", "did you mean 'astraea'?"),
        ("fifo", "known are astraea, gavel, tiresias"),
        ("", "known are astraea, gavel, tiresias"),
    ],
)
def test_the_most_like_name_is_asked_for_else_all_are_named(wrong: str, said: str) -> None:
    assert did_you_mean(wrong, KNOWN) == said


def test_what_is_said_otherwise_goes_before_a_list() -> None:
    assert did_you_mean("fifo", KNOWN, "see --help") == "see --help"
    assert did_you_mean("gavle", KNOWN, "see --help") == "did you mean 'gavel'?"
    assert did_you_mean("fifo", ()) == "none is known"


def test_a_very_long_word_is_compared_by_its_beginning() -> None:
    known = "a" * 80
    assert did_you_mean(known + "b" * 1000, [known]) == f"did you mean '{known}'?"
