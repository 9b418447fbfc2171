"""The journal keeps ticks, standings, acts, marks and events, and finds them again."""

from __future__ import annotations

import math
import os
import sqlite3
import stat
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_fair.errors import StoreError
from slurm_fair.model import Result, Standing
from slurm_fair.model.tenant_moment import TenantMoment
from slurm_fair.ports import IntentLog, Journal
from slurm_fair.store import SqliteJournal, open_journal, open_reader
from slurm_fair.store.rows import seal
from tests.support import journals
from tests.support.journals import run_ticks


def test_it_serves_both_ports(journal: SqliteJournal) -> None:
    keeps: Journal = journal
    writes: IntentLog = journal
    assert keeps.latest() is None
    assert writes.intend([], 1.0) == ()
    assert list(keeps.ticks()) == []
    assert journal.began() is None
    assert journal.tick_numbers() is None


def test_ticks_come_back_in_order_and_by_number(journal: SqliteJournal) -> None:
    run_ticks(journal, 1, 5)
    assert [tick.number for tick in journal.ticks()] == [1, 2, 3, 4, 5]
    assert [tick.number for tick in journal.ticks(2, 4)] == [2, 3, 4]
    assert journals.same(next(journal.ticks(3)), journals.tick(3, time=1030.0))
    assert journal.tick_numbers() == (1, 5)


def test_the_newest_standing_is_exact_after_each_tick(journal: SqliteJournal) -> None:
    for number in (1, 2, 3):
        run_ticks(journal, number, number)
        found = journal.latest_checkpoint()
        assert found is not None
        assert found[0] == number
        assert journals.same(found[1], journals.standing(number, time=1000.0 + 10 * number))


def test_every_fiftieth_standing_stays_for_replay(journal: SqliteJournal) -> None:
    run_ticks(journal, 1, 120)
    before = [journal.standing_before(number) for number in (1, 2, 51, 52, 120, 121)]
    assert [found and found[0] for found in before] == [None, 1, 1, 51, 101, 120]


def test_a_column_that_does_not_change_is_stored_once(journal: SqliteJournal, path: Path) -> None:
    same = journals.tick(1, count=2000)
    journal.append(same, journals.standing(1))
    columns = len(list(journal._all("SELECT 1 FROM blobs")))
    for number in range(2, 12):
        journal.append(same._replace(number=number), journals.standing(number))
    assert len(list(journal._all("SELECT 1 FROM blobs"))) == columns > 5


def test_a_column_that_recurs_is_found_again_after_its_first_use_is_pruned(journal: SqliteJournal) -> None:
    for number in range(1, 31):  # columns of two lengths, in turn
        count = 300 if number % 2 else 301
        journal.append(journals.tick(number, count, time=10.0 * number), journals.standing(number))
    while journal.prune(1000.0, keep_seconds=850.0, max_bytes=1 << 40).total:
        pass
    kept = [tick.number for tick in journal.ticks()]
    assert kept == list(range(15, 31))


def test_the_journal_goes_on_after_it_was_closed(path: Path) -> None:
    with open_journal(path) as first:
        run_ticks(first, 1, 3)
        epoch = first.epoch
    with open_journal(path) as second:
        assert second.epoch == epoch + 1
        run_ticks(second, 4, 5)
        assert [tick.number for tick in second.ticks()] == [1, 2, 3, 4, 5]


def test_a_tick_number_that_is_not_new_is_refused_and_changes_nothing(journal: SqliteJournal) -> None:
    run_ticks(journal, 1, 3)
    with pytest.raises(StoreError, match="tick 2 follows tick 3"):
        journal.append(journals.tick(2), journals.standing(9))
    newest = journal.latest()
    assert newest is not None
    assert newest.tick == 3


def test_a_policys_strange_memory_refuses_the_tick_and_keeps_the_journal(journal: SqliteJournal) -> None:
    run_ticks(journal, 1, 1)
    with pytest.raises(StoreError, match="plain data only"):
        journal.append(journals.tick(2), journals.standing(2)._replace(memory={"x": object()}))
    run_ticks(journal, 2, 2)


