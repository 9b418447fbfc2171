"""Policies by name, and their settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from slurm_fair.errors import ConfigError, PolicyError, SlurmFairError
from slurm_fair.policy import Policy, load, names, registry
from slurm_fair_plugins.astraea import Astraea


def test_ours_is_found_like_anybody_elses() -> None:
    assert "astraea" in names()
    assert load("astraea", {}) == Astraea()
    assert isinstance(load("astraea", {}), Policy)


def test_settings_reach_the_fields() -> None:
    policy = load("astraea", {"new_jobs_first": False, "keep_long_renewed": 3, "choose_share": "demand"})
    assert policy == Astraea(new_jobs_first=False, keep_long_renewed=3, choose_share="demand")


WRONG: list[tuple[str, dict[str, object], type[SlurmFairError], str]] = [
    ("astrea", {}, PolicyError, "unknown policy 'astrea': did you mean 'astraea'?"),
    ("zzz", {}, PolicyError, "unknown policy 'zzz': known are "),
    ("astraea", {"choose_shares": "quota"}, ConfigError, "'choose_shares': did you mean 'choose_share'?"),
    ("astraea", {"qqq": 1}, ConfigError, "unknown setting 'qqq': known are choose_share, keep_long_renewed"),
    ("astraea", {"choose_share": "quotas"}, ConfigError, "choose_share = 'quotas': did you mean 'quota'?"),
    ("astraea", {"keep_long_renewed": "3"}, ConfigError, "keep_long_renewed = '3': expected int, got str"),
    ("astraea", {"keep_long_renewed": True}, ConfigError, "expected int, got bool"),
    ("astraea", {"keep_long_renewed": -1}, ConfigError, "keep_long_renewed = -1: give a whole number from 0"),
    ("astraea", {"new_jobs_first": 1}, ConfigError, "new_jobs_first = 1: expected bool, got int"),
    ("astraea", {"placement": "consolidate"}, ConfigError, "'consolidate': did you mean 'consolidated'?"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "settings", "kind", "says"), WRONG, ids=[w[3] for w in WRONG])
def test_what_is_wrong_is_said_in_one_line(
    name: str, settings: dict[str, object], kind: type[SlurmFairError], says: str
) -> None:
    with pytest.raises(kind) as caught:
        load(name, settings)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@dataclass(frozen=True)
class _Entry:
    name: str
    value: str
    loads: Any

    def load(self) -> Any:
        if isinstance(self.loads, Exception):
            raise self.loads
        return self.loads


@pytest.mark.parametrize(
    ("loads", "says"),
    [
        (ImportError("No module named 'gone'"), "cannot be loaded from site:Own: No module named 'gone'"),
        (dict, "is no dataclass with a method plan"),
        (Astraea(), "is no dataclass with a method plan"),
    ],
    ids=["a module that is missing", "a class of another kind", "an object instead of its class"],
)
def test_a_broken_plugin_is_a_policy_error(monkeypatch: pytest.MonkeyPatch, loads: Any, says: str) -> None:
    monkeypatch.setattr(registry, "_found", lambda: {"own": _Entry("own", "site:Own", loads)})
    with pytest.raises(PolicyError, match=says):
        load("own", {})
