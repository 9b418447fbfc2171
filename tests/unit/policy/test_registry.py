"""Policies by name, and their settings."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from slurm_fair.errors import ConfigError, PolicyError, SlurmFairError
from slurm_fair.model import Plan
from slurm_fair.policy import Policy, View, load, names, registry
from slurm_fair.policy.registry import in_full, load_recorded, settings_of
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
    ("", {}, PolicyError, "the name of the policy is empty; known are "),
    ("zzz", {}, PolicyError, "unknown policy 'zzz': known are "),
    ("astraea", {"choose_shares": "quota"}, ConfigError, "'choose_shares': did you mean 'choose_share'?"),
    ("astraea", {"qqq": 1}, ConfigError, "'qqq': known are choose_share, early_starts, keep_long_renewed"),
    ("astraea", {"choose_share": "quotas"}, ConfigError, "choose_share = 'quotas': did you mean 'quota'?"),
    (
        "astraea",
        {"keep_long_renewed": "3"},
        ConfigError,
        "keep_long_renewed = '3': expected a whole number, got a text",
    ),
    ("astraea", {"keep_long_renewed": True}, ConfigError, "expected a whole number, got true or false"),
    ("astraea", {"keep_long_renewed": -1}, ConfigError, "keep_long_renewed = -1: give a whole number from 0"),
    (
        "astraea",
        {"new_jobs_first": 1},
        ConfigError,
        "new_jobs_first = 1: expected true or false, got a whole number",
    ),
    ("astraea", {"placement": "consolidate"}, ConfigError, "'consolidate': did you mean 'consolidated'?"),
]


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


@dataclass(frozen=True)
class Own:
    """A site's policy, one of whose defaults no configuration could give, and one not even its own type allows."""

    weights: Mapping[str, float]
    part: float = 0.5
    most: int = None  # type: ignore[assignment]
    table: object = field(default_factory=lambda: np.ones(2))

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", tuple(sorted(self.weights.items())))

    def plan(self, view: View) -> Plan:
        raise NotImplementedError


@pytest.mark.parametrize("name", names())
def test_all_settings_of_a_policy_are_plain_and_make_it_again(name: str) -> None:
    policy = load(name, {})
    full = in_full(name, policy, {})
    assert tuple(full) == settings_of(name)
    assert load_recorded(name, json.loads(json.dumps(full))) == policy


def test_given_settings_stand_among_all_of_them() -> None:
    given = {"swap_after": 2, "choose_share": "demand"}
    full = in_full("astraea", load("astraea", given), given)
    assert len(full) == len(settings_of("astraea"))
    assert load_recorded("astraea", full) == Astraea(swap_after=2, choose_share="demand")


def test_defaults_that_cannot_be_given_are_left_out_and_what_is_given_stays_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "_found", lambda: {"own": _Entry("own", "site:Own", Own)})
    given = {"weights": {"b": 2.0, "a": 1.0}}
    full = in_full("own", load("own", given), given)
    assert full == {"part": 0.5, **given}
    made: Any = load_recorded("own", full)
    assert (made.weights, made.part, made.most) == ((("a", 1.0), ("b", 2.0)), 0.5, None)


def test_a_setting_that_a_tick_does_not_name_is_as_it_was_before_its_default_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "_UNNAMED", {"astraea": {"swap_after": 7.0}})
    assert load_recorded("astraea", {"early_starts": 1}) == Astraea(early_starts=1, swap_after=7)
    assert load_recorded("astraea", {"swap_after": 2}) == Astraea(swap_after=2)
    assert load("astraea", {}) == Astraea()
    assert load_recorded("srtf", {}) == load("srtf", {})


def test_a_tick_of_before_is_planned_without_the_settings_that_fair_had_not() -> None:
    before = {"repay_leases": 0, "reserve_part": 1e6, "unknown_beyond": 1, "urgent": "off"}
    assert load_recorded("fair", {}) == load("fair", before)
    assert load_recorded("fair", {"reserve_part": 2}) == load("fair", before | {"reserve_part": 2})


def test_a_name_that_two_packages_have_is_refused_and_both_are_named(tmp_path: Path) -> None:
    """Nobody takes the name of a policy of ours, or of anybody else, without a word."""
    for package, policy in (("one", "Fifo"), ("two", "Fifo"), ("rogue", "Newest")):
        folder = tmp_path / f"{package}-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        module = "rogue" if package == "rogue" else "slurm_fair_plugins.fifo"
        (folder / "entry_points.txt").write_text(f"[{registry.GROUP}]\nfifo = {module}:{policy}\n")
    with patch.object(sys, "path", [*sys.path, str(tmp_path)]), pytest.raises(PolicyError) as caught:
        load("fifo", {})
    said = str(caught.value)
    assert said.startswith("policy 'fifo' is in several packages: rogue (rogue:Newest) and ")
    assert "(slurm_fair_plugins.fifo:Fifo): uninstall one" in said
    assert said.count("Fifo") == 1, "the same class twice is no doubt"
