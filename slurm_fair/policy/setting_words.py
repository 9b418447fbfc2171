"""The settings of a policy in words, for the file that a site edits and for the page on the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from slurm_fair.errors import PolicyError
from slurm_fair.policy.registry import kind_of

PLACEMENT_WORDS = (
    "how a gang is laid over nodes. consolidated: on as few as possible; relaxed: over more rather than wait, "
    "where its user left that open; or the name of an entry point of the group slurm_fair.placements"
)

URGENT_WORDS = (
    "jobs with a deadline that go before all others of their tenant. tight: those that miss it if they run a "
    "lease later; any: all that can still make it; off: none"
)


class SettingWords(NamedTuple):
    """A policy and each of its settings; a policy has them as its class attribute `setting_words`."""

    policy: str
    of: Mapping[str, str]  # by setting


def explanation_of(policy: str) -> SettingWords | None:
    """The words of a policy that explains its settings."""
    try:
        words = getattr(kind_of(policy), "setting_words", None)
    except PolicyError:  # whoever loads the policy says so
        return None
    return words if isinstance(words, SettingWords) else None
