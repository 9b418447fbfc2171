"""A clock that is set, or a machine that stood still: whom the dead-man takes for dead, and whom it misses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from slurm_fair.deadman import Silence, silence_of, take_over, watch
from slurm_fair.host.state_folder import Pause, last_beat, leave_pause
from slurm_fair.store import epoch_of
from tests.support.deadman_hours import BOTH_GATES, Hours, sites

site = pytest.fixture(sites)


@BOTH_GATES
def test_a_step_of_the_clock_is_no_silence(site: Callable[[str], Hours], gate: str) -> None:
    hours = site(gate)
    for seconds in (3600.0, -3600.0):
        hours.bench.world.clock.advance(seconds)
        hours.due = hours.now() + 5.0
        assert hours.watched(300) is None
        assert epoch_of(hours.bench.places.journal) == 1, "nobody is fenced"


@BOTH_GATES
@pytest.mark.parametrize("once", [False, True])
def test_a_daemon_that_dies_as_the_clock_is_set_back_is_missed_all_the_same(
    site: Callable[[str], Hours], gate: str, once: bool
) -> None:
    hours = site(gate)
    hours.lives = False
    hours.bench.world.clock.advance(-3600.0)
    began = hours.now()
    hours.until = began + 1000
    assert watch(hours.bench.config, hours.bench.places, hours, once) == 2
    assert hours.now() - began < 60


def test_a_new_daemon_is_known_also_when_the_clock_was_set_back(site: Callable[[str], Hours]) -> None:
    hours = site("hold")
    bench = hours.bench
    bench.commands.trouble.dead = True
    hours.lives, tries = False, 0

    def each() -> None:
        nonlocal tries
        tries += 1
        if tries == 3:
            bench.world.clock.advance(-3600.0)
            bench.commands.trouble.dead = False
            bench.restart()
            bench.daemon.beat()

    hours.each = each
    hours.until = hours.now() + 1000
    assert take_over(bench.config, bench.places, hours) == 0
    assert last_beat(bench.places) is not None


def test_a_pause_of_a_time_to_come_is_old(site: Callable[[str], Hours]) -> None:
    hours = site("hold")
    leave_pause(hours.bench.places, Pause("a test", time=hours.now() + 3600.0))
    hours.bench.daemon.beat()
    assert silence_of(hours.bench.places, hours.now()) is Silence.PAUSED
    leave_pause(hours.bench.places, Pause("a test", time=hours.now() + 1.0))
    assert silence_of(hours.bench.places, hours.now()) is Silence.NONE


def test_a_daemon_that_is_blind_as_the_clock_is_set_back_is_known_to_be_so(
    site: Callable[[str], Hours],
) -> None:
    bench = site("hold").bench
    bench.commands.trouble.dead = True
    bench.run(10)
    bench.world.clock.advance(-7200.0)
    began = bench.now
    while silence_of(bench.places, bench.now) is not Silence.BLIND:
        bench.run(5)
        assert bench.now - began < 100
