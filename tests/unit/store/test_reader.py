"""Questions to the journal have the answers that lie between their bounds, in order, and none that is damaged."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from slurm_fair.errors import NotHere, StoreError
from slurm_fair.model import Event
from slurm_fair.model.tenant_moment import TenantMoment
from slurm_fair.store import Reader, SqliteJournal, open_journal, open_reader
from slurm_fair.store.rows import seal
from tests.support import journals
from tests.support.journals import run_ticks


def _keep(journal: SqliteJournal, *events: Event) -> None:
    journal.append(journals.tick(1, events=events), journals.standing(1))


def _times(reader: Reader, *bounds: float) -> list[float]:
    return [event.time for event in reader.events(*bounds)]


def test_an_event_at_the_beginning_counts_and_one_at_the_end_does_not(journal: SqliteJournal) -> None:
    _keep(journal, *(journals.event(time, job=job) for job, time in enumerate((10.0, 20.0, 20.0, 30.0), 1)))
    assert _times(journal, 20.0, 30.0) == [20.0, 20.0]
    assert _times(journal, 10.0, 10.0) == []
    assert _times(journal, 10.5, 20.5) == [20.0, 20.0]
    assert _times(journal, -5.0) == [10.0, 20.0, 20.0, 30.0]
    assert _times(journal, 40.0) == []


def test_events_that_were_written_late_are_told_by_their_time_and_ties_as_they_were_written(
    journal: SqliteJournal,
) -> None:
    written = [(30.0, "a"), (10.0, "b"), (30.0, "c"), (20.0, "d"), (10.0, "e")]
    _keep(journal, *(journals.event(time, kind) for time, kind in written))
    assert [event.kind for event in journal.events()] == ["b", "e", "d", "a", "c"]


def test_events_of_many_jobs_are_merged_by_time_and_held_to_every_condition(journal: SqliteJournal) -> None:
    """More keys than one question to SQLite may name."""
    count = 1100
    events = [
        journals.event(1000.0 - job % 7, "started" if job % 2 else "finished", job)
        for job in range(1, count + 1)
    ]
    _keep(journal, *events)
    keys = [event.key for event in events]
    found = list(journal.events(994.0, 1000.0, kinds=["started"], tenant="phys", keys=[*keys, keys[0]]))
    assert [event.time for event in found] == sorted(event.time for event in found)
    wanted = [event for event in events if event.kind == "started" and 994.0 <= event.time < 1000.0]
    assert sorted(event.key for event in found) == sorted(event.key for event in wanted)
    assert list(journal.events(keys=keys, tenant="chem")) == []
    assert list(journal.events(keys=set(keys[:500]), kinds=["no such kind"])) == []


def test_no_kinds_are_all_of_them_and_no_keys_are_none(journal: SqliteJournal) -> None:
    _keep(journal, journals.event(10.0))
    assert len(list(journal.events(kinds=()))) == 1
    assert list(journal.events(keys=())) == []


def test_words_of_users_in_a_question_are_words(journal: SqliteJournal) -> None:
    odd = "o'brien\"; DROP TABLE events; --\n\u2028"
    _keep(journal, journals.event(10.0, user=odd)._replace(tenant=odd), journals.event(11.0))
    (found,) = journal.events(tenant=odd)
    assert (found.tenant, found.detail["user"]) == (odd, odd)
    assert list(journal.events(kinds=[odd])) == []
    assert len(_times(journal)) == 2


@pytest.mark.parametrize(
    ("first", "last", "numbers"),
    [(0, None, [3, 4, 6]), (4, 4, [4]), (5, 5, []), (5, None, [6]), (7, None, []), (0, 2, []), (6, 3, [])],
)
def test_ticks_are_told_from_the_first_to_the_last_that_are_kept(
    journal: SqliteJournal, first: int, last: int | None, numbers: list[int]
) -> None:
    for number in (3, 4, 6):
        run_ticks(journal, number, number)
    assert [tick.number for tick in journal.ticks(first, last)] == numbers
    assert journal.tick_numbers() == (3, 6)


def test_a_tick_that_lacks_a_column_is_refused(journal: SqliteJournal) -> None:
    journal.append(journals.tick(1, count=300), journals.standing(1))
    journal._db.execute("DELETE FROM blobs")
    with pytest.raises(StoreError, match=r"column [0-9a-f]{32} is missing"):
        next(journal.ticks())


@pytest.mark.parametrize(
    ("near", "found"),
    [(-1e9, 10), (10, 10), (14.9, 10), (15, 10), (15.1, 20), (20, 20), (21, 20), (1e12, 20)],
)
def test_the_nearest_moment_is_the_earlier_of_two_that_are_as_near(
    journal: SqliteJournal, near: float, found: float
) -> None:
    assert journal.moment_time(near) is None
    _with_moments(journal, 10.0, 20.0)
    assert journal.moment_time(near) == found


def _with_moments(journal: SqliteJournal, *times: float) -> None:
    """Accounts of one tenant at these instants, and nothing else."""
    run_ticks(journal, 1, 1)
    with journal._db.conn:
        journal._db.execute("DELETE FROM tenants_time")
        for time in times:
            row = (time, "phys", 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0)
            names = "time, tenant, weight, had, owed_quota, owed_demand, gpus, demand, hourly, seal"
            places = ", ".join("?" * 10)
            journal._db.execute(f"INSERT INTO tenants_time ({names}) VALUES ({places})", (*row, seal(*row)))


def test_moments_at_both_ends_count(journal: SqliteJournal) -> None:
    _with_moments(journal, 30.0, 10.0, 20.0)
    assert [moment.time for moment in journal.moments(10.0, 30.0)] == [10.0, 20.0, 30.0]
    assert [moment.time for moment in journal.moments(10.1, 29.9)] == [20.0]
    assert list(journal.moments(20.0, 20.0)) == [TenantMoment(20.0, "phys", 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)]


def test_the_standing_before_a_tick_is_older_than_it(journal: SqliteJournal) -> None:
    run_ticks(journal, 5, 6)
    before = {number: journal.standing_before(number) for number in (5, 6, 7)}
    assert before[5] is None
    assert [found and found[0] for found in (before[6], before[7])] == [5, 6]
    assert journal.began() == 900.0


def test_acts_since_an_instant_are_told_in_their_order(journal: SqliteJournal) -> None:
    for number, time in ((1, 50.0), (2, 40.0), (3, 60.0)):
        journal.intend([journals.action(number)], time)
    assert [act.time for act in journal.intents(50.0)] == [50.0, 60.0]
    assert [act.time for act in journal.intents()] == [50.0, 40.0, 60.0]


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE intents SET label = '8'",
        "UPDATE intents SET detail = 'other'",
        "UPDATE intents SET outcome = NULL, detail = NULL, concluded = NULL, seconds = NULL",
        "UPDATE intents SET outcome_seal = NULL",
    ],
)
def test_an_act_or_an_outcome_that_is_not_what_was_written_is_refused(
    journal: SqliteJournal, spoil: str
) -> None:
    journal.conclude(journal.intend([journals.action()], 1.0), [journals.outcome()], 2.0)
    assert len(journal.intents()) == 1
    journal._db.execute(spoil)
    with pytest.raises(StoreError, match="is not what was written"):
        journal.intents()


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("UPDATE standings SET tick = 9", lambda reader: reader.latest()),
        ("UPDATE ticks SET time = 0", lambda reader: next(reader.ticks())),
        ("UPDATE events SET time = 0", lambda reader: list(reader.events())),
    ],
)
def test_a_row_that_was_moved_is_refused(
    journal: SqliteJournal, sql: str, read: Callable[[Reader], object]
) -> None:
    run_ticks(journal, 1, 1)
    read(journal)
    journal._db.execute(sql)
    with pytest.raises(StoreError, match="damaged"):
        read(journal)


def test_a_damaged_row_of_speeds_is_left_out_and_said(
    journal: SqliteJournal, caplog: pytest.LogCaptureFixture
) -> None:
    known, beliefs = journal.known()
    assert caplog.text == ""
    columns = [row[1] for row in journal._all("PRAGMA table_info(beliefs)")]
    places = ", ".join("1" for _ in columns)
    journal._db.execute(f"INSERT INTO beliefs ({', '.join(columns)}) VALUES ({places})")
    with caplog.at_level(logging.WARNING):
        again = journal.known()
    assert journals.same(again, (known, beliefs))
    assert "1 rows of beliefs are damaged and left out" in caplog.text


def test_a_reader_sees_what_was_written_and_is_told_of_notes(path: Path) -> None:
    with open_journal(path) as journal, open_reader(path) as reader:
        assert (reader.latest(), reader.began(), reader.tick_numbers(), reader.meta("no such note")) == (
            None,
        ) * 4
        run_ticks(journal, 1, 2)
        assert reader.tick_numbers() == (1, 2)
        reader.check()
        journal.keep_lists_at_first({7: "n1"})
        assert reader.lists_at_first() == {7: "n1"}


def test_a_reader_of_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotHere):
        open_reader(tmp_path / "journal.db")
