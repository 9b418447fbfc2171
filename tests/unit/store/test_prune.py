"""The journal's size in virtual time: [storage] max_mb holds at every interval, for acts as for ticks."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_fair.model import Event
from slurm_fair.store import SqliteJournal, open_journal
from tests.support import journals
from tests.support.journals import run_ticks

MOST = 1 << 20
DAY = 86_400.0


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    with open_journal(tmp_path / "s" / "journal.db") as opened:
        opened._db.execute("PRAGMA synchronous = OFF")  # not what is looked at here
        yield opened


def one_tick(journal: SqliteJournal, number: int, now: float, acts: int, concluded: bool = True) -> None:
    """A tick of a busy cluster, with its acts before it."""
    actions = [journals.action(1 + at % 7) for at in range(acts)]
    ids = journal.intend(actions, now)
    if concluded:
        journal.conclude(ids, [journals.outcome()] * len(ids), now)
    journal.append(
        journals.tick(number, time=now, count=40 + number % 5), journals.standing(number, time=now)
    )


@pytest.mark.parametrize(("interval", "acts"), [(2.0, 0), (10.0, 3), (10.0, 150), (15.0, 0), (60.0, 400)])
def test_the_journal_stays_within_its_size_at_every_interval(
    journal: SqliteJournal, interval: float, acts: int
) -> None:
    most, kept = 0, list[int]()
    for number in range(1, 401):
        now = 1e6 + number * interval
        one_tick(journal, number, now, acts)
        if journal.bytes_used() > MOST:
            journal.forget(now, keep_seconds=30 * DAY, max_bytes=MOST, most_seconds=10.0)
        most = max(most, journal.bytes_used())
        first, last = journal.tick_numbers() or (number, 0)
        kept.append(last - first)
    assert most > MOST / 2, "it was full"
    assert most < 1.15 * MOST
    numbers = journal.tick_numbers()
    assert numbers is not None
    assert numbers[1] == 400
    assert sum(kept[-100:]) / 100 >= 5, "acts do not push out every tick"
    oldest = next(iter(journal.ticks(numbers[0], numbers[0]))).time
    ahead = min((act.time for act in journal.intents()), default=oldest)
    assert ahead >= oldest - 25 * interval, "acts go soon after their ticks"


def test_acts_that_nobody_concluded_stay(journal: SqliteJournal) -> None:
    one_tick(journal, 1, 1e6, 5, concluded=False)
    for number in range(2, 200):
        one_tick(journal, number, 1e6 + number, 20)
        journal.forget(1e6 + number, keep_seconds=30 * DAY, max_bytes=MOST // 4, most_seconds=10.0)
    assert len(journals.unconcluded(journal)) == 5


def test_acts_that_nobody_concluded_go_when_they_are_too_old(journal: SqliteJournal) -> None:
    one_tick(journal, 1, 1e6, 5, concluded=False)
    one_tick(journal, 2, 1e6 + 10 * DAY, 5, concluded=False)
    journal.forget(1e6 + 20 * DAY, keep_seconds=15 * DAY, max_bytes=1 << 40, most_seconds=10.0)
    assert [act.time for act in journal.intents()] == [1e6 + 10 * DAY] * 5


def test_forgetting_takes_no_longer_than_it_may(journal: SqliteJournal) -> None:
    for number in range(1, 300):
        one_tick(journal, number, 1e6 + number, 10)
    looks = iter(range(1000))
    left = journal.forget(
        1e6 + 300, keep_seconds=DAY, max_bytes=0, most_seconds=3.0, clock=lambda: float(next(looks))
    )
    assert left
    assert next(looks) == 4, "three prunes, and no more"
    assert not journal.forget(1e6 + 300, keep_seconds=DAY, max_bytes=0, most_seconds=60.0)


def test_events_of_some_jobs_are_found_by_their_keys(journal: SqliteJournal) -> None:
    tick = journals.tick(1)
    events = tuple(Event(1000.0 + at, "granted", at % 50, "chem", 1, {}) for at in range(2000))
    journal.append(tick._replace(events=events), journals.standing(1))
    plans: list[str] = []

    def look(sql: str) -> None:
        if "FROM events" in sql and not sql.startswith("EXPLAIN"):
            plans.append(sql)

    journal._db.conn.set_trace_callback(look)
    found = list(journal.events(1100.0, 2500.0, keys=[3, 4]))
    journal._db.conn.set_trace_callback(None)
    wanted = [event for event in events if event.key in (3, 4) and 1100.0 <= event.time < 2500.0]
    assert [(e.time, e.key) for e in found] == [(e.time, e.key) for e in wanted]
    with sqlite3.connect(journal.path) as db:
        steps = [row[3] for sql in plans for row in db.execute(f"EXPLAIN QUERY PLAN {sql}")]
    assert steps
    assert all("events_key" in step for step in steps if "events" in step), steps


def test_old_accounts_are_thinned_to_one_an_hour(journal: SqliteJournal) -> None:
    run_ticks(journal, 1, 150, step_seconds=60.0)
    while journal.prune(1e7, keep_seconds=1e9, max_bytes=1 << 40).total:
        pass
    times = sorted({moment.time for moment in journal.moments(0.0, math.inf)})
    assert times == [1060.0, 3640.0, 7240.0]


def test_pruning_by_age_keeps_what_replay_of_the_rest_needs(journal: SqliteJournal) -> None:
    run_ticks(journal, 1, 120)  # tick n at 1000 + 10 n
    while journal.prune(2200.0, keep_seconds=500.0, max_bytes=1 << 40).total:
        pass
    assert journal.tick_numbers() == (70, 120)
    assert all(tick.snapshot.cluster == "lab" for tick in journal.ticks())
    before = journal.standing_before(70)
    assert before is not None
    assert before[0] == 51
    assert journal.standing_before(51) is None
    assert len(list(journal.events())) == 120


def test_pruning_by_size_shrinks_the_file_and_keeps_the_newest(path: Path) -> None:
    with open_journal(path) as journal:
        for number in range(1, 61):
            journal.append(
                journals.tick(number, count=1500 + number, time=1000.0 + number),
                journals.standing(number, 300),
            )
        journal._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        full = path.stat().st_size
        calls = 0
        while journal.prune(2000.0, keep_seconds=1e9, max_bytes=full // 3).total:
            calls += 1
        journal._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert calls < 100
        assert path.stat().st_size < full // 2
        newest = journal.latest()
        assert newest is not None
        assert newest.tick == 60
        assert [tick.number for tick in journal.ticks()][-1] == 60
        assert list(journal.ticks())


def test_one_call_of_prune_removes_only_so_many_rows(journal: SqliteJournal) -> None:
    run_ticks(journal, 1, 30)
    assert journal.prune(1e9, keep_seconds=1.0, max_bytes=1 << 40, most_rows=5).ticks == 5


def test_hourly_accounts_of_years_push_out_no_fresh_tick_and_no_fresh_event(journal: SqliteJournal) -> None:
    now = 1e9
    for number in range(1, 30):
        one_tick(journal, number, now - 300.0 + 10.0 * number, 2)
    fresh = tuple(Event(now - 60.0 + at, "granted", at, "chem", 1, {}) for at in range(20))
    old = tuple(Event(now - 200 * DAY + at * 3600.0, "granted", at, "chem", 1, {}) for at in range(4000))
    last = journals.tick(30, time=now)._replace(events=old + fresh)
    journal.append(last, journals.standing(30, time=now))
    hours = range(300 * 24)
    rows = [
        (now - 310 * DAY + 3600.0 * hour, f"t{at}", 1.0, 1e6, 1e6, 1e6, 0.0, 0.0, 1)
        for hour in hours
        for at in (1, 2)
    ]
    columns = "time, tenant, weight, had, owed_quota, owed_demand, gpus, demand, hourly"
    with journal._writing():
        journal._insert("tenants_time", columns, rows)
    before = journal.bytes_used()
    journal.forget(now, keep_seconds=30 * DAY, max_bytes=before * 2 // 3, most_seconds=10.0)
    assert journal.bytes_used() <= before * 2 // 3
    assert journal.tick_numbers() == (1, 30)
    events = list(journal.events())
    assert [event for event in events if event.kind == "granted"][-20:] == list(fresh)
    kept = [moment.time for moment in journal.moments(0.0, math.inf)]
    assert kept
    assert abs(min(kept) - events[0].time) < 90 * DAY, "both go back about as far"
    journal.forget(now, keep_seconds=30 * DAY, max_bytes=0, most_seconds=10.0)
    assert (journal.tick_numbers(), list(journal.events())) == ((30, 30), [])


def test_rows_are_as_old_as_they_were_and_a_full_journal_gives_the_oldest_whatever_the_clock(
    journal: SqliteJournal,
) -> None:
    for number in range(1, 200):
        one_tick(journal, number, 1e6 + number, 5)
    later = 1e6 + 90 * DAY
    aged = 1e6 + 200
    journal.forget(later, keep_seconds=30 * DAY, max_bytes=1 << 40, aged=aged, most_seconds=10.0)
    assert journal.tick_numbers() == (1, 199), "a clock that is wrong for a moment makes nothing old"
    for now in (later, 1e6 - 90 * DAY):  # after a long absence, and with a clock that was set back
        most = journal.bytes_used() * 2 // 3
        journal.forget(now, keep_seconds=30 * DAY, max_bytes=most, aged=aged, most_seconds=10.0)
        assert journal.bytes_used() <= most
    numbers = journal.tick_numbers()
    assert numbers is not None
    assert numbers[0] > 1
    assert numbers[1] == 199
