"""A standing at the beginning, and what one that names little says of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_fair.model import Leases, LeaseTerms, Ledger, Standing
from slurm_fair.store import open_journal
from tests.support import journals


@pytest.mark.parametrize("time", [0.0, 1e9, 1_800_000_000.25])
def test_a_new_standing_knows_its_instant_and_nothing_else(time: float) -> None:
    new = Standing.new(time)
    assert (new.ledger.time, new.ledger.began, new.tick, new.last_jobs) == (time, time, 0, 0)
    assert len(new.leases) == len(new.ledger.jobs.key) == len(new.ledger.tenants.names) == 0
    assert [dict(each) for each in (new.memory, new.unsettled, new.shunned, new.asked_for)] == [{}] * 4
    assert (new.amended, new.left_over) == (False, 0)
    assert [len(each) for each in (new.backoff, new.unmoved, new.unshut)] == [0, 0, 0]


def test_what_nobody_noted_of_one_standing_is_nothing_in_the_next() -> None:
    """They share the empty mappings, which nobody can write into by accident."""
    one, other = Standing.new(0.0), Standing.new(1.0)
    changed = one._replace(memory={"seen": 1}, unsettled={7: 1.0})
    assert (one.memory, other.memory, other.unsettled) == ({}, {}, {})
    assert changed.memory == {"seen": 1}


def test_a_standing_of_a_ledger_and_leases_alone_is_that_of_an_older_journal() -> None:
    old = Standing(Ledger.new(5.0), Leases.none())
    assert journals.same(old, Standing.new(5.0))


def test_a_new_standing_comes_back_from_a_journal_as_it_was(tmp_path: Path) -> None:
    with open_journal(tmp_path / "journal.db") as journal:
        journal.append(journals.tick(1), Standing.new(5.0))
        assert journals.same(journal.latest(), Standing.new(5.0))


def test_a_tick_is_that_of_a_controller_that_acts_unless_it_says_otherwise() -> None:
    tick = journals.tick()
    assert (tick.dry_run, tick.guard, tick.amended, tick.left_over) == (False, "", None, None)
    assert tick.terms == LeaseTerms()
