"""Times without the daemon of which accounting has told nothing when the daemon starts once more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from slurm_fair.model import Blind, RunTable
from slurm_fair.store.parcel import Packer, unpack
from tests.support.daemon_bench import Bench, bench_in, lines, run_table

Says = Callable[[float, float], RunTable | Blind]
HOUR = 3600.0


def silent(start: float, end: float) -> Blind:
    return Blind(end, "sacct: Connection refused")


def away(bench: Bench, says: Says) -> float:
    """A daemon that was away for an hour and looks once; the instant at which it went."""
    gone = bench.now
    bench.pass_time(HOUR)
    bench.books.says = says
    bench.restart().catch_up()
    bench.daemon.once()
    bench.world.clock.advance(5.0)
    return gone


def unfilled(bench: Bench) -> int:
    return len(bench.daemon.standing.unfilled)


def tenants(bench: Bench) -> dict[str, list[float]]:
    """All that each tenant had and was owed."""
    of = bench.daemon.standing.ledger.tenants
    return dict(zip(of.names, np.array([of.had, of.owed_quota, of.owed_demand]).T.tolist(), strict=True))


def test_a_gap_is_filled_though_the_daemon_starts_again_before_accounting_answers(bench: Bench) -> None:
    bench.world.submit(4, "a")
    bench.run(60)
    gone = away(bench, silent)
    bench.restart().catch_up()  # killed right after its first look
    bench.run(30)
    assert unfilled(bench) == 1
    runs = run_table((50, "b", 4, gone + 100, gone + 2500))
    bench.books.says = lambda start, end: runs
    bench.run(200)
    assert tenants(bench)["b"][0] == 4 * 2400
    assert unfilled(bench) == 0
    bench.restart().catch_up()
    bench.run(200)
    assert tenants(bench)["b"][0] == 4 * 2400, "it is filled once"


@pytest.mark.parametrize("second", ["told late too", "told in time"])
def test_two_gaps_are_filled_as_if_accounting_had_told_of_both_in_time(tmp_path: Path, second: str) -> None:
    found = []
    for late in (False, True):
        with bench_in(tmp_path / str(late)) as bench:
            bench.world.submit(4, "a")
            bench.world.submit(1, "b")
            bench.run(60)
            first, then = bench.now, bench.now + HOUR + 105.0
            runs = run_table((50, "b", 4, first + 100, first + 2500), (51, "b", 2, then + 10, then + 1510))

            def told(start: float, end: float, runs: RunTable = runs) -> RunTable:
                return runs.take((runs.end > start) & (runs.start < end))

            def refused(start: float, end: float, until: float = then) -> RunTable | Blind:
                """An accounting that had lost the time before for a while."""
                return (
                    silent(start, end)
                    if second == "told late too" or start < until - 200
                    else told(start, end)
                )

            away(bench, refused if late else told)
            bench.run(then - bench.now)
            away(bench, refused if late else told)
            bench.run(100)
            assert unfilled(bench) == late * (1 + (second == "told late too"))
            bench.books.says = told
            bench.run(1200)
            assert unfilled(bench) == 0
            found.append(tenants(bench))
    assert found[0].keys() == found[1].keys() == {"a", "b"}
    for name, known in found[0].items():
        assert found[1][name] == pytest.approx(known, rel=1e-9)


def test_a_gap_that_was_given_up_is_not_asked_for_after_a_restart(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.world.submit(4, "a")
    bench.run(60)
    gone = away(bench, silent)
    bench.books.says = lambda start, end: silent(start, end) if start <= gone else run_table()
    bench.restart().catch_up()
    bench.run(3 * HOUR)
    assert lines(caplog, "stays as it is counted")
    bench.restart().catch_up()
    assert unfilled(bench) == 0


def test_a_standing_keeps_what_fills_a_gap(bench: Bench) -> None:
    bench.world.submit(4, "a")
    bench.run(60)
    away(bench, silent)
    standing = bench.daemon.standing
    again = unpack(Packer().pack(standing), type(standing))
    assert again.unfilled[0].look.time == standing.unfilled[0].look.time
    assert again.unfilled[0].before.tenants.had.tolist() == standing.unfilled[0].before.tenants.had.tolist()
