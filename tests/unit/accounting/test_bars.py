"""Bars beside names as inline SVG."""

from __future__ import annotations

import math

import numpy as np

from slurm_fair_accounting.drawing.bars import Measure, bars
from slurm_fair_accounting.drawing.plot import Axis

HAD = Measure("had", np.array([2.0, 50.0, math.nan]), ["2 h", "50 h", "-"])
NAMES = ["vision", "a tenant with a very long name", "<b>"]


def drawn(*measures: Measure, across: float = math.nan) -> str:
    return bars(
        "GPU-hours", NAMES, measures, Axis("GPU-hours", 0.0, 10.0, ticks=((0.0, "0"), (10.0, "10"))), across
    )


def test_each_value_has_a_bar_and_its_words_and_no_name_is_markup() -> None:
    figure = drawn(HAD)
    for words in ("2 h", "50 h", "GPU-hours", "&lt;b&gt;"):
        assert words in figure
    assert "<b>" not in figure


def test_two_measures_have_a_legend_and_one_has_none() -> None:
    owed = Measure("owed", np.array([1.0, 1.0, 1.0]), ["1 h"] * 3, place=1)
    one, two = drawn(HAD), drawn(HAD, owed)
    assert (">had<" in one, ">had<" in two, ">owed<" in two) == (False, True, True)


def test_a_limit_is_drawn_only_inside_the_axis() -> None:
    assert 'class="limit"' in drawn(HAD, across=1.0)
    assert 'class="limit"' not in drawn(HAD, across=1e9)
    assert 'class="limit"' not in drawn(HAD)
