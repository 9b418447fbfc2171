"""A journal that an earlier state of the code wrote opens, replays and reports."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from slurm_fair.cli.replay_tick import replayed, same_plan
from slurm_fair.ledger import LedgerSettings
from slurm_fair.model import EventKind
from slurm_fair.store import open_journal, open_reader

OLD = Path(__file__).parents[2] / "data" / "journals" / "before_lease_promises.db.gz"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A copy that may be written to, brought up to date as at the start of a daemon."""
    path = tmp_path / "journal.db"
    path.write_bytes(gzip.decompress(OLD.read_bytes()))
    open_journal(path).close()
    return path


def test_every_tick_of_it_comes_out_the_same(old: Path) -> None:
    with open_reader(old) as journal:
        span = journal.tick_numbers()
        assert span == (1, 57)
        promised = revoked = 0
        for number in range(span[0], span[1] + 1):
            again, then = replayed(journal, number, LedgerSettings())
            assert same_plan(again, then.plan), number
            promised, revoked = promised + again.granted.size, revoked + again.revoked.size
    assert (promised, revoked) == (23, 10)


def test_a_daemon_goes_on_with_its_last_standing(old: Path) -> None:
    with open_journal(old) as journal:
        standing = journal.latest()
        assert standing is not None
        assert (standing.tick, len(standing.leases), len(standing.ledger.jobs)) == (57, 0, 0)
        assert standing.ledger.tenants.had.sum() > 0
        kinds = {event.kind for event in journal.events()}
    assert kinds <= set(EventKind)
