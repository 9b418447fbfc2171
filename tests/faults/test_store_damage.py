"""The journal under damage, truncation and a full disk."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from slurm_fair.errors import NotTheOwner, StoreError
from slurm_fair.store import Reader, SqliteJournal, epoch_of, move_damaged, open_journal, open_reader
from tests.support import journals

FLIPS = 120


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "journal.db"


def everything(reader: Reader) -> tuple[object, ...]:
    """Every answer that the controller or a report builds on."""
    return (
        reader.latest_checkpoint(),
        list(reader.ticks()),
        reader.intents(),
        reader.marks(),
        list(reader.events()),
        list(reader.events(100.0, 400.0, kinds=["started"])),
        list(reader.moments(0.0, 1e9)),
    )


def test_flipped_bytes_are_an_error_or_change_nothing(path: Path, tmp_path: Path) -> None:
    journals.fill(path)
    whole = path.read_bytes()
    with open_reader(path) as reader:
        truth = everything(reader)
    dice = random.Random(2)
    messages = []
    for number in range(FLIPS):
        damaged = bytearray(whole)
        for _ in range(dice.choice([1, 1, 4, 64])):
            # Half of them in the first pages, where the schema and the roots of the tables lie.
            at = dice.randrange(len(whole) if number % 2 else min(len(whole), 16384))
            damaged[at] ^= dice.randrange(1, 256)
        copy = tmp_path / f"copy{number}" / "journal.db"
        copy.parent.mkdir(mode=0o700)
        copy.write_bytes(damaged)
        copy.chmod(0o600)
        try:
            with open_journal(copy) as journal:
                assert journals.same(everything(journal), truth)
        except StoreError as error:
            messages.append(str(error))
    assert len(messages) > FLIPS // 4
    assert not [message for message in messages if "\n" in message]


@pytest.mark.parametrize("size", [0, 1, 100, 4096, 5000, 20000])
def test_a_truncated_journal_is_refused(path: Path, size: int) -> None:
    journals.fill(path)
    os.truncate(path, size)
    if size <= 1:  # to SQLite that is a new file, not a damaged one
        with open_journal(path) as journal:
            assert journal.latest() is None
        return
    with pytest.raises(StoreError, match=r"damaged|no database|no journal"):
        open_journal(path)


def test_a_damaged_journal_is_set_aside_and_a_new_one_begins_with_a_higher_epoch(path: Path) -> None:
    journals.fill(path)
    path.write_bytes(b"not a database at all" * 500)
    with pytest.raises(StoreError, match="set it aside"):
        open_journal(path)
    before = epoch_of(path)
    aside = move_damaged(path)
    assert aside.name.startswith("journal.db.corrupt-")
    assert aside.read_bytes().startswith(b"not a database")
    with open_journal(path) as journal:
        assert journal.latest() is None
        assert journal.epoch > before


def test_a_journal_in_use_cannot_be_set_aside(path: Path) -> None:
    with open_journal(path), pytest.raises(NotTheOwner):
        move_damaged(path)
    assert path.exists()


def test_a_full_disk_is_one_error_and_over_when_there_is_space(path: Path) -> None:
    with open_journal(path) as journal:
        journal.append(journals.tick(1), journals.standing(1))
        (pages,) = journal._all("PRAGMA page_count")[0]
        journal._db.execute(f"PRAGMA max_page_count = {pages + 2}")
        refusals = _write_until_full(journal)
        assert refusals
        assert all("the disk is full: free some space" in refusal for refusal in refusals)
        journal._db.execute(f"PRAGMA max_page_count = {pages + 10_000}")
        journal.append(journals.tick(900, count=500), journals.standing(900))
        acknowledged = journal.intend([journals.action()] * 3, 5.0)
        newest = journal.latest()
        assert newest is not None
        assert newest.tick == 900
        assert acknowledged[-1] == max(act.id for act in journal.intents())
        journal.check()


def _write_until_full(journal: SqliteJournal) -> list[str]:
    """Each kind of write until the disk refuses it; acknowledged ones must be there, refused ones must not."""
    refusals: list[str] = []
    acknowledged = 0
    writes: list[Callable[[int], object]] = [
        lambda number: journal.append(journals.tick(number, count=300 + number), journals.standing(number)),
        lambda number: journal.intend([journals.action()] * 40, 1.0),
        lambda number: journal.set_marks([journals.mark(number * 100 + row) for row in range(100)]),
    ]
    for kind, write in enumerate(writes):
        for number in range(2, 200):
            try:
                write(number)
                acknowledged += 40 if kind == 1 else 0
            except StoreError as error:
                refusals.append(str(error))
                break
    assert len(journal.intents()) == acknowledged
    assert len(refusals) == len(writes)
    return refusals
