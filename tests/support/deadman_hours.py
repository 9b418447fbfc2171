"""A dead-man beside a daemon, over a fake Slurm and virtual time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from slurm_fair.deadman import watch
from tests.support.daemon_bench import Bench, bench_in

BOTH_GATES = pytest.mark.parametrize("gate", ["begin", "hold"])


@dataclass
class Hours:
    """The dead-man's clock: while it sleeps, the daemon looks when it is due, as long as it lives."""

    bench: Bench
    lives: bool = True
    until: float = math.inf
    due: float = 0.0
    each: Callable[[], None] = lambda: None

    def now(self) -> float:
        return self.bench.now

    def sleep_until(self, instant: float) -> None:
        """Let the daemon and the jobs live on until then."""
        if instant > self.until:
            raise TimeoutError
        self.each()
        clock = self.bench.world.clock
        while self.lives and self.due <= instant:
            clock.sleep_until(max(self.due, self.now()))
            self.bench.world.catch_up()
            began = self.now()
            self.bench.daemon.once()
            self.due = self.bench.daemon.next_look(began)
        clock.sleep_until(max(instant, self.now()))
        self.bench.world.catch_up()

    def watched(self, seconds: float) -> int | None:
        """The dead-man's end after so many seconds; None while it watches on."""
        self.until = self.now() + seconds
        try:
            return watch(self.bench.config, self.bench.places, self)
        except TimeoutError:
            return None


def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Hours]]:
    opened = []

    def make(gate: str) -> Hours:
        context = bench_in(tmp_path / "s", gate=gate)
        bench = context.__enter__()
        opened.append(context)
        monkeypatch.setattr("slurm_fair.deadman.commands_of", lambda config, places: bench.apart())
        for tenant in ("a", "b", "b"):
            held = gate == "hold"
            bench.world.submit(8, tenant, hold=held, gate_seconds=0.0 if held else 600.0)
        bench.run(20)
        return Hours(bench, due=bench.now)

    yield make
    for context in opened:
        context.__exit__(None, None, None)


def kept_back(bench: Bench) -> int:
    """Jobs that wait behind a gate."""
    waits = [record for record in bench.world.living() if record.state == "PENDING"]
    return sum(bool(record.held) or record.eligible > bench.now + 2 for record in waits)
