"""The rests after failures in a row."""

from __future__ import annotations

import pytest

from slurm_fair.model.retries import Growth, Retries


@pytest.mark.parametrize(
    ("growth", "rests"),
    [
        (Growth(30.0, 3600.0), [30.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 3600.0, 3600.0]),
        (Growth(30.0, 3600.0, spared=1), [0.0, 30.0, 60.0, 120.0]),
        (Growth(5.0, 3600.0), [5.0, 10.0, 20.0, 40.0]),
        (Growth(9000.0, 9000.0), [9000.0, 9000.0]),
    ],
)
def test_each_rest_is_twice_the_one_before_up_to_the_longest(growth: Growth, rests: list[float]) -> None:
    retries: Retries[str] = Retries()
    for times, seconds in enumerate(rests, 1):
        retries = retries.failed(["a"], 100.0, growth)
        assert retries.due == {"a": (100.0 + seconds, times)}
    assert growth.rest_after(10**9) == growth.most_seconds


def test_who_is_forgotten_begins_anew() -> None:
    retries = Retries({"a": (50.0, 3), "b": (60.0, 1), "c": (70.0, 2)})
    assert dict(retries.without(["a"]).due) == {"b": (60.0, 1), "c": (70.0, 2)}
    assert dict(retries.only(["a", "z"]).due) == {"a": (50.0, 3)}
    assert retries.without(["a"]).failed(["a", "b"], 0.0, Growth(1.0, 8.0)).due == {
        "a": (1.0, 1),
        "b": (2.0, 2),
        "c": (70.0, 2),
    }


def test_a_rest_is_over_at_its_end() -> None:
    assert Retries({"a": (50.0, 3), "b": (60.0, 1)}).resting(50.0) == ["b"]