def test_acts_are_found_again_with_what_came_of_them(journal: SqliteJournal) -> None:
    ids = journal.intend([journals.action(1), journals.action(2), journals.action(3)], 50.0)
    journal.conclude(ids[:2], [journals.outcome(1), journals.outcome(2, Result.REFUSED)], 51.0)
    one, two, three = journal.intents()
    assert (one.action, one.result, one.concluded, one.epoch) == (journals.action(1), Result.DONE, 51.0, 1)
    assert (two.result, two.detail, two.seconds) == (Result.REFUSED, "as asked", 0.25)
    assert journals.unconcluded(journal) == (three,)
    assert three.result is None
    assert journal.intents(since=51.0) == ()


def test_an_act_that_was_never_written_down_cannot_be_concluded(journal: SqliteJournal) -> None:
    ids = journal.intend([journals.action()], 1.0)
    with pytest.raises(StoreError, match="no act 77"):
        journal.conclude([*ids, 77], [journals.outcome(), journals.outcome()], 2.0)
    assert len(journals.unconcluded(journal)) == 1


def test_numbers_of_acts_are_never_used_again(journal: SqliteJournal) -> None:
    first = journal.intend([journals.action()], 1.0)
    journal.conclude(first, [journals.outcome()], 2.0)
    while journal.prune(1e9, keep_seconds=1.0, max_bytes=1 << 40).total:
        pass
    assert journal.intents() == ()
    assert journal.intend([journals.action()], 3.0)[0] > first[0]


def test_acts_without_an_end_are_forgotten_by_age_alone(journal: SqliteJournal) -> None:
    journal.intend([journals.action()], 1.0)
    journal.prune(1e9, keep_seconds=2e9, max_bytes=0)
    assert len(journals.unconcluded(journal)) == 1
    journal.prune(1e9, keep_seconds=1.0, max_bytes=1 << 40)
    assert journals.unconcluded(journal) == ()


def test_marks_are_set_replaced_and_dropped(journal: SqliteJournal) -> None:
    journal.set_marks([journals.mark(2), journals.mark(1), journals.mark(1, whole_record=True)])
    later = replace(journals.mark(2), gate_until=500.0, pinned=True, blameless=True, user_begin=420.0)
    journal.set_marks([later])
    assert journal.marks() == (journals.mark(1), journals.mark(1, whole_record=True), later)
    journal.drop_marks([(later.key, False), (journals.mark(1).key, True)])
    assert journal.marks() == (journals.mark(1),)


def test_lists_of_the_first_look_are_kept_and_an_older_journal_has_none_in_doubt(path: Path) -> None:
    with open_journal(path) as journal:
        assert journal.lists_at_first() is None, "nobody has looked yet"
        journal.keep_lists_at_first({7: "n[1-2]"})
        run_ticks(journal, 1, 1)
    with open_reader(path) as reader:
        assert reader.lists_at_first() == {7: "n[1-2]"}
    older = path.with_name("older.db")
    with open_journal(older) as journal:
        run_ticks(journal, 1, 1)
        assert journal.lists_at_first() == {}, "it saw its jobs come"


def test_events_are_found_by_time_kind_tenant_and_job(journal: SqliteJournal) -> None:
    events = (
        journals.event(10.0, "submitted", 1, user="ann"),
        journals.event(20.0, "granted", 2, nodes=["n1"], until=920.0, number=1),
        journals.event(20.0, "granted", 3)._replace(tenant="chem"),
        journals.event(30.0, "finished", 1, rho=math.inf),
    )
    journal.append(journals.tick(1, events=events), journals.standing(1))
    assert tuple(journal.events()) == events
    assert tuple(journal.events(20.0, 30.0)) == events[1:3]
    assert tuple(journal.events(kinds=["finished", "submitted"])) == (events[0], events[3])
    assert tuple(journal.events(tenant="chem")) == (events[2],)
    assert tuple(journal.events(keys=[events[0].key])) == (events[0], events[3])
    assert tuple(journal.events(keys=[])) == ()


