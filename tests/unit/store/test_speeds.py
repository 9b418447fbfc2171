"""Speeds that are known come back whole from the disk, and a damaged row costs that row."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from slurm_fair.model import Beliefs
from slurm_fair.store import SqliteJournal, open_journal, open_reader
from slurm_fair.throughput import Ends, JobClass, Keeping, Known, Samples, learned, learned_ends
from tests.support.reporting import Looks, MemoryShelf, running

NOW = 10_000.0


def some(tenants: int, seed: int = 0) -> tuple[Known, Beliefs]:
    """The samples learned of a few classes, and the beliefs about a few jobs."""
    dice = np.random.default_rng(seed)
    classes = tuple(JobClass(f"t{number}", "name=träin") for number in range(tenants))
    count = 40 * tenants
    index = np.arange(count) % max(tenants, 1)
    columns = {name: np.where(dice.random(count) < 0.5, np.nan, dice.random(count)) for name in PHASES}
    samples = Samples(
        job_class=index, gpu_type=dice.integers(0, 2, count), node=dice.integers(0, 3, count),
        gpus=np.full(count, 4), nodes=np.ones(count, dtype=np.int64), most=np.full(count, 4),
        job=dice.integers(1, 9, count), time=dice.uniform(0, NOW, count), rate=dice.uniform(1, 9, count),
        batch_size=np.full(count, 32.0), pattern=np.zeros(count, dtype=np.int8), classes=classes,
        gpu_types=("a100", "v100"), node_names=("n1", "n2", "n3"), **columns,
    )  # fmt: skip
    ends = Ends(
        job_class=index,
        gpu_type=np.full(count, -1),
        gpus=np.ones(count, dtype=np.int64),
        job=np.arange(count),
        time=dice.uniform(0, NOW, count),
        seconds=dice.uniform(10, 90, count),
        classes=classes,
    )
    known = learned_ends(learned(Known(), samples, NOW, Keeping()), ends, NOW, Keeping())
    beliefs = Beliefs.none()
    shelf = MemoryShelf()
    looks = Looks(shelf)
    if tenants:
        looks.trains([running(number, tenant=f"t{number % tenants}") for number in range(1, 5)], 5.0, 60)
        looks.knowing.write(60)
        beliefs = shelf.kept[1]
    return known, beliefs


PHASES = ("data", "forward", "backward", "update", "sync")


def assert_same(one: object, other: object) -> None:
    """Two tables hold the same."""
    assert type(one) is type(other)
    for name in type(one).__dataclass_fields__:  # type: ignore[attr-defined]
        mine, theirs = getattr(one, name), getattr(other, name)
        if isinstance(mine, np.ndarray):
            assert mine.dtype == theirs.dtype, name
            np.testing.assert_array_equal(mine, theirs, err_msg=name)
        else:
            assert mine == theirs, name


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    with open_journal(tmp_path / "journal.db") as made:
        yield made


@pytest.mark.parametrize("tenants", [0, 1, 3])
def test_all_of_it_comes_back(journal: SqliteJournal, tenants: int) -> None:
    known, beliefs = some(tenants)
    journal.keep_known(known, beliefs)
    back, believed = journal.known()
    for one, other in ((back.samples, known.samples), (back.ends, known.ends), (believed, beliefs)):
        assert_same(one, other)


def test_a_new_journal_knows_nothing(journal: SqliteJournal) -> None:
    known, beliefs = journal.known()
    assert (len(known.samples), len(known.ends), len(beliefs)) == (0, 0, 0)


def test_what_is_kept_replaces_what_was_kept(journal: SqliteJournal) -> None:
    journal.keep_known(*some(3))
    known, beliefs = some(2, seed=1)
    journal.keep_known(known, beliefs)
    assert_same(journal.known()[0].samples, known.samples)
    journal.keep_known(Known(), Beliefs.none())
    assert len(journal.known()[0].samples) == 0
    assert len(journal.known()[1]) == 0


def test_only_rows_that_changed_are_written(journal: SqliteJournal) -> None:
    known, beliefs = some(3)
    journal.keep_known(known, beliefs)
    before = journal._db.conn.total_changes
    journal.keep_known(known, beliefs)
    assert journal._db.conn.total_changes == before
    journal.keep_known(known, beliefs.take(np.arange(len(beliefs)) != 1))
    assert journal._db.conn.total_changes == before + 1


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE speeds SET body = x'00' WHERE tenant = 't1'",
        "UPDATE speeds SET seal = seal + 1 WHERE tenant = 't1'",
        "UPDATE speeds SET class = 'name=other' WHERE tenant = 't1'",
        "UPDATE speeds SET body = 'text' WHERE tenant = 't1'",
    ],
)
def test_a_damaged_row_costs_that_class_and_is_said(
    journal: SqliteJournal, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    journal.keep_known(*some(3))
    with closing(sqlite3.connect(journal.path)) as other:
        other.execute(damage)
        other.commit()
    known, beliefs = journal.known()
    assert {each.tenant for each in known.samples.classes} == {"t0", "t2"}
    assert len(beliefs) == 4
    assert "1 rows of speeds are damaged" in caplog.text


def test_a_damaged_belief_costs_that_job(journal: SqliteJournal) -> None:
    journal.keep_known(*some(3))
    with closing(sqlite3.connect(journal.path)) as other:
        other.execute("UPDATE beliefs SET body = x'93' WHERE key = (SELECT min(key) FROM beliefs)")
        other.commit()
    assert len(journal.known()[1]) == 3


def test_it_can_be_read_while_the_daemon_writes(journal: SqliteJournal) -> None:
    known, beliefs = some(1)
    journal.keep_known(known, beliefs)
    with open_reader(journal.path) as reader:
        assert_same(reader.known()[0].samples, known.samples)
