"""`replay-tick` of a tick whose plan another stood in for, and of ticks from before a default changed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from slurm_fair.cli.main import cli
from slurm_fair.cli.replay_tick import replayed as planned_again
from slurm_fair.cli.replay_tick import same_plan
from slurm_fair.config.tree import from_tree
from slurm_fair.daemon.parts import rules_of
from slurm_fair.dry_run import DryRun
from slurm_fair.errors import InputError, SlurmFairError
from slurm_fair.ledger import LedgerSettings
from slurm_fair.model import LeaseTerms, Standing, Verdict
from slurm_fair.policy import registry
from slurm_fair.store import SqliteJournal, open_journal
from slurm_fair.tick import Stopwatch, tick
from slurm_fair_plugins.astraea import Astraea
from tests.support.board_scene import plan as plan_of
from tests.support.board_scene import recorded
from tests.support.board_scene import tick as tick_of
from tests.support.builders import snapshot
from tests.support.fake_slurm import PushedClock
from tests.support.tick_bench import BEGAN, TERMS, StubCluster, gated, running

SOME = {"new_jobs_first": False, "swap_after": 1.0}


@dataclass(frozen=True, slots=True)
class Patient(Astraea):
    """Astraea when a default has changed."""

    swap_after: float = 50.0


def replayed(tmp_path: Path, note: str) -> Result:
    storage = tmp_path / "storage"
    storage.mkdir(mode=0o750)
    record, standing = recorded()
    with open_journal(storage / "journal.db") as journal:
        journal.append(
            record._replace(number=1, plan=replace(record.plan, note=note)), standing._replace(tick=1)
        )
    config = tmp_path / "fair.toml"
    config.write_text(f'[storage]\ndir = "{storage}"\n[lease]\npublish_dir = ""\n')
    return CliRunner().invoke(cli, ["--config", str(config), "replay-tick"])


def test_a_tick_without_a_job_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = snapshot(time=BEGAN, nodes={"n1": 8}, jobs=[])
    alone = tick_of(empty, plan_of(empty, [], ("nothing",))), Standing.new(BEGAN)
    monkeypatch.setattr(sys.modules[__name__], "recorded", lambda: alone)
    assert replayed(tmp_path, "").stdout.splitlines()[0] == "tick 1: no job was there"


def a_sibling_gives_way(journal: SqliteJournal, given: Mapping[str, Any], unnamed: bool) -> None:
    """Two looks under astraea: at the second a job is just over a lease ahead of its sibling, and gives way.

    With `unnamed` the ticks keep only what is given, as those of old journals do.
    """
    clock, cluster, standing = PushedClock(BEGAN), StubCluster(), Standing.new(BEGAN)
    config = from_tree({"policy": {"name": "astraea", "astraea": dict(given)}}, "test")
    rules = replace(rules_of(config), terms=TERMS)
    rules = replace(rules, settings={"new_jobs_first": False}) if unnamed else rules
    verdicts: list[int] = []
    for seconds in (10.0, 900.0):
        clock.advance(seconds)
        jobs = (running(1, BEGAN, gpus=8), gated(2, gpus=8, submit=BEGAN + 1))
        cluster.shown.append(snapshot(time=clock.now(), nodes={"n1": 8}, jobs=jobs))
        done = tick(cluster, clock, journal, rules, standing, Stopwatch(clock.now))
        assert done.record is not None
        standing, verdicts = done.standing, done.record.plan.verdict.tolist()
    assert verdicts == [Verdict.REVOKE, Verdict.GRANT]


def second_comes_out_the_same(journal: SqliteJournal) -> bool:
    again, then = planned_again(journal, 2, LedgerSettings())
    return same_plan(again, then.plan)


def test_a_plan_that_stood_in_for_another_is_told_as_such(tmp_path: Path) -> None:
    done = replayed(tmp_path, "the plan was not there after 30.0 s; its quick plan stands in")
    assert done.exit_code == 0
    said = "another plan was carried out than the policy makes: the plan was not there after 30.0 s"
    assert said in done.output


def test_any_other_that_comes_out_differently_is_a_failure(tmp_path: Path) -> None:
    done = replayed(tmp_path, "")
    assert isinstance(done.exception, SlurmFairError)
    assert "comes out differently" in str(done.exception)


def test_a_tick_comes_out_the_same_whatever_becomes_of_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the journal knows the default with which it was planned."""

    @dataclass(frozen=True, slots=True)
    class Hasty(Astraea):
        swap_after: float = 1.0

    with open_journal(tmp_path / "journal.db") as journal:
        monkeypatch.setattr(registry, "kind_of", lambda name: Hasty)
        a_sibling_gives_way(journal, {"new_jobs_first": False}, unnamed=False)
        monkeypatch.setattr(registry, "kind_of", lambda name: Patient)
        assert second_comes_out_the_same(journal)


def test_what_an_old_tick_does_not_name_is_as_it_was_by_default_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_journal(tmp_path / "journal.db") as journal:
        a_sibling_gives_way(journal, SOME, unnamed=True)
        monkeypatch.setattr(registry, "kind_of", lambda name: Patient)
        monkeypatch.setattr(registry, "_UNNAMED", {"astraea": {"swap_after": 1.0}})
        assert second_comes_out_the_same(journal)
        monkeypatch.setattr(registry, "_UNNAMED", {})
        assert not second_comes_out_the_same(journal)


@pytest.mark.parametrize(("acts", "reloads"), [(False, False), (True, True), (True, False)])
def test_a_tick_between_two_beats_comes_out_the_same(tmp_path: Path, acts: bool, reloads: bool) -> None:
    """A look after one of a dry run, or after a reload, decides anew, though its queue is the one of before."""
    terms = LeaseTerms(term=64.0, interval=10.0, grace=5.0, aligned=False, renewal=32.0, interval_min=1.0)
    clock, seen, standing = PushedClock(BEGAN), StubCluster(), Standing.new(BEGAN)
    rules = replace(rules_of(from_tree({"policy": {"name": "astraea"}}, "test")), terms=terms)
    jobs = (running(1, BEGAN, gpus=8, on={"n1": 8}, tenant="a"), gated(2, tenant="b", submit=BEGAN + 60.0))
    with open_journal(tmp_path / "journal.db") as journal:
        for passed, shown in ((0.0, jobs[:1]), (63.5, jobs), (0.8, jobs), (0.4, jobs)):
            clock.advance(passed)
            seen.shown.append(snapshot(time=clock.now(), nodes={"n1": 8}, jobs=shown))
            cluster = seen if acts else DryRun(seen)
            standing = tick(cluster, clock, journal, rules, standing, Stopwatch(clock.now)).standing
            standing = standing._replace(left_over=0) if reloads else standing
        for number in (3, 4):
            again, then = planned_again(journal, number, LedgerSettings())
            assert bool((then.plan.verdict == Verdict.GRANT).any()) == (not acts or (reloads and number == 3))
            assert same_plan(again, then.plan)


def test_a_tick_with_a_setting_that_is_gone_is_refused_in_one_line(tmp_path: Path) -> None:
    with open_journal(tmp_path / "journal.db") as journal:
        record, standing = recorded(settings={"swap_before": 2})
        journal.append(record._replace(number=1), standing._replace(tick=1))
        said = "^tick 1 cannot be computed again by this version: .*unknown setting 'swap_before'.*$"
        with pytest.raises(InputError, match=said):
            planned_again(journal, 1, LedgerSettings())
