"""Words of options are shown as they are typed, and taken in capitals too."""

from __future__ import annotations

import math

import click
import pytest

from slurm_fair.cli.simulate.options import RENEWAL, SECONDS_OR_NEVER
from tests.support.command_line import call


@pytest.mark.parametrize("text", ["never", "NEVER", "Never"])
def test_never_is_taken_in_any_case(text: str) -> None:
    assert SECONDS_OR_NEVER.convert(text, None, None) == math.inf


@pytest.mark.parametrize(("text", "word"), [("AUTO", "auto"), ("Term", "term")])
def test_the_words_of_a_renewal_are_taken_in_any_case(text: str, word: str) -> None:
    assert RENEWAL.convert(text, None, None) == word


def test_a_misspelt_word_is_asked_for() -> None:
    with pytest.raises(click.BadParameter, match="did you mean 'never'"):
        SECONDS_OR_NEVER.convert("nevr", None, None)


def test_help_shows_them_as_they_are_typed() -> None:
    said = call("simulate", "--help").out
    assert "--reserve-after S|never" in said
    assert "--renewal S|auto|term" in said
