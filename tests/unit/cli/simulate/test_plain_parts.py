"""The value of `--plain`: parts of all tenants' jobs and of some."""

from __future__ import annotations

import click
import pytest

from slurm_fair.cli.simulate.plain_parts import in_one_way, plain_parts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("0.2", {"": 0.2}),
        ("0", {"": 0.0}),
        ("1", {"": 1.0}),
        ("vision=1", {"vision": 1.0}),
        (" 0.2 , vision = 1 ", {"": 0.2, "vision": 1.0}),
        ("a=b=0.5", {"a=b": 0.5}),  # a tenant's name may have the sign
        ("a b=0.5", {"a b": 0.5}),
    ],
)
def test_a_part_is_of_all_tenants_or_of_the_one_that_it_names(text: str, parts: dict[str, float]) -> None:
    assert plain_parts(text) == parts


@pytest.mark.parametrize(
    "text", ["", " ", ",", "a", "a=", "=1", "=", "-0.1", "1.01", "nan", "inf", "-inf", "a=0.5%", "0x1"]
)
def test_what_is_no_part_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"write such as 0\.2,vision=1"):
        plain_parts(text)


@pytest.mark.parametrize("text", ["0.1,0.1", "a=1,b=1, a =1"])
def test_two_parts_of_the_same_are_refused_though_they_are_alike(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is there twice"):
        plain_parts(text)


def test_the_same_parts_are_written_in_one_way() -> None:
    assert in_one_way(" b=1.0, 0.50 ,a=0") == "0.5,a=0,b=1"
    assert in_one_way("a=0,0.5,b=1") == "0.5,a=0,b=1"
    assert in_one_way("0.5,a=0") != in_one_way("0.5")
    assert in_one_way("0.1234567") != in_one_way("0.1234571")
    assert in_one_way("-0") == in_one_way("0") == "0"
    assert plain_parts(in_one_way("b=0.25,0.125")) == {"": 0.125, "b": 0.25}
