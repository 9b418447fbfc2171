"""A time without the daemon of which accounting does not tell, though it tells of the present."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from slurm_fair.model import Blind, RunTable
from slurm_fair.model.spans import DAY_SECONDS
from tests.support.daemon_bench import Bench, lines, run_table


def back_after_days(bench: Bench, told: Callable[[], RunTable]) -> float:
    """A daemon comes back to an accounting that tells of a day at most; the instant of its first look."""
    bench.world.submit(4, "a")
    bench.run(60)
    bench.pass_time(3 * DAY_SECONDS)

    def says(start: float, end: float) -> RunTable | Blind:
        return Blind(end, "sacct did not answer within 20 s") if end - start > DAY_SECONDS else told()

    bench.books.says = says
    bench.restart().catch_up()
    bench.daemon.once()
    return bench.daemon.standing.ledger.time


def had(bench: Bench) -> dict[str, float]:
    tenants = bench.daemon.standing.ledger.tenants
    return dict(zip(tenants.names, tenants.had.tolist(), strict=True))


def test_charges_settle_while_accounting_does_not_tell_of_the_gap(bench: Bench) -> None:
    """A run of the gap is left to the gap: it is charged once, whenever that is filled."""
    table = run_table()
    first = back_after_days(bench, lambda: table)
    table = run_table((50, "a", 2, first - 500, first - 100), (51, "a", 2, first + 10, first + 30))
    began = had(bench)["a"]
    bench.run(200)
    now = bench.daemon.standing.ledger.time
    assert had(bench)["a"] == began + 4 * (now - first) + 2 * 20
    bench.books.says = lambda start, end: table
    bench.run(600)
    assert had(bench)["a"] == began + 4 * (bench.daemon.standing.ledger.time - first) + 2 * 20 + 2 * 400


def test_the_gap_is_asked_for_up_to_the_first_look_seldom_and_then_given_up(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    first = back_after_days(bench, run_table)
    bench.run(3 * 3600)
    periods = [(start, end) for start, end, _ in bench.books.asked]
    for_gap = [number for number, (start, end) in enumerate(periods) if end - start > DAY_SECONDS]
    assert len(for_gap) == 6
    assert {periods[number][1] for number in for_gap[1:]} == {first}
    assert len(periods) > 100
    between = [later - sooner for sooner, later in pairwise(for_gap)]
    assert between == sorted(between)
    assert len(lines(caplog, "accounting does not answer")) == 1
    assert len(lines(caplog, "stays as it is counted")) == 1
    assert min(start for start, _ in periods[-1:]) < bench.now - 6 * 3600


def test_a_gap_is_not_given_up_while_accounting_is_silent_of_everything(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    first = back_after_days(bench, run_table)
    bench.books.says = lambda start, end: Blind(end, "sacct: Connection refused")
    bench.run(3 * 3600)
    table = run_table((50, "b", 4, first - 5000, first - 1000))
    bench.books.says = lambda start, end: table
    bench.run(300)
    assert had(bench)["b"] == 4 * 4000
    assert not lines(caplog, "stays as it is counted")