def test_many_events_come_in_order_past_the_chunk(journal: SqliteJournal) -> None:
    events = tuple(journals.event(float(number // 7), "started", number + 1) for number in range(21_000))
    journal.append(journals.tick(1, events=events), journals.standing(1))
    assert tuple(journal.events()) == events
    some = [event.key for event in events[::20]]
    assert [event.key for event in journal.events(keys=some)] == some


def test_tenants_accounts_are_written_once_a_minute(journal: SqliteJournal) -> None:
    run_ticks(journal, 1, 20)  # every ten seconds from 1010
    times = sorted({moment.time for moment in journal.moments(0.0, math.inf)})
    assert times == [1010.0, 1070.0, 1130.0, 1190.0]
    first = next(moment for moment in journal.moments(0.0, math.inf) if moment.tenant == "phys")
    assert first == TenantMoment(1010.0, "phys", 3.0, 3.0, 6.0, 9.0, 8.0, 8.0)
    assert (journal.moment_time(0.0), journal.moment_time(1101.0), journal.moment_time(9e9)) == (
        1010,
        1130,
        1190,
    )


def test_accounts_of_tenants_go_on_after_one_look_with_a_clock_that_was_ahead(path: Path) -> None:
    times = (1000.0, 9e6, 1040.0, 1070.0, 1110.0)
    with open_journal(path) as journal:
        for number, time in enumerate(times, 1):
            journal.append(journals.tick(number, time=time), journals.standing(number, time=time))
        kept = [
            row[0]
            for row in journal._all(
                "SELECT time FROM tenants_time WHERE hourly AND tenant = 'phys' ORDER BY id"
            )
        ]
        assert kept == [1000.0, 9e6, 1040.0], "the hour is another one, before as after"
    with open_journal(path) as journal:
        for number, time in enumerate((1120.0, 1170.0), 6):
            journal.append(journals.tick(number, time=time), journals.standing(number, time=time))
        kept = [moment.time for moment in journal.moments(0.0, math.inf) if moment.tenant == "phys"]
    assert kept == [1000.0, 1040.0, 1110.0, 1170.0, 9e6]


def test_files_are_for_their_owner_alone_whatever_the_umask(path: Path) -> None:
    before = os.umask(0)
    try:
        with open_journal(path) as journal:
            run_ticks(journal, 1, 1)
            modes = {found.name: stat.S_IMODE(found.stat().st_mode) for found in path.parent.iterdir()}
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    finally:
        os.umask(before)
    assert len(modes) == 5
    assert set(modes.values()) == {0o600}


def test_a_damaged_row_is_refused(journal: SqliteJournal) -> None:
    run_ticks(journal, 1, 1)
    journal.set_marks([journals.mark()])
    journal._db.execute("UPDATE events SET tenant = 'chem'")
    journal._db.execute("UPDATE marks SET gate_until = 5.0")
    journal._db.execute("UPDATE tenants_time SET had = 5.0")
    for read in (lambda: list(journal.events()), journal.marks, lambda: list(journal.moments(0.0, 9e9))):
        with pytest.raises(StoreError, match="is not what was written"):
            read()


def test_a_closed_journal_writes_nothing(path: Path) -> None:
    journal = open_journal(path)
    journal.close()
    with pytest.raises(StoreError, match="the journal was closed"):
        journal.set_marks([journals.mark()])


def test_a_row_that_is_no_number_is_refused_before_it_is_kept() -> None:
    with pytest.raises(StoreError, match="not a number"):
        seal(1.0, math.nan)


def test_a_new_standing_can_be_kept(journal: SqliteJournal) -> None:
    journal.append(journals.tick(0), Standing.new(5.0))
    assert journals.same(journal.latest(), Standing.new(5.0))


def test_a_wal_that_somebody_keeps_growing_is_told_and_short_again_afterwards(
    journal: SqliteJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurm_fair.store.journal._LONG_WAL_BYTES", 6 << 20)
    for pragma in ("synchronous = OFF", "wal_autocheckpoint = 100"):
        journal._db.execute(f"PRAGMA {pragma}")
    run_ticks(journal, 1, 2)
    journal.check_wal()
    with closing(sqlite3.connect(journal.path, isolation_level=None)) as shell:
        shell.execute("BEGIN")
        shell.execute("SELECT count(*) FROM ticks").fetchone()
        for _ in range(8):
            journal.need_room()
        with pytest.raises(StoreError, match=r"journal\.db-wal: \d+ MB, and it grows .*sqlite3 shell"):
            journal.check_wal()
    for _ in range(3):
        journal.need_room()
    journal.check_wal()
