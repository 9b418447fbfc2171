"""The parts of the daemon, as its configuration wants them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from slurm_fair.config.lease import LeaseSection
from slurm_fair.config.sections import Config, SlurmSection
from slurm_fair.config.tree import from_tree
from slurm_fair.config.words import config_page
from slurm_fair.daemon.parts import (
    commands_of,
    conf_of,
    heartbeat_limit,
    knowing_rules_of,
    planner_of,
    rules_of,
    waiting_for_start,
)
from slurm_fair.errors import ConfigError, SlurmFairError
from slurm_fair.host.state_folder import Places
from slurm_fair.throughput import Alike

TIMED = "ClusterName=c\nMessageTimeout = 60\nSlurmctldHost=ctl\n"


def config(**tree: Any) -> Config:
    return from_tree(tree, "here.toml")


@pytest.fixture(autouse=True)
def _no_site(monkeypatch: pytest.MonkeyPatch) -> None:
    """No slurm.conf is found by itself."""
    monkeypatch.setenv("SLURM_CONF", "/nowhere/slurm.conf")


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "slurm.conf"
    path.write_text(TIMED)
    return path


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Storage of this account's own."""
    (tmp_path / "state").mkdir()
    return Places(tmp_path / "state")


# -- the rules of a tick --------------------------------------------------------------------------------------


def test_the_rules_of_a_tick_are_those_of_the_configuration() -> None:
    rules = rules_of(
        config(
            policy={"name": "astraea", "plan_limit": 7.0, "astraea": {"swap_after": 3}},
            lease={"term": 600, "interval": 20},
            guard={"max_revokes": 1, "max_opens": 2, "max_closes": 3, "shrink_alarm": 0.5},
            tenants={"counted": "all", "half_life": 99.0},
        )
    )
    limits = rules.limits
    assert (rules.policy_name, rules.settings["swap_after"], rules.plan_limit_seconds) == ("astraea", 3, 7.0)
    assert (rules.terms.term, rules.terms.interval) == (600.0, 20.0)
    assert (limits.revokes, limits.opens, limits.closes, limits.shrink_alarm) == (1, 2, 3, 0.5)
    assert (rules.ledger.everyone_counts, rules.ledger.half_life_seconds) == (True, 99.0)
    assert rules.profiling is None
    assert rules_of(config(profiler={"enabled": True})).profiling is not None


def test_settings_that_nobody_named_are_in_the_rules_as_well() -> None:
    """A journal keeps what a plan was made with."""
    named, bare = (
        rules_of(config(policy={"name": "astraea", "astraea": given})) for given in ({"swap_after": 3}, {})
    )
    assert named.settings.keys() == bare.settings.keys()
    assert len(bare.settings) > 1


@pytest.mark.parametrize(
    ("term", "limit", "seconds"), [(900, 30, 30), (40, 30, 20), (4, 30, 5), (900, 2, 2), (4, 2, 2)]
)
def test_a_plan_may_take_half_a_lease_and_five_seconds_at_least(
    term: float, limit: float, seconds: float
) -> None:
    given = config(lease={"term": term, "interval": 1, "grace": 1}, policy={"plan_limit": limit})
    assert rules_of(given).plan_limit_seconds == seconds


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({"name": "no such policy"}, "no such policy"),
        ({"name": "astrea"}, "astraea"),
        ({"name": "fifo", "astraea": {"swap_after": "soon"}}, "swap_after"),
        ({"name": "fifo", "astraea": {"no_such": 1}}, "no_such"),
        ({"name": "astraea", "astraea": {"=x" * 999: 1}}, "astraea"),
    ],
)
def test_a_policy_or_a_setting_that_cannot_be_is_told_in_one_line_whether_in_force_or_not(
    policy: dict[str, Any], words: str
) -> None:
    with pytest.raises(SlurmFairError) as told:
        rules_of(config(policy=policy))
    assert words in str(told.value)
    assert "\n" not in str(told.value)


# -- learning and planning ------------------------------------------------------------------------------------


