"""The whole controller on virtual time: a fake Slurm behind the real adapter, and a journal in memory.

The adapter is the one that runs against a real Slurm; only the commands beneath it are fake. What the fake jobs
acknowledge lies in real files, which the daemon's readers read.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from slurm_fair.config.sections import Config, SlurmSection
from slurm_fair.config.tree import from_tree
from slurm_fair.looks.pace import next_look
from slurm_fair.model import Action, Blind, LeaseTerms, Outcome, Snapshot, Standing, TickRecord, label
from slurm_fair.model.mark import Mark
from slurm_fair.policy import Policy
from slurm_fair.ports import EVERYTHING, Want
from slurm_fair.slurm.cluster import SlurmCluster
from slurm_fair.slurm.fail_open import Liberated, liberate
from slurm_fair.slurm.reading.messages import job_directory
from slurm_fair.slurm.reading.readers import Readers
from slurm_fair.tick import Rules, Stopwatch, TickDone, tick
from slurm_fair_plugins.astraea import Astraea
from tests.support.fake_commands import FakeCommands
from tests.support.fake_slurm import PushedClock, World

TERMS = LeaseTerms(term=60.0, interval=10.0, grace=10.0, start_timeout=20.0)
_WORK = tempfile.mkdtemp(prefix="fake_jobs_")
_READERS = Readers(patience=60.0)  # one process for all clusters of a test run
_numbers = count(1)
atexit.register(shutil.rmtree, _WORK, ignore_errors=True)


class MemoryJournal:
    """Journal, intent log and marks that survive the controller but not the test; `at` hears of each step."""

    def __init__(self) -> None:
        self.at: Callable[[str, Sequence[Action]], None] = lambda point, actions: None
        self.records: list[TickRecord] = []
        self.standing: Standing | None = None
        self.intents: dict[int, tuple[Action, Outcome | None]] = {}
        self._marks: dict[tuple[int, bool], Mark] = {}

    @property
    def wants(self) -> frozenset[Want]:
        return EVERYTHING

    def append(self, tick: TickRecord, standing: Standing) -> None:
        self.at("before_append", ())
        if self.records and tick.number <= self.records[-1].number:
            raise AssertionError(f"tick {tick.number} follows tick {self.records[-1].number}")
        self.records.append(tick)
        self.standing = standing
        self.at("after_append", ())

    def latest(self) -> Standing | None:
        """The standing after the last tick kept."""
        return self.standing

    def ticks(self, first: int = 0, last: int | None = None) -> Iterator[TickRecord]:
        return (r for r in self.records if r.number >= first and (last is None or r.number <= last))

    def intend(self, actions: Sequence[Action], now: float) -> Sequence[int]:
        self.at("before_intent", actions)
        ids = range(len(self.intents), len(self.intents) + len(actions))
        self.intents |= {number: (action, None) for number, action in zip(ids, actions, strict=True)}
        self.at("after_intent", actions)
        return ids

    def conclude(self, ids: Sequence[int], outcomes: Sequence[Outcome], now: float) -> None:
        """The outcomes of these acts."""
        actions = [outcome.action for outcome in outcomes]
        self.at("before_outcome", actions)
        for number, outcome in zip(ids, outcomes, strict=True):
            self.intents[number] = (self.intents[number][0], outcome)
        self.at("after_outcome", actions)

    def marks(self) -> Sequence[Mark]:
        """All marks in force."""
        return list(self._marks.values())

    def set_marks(self, marks: Iterable[Mark]) -> None:
        self._marks |= {(mark.key, mark.whole_record): mark for mark in marks}

    def drop_marks(self, keys: Iterable[tuple[int, bool]]) -> None:
        for key in keys:
            self._marks.pop(key, None)


class FakeCluster:
    """ports.Cluster: the real adapter over fake commands; jobs acknowledge by files, read as the daemon reads."""

    acts = True

    def __init__(self, commands: FakeCommands, config: Config, journal: MemoryJournal) -> None:
        self.commands = commands
        commands.work = f"{_WORK}/{next(_numbers)}"
        now = commands.world.clock.now
        self.adapter = SlurmCluster(commands, config.cluster, now, journal, journal, _READERS)

    def observe(self, asked: Mapping[int, float]) -> Snapshot | Blind:
        """A look of the adapter, the jobs having written what they have to say."""
        for key in asked:
            self._write(key)
        return self.adapter.observe(asked)

    def _write(self, key: int) -> None:
        """The acknowledgement of a job, as the job's side writes it; none before it has answered."""
        restarts, when, saved = self.commands.world.of_key(key).answered
        work, job = f"{self.commands.work}/{label(key).partition('_')[0]}", label(key)
        folder = job_directory(work, job)
        folder.mkdir(parents=True, exist_ok=True)
        for each in (folder.parent, folder):
            each.chmod(0o711)
        said = {"v": 1, "what": "ack", "job": job, "restart": restarts, "saved": saved, "time": when}
        (folder / "ack.json").write_text(json.dumps(said) if restarts >= 0 else "")

    def actuate(self, actions: Sequence[Action]) -> tuple[Outcome, ...]:
        return self.adapter.actuate(actions)


