"""Real time: a sleep ends on time, or at once when somebody wakes it, whatever becomes of the clock."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from slurm_fair.looks.wall_clock import WallClock


def lasts(what: Callable[[], object]) -> float:
    began = time.monotonic()
    what()
    return time.monotonic() - began


def test_now_is_the_time_of_the_machine() -> None:
    assert WallClock().now() == pytest.approx(time.time(), abs=1.0)


def test_a_sleep_lasts_until_its_instant() -> None:
    clock = WallClock()
    assert 0.29 <= lasts(lambda: clock.sleep_until(clock.now() + 0.3)) < 5.0
    assert clock.now() >= time.time() - 1


@pytest.mark.parametrize("instant", [0.0, -math.inf])
def test_an_instant_that_is_over_is_not_waited_for(instant: float) -> None:
    assert lasts(lambda: WallClock().sleep_until(instant)) < 1.0


def test_a_sleep_without_end_ends_when_somebody_wakes_it() -> None:
    clock = WallClock()
    threading.Timer(0.1, clock.wake).start()
    assert 0.05 < lasts(lambda: clock.sleep_until(math.inf)) < 5.0


def test_a_signal_is_heeded_in_the_middle_of_a_sleep() -> None:
    clock = WallClock()
    before = signal.signal(signal.SIGUSR1, lambda *_: clock.wake())
    try:
        threading.Timer(0.1, signal.raise_signal, (signal.SIGUSR1,)).start()
        assert lasts(lambda: clock.sleep_until(clock.now() + 60)) < 5.0
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_who_wakes_before_a_sleep_ends_the_next_one_and_only_that() -> None:
    clock = WallClock()
    clock.wake()
    clock.wake()
    assert lasts(lambda: clock.sleep_until(clock.now() + 60)) < 1.0
    assert lasts(lambda: clock.sleep_until(clock.now() + 0.25)) >= 0.24


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_a_clock_that_is_set_in_the_middle_of_a_sleep_makes_it_neither_longer_nor_shorter(
    step: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, real, began = WallClock(), time.time, time.monotonic()

    def stepped() -> float:
        return real() + (step if time.monotonic() - began > 0.1 else 0.0)

    monkeypatch.setattr("slurm_fair.looks.wall_clock.time.time", stepped)
    instant = real() + 0.4
    guard = threading.Timer(3.0, clock.wake)
    guard.start()
    assert 0.3 <= lasts(lambda: clock.sleep_until(instant)) < 2.5
    guard.cancel()


def test_a_clock_without_a_bell_has_one_that_never_rings() -> None:
    clock: Any = WallClock()
    assert not clock.bell.wait(0.0)
    assert clock.bell is not WallClock().bell