def test_the_rules_of_learning_are_those_of_the_configuration() -> None:
    section = {"learn": False, "alike": "model", "half_life_days": 3.0, "links": {"a100": {"net": 5e9}}}
    rules = knowing_rules_of(config(throughput=section))
    assert (rules.learns, rules.alike, rules.keeping.half_life_days) == (False, Alike.MODEL, 3.0)
    assert (rules.links.gpu_types, rules.links.net.tolist()) == (("a100",), [5e9])
    assert len(knowing_rules_of(Config()).links) == 0


def test_a_policy_that_answers_at_once_needs_no_planner() -> None:
    given = config(policy={"name": "fifo"})
    assert planner_of(given, rules_of(given)) is None


@pytest.mark.parametrize(("late", "keeps"), [("drop", False), ("next", True)])
def test_a_policy_that_solves_has_a_process_under_way(late: str, keeps: bool) -> None:
    given = config(policy={"name": "fair", "late_plan": late, "plan_memory_mb": 512})
    planner = planner_of(given, rules_of(given))
    assert planner is not None
    try:
        assert planner.process is not None
        assert (planner.limits.memory_mb, planner.limits.keeps_late) == (512, keeps)
    finally:
        planner.close()
        if planner.process is not None:
            planner.process.close()


# -- Slurm's commands -----------------------------------------------------------------------------------------


def test_commands_run_as_the_configuration_says(tmp_path: Path) -> None:
    commands = commands_of(config(slurm={"bin_dir": "/opt/bin", "timeout": 7.5}), Places(tmp_path))
    assert (commands.bin_dir, commands.timeout_seconds, commands.conf) == (Path("/opt/bin"), 7.5, None)
    assert commands_of(Config(), Places(tmp_path)).bin_dir is None


def test_the_daemons_own_storage_gets_a_copy_of_slurm_conf_with_a_short_timeout(
    conf: Path, places: Places
) -> None:
    commands = commands_of(Config(slurm=SlurmSection(conf=str(conf), client_timeout=4)), places)
    assert commands.conf == places.slurm_conf
    text = places.slurm_conf.read_text()
    assert "MessageTimeout=4\n" in text
    assert "60" not in text
    assert conf.read_text() == TIMED


@pytest.mark.parametrize("there", [True, False])
def test_elsewhere_slurm_conf_is_taken_as_it_is(
    conf: Path, places: Places, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Storage of another account, or none."""
    if there:
        mine = places.directory.stat().st_uid
        monkeypatch.setattr("slurm_fair.daemon.parts.os.geteuid", lambda: mine + 1)
    else:
        places.directory.rmdir()
    assert commands_of(Config(slurm=SlurmSection(conf=str(conf))), places).conf == conf
    assert not places.slurm_conf.exists()


def test_slurm_conf_is_found_by_the_environment_where_nobody_names_it(
    conf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(conf))
    assert conf_of(Config()) == conf


@pytest.mark.parametrize("name", ["absent.conf", ".", "x" * 5000, "a b='"])
def test_a_slurm_conf_that_is_not_there_is_named_with_the_file_that_names_it(
    name: str, tmp_path: Path
) -> None:
    wrong = Config(slurm=SlurmSection(conf=str(tmp_path / name)), source="/etc/site.toml")
    with pytest.raises(
        ConfigError, match=r"^/etc/site\.toml: slurm\.conf = '.*': there is no such file$"
    ) as told:
        conf_of(wrong)
    assert name in str(told.value)


# -- the heartbeat --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("term", "limit"), [(900.0, 675.0), (4.0, 3.0), (3.0, 3.0), (2.0, 2.0), (0.1, 0.1)])
def test_the_dead_man_waits_three_quarters_of_a_lease_and_no_longer_than_one(
    term: float, limit: float
) -> None:
    assert heartbeat_limit(Config(lease=LeaseSection(term=term))) == limit


def test_the_page_of_the_configuration_names_each_setting_that_waits_for_a_start() -> None:
    other = config(
        storage={"dir": "/x", "keep_days": 1}, slurm={"conf": "/x", "client_timeout": 1, "notice": False}
    )
    waiting = waiting_for_start(Config(), other)
    assert len(waiting) == 4
    (line,) = [line for line in config_page().splitlines() if "wait for a restart" in line]
    assert all(f"`{name}`" in line for name in waiting)
