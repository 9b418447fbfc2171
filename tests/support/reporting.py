"""Looks at a cluster whose running jobs report, without a cluster."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from slurm_fair.knowing import Knowing, KnowingRules
from slurm_fair.ledger import LedgerSettings, advance
from slurm_fair.model import (
    Action,
    Beliefs,
    Event,
    EventKind,
    JobState,
    Ledger,
    Mode,
    Outcome,
    Profiles,
    Reported,
    Sizes,
    Snapshot,
    Standing,
)
from slurm_fair.model.columns import find
from slurm_fair.model.ids import pack
from slurm_fair.throughput import JobWords, Known
from tests.support.builders import JobSpec, job, node, snapshot

NUMBERS = (
    "step", "steps", "epoch", "epochs", "steps_per_second", "samples_per_second", "batch_size", "data", "forward",
    "backward", "update", "sync",
)  # fmt: skip
Said = Mapping[str, Any]


def running(number: int, *, name: str = "train", start: float = 0.0, **columns: Any) -> tuple[JobSpec, str]:
    """A job that runs since then, and the name that its user gave it."""
    return job(number, state=JobState.RUNNING, submit=start, start=start or 1.0, **columns), name


def waiting(number: int, *, name: str = "train", **columns: Any) -> tuple[JobSpec, str]:
    """A job that waits."""
    return job(number, **columns), name


def reports(seen: Snapshot, said: Mapping[int, Said]) -> Reported:
    """The reports of these jobs, by their numbers, as the adapter hands them over."""
    keys = np.array(sorted(pack(number) for number in said), dtype=np.int64)
    each = [said[key >> 23] for key in keys.tolist()]
    models = tuple(sorted({one["model"] for one in each if "model" in one}))

    def column(name: str, lacking: float) -> Any:
        return np.array([one.get(name, lacking) for one in each], dtype=np.float64)

    return Reported(
        row=find(seen.jobs.key, keys),
        read=column("read", seen.time),
        written=column("written", seen.time),
        silent_seconds=column("silent_seconds", 0.0),
        believed=np.full(len(each), np.nan),
        clamped=np.zeros(len(each), dtype=bool),
        pattern=column("pattern", 0).astype(np.int8),
        mode=column("mode", Mode.STATIC).astype(np.int8),
        model=np.array(
            [models.index(one["model"]) if "model" in one else -1 for one in each], dtype=np.int64
        ),
        models=models,
        **{name: column(name, np.nan) for name in NUMBERS},
    )


@dataclass
class MemoryShelf:
    """Keeps what is known for as long as the test lives."""

    kept: tuple[Known, Beliefs] = field(default_factory=lambda: (Known(), Beliefs.none()))
    writings: int = 0

    def known(self) -> tuple[Known, Beliefs]:
        """The samples as they were kept last."""
        return self.kept

    def keep_known(self, known: Known, beliefs: Beliefs) -> None:
        self.kept, self.writings = (known, beliefs), self.writings + 1


@dataclass
class Stage:
    """ports.Cluster: shows what it is told to show."""

    shown: Snapshot = field(default_factory=snapshot)
    acts: bool = True

    def observe(self, asked: Mapping[int, float]) -> Snapshot:
        return self.shown

    def actuate(self, actions: Sequence[Action]) -> tuple[Outcome, ...]:
        return ()


class Looks:
    """A cluster of two kinds of nodes, jobs on it, and what is known of them look by look."""

    def __init__(self, shelf: MemoryShelf | None = None, **rules: Any) -> None:
        self.stage, self.shelf = Stage(), shelf or MemoryShelf()
        self.words: dict[int, JobWords] = {}
        self.sizes: Sizes | None = None
        self.profiled = False  # every job asks to be
        self.script = ""  # of the jobs of the next look
        self.knowing = Knowing(
            self.stage,
            lambda record, _: self.words.get(record, JobWords()),
            self.shelf,
            KnowingRules(**rules),
        )

    def look(
        self, time: float, jobs: Iterable[tuple[JobSpec, str]], said: Mapping[int, Said] | None = None
    ) -> Snapshot:
        """One look at these jobs, of which some report."""
        specs = list(jobs)
        self.words |= {spec.record or spec.base: JobWords(name, self.script) for spec, name in specs}
        nodes = {
            "a1": node(8, gpu_type="a100"),
            "a2": node(8, gpu_type="a100"),
            "v1": node(4, gpu_type="v100"),
        }
        seen = snapshot(time=time, nodes=nodes, jobs=[spec for spec, _ in specs])
        self.stage.shown = replace(seen, reported=reports(seen, said) if said else None, sizes=self.sizes)
        if self.profiled:
            every = Profiles.asked(np.arange(len(specs)), len(seen.gpu_types))
            self.stage.shown = replace(self.stage.shown, profiles=every)
        found = self.knowing.observe({})
        assert isinstance(found, Snapshot)
        return found

    def trains(
        self,
        jobs: Sequence[tuple[JobSpec, str]],
        steps_per_second: float,
        seconds: float,
        *,
        since: float = 0.0,
    ) -> Snapshot:
        """Looks every 30 s at jobs that all make so many steps a second since then."""
        shown = None
        for time in np.arange(since + 30.0, since + seconds + 1.0, 30.0).tolist():
            said = {spec.base: {"step": steps_per_second * (time - since), "steps": 1e5} for spec, _ in jobs}
            shown = self.look(time, jobs, said)
        assert shown is not None
        return shown

    def standing(self, time: float) -> Standing:
        """A standing whose ledger knows the tenants of the last look."""
        ledger, _ = advance(Ledger.new(0.0), self.stage.shown, LedgerSettings())
        return Standing.new(time)._replace(ledger=ledger)


def row_of(seen: Snapshot, number: int) -> int:
    """The row of a job."""
    return int(find(seen.jobs.key, np.array([pack(number)])).item())


def told(seen: Snapshot, column: str, number: int) -> float:
    """A number that a look tells of a job."""
    assert seen.told is not None
    return float(getattr(seen.told, column)[row_of(seen, number)])


def known_rate(seen: Snapshot, number: int, gpu_type: str, gpus: int) -> float:
    """The known speed of a job with so many GPUs of a type; nan if nothing is known."""
    if seen.speeds is None:
        return math.nan
    kind = seen.gpu_types.index(gpu_type)
    row, types, sizes = (np.array([value]) for value in (row_of(seen, number), kind, gpus))
    return float(seen.speeds.rates(row, types, sizes, np.array([False])).item())


def ended(number: int, seconds: float, time: float, state: str = "COMPLETED") -> Event:
    """The end of a job that ran for so long."""
    return Event(time, EventKind.FINISHED, pack(number), "a", 1, {"ran": seconds, "state": state})


def with_liar(lie: float, said: str, seconds: float) -> tuple[Snapshot, Snapshot]:
    """The looks before and after one of a class of six has said so many times the truth."""
    looks = Looks()
    others = [running(number, tenant="a") for number in range(1, 6)] + [running(9, tenant="b")]
    looks.trains(others, 5.0, 600)
    more = [waiting(20, tenant="a"), waiting(21, tenant="b")]
    liar = running(7, tenant="a", start=600.0)
    before = after = looks.look(600, [*others, *more])
    for time in np.arange(630.0, 601.0 + seconds, 30.0).tolist():
        truth = {number: {"step": 5.0 * time, "steps": 1e5} for number in (1, 2, 3, 4, 5, 9)}
        claims = {
            "progress": {"step": 5.0 * lie * (time - 600), "steps": 1e5},
            "speed": {"steps_per_second": 5.0 * lie},
        }[said]
        after = looks.look(time, [*others, liar, *more], {**truth, 7: claims})
    return before, after
