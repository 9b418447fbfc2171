"""Bounds of the configuration's values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slurm_fair.config.checks import CHOICES, check, setting
from slurm_fair.config.sections import Config
from slurm_fair.errors import ConfigError


def changed(dotted: str, value: Any) -> Config:
    """The defaults with one other value."""
    section, key = dotted.split(".")
    return replace(Config(), **{section: replace(getattr(Config(), section), **{key: value})})


def test_the_defaults_are_within_all_bounds() -> None:
    check(Config())


@pytest.mark.parametrize("dotted", CHOICES)
def test_each_word_of_a_choice_may_be_and_no_other(dotted: str) -> None:
    assert setting(Config(), dotted) in CHOICES[dotted]
    for word in CHOICES[dotted]:
        assert setting(changed(dotted, word), dotted) == word
    with pytest.raises(ConfigError, match=f"{dotted} must be one of "):
        check(changed(dotted, "something else"))


@pytest.mark.parametrize(
    ("dotted", "value", "words"),
    [
        ("lease.term", 0.0, "lease.term must be above 0"),
        ("lease.term", float("nan"), "lease.term must be above 0"),
        ("lease.min_runtime", -1.0, "lease.min_runtime must be 0 or more"),
        ("slurm.timeout", 601.0, "slurm.timeout must be at most 600 s"),
        ("lease.grace", 601.0, "must not exceed lease.max_grace"),
        ("policy.plan_memory_mb", 100.0, "policy.plan_memory_mb must be 256 or more"),
        ("guard.shrink_alarm", 1.5, "guard.shrink_alarm must be a fraction"),
        ("tenants.half_life", 1e-9, "tenants.half_life must be 0, or 0.001 s at least"),
        ("storage.dir", "here", "storage.dir must be an absolute path"),
    ],
)
def test_a_value_out_of_bounds_is_named(dotted: str, value: Any, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check(changed(dotted, value))
    assert words in str(caught.value)
