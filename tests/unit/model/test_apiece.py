"""One user may fill a part of what is kept for all: lists, estimates, tenants."""

from __future__ import annotations

import logging
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.board import estimates
from slurm_fair.board.board import draw
from slurm_fair.board.estimates import Estimates
from slurm_fair.cli.status import left_alone_lines
from slurm_fair.config.tree import from_tree
from slurm_fair.doctor import machines, node_lists
from slurm_fair.host.state_folder import Places
from slurm_fair.model import Action, Event, ListInDoubt, Snapshot, Verb
from slurm_fair.model.apiece import apiece, rows_apiece
from slurm_fair.model.ids import TASK_BITS, pack
from slurm_fair.model.snapshot import LeftAlone
from slurm_fair.reconcile import Limits, hold_back
from slurm_fair.slurm import scope
from slurm_fair.slurm.cluster import SlurmCluster
from slurm_fair.slurm.fail_open import NoIntents
from slurm_fair.slurm.ownership.doubt import said_of_doubts
from slurm_fair.slurm.ownership.marks import MarksInHand
from slurm_fair.slurm.reading import task_lists
from slurm_fair.slurm.reading.made_up import OF_A_USER
from slurm_fair.slurm.reading.queue import BETWEEN
from tests.support.board_scene import recorded
from tests.support.builders import snapshot
from tests.support.daemon_bench import Bench, crowd
from tests.support.fake_commands import FakeCommands
from tests.support.fake_slurm import PushedClock, World
from tests.support.site_facts import FACTS


@given(st.lists(st.integers(0, 5), max_size=40), st.integers(1, 30))
def test_nobodys_entry_is_left_out_for_a_later_one_of_another(owner: list[int], most: int) -> None:
    rows = rows_apiece(np.array(owner, dtype=np.int64), most).tolist()
    assert rows == sorted(set(rows))
    assert len(rows) == min(most, len(owner))
    all_of, kept_of = Counter(owner), Counter(owner[row] for row in rows)
    for one, many in all_of.items():
        assert [row for row in rows if owner[row] == one] == [
            row for row in range(len(owner)) if owner[row] == one
        ][: kept_of[one]]
        if kept_of[one] < many:
            assert max(kept_of.values()) <= kept_of[one] + 1
    assert apiece(owner, str, most) == [owner[row] for row in rows]


class Site:
    """A fake cluster on which several users have jobs."""

    def __init__(self) -> None:
        self.world = World(PushedClock(), {"n1": 8}, seed=1)
        config = from_tree({"scope": {"partitions": ["gpu"]}}, "t")
        self.commands = commands = FakeCommands(self.world)
        self.cluster = SlurmCluster(
            commands, config.cluster, self.world.clock.now, MarksInHand(), NoIntents()
        )

    def submit(self, user: str, **raw: str) -> int:
        job = self.world.submit(1, "a", begin=self.world.clock.now() + 900)
        self.world.records[job].raw = {"UserName": user, **raw}
        return job

    def array(self, size: int, user: str) -> int:
        """An array that was submitted with our gate."""
        job = self.world.submit(1, "a", tasks=range(size), gate_seconds=900)
        self.world.records[job].raw = {"UserName": user}
        return job

    @staticmethod
    def tasks_of(seen: Snapshot) -> dict[int, int]:
        """The number of tasks of each array that are looked at."""
        return dict(Counter((seen.jobs.key >> TASK_BITS).tolist()))

    def look(self) -> Snapshot:
        found = self.cluster.observe({})
        assert isinstance(found, Snapshot), found
        return found


