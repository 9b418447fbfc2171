"""The product's own daemon over a fake Slurm, a real journal and virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slurm_fair.board.publish import Publisher
from slurm_fair.config.sections import Config
from slurm_fair.config.tree import from_tree
from slurm_fair.daemon.loop import Daemon
from slurm_fair.daemon.parts import knowing_rules_of, rules_of
from slurm_fair.dry_run import DryRun
from slurm_fair.host.state_folder import Places
from slurm_fair.knowing import Knowing
from slurm_fair.model import Blind, JobState, RunTable, Standing
from slurm_fair.model.ids import pack
from slurm_fair.policy.registry import DEFAULT_POLICY
from slurm_fair.slurm.cluster import SlurmCluster
from slurm_fair.slurm.ownership.marks import MarksInHand
from slurm_fair.store import SqliteJournal, open_journal
from tests.support.command_line import heard
from tests.support.fake_commands import FakeCommands
from tests.support.fake_slurm import PushedClock, World

LEASE = {"term": 60.0, "interval": 10.0, "grace": 10.0, "start_timeout": 20.0}


@dataclass(slots=True)
class Books:
    """Accounting that says what it is told to say, and remembers what it was asked."""

    says: Callable[[float, float], RunTable | Blind] = lambda start, end: no_runs()
    asked: list[tuple[float, float, tuple[str, ...]]] = field(default_factory=list)

    def runs(self, start: float, end: float, partitions: Iterable[str]) -> RunTable | Blind:
        self.asked.append((start, end, tuple(partitions)))
        return self.says(start, end)


def run_table(*runs: tuple[int, str, int, float, float]) -> RunTable:
    """Runs that ended: job, tenant, GPUs, start, end."""
    tenants = tuple(sorted({run[1] for run in runs}))
    starts = np.array([run[3] for run in runs], dtype=np.float64)
    return RunTable(
        key=np.array([pack(run[0]) for run in runs], dtype=np.int64),
        tenant=np.array([tenants.index(run[1]) for run in runs], dtype=np.int64),
        tenants=tenants,
        user=np.zeros(len(runs), dtype=np.int64),
        users=("u",),
        gpus=np.array([run[2] for run in runs], dtype=np.int64),
        submit=starts - 1.0,
        start=starts,
        end=np.array([run[4] for run in runs], dtype=np.float64),
        state=np.full(len(runs), JobState.DONE, dtype=np.int8),
        requeued=np.zeros(len(runs), dtype=np.int8),
    )


def no_runs() -> RunTable:
    """Accounting knows of none."""
    return run_table()


@dataclass(slots=True)
class Bench:
    """A daemon and everything round it."""

    world: World
    commands: FakeCommands
    places: Places
    config: Config
    journal: SqliteJournal
    daemon: Daemon
    books: Books

    @property
    def now(self) -> float:
        """The time of everything."""
        return self.world.clock.now()

    def pass_time(self, seconds: float) -> None:
        """Nobody looks for so long."""
        self.world.clock.sleep_until(self.now + seconds)
        self.world.catch_up()

    def run(self, seconds: float) -> None:
        """Look as the daemon's own loop does for so long."""
        until = self.now + seconds
        while self.now < until:
            began = self.now
            self.daemon.once()
            self.world.clock.sleep_until(min(self.daemon.next_look(began), until))
            self.world.catch_up()

    def acts(self) -> list[str]:
        """Every act that reached Slurm."""
        return list(self.commands.said)

    def apart(self) -> FakeCommands:
        """Slurm's commands in another process: the daemon is not asked before each of them."""
        commands = copy(self.commands)
        commands.before = lambda: None
        return commands

    def restart(self, dry_run: bool = False) -> Daemon:
        """The daemon died; another one begins with what the journal keeps."""
        self.journal.close()
        self.journal = open_journal(self.places.journal, busy_seconds=0.05)
        self.daemon = daemon_of(self, dry_run)
        return self.daemon


def daemon_of(bench: Bench, dry_run: bool = False) -> Daemon:
    """A daemon wired as Daemon.build does it, over the bench's commands, clock and accounting."""
    clock, journal, config = bench.world.clock, bench.journal, bench.config
    sink = MarksInHand() if dry_run else journal
    real = SlurmCluster(bench.commands, config.cluster, clock.now, sink, journal)
    standing = journal.latest() or Standing.new(clock.now())
    cluster = DryRun(real) if dry_run else real
    knowing = Knowing(cluster, real.words_of, journal, knowing_rules_of(config), standing)
    daemon = Daemon(
        config, bench.places, clock, journal, bench.commands, knowing, bench.books, rules_of(config), standing,
        Publisher("", lambda: False), knowing=knowing, adapter=real,
    )  # fmt: skip
    real.fence(daemon.may_act)
    bench.commands.before = daemon.goes_on
    daemon.seen = clock.now()
    return daemon


@contextmanager
def bench_in(
    folder: Path,
    *,
    gate: str = "begin",
    dry_run: bool = False,
    lease: Mapping[str, Any] | None = None,
    nodes: Mapping[str, int] | None = None,
    policy: str = DEFAULT_POLICY,
) -> Iterator[Bench]:
    """A site of its own in a folder."""
    tree: dict[str, Any] = {
        "lease": LEASE | dict(lease or {}),
        "policy": {"name": policy},
        "slurm": {"gate": gate, "reports": "none", "notice": False},
    }
    config = from_tree(tree | {"storage": {"dir": str(folder)}}, "test")
    world = World(PushedClock(), dict(nodes or {"n1": 8}))
    places = Places(folder)
    journal = open_journal(places.journal, busy_seconds=0.05)
    bench = Bench(world, FakeCommands(world), places, config, journal, None, Books())  # type: ignore[arg-type]
    bench.daemon = daemon_of(bench, dry_run)
    try:
        with heard():
            yield bench
    finally:
        with suppress(Exception):
            bench.journal.close()


def changed(config: Config, **sections: Mapping[str, Any]) -> Config:
    """The configuration with some keys of some sections changed."""
    parts = {name: replace(getattr(config, name), **values) for name, values in sections.items()}
    return replace(config, **parts)


def crowd(bench: Bench) -> None:
    """A job on every GPU and two that wait behind gates."""
    held = bench.config.slurm.gate == "hold"
    for tenant in ("a", "b", "b"):
        bench.world.submit(8, tenant, hold=held, gate_seconds=0.0 if held else 600.0)
    bench.run(20)


def lines(caplog: pytest.LogCaptureFixture, word: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if word in record.getMessage()]
