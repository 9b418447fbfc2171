"""The daemon frees jobs that are not managed by the way of all acts: guard, intents, outcomes, journal."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from slurm_fair.cli.replay_tick import replayed, same_plan
from slurm_fair.host.state_folder import Pause, leave_pause
from slurm_fair.ledger import LedgerSettings
from slurm_fair.model import Outcome, Result, TickRecord, Verb
from slurm_fair.model.ids import pack
from slurm_fair.store import open_reader
from tests.support.daemon_bench import Bench, bench_in, crowd, lines


def stray(bench: Bench) -> int:
    """A job with our gate in a reservation, where jobs are left alone."""
    job = bench.world.submit(1, "a", gate_seconds=900.0)
    bench.world.records[job].raw = {"Reservation": "r"}
    return job


def frees(record: TickRecord) -> list[Outcome]:
    """The outcomes of the acts that free."""
    return [outcome for outcome in record.outcomes if outcome.action.verb is Verb.FREE]


def records(bench: Bench) -> list[TickRecord]:
    """All ticks of the journal."""
    return list(bench.journal.ticks())


def test_what_is_freed_stands_in_the_tick_and_among_the_intents(bench: Bench) -> None:
    crowd(bench)
    job = stray(bench)
    done = bench.daemon.once()
    assert done.record is not None
    (freed,) = frees(done.record)
    assert (freed.action.key, freed.result, freed.action.why) == (pack(job), Result.DONE, "it is not managed")
    assert done.record.snapshot.to_free == (freed.action,)
    assert bench.world.records[job].eligible <= bench.now + 2
    kept = records(bench)[-1]
    assert frees(kept) == [freed]
    assert kept.snapshot.to_free == (freed.action,)
    assert any(intent.action.verb is Verb.FREE for intent in bench.journal.intents())
    assert not bench.daemon.standing.unsettled
    with open_reader(bench.places.journal) as journal:
        again, then = replayed(journal, kept.number, LedgerSettings())
    assert same_plan(again, then.plan)


def test_a_paused_daemon_frees_nobody_and_one_that_goes_on_does(bench: Bench) -> None:
    crowd(bench)
    job = stray(bench)
    leave_pause(bench.places, Pause("the storage is upgraded", "ann", 1_790_000_000.0))
    before, eligible = bench.acts(), bench.world.records[job].eligible
    bench.run(30)
    assert (bench.acts(), bench.world.records[job].eligible) == (before, eligible)
    assert {outcome.detail for outcome in frees(records(bench)[-1])} == {"dry run"}
    bench.places.paused.unlink()
    assert bench.daemon.once().blind == ""
    assert bench.world.records[job].eligible <= bench.now + 2


def test_a_shadow_frees_nobody(tmp_path: Path) -> None:
    with bench_in(tmp_path / "s", dry_run=True) as bench:
        job = stray(bench)
        eligible = bench.world.records[job].eligible
        bench.run(30)
        assert bench.acts() == []
        assert bench.world.records[job].eligible == eligible


def test_a_refusal_is_said_once_and_tried_again_later_and_the_plan_heeds_it_not(
    bench: Bench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd(bench)
    job = stray(bench)
    actuator = bench.daemon.adapter._actuator  # type: ignore[union-attr]
    hinders = type(actuator)._hinders
    monkeypatch.setattr(
        type(actuator),
        "_hinders",
        lambda self, action, rows: "no" if action.verb is Verb.FREE else hinders(self, action, rows),
    )
    with caplog.at_level(logging.WARNING):
        first, second = bench.daemon.once(), bench.daemon.once()
    assert first.record is not None
    assert second.record is not None
    assert [outcome.result for outcome in frees(first.record)] == [Result.REFUSED]
    assert frees(second.record) == []
    assert lines(caplog, f"job {job} is not managed, and what is ours on it cannot be taken away: no")
    assert len(lines(caplog, f" {job}")) == 1
    standing = bench.daemon.standing
    assert not any((standing.unsettled, standing.backoff, standing.unmoved, standing.unshut))
    bench.run(12)
    assert [o.action.key for record in records(bench)[-2:] for o in frees(record)] == [pack(job)]