@pytest.mark.parametrize(
    "raw", [{"Reservation": "r"}, {"tres-per-node": f"x{BETWEEN}"}], ids=["told", "unreadable"]
)
def test_a_user_whose_many_jobs_are_left_alone_hides_nobody_elses(
    raw: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(scope, "_LISTED", 30)
    site = Site()
    for _ in range(60):
        site.submit("news", **raw)
    last = site.submit("games", **raw)
    with caplog.at_level(logging.WARNING):
        seen = site.look()
    assert len(seen.left_alone) == 30
    assert str(last) in {alone.label for alone in seen.left_alone if alone.user == "games"}
    if "tres-per-node" in raw:
        assert f"job {last} of games is left alone" in caplog.text


def test_arrays_beyond_what_is_looked_at_of_one_user_are_left_alone_until_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(task_lists, "OF_A_USER", 100)
    site = Site()
    sizes = {"old": 90, "big": 20, "fits": 10, "next": 2}
    ids = {name: site.array(size, "news") for name, size in sizes.items()}
    other = site.array(95, "games")
    seen = site.look()
    assert site.tasks_of(seen) == {ids["old"]: 90, ids["fits"]: 10, other: 95}
    left = {alone.label: alone.reason for alone in seen.left_alone}
    assert left.keys() == {str(ids["big"]), str(ids["next"])}
    assert "array beyond the 200,000 waiting tasks of one user" in left[str(ids["big"])]
    site.cluster.actuate(seen.to_free)
    now = site.world.clock.now()
    assert {name: site.world.records[ids[name]].eligible > now for name in sizes} == {
        "old": True,
        "big": False,
        "fits": True,
        "next": False,
    }, "what is left alone keeps no gate of ours"
    del site.world.records[ids["old"]]
    assert site.tasks_of(site.look()) == {ids["big"]: 20, ids["fits"]: 10, ids["next"]: 2, other: 95}


def test_absurd_arrays_cost_their_user_alone() -> None:
    site = Site()
    absurd = [site.submit("news", ArrayTaskID=f"0-{3_999_999 - number}:1") for number in range(200)]
    mine = site.array(3, "games")
    seen = site.look()
    assert site.tasks_of(seen) == {mine: 3}
    assert {alone.label for alone in seen.left_alone} == set(map(str, absurd))


def test_of_many_lists_in_doubt_everybodys_is_named() -> None:
    doubts = [ListInDoubt(str(job), "n1", "news") for job in range(100)] + [ListInDoubt("500", "n1", "games")]
    assert "job 500 of games: n1; and 81 more" in said_of_doubts(tuple(doubts))


def test_check_and_status_name_a_job_of_everybody_before_anybodys_second(tmp_path: Path) -> None:
    whose = ["news"] * 100 + ["games"]
    doubts = tuple(ListInDoubt(str(job), "n1", user) for job, user in enumerate(whose))
    alone = tuple(LeftAlone(str(job), "its row is odd", user, True) for job, user in enumerate(whose))
    seen = replace(snapshot(nodes={"n1": 8}), in_doubt=doubts, left_alone=alone)
    (tmp_path / "journal.db").touch()
    (told,) = node_lists.findings(replace(FACTS, places=Places(tmp_path), snapshot=seen))
    assert "job 100 of games (n1)" in told.what
    assert any(found.what.startswith("job 100 of games is left alone") for found in machines.job_counts(seen))
    record, standing = recorded()
    lines = left_alone_lines(
        draw(record._replace(snapshot=replace(record.snapshot, left_alone=alone)), standing)
    )
    assert any(line.startswith("job 100 of games is left alone") for line in lines)


def test_no_user_fills_the_estimates_or_their_errors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(estimates, "_MOST_JOBS", 100)
    monkeypatch.setattr(estimates, "_MOST_ERRORS", 50)
    kept = Estimates()
    kept.note(dict.fromkeys(range(1000), 10.0), dict.fromkeys(range(1000), "news"))
    kept.note({5000: 10.0, 5001: 10.0}, {5000: "games", 5001: "games"})
    kept.hear([Event(1000.0, "started", 5000, "a", 1)])
    kept.hear(Event(10.0, "started", key, "a", 1) for key in range(1000))
    assert kept.summary(1000.0)["n"] == 6
    for again in range(30):
        kept.note({again: 10.0}, {again: "news"})
        kept.hear([Event(10.0, "started", again, "a", 1)])
    assert kept.summary(1000.0)["n"] == 6
    (tmp_path / "e.json").write_text(kept.text())
    read = Estimates.read(tmp_path / "e.json")
    assert read.text() == kept.text()
    read.note(dict.fromkeys(range(1000), 10.0), dict.fromkeys(range(1000), "news"))
    read.hear([Event(20.0, "started", 5001, "a", 1)])
    assert read.summary(1000.0)["n"] == 7


def test_a_user_brings_few_accounts_that_nobody_lists_and_keeps_nobody_elses_out() -> None:
    site, tenants = Site(), set[str]()
    site.world.weights["a"] = 1
    for number in range(3 * OF_A_USER):
        job = site.submit("news", Account=f"new{number:02}")
        seen = site.look()
        tenants |= set(seen.tenants.names)
        alone = {alone.label: alone.reason for alone in seen.left_alone}
        assert (str(job) in alone) == (number >= OF_A_USER)
        if number % 3 == 1:
            del site.world.records[job]
        if number % 3 == 2:
            site.world.records[job].raw = {**site.world.records[job].raw, "State": "COMPLETED"}
    assert tenants <= {"a"} | {f"new{number:02}" for number in range(OF_A_USER)}
    assert "neither Slurm nor the configuration lists" in next(iter(alone.values()))
    listed, other = site.submit("news"), site.submit("games", Account="mine")
    shared = site.submit("games", Account="new40")
    seen = site.look()
    assert not {str(listed), str(other), str(shared)} & {alone.label for alone in seen.left_alone}
    assert {"mine", "new40"} <= set(seen.tenants.names)


def test_what_one_users_strays_cost_a_tick_has_a_bound_and_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Jobs with our gate that are not managed: templates and hooks make them, and any user who wants to."""
    monkeypatch.setattr("slurm_fair.slurm.cluster._STRAYS_NAMED", 15)
    site, named, freed = Site(), list[int](), list[int]()
    for number in range(41):
        job = site.world.submit(1, "a", gate_seconds=900.0)
        site.world.records[job].raw = {"UserName": "news" if number < 40 else "games", "Reservation": "r"}
    managed = site.world.submit(1, "a", gate_seconds=900.0)
    for _ in range(5):
        seen = site.look()
        submit = site.world.records[managed].submit
        close = Action(Verb.CLOSE, pack(managed), managed, submit, 0, until=seen.time + 1800)
        before = len(site.commands.said)
        named.append(len(seen.to_free))
        allowed, _ = hold_back([*seen.to_free, close], Limits(frees=10))
        site.cluster.actuate(allowed)
        sent = [line for line in site.commands.said[before:] if line.startswith("update")]
        assert f"jobid={managed} " in sent[0], "what is planned goes first"
        freed.append(len(sent) - 1)
        if len(freed) == 1:
            assert f"jobid={job} " in "".join(sent), "everybody's first goes before anybody's second"
        site.world.clock.advance(1.0)
    assert (freed, named) == ([10, 10, 10, 10, 1], [15, 15, 15, 11, 1])


def test_a_user_who_cancels_many_jobs_again_and_again_costs_the_others_a_second(bench: Bench) -> None:
    crowd(bench)
    assert bench.daemon.rules.terms.interval == 10
    for _ in range(3):
        jobs = [bench.world.submit(1, "b", gate_seconds=600.0) for _ in range(40)]
        assert bench.daemon.once().blind == ""
        for job in jobs:
            bench.world.records[job].state = "CANCELLED"
        done, now = bench.daemon.once(), bench.now
        assert "looking again first" in done.blind
        assert bench.daemon.next_look(now) <= now + 1.0
        assert bench.daemon.once().blind == ""
        assert bench.daemon.confirm_in == math.inf