def fake_config(gate: str = "begin") -> Config:
    return replace(from_tree({}, "test"), slurm=SlurmSection(gate=gate, reports="file"))


def rules_for(terms: LeaseTerms = TERMS, policy: Policy | None = None) -> Rules:
    """Astraea unless told otherwise."""
    return Rules("astraea", policy or Astraea(), {}, terms)


@dataclass(slots=True)
class Site:
    """A fake Slurm with the controller beside it."""

    world: World
    commands: FakeCommands
    journal: MemoryJournal
    rules: Rules
    config: Config
    cluster: FakeCluster
    standing: Standing
    blind: str = ""

    @classmethod
    def build(
        cls,
        nodes: Mapping[str, int],
        *,
        terms: LeaseTerms = TERMS,
        policy: Policy | None = None,
        gate: str = "begin",
        weights: Mapping[str, float] | None = None,
        seed: int = 0,
    ) -> Site:
        """A site that has seen nothing yet."""
        world = World(PushedClock(), nodes, seed)
        world.weights = dict(weights or {})
        commands, journal, config = FakeCommands(world), MemoryJournal(), fake_config(gate)
        cluster, rules = FakeCluster(commands, config, journal), rules_for(terms, policy)
        return cls(world, commands, journal, rules, config, cluster, Standing.new(world.clock.now()))

    @property
    def now(self) -> float:
        return self.world.clock.now()

    def tick(self) -> TickDone:
        """One turn of the controller."""
        watch = Stopwatch(self.world.clock.now)
        done = tick(self.cluster, self.world.clock, self.journal, self.rules, self.standing, watch)
        self.standing, self.blind = done.standing, done.blind
        return done

    def restart(self) -> None:
        """The controller died; another one begins with what the journal keeps."""
        self.cluster = FakeCluster(self.commands, self.config, self.journal)
        self.standing = self.journal.latest() or Standing.new(self.now)

    def next_look(self, began: float) -> float:
        """The instant at which the daemon would look again."""
        return next_look(self.standing, self.rules.terms, began, self.now)

    def run_until(self, instant: float) -> None:
        """Tick as the daemon does until then."""
        while self.now < instant:
            began = self.now
            self.tick()
            self.world.clock.sleep_until(min(self.next_look(began), instant))
            self.world.catch_up()

    def run(self, seconds: float) -> None:
        """Tick as the daemon does for so long."""
        self.run_until(self.now + seconds)

    def fail_open(self) -> Liberated:
        """Free everything of ours."""
        return liberate(self.commands, self.journal.marks(), self.world.clock.now)

    def running(self) -> set[int]:
        """Ids of jobs that run now."""
        return {record.base for record in self.world.living() if record.state == "RUNNING"}
