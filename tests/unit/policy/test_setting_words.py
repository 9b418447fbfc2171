"""The words of a policy's settings, of a policy that has them, has others, or is not to be had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from slurm_fair.model import Plan
from slurm_fair.policy import View, names
from slurm_fair.policy.registry import settings_of
from slurm_fair.policy.setting_words import SettingWords, explanation_of
from tests.support.strange_policies import Plain, entry, installed

WORDS = SettingWords("the oldest first", {"patience": "seconds until it gives up"})


@dataclass(frozen=True)
class _Patient:
    """A policy of somebody else that explains its settings."""

    setting_words: ClassVar[SettingWords] = WORDS
    patience: float = 1.0

    def plan(self, view: View) -> Plan:
        return Plain().plan(view)


@dataclass(frozen=True)
class _Terse(_Patient):
    """One whose words are none of ours."""

    setting_words: ClassVar[str] = "patience: seconds"  # type: ignore[assignment]


def test_a_policy_of_somebody_else_explains_its_settings_too() -> None:
    with installed(mine=_Patient):
        assert explanation_of("mine") is WORDS


@pytest.mark.parametrize("kind", [Plain, _Terse])
def test_a_policy_without_such_words_has_no_explanation(kind: type) -> None:
    with installed(mine=kind):
        assert explanation_of("mine") is None


def test_a_policy_that_is_not_there_has_no_explanation_and_gives_no_error() -> None:
    assert explanation_of("no-such-policy") is None


@pytest.mark.parametrize(
    "value", ["no_such_module:Policy", "tests.support.strange_policies:NoSuchPolicy", "json:dumps"]
)
def test_a_policy_that_cannot_be_loaded_has_no_explanation_and_gives_no_error(value: str) -> None:
    with entry("mine", value):
        assert explanation_of("mine") is None


@pytest.mark.parametrize("policy", names())
def test_words_are_said_of_settings_that_there_are(policy: str) -> None:
    words = explanation_of(policy)
    if words is not None:
        assert words.policy.strip()
        assert set(words.of) <= set(settings_of(policy))
        assert all(text.strip() for text in words.of.values())
