"""Findings about plans: which process makes them, and how many failed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slurm_fair.config.tree import from_tree
from slurm_fair.doctor import Level, plans
from slurm_fair.doctor.facts import Facts
from slurm_fair.host.state_folder import Places


def said(tmp_path: Path, tree: dict[str, Any], **tally: Any) -> list[tuple[Level, str]]:
    """The findings of a site with this configuration, and this tally of the daemon."""
    if tally:
        kept = {"v": 1, "since": 1000.0, "made": 9, "failed": 0, "why": "", "failed_at": 0.0}
        (tmp_path / "plans.json").write_text(json.dumps(kept | tally))
    config = from_tree(tree, "here")
    facts = Facts(config, Places(tmp_path), 2000.0, 0, "root")
    return [(found.level, found.what) for found in plans.findings(facts)]


def test_of_a_policy_that_solves_nothing_and_a_daemon_that_never_ran_there_is_nothing_to_say(
    tmp_path: Path,
) -> None:
    assert said(tmp_path, {"policy": {"name": "astraea"}}) == []


def test_a_policy_that_solves_is_told_with_its_bounds(tmp_path: Path) -> None:
    ((level, what),) = said(tmp_path, {"policy": {"name": "gavel", "plan_limit": 12, "plan_memory_mb": 1024}})
    assert level is Level.OK
    assert what == (
        "policy gavel plans in a process of its own: 12 s and 1024 MB at most, else its quick plan stands in"
    )


def test_plans_that_failed_are_a_warning_and_none_is_fine(tmp_path: Path, utc: None) -> None:
    unsolved = {"policy": {"name": "astraea"}}
    assert said(tmp_path, unsolved, made=9) == [
        (Level.OK, "all plans since 1970-01-01 00:16:40 were made in time (9)")
    ]
    assert said(tmp_path, unsolved, made=9, failed=2, why="it was late", failed_at=1500.0) == [
        (Level.WARNING, "2 of 9 plans since 1970-01-01 00:16:40 failed, the last because it was late")
    ]


@pytest.mark.parametrize("name", ["nosuch"])
def test_a_policy_that_cannot_be_loaded_is_told_elsewhere(tmp_path: Path, name: str) -> None:
    assert said(tmp_path, {"policy": {"name": name}}) == []
