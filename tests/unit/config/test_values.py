"""Values of a TOML document as the types of the configuration."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

import pytest

from slurm_fair.config.sections import GpuWeightSetting, LinkSetting
from slurm_fair.config.values import typed
from slurm_fair.errors import ConfigError

GOOD: list[tuple[str, Any, Any]] = [
    ("2", float, 2.0),
    ("2.5", float, 2.5),
    ("2", int, 2),
    ("true", bool, True),
    ('"x"', str, "x"),
    ('"auto"', float | str, "auto"),
    ("9", float | str, 9.0),
    ('["gpu", "big"]', tuple[str, ...], ("gpu", "big")),
    ("{ a = 2, b = 0.5 }", Mapping[str, float], {"a": 2.0, "b": 0.5}),
    ('"slurm"', GpuWeightSetting, "slurm"),
    ("{ a100 = 1, v100 = 0 }", GpuWeightSetting, {"a100": 1.0, "v100": 0.0}),
    ("{ a100 = { net = 5e9 } }", LinkSetting, {"a100": {"net": 5e9}}),
]
BAD: list[tuple[str, Any, str]] = [
    ("true", float, "x.y must be a number, not true"),
    ("1", bool, "x.y must be true or false, not 1"),
    ("true", int, "x.y must be a whole number, not true"),
    ("2", str, "x.y must be a string, not 2"),
    ('"gpu"', tuple[str, ...], 'x.y must be a list of names, such as ["gpu"]'),
    ('[""]', tuple[str, ...], "x.y must be a list of names"),
    ("3", Mapping[str, float], "x.y must be a table of account = weight"),
    ("{ a = true }", Mapping[str, float], "x.y.a must be a weight above 0"),
    ("[]", GpuWeightSetting, "x.y must be a table such as { a100 = 1, v100 = 0.5 }"),
    ("7", LinkSetting, "x.y must be a table such as { a100 = { link = 6e10, net = 5e9 } }"),
    ("{ a100 = { nett = 5e9 } }", LinkSetting, "x.y: a100.nett is no rate"),
]


def read(text: str) -> Any:
    return tomllib.loads(f"value = {text}")["value"]


@pytest.mark.parametrize(("text", "hint", "value"), GOOD)
def test_a_value_has_the_type_of_its_field(text: str, hint: Any, value: Any) -> None:
    found = typed(read(text), hint, "x.y")
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(("text", "hint", "words"), BAD)
def test_another_value_is_refused_with_what_it_should_be(text: str, hint: Any, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        typed(read(text), hint, "x.y")
    assert str(caught.value).startswith(words)
