"""The daemon's loop while the clock of its machine is set."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.daemon_bench import Bench, bench_in, crowd


@pytest.mark.parametrize("when", [5.0, 35.0, 62.0])
def test_a_clock_that_is_set_back_stops_no_turn(tmp_path: Path, when: float) -> None:
    """While nothing happens, while a lease lasts, and while a job is asked to save."""
    with bench_in(tmp_path / "s", policy="astraea") as bench:
        _set_back(bench, when)


def _set_back(bench: Bench, when: float) -> None:
    first = bench.world.submit(8, "a")
    bench.run(when)
    bench.world.clock.advance(-7200.0)
    second = bench.world.submit(8, "b")
    states = set[tuple[str, str]]()
    for _ in range(10):
        bench.run(10)
        states.add((bench.world.record(first).state, bench.world.record(second).state))
    assert not bench.daemon.blind
    assert ("PENDING", "RUNNING") in states, "its turn came within two leases"
    tenants = bench.daemon.standing.ledger.tenants
    assert 0 <= tenants.had.sum() <= 8 * (when + 100 + 10)


@pytest.mark.parametrize("seconds", [3.0, 7200.0])
def test_a_job_that_waited_while_the_clock_was_set_back_runs_no_longer_than_its_turn(
    tmp_path: Path, seconds: float
) -> None:
    """Slurm says for its whole run that it started before it was submitted."""
    with bench_in(tmp_path / "s", policy="astraea") as bench:
        bench.run(5)
        first = bench.world.submit(8, "a", gate_seconds=120)
        bench.world.clock.advance(-seconds)
        bench.world.catch_up()
        set_back_at = bench.now
        bench.run(10)
        assert bench.world.record(first).start < bench.world.record(first).submit
        second = bench.world.submit(8, "b", gate_seconds=120)
        bench.run(300)
        assert bench.world.record(first).restarts + bench.world.record(second).restarts >= 3
        assert not [each for each in bench.journal.events(set_back_at) if each.kind == "adopted"]


def test_a_clock_that_is_wrong_for_a_look_makes_no_tick_old(tmp_path: Path) -> None:
    with bench_in(tmp_path / "s") as bench:
        crowd(bench)
        bench.run(20)
        kept = bench.journal.tick_numbers()
        bench.world.clock.advance(365 * 86400.0)
        bench.daemon.once()
        bench.world.clock.advance(-365 * 86400.0)
        bench.run(20)
        after = bench.journal.tick_numbers()
        assert kept is not None
        assert after is not None
        assert kept[0] == after[0]
