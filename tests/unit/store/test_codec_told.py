"""Claims of users and jobs survive the journal, and a tick that went by them is computed again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slurm_fair.cli.replay_tick import replayed, same_plan
from slurm_fair.ledger import LedgerSettings
from slurm_fair.model import Mode, NodeSpeeds, Snapshot, Speeds, Standing, Told, Verdict
from slurm_fair.store import SqliteJournal, open_journal
from slurm_fair.store.blobs import squeeze, unpacked
from slurm_fair.store.codec import Encoder, decode, read, write
from slurm_fair.tick import Rules, Stopwatch, tick
from slurm_fair_plugins.astraea import Astraea
from tests.support import journals
from tests.support.accounts import reasons
from tests.support.builders import snapshot
from tests.support.fake_slurm import PushedClock
from tests.support.tick_bench import BEGAN, TERMS, StubCluster, gated


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    with open_journal(tmp_path / "journal.db") as opened:
        yield opened


def there_and_back(value: Any) -> Any:
    encoder = Encoder()
    body, name = write(encoder.tree(value))
    kept = {column: squeeze(raw) for column, raw in encoder.blobs.items()}
    return decode(read(body, name), lambda column: unpacked(kept[column], column))


def all_told(rows: int, types: int) -> Told:
    """Something in every column: speeds per GPU type in two dimensions, gaps, and an end that never comes."""
    told = Told.nothing(rows, types)
    numbers = np.arange(rows, dtype=np.float64)
    return told.with_columns(
        declared_seconds=np.where(numbers % 2, 3600.0 * numbers, np.nan),
        deadline=np.where(numbers % 3, 5000.0 + numbers, np.inf),
        rate=np.arange(rows * types, dtype=np.float64).reshape(rows, types) / 7.0,
        model=np.arange(rows) % 2 - 1,
        models=("resnet50",),
    )


@pytest.mark.parametrize("rows", [0, 1, 4, 300])
@pytest.mark.parametrize("types", [1, 3])
def test_every_column_comes_back(rows: int, types: int) -> None:
    seen = replace(journals.snapshot(rows), told=all_told(rows, types), racks=np.array([0, 1]))
    assert journals.same(seen, there_and_back(seen))


def test_a_snapshot_of_before_there_was_such_a_thing_says_nothing() -> None:
    tree = Encoder().tree(journals.snapshot(1))
    del tree["of"]["told"], tree["of"]["racks"]
    old = decode(tree, lambda column: b"")
    assert (old.told, old.racks) == (None, None)


def test_what_was_said_before_modes_were_told_says_no_mode() -> None:
    encoder = Encoder()
    tree = encoder.tree(all_told(3, 1))
    del tree["of"]["mode"]
    assert decode(tree, encoder.blobs.__getitem__).mode.tolist() == [Mode.STATIC] * 3


def test_what_was_said_makes_a_plan_again_that_is_the_same(journal: SqliteJournal) -> None:
    clock, cluster, standing = PushedClock(BEGAN), StubCluster(), Standing.new(BEGAN)
    rules = Rules("astraea", Astraea(urgent="any"), {"urgent": "any"}, TERMS)
    for _ in range(3):
        clock.advance(10.0)
        cluster.shown.append(due(clock.now()))
        done = tick(cluster, clock, journal, rules, standing, Stopwatch(clock.now))
        standing = done.standing
    again, then = replayed(journal, 1, LedgerSettings())
    assert same_plan(again, then.plan)
    assert then.plan.verdict.tolist() == [Verdict.WAIT, Verdict.GRANT]
    assert reasons(then.snapshot, again)["2"] == "it must run now to make its deadline"
    assert same_plan(replayed(journal, 3, LedgerSettings())[0], next(journal.ticks(3)).plan)


def due(now: float) -> Snapshot:
    """Two jobs that want the same GPUs, the younger one by an hour after the beginning."""
    jobs = (gated(1, gpus=8), gated(2, gpus=8, submit=BEGAN + 1, time_limit_seconds=600.0))
    seen = snapshot(time=now, nodes={"n1": 8}, jobs=jobs)
    told = Told.nothing(2, 1).with_columns(deadline=np.array([np.inf, BEGAN + 3600.0]))
    return replace(seen, told=told)


def test_speeds_on_nodes_come_back_and_an_older_journal_has_none() -> None:
    nodes = NodeSpeeds(np.array([0]), np.array([1]), np.array([0.5]))
    table = np.ones((1, 1, 1, 2))
    speeds = Speeds(np.array([0]), np.array([1]), table, table, ("a: x",), nodes)
    assert journals.same(there_and_back(speeds), speeds)
    encoder = Encoder()
    tree = encoder.tree(speeds)
    del tree["of"]["nodes"]
    assert decode(tree, encoder.blobs.__getitem__).nodes is None


def test_before_the_deadlines_of_an_older_journal_the_whole_limit_must_fit() -> None:
    seen = due(BEGAN)
    encoder = Encoder()
    tree = encoder.tree(seen.told)
    del tree["of"]["must_fit_seconds"]
    told = decode(tree, encoder.blobs.__getitem__)
    assert replace(seen, told=told).must_fit_seconds.tolist() == [np.inf, 600.0]
