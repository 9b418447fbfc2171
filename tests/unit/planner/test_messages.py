"""A plan goes through the pipe as parts, and what is no plan is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

from slurm_fair.model import Plan
from slurm_fair.planner.messages import plan_data, plan_of
from tests.support.planning import shown
from tests.support.solving_policies import plain


class Own(NamedTuple):
    """A kind of tuple that no journal keeps."""

    number: int


def plan() -> Plan:
    """A plan with verdicts, places and reasons."""
    return plain(shown())


def test_a_plan_comes_out_as_it_went_in() -> None:
    before = plan()
    after = plan_of(plan_data(before))
    assert after.verdict.tolist() == before.verdict.tolist()
    assert after.places.node.tolist() == before.places.node.tolist()
    assert after.explanation.reasons == before.explanation.reasons
    np.testing.assert_array_equal(after.explanation.score, before.explanation.score)
    assert after.explanation.rank.tolist() == before.explanation.rank.tolist()
    assert len(after.places.row) > 0
    assert after.reserve_after is None


def test_what_a_plan_says_of_the_wait_of_gangs_comes_out_as_it_went_in() -> None:
    says = np.array([1.0, math.nan, math.inf, 0.0])
    after = plan_of(plan_data(replace(plan(), reserve_after=says))).reserve_after
    np.testing.assert_array_equal(after, says)


def test_its_memory_is_as_a_journal_gives_it_back() -> None:
    kept = {"a": MappingProxyType({"b": [Own(1), (2, Own(3))]}), "c": 4}
    memory = plan_data(replace(plan(), memory=kept))["memory"]
    assert memory == {"a": {"b": [(1,), (2, (3,))]}, "c": 4}
    assert type(memory["a"]) is dict
    assert type(memory["a"]["b"][0]) is type(memory["a"]["b"][1][1]) is tuple


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"verdict": None}, "its verdict is no column of numbers"),
        ({"verdict": np.zeros((2, 2), dtype=np.int8)}, "its verdict is no column of numbers"),
        ({"verdict": np.zeros(4)}, "its verdict is no column of numbers"),
        ({"score": np.array(["a"] * 4)}, "its score is no column of numbers"),
        ({"reasons": ["a list"]}, "its reasons are no texts"),
        ({"reasons": (1,)}, "its reasons are no texts"),
        ({"memory": []}, "its memory is no mapping"),
        ({"reserve_after": 60.0}, "its reserve_after is no column of numbers"),
        ({"reserve_after": np.zeros(3)}, "its reserve_after has 3 entries, its verdict 4"),
        ({"verdict": np.full(4, 99, dtype=np.int8)}, "its verdict holds numbers that mean nothing"),
        ({"verdict": np.full(4, -1, dtype=np.int8)}, "its verdict holds numbers that mean nothing"),
        ({"reason": np.full(4, 99)}, "its reason holds numbers that mean nothing"),
        (
            {"row": np.array([4]), "node": np.array([0]), "gpus": np.array([1])},
            "its row holds numbers that mean",
        ),
    ],
)
def test_parts_that_are_no_plan_are_refused(change: Mapping[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        plan_of({**plan_data(plan()), **change})


def test_what_is_no_mapping_is_no_plan() -> None:
    with pytest.raises(ValueError, match="it is no plan"):
        plan_of("a plan")
