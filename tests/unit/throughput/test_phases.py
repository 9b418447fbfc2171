"""Parts of a step against the time that computing takes, as jobs report them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slurm_fair.throughput.phases import (
    BACKWARD,
    BACKWARD_DOUBT,
    REPORTED_DOUBT,
    UPDATE,
    StepShares,
    shares_of,
)
from slurm_fair.throughput.timing import Pattern
from tests.support.speed_samples import NAN, samples

PHASES = {"forward": 0.2, "backward": 0.5, "update": 0.3}


def shares(*rows: dict[str, Any], weight: list[float] | None = None) -> StepShares:
    """The shares of one group of samples."""
    group = np.zeros(len(rows), dtype=np.int64)
    return shares_of(samples(*rows), group, np.array(weight or [1.0] * len(rows)), 1)


def test_shares_are_parts_of_what_is_reported() -> None:
    said = shares({**{name: 2 * value for name, value in PHASES.items()}, "data": 0.4})
    assert said.backward.tolist() == [0.5]
    assert said.update.tolist() == [0.3]
    assert said.computing.tolist() == [2.0]
    assert said.backward_doubt.tolist() == [REPORTED_DOUBT]
    assert said.hit.tolist() == said.miss.tolist() == [0.2]


def test_what_nobody_reports_is_guessed() -> None:
    for rows in ({}, {"data": 0.4}, {"forward": 0.2}):
        said = shares(rows)
        assert said.backward.tolist() == [BACKWARD]
        assert said.update.tolist() == [UPDATE]
        assert said.backward_doubt.tolist() == [BACKWARD_DOUBT]
        assert [said.hit[0], said.miss[0], said.misses[0]] == [0.0, 0.0, 0.0]
        assert np.isnan(said.computing[0])


def test_an_update_that_is_not_said_takes_no_time() -> None:
    said = shares({**PHASES, "update": NAN})
    assert said.update.tolist() == [0.0]
    assert said.computing == pytest.approx([0.7])


def test_shares_that_cannot_be_are_brought_into_bounds() -> None:
    assert shares({"forward": 0.0, "backward": 1.0, "update": 0.0}).backward.tolist() == [0.9]
    assert shares({"forward": 1.0, "backward": 0.0, "update": 0.0}).backward.tolist() == [0.05]
    assert shares({"forward": 0.0, "backward": 0.0, "update": 1.0}).update.tolist() == [0.9]


def test_the_middle_report_counts() -> None:
    rows = [{**PHASES, "backward": value} for value in (0.5, 0.5, 99.0)]
    assert shares(*rows).backward.tolist() == [0.5]


def test_the_pattern_that_most_samples_say_holds() -> None:
    first, overlaps = {"pattern": Pattern.DATA_FIRST}, {"pattern": Pattern.DATA_OVERLAPS}
    assert shares(first, first, overlaps, {}, {}).pattern.tolist() == [Pattern.DATA_FIRST]
    assert shares(first, first, overlaps, weight=[1.0, 1.0, 3.0]).pattern.tolist() == [Pattern.DATA_OVERLAPS]
    assert shares({}).pattern.tolist() == [Pattern.DATA_OVERLAPS]


def test_parts_of_a_step_add_up_to_its_computing() -> None:
    two = shares_of(samples({**PHASES, "data": 0.5}, {}), np.arange(2), np.ones(2), 2)
    parts = two.parts(np.array([[1.0, 2.0], [4.0, 8.0]]), np.array([[0.5, 0.99], [0.5, 0.0]]))
    whole = parts.forward + parts.backward + parts.update
    assert whole == pytest.approx(np.array([[1.0, 2.0], [4.0, 8.0]]))
    assert parts.backward == pytest.approx(np.array([[0.5, 2 * 0.65], [2.0, 8 * 0.05]]))
    assert parts.hit == pytest.approx(np.array([[0.5, 1.0], [0.0, 0.0]]))
    assert parts.misses.tolist() == [[0.0], [0.0]]
    assert two.take(np.array([1])).update.tolist() == [UPDATE]
