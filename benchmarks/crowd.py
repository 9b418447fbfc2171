"""Seconds of the controller's ticks that adopt, renew and switch the jobs of a real Slurm with many that wait.

Brings up a private Slurm, fills its GPUs, and lets thousands of one-GPU jobs wait, about half of them in arrays.
Then the controller's own tick runs beside it, and every tick is timed with its journal.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from benchmarks import arguments
from slurm_fair.config.sections import Config
from slurm_fair.config.tree import from_tree
from slurm_fair.lab import Lab, LabSpec
from slurm_fair.lab.spec import SCHEDULER
from slurm_fair.looks.pace import gates_left, look_seconds, next_look
from slurm_fair.looks.wall_clock import WallClock
from slurm_fair.model import JobState, Result, Standing, Verb
from slurm_fair.policy.registry import load
from slurm_fair.slurm.cluster import SlurmCluster
from slurm_fair.slurm.command import Commands
from slurm_fair.store import open_journal
from slurm_fair.tick import Rules, Stopwatch, TickDone, tick

NODES, GPUS = 8, 8
ARRAYS = (50, 120, 200)
SUBMITTERS = 4
FULL = 57  # of 64 GPUs: so many changes at once count as a whole boundary
VERBS = frozenset({"ask", "requeue", "open", "close"})
# Answers at once, as a job that saves quickly; its checkpoint is nothing.
SCRIPT = r"""#!/bin/bash
name=$SLURM_JOB_ID
[ -n "$SLURM_ARRAY_JOB_ID" ] && name=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
trap 'leave=1' USR2
exec 9<> <(:)
while [ -z "$leave" ]; do read -rt 0.2 -u 9; done
sleep 5
"""


class Cpu(NamedTuple):
    """Seconds of CPU so far."""

    controller: float
    commands: float
    slurmctld: float

    @classmethod
    def now(cls, slurmctld: int) -> Self:
        """The CPU seconds so far of this process, of the commands that it ran, and of slurmctld."""
        ours = os.times()
        fields = Path(f"/proc/{slurmctld}/stat").read_text().rpartition(")")[2].split()
        its = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return cls(ours.user + ours.system, ours.children_user + ours.children_system, its)

    def since(self, before: Cpu) -> Cpu:
        """The CPU seconds used since an earlier reading."""
        return Cpu(*(late - early for late, early in zip(self, before, strict=True)))

    def __str__(self) -> str:
        return " / ".join(f"{seconds:.1f}" for seconds in self)


@dataclass(slots=True)
class TickFigures:
    """One tick of the controller and its figures."""

    began: float
    wall: float
    seconds: dict[str, float]
    acts: Counter[str]
    unshut: int  # jobs that wait without a gate
    cpu: Cpu
    note: str = ""

    def __str__(self) -> str:
        parts = " ".join(f"{name} {seconds:.2f}" for name, seconds in self.seconds.items())
        return (
            f"{self.began % 1000:7.2f} {self.wall:5.2f} s ({parts}) CPU {self.cpu} {dict(self.acts)}"
            f" unshut {self.unshut} {self.note}"
        )


@dataclass(slots=True)
class Bench:
    """The controller in this process, beside a lab."""

    lab: Lab
    config: Config
    slurmctld: int  # its process
    prints: bool = False  # print each tick that acts
    ticks: list[TickFigures] = field(default_factory=list)

    def run(self, seconds: float) -> None:
        """Tick as the daemon does for so long."""
        journal = open_journal(self.lab.folder / "journal.db")
        clock = WallClock()
        rules = Rules("astraea", load("astraea", {}), {}, self.config.lease.terms())
        cluster = SlurmCluster(
            Commands(self.lab.conf, 60.0), self.config.cluster, clock.now, journal, journal
        )
        standing, end = Standing.new(clock.now()), clock.now() + seconds
        while clock.now() < end:
            began, before = clock.now(), Cpu.now(self.slurmctld)
            done = tick(cluster, clock, journal, rules, standing, Stopwatch(time.monotonic))
            wall, standing = clock.now() - began, done.standing
            self.ticks.append(_figures(done, began, wall, Cpu.now(self.slurmctld).since(before)))
            if self.prints and self.ticks[-1].acts:
                print(self.ticks[-1], flush=True)
            record = done.record
            breath = 2 * (look_seconds(record, wall) if record else wall)
            left = record is not None and gates_left(record)
            clock.sleep_until(next_look(standing, rules.terms, began, clock.now(), breath, left))
        journal.close()

    def figures(self) -> Iterator[tuple[str, object]]:
        """Names and values of all that was measured."""
        first = self.ticks[0]
        shut = next((each for each in self.ticks if not each.unshut), self.ticks[-1])
        yield "first look, s", round(first.seconds["observe"], 2)
        yield "first adoption, s", round(shut.began + shut.wall - first.began, 2)
        yield "longest tick, s", round(max(each.wall for each in self.ticks), 2)
        yield "longest tick after the adoption, s", round(self._longest_after(shut), 2)
        quiet = [each.wall for each in self.ticks if not each.acts]
        yield "quiet tick p50, s", round(float(np.median(quiet)), 3) if quiet else None
        for number, boundary in enumerate(self._boundaries(), 1):
            yield f"switches {number}", boundary

    def rows(self, waiting: int, records: int, loads: Sequence[float]) -> str:
        """The rows for docs/scale.md."""
        named = dict(self.figures())
        spans = [str(each["seconds"]) for each in self._boundaries() if each["open"] >= FULL]
        cells = [
            f"{waiting:,}", f"{records:,}", named["first look, s"], named["first adoption, s"],
            named["longest tick, s"], named["longest tick after the adoption, s"], ", ".join(spans) or "-",
            named["quiet tick p50, s"],
            ", ".join(f"{load:.0f}" for load in loads),
        ]  # fmt: skip
        parts = {
            "adoption": self._ticks_until_shut(),
            "one tick with renewals (mean)": self._with_only("close"),
            "requests": [each for each in self.ticks if each.acts["ask done"] >= FULL],
            "requeues": [each for each in self.ticks if each.acts["requeue done"] >= FULL],
            "opens": [each for each in self.ticks if each.acts["open done"] >= FULL],
            "quiet tick": [each for each in self.ticks if not each.acts],
        }
        lines = [_row(*cells), ""]
        for name, ticks in parts.items():
            share = 1 if name == "adoption" else max(len(ticks), 1)
            cpu = Cpu(*(sum(column) / share for column in zip(*(each.cpu for each in ticks), strict=True)))
            wall = sum(each.wall for each in ticks) / share
            gates = sum(each.acts["close done"] for each in ticks) / share
            lines += [_row(f"{waiting:,}", name, f"{gates:.0f}", cpu, f"{wall:.2f}")] if ticks else []
        return "\n".join(lines)

    def _ticks_until_shut(self) -> list[TickFigures]:
        last = next((at for at, each in enumerate(self.ticks) if not each.unshut), len(self.ticks) - 1)
        return self.ticks[: last + 1]

    def _with_only(self, verb: str) -> list[TickFigures]:
        """Ticks after the adoption that did nothing but this."""
        after = self.ticks[len(self._ticks_until_shut()) :]
        others = [f"{other} done" for other in VERBS - {verb}]
        return [t for t in after if t.acts[f"{verb} done"] and not any(t.acts[other] for other in others)]

    def _longest_after(self, shut: TickFigures) -> float:
        return max((each.wall for each in self.ticks if each.began > shut.began), default=0.0)

    def _boundaries(self) -> list[dict[str, float]]:
        """From each round of requests to the last gate that was opened before the next."""
        asks = [at for at, each in enumerate(self.ticks) if each.acts["ask done"]]
        firsts = [at for at in asks if not any(before in asks for before in range(at - 5, at))]
        found = []
        for at, following in zip(firsts, [*firsts, len(self.ticks)][1:], strict=True):
            ticks = self.ticks[at:following]
            opens = [each for each in ticks if each.acts["open done"]]
            if opens:
                seconds = opens[-1].began + opens[-1].wall - ticks[0].began
                counts = {
                    verb: sum(each.acts[f"{verb} done"] for each in ticks)
                    for verb in ("ask", "requeue", "open")
                }
                found.append({**counts, "seconds": round(seconds, 2)})
        return found


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _figures(done: TickDone, began: float, wall: float, cpu: Cpu) -> TickFigures:
    record = done.record
    if record is None:
        raise SystemExit(f"blind: {done.blind}")
    jobs = record.snapshot.jobs
    waits = jobs.state == JobState.WAITING
    closed = {
        o.action.record for o in record.outcomes if o.action.verb is Verb.CLOSE and o.result is Result.DONE
    }
    free = waits & ~(jobs.gated & np.isfinite(jobs.gate_until)) & ~np.isin(jobs.record, list(closed))
    acts = Counter(f"{o.action.verb.value} {o.result.value}" for o in record.outcomes)
    return TickFigures(began, wall, dict(record.seconds), acts, int(free.sum()), cpu, record.guard)


def fill(lab: Lab, waiting: int) -> int:
    """A full cluster and so many waiting jobs; the number of records."""
    script = lab.folder / "work" / "crowd.sh"
    script.write_text(SCRIPT)
    stamp = "slurm_fair:v1,signal=USR2,grace=2"
    common = ["sbatch", "-Q", "--requeue", "--gpus=1", "--mem=100M", "-o", "/dev/null", f"--comment={stamp}"]
    for _ in range(NODES * GPUS):
        lab.run(*common, "-A", "vision", str(script))
    deadline = time.monotonic() + 120
    while int(lab.run("bash", "-c", "squeue -h -t R | wc -l").stdout) < NODES * GPUS:
        if time.monotonic() > deadline:
            raise SystemExit("the cluster does not get full")
        time.sleep(0.2)
    in_arrays, arrays = 0, list[int]()
    while in_arrays < 0.45 * waiting:
        arrays.append(ARRAYS[len(arrays) % len(ARRAYS)])
        in_arrays += arrays[-1]
    single = waiting - in_arrays

    def submit(job: tuple[str, str]) -> None:
        tenant, tasks = job
        array = [f"--array=1-{tasks}"] if tasks else []
        subprocess.run(
            [*common, *array, "-A", tenant, str(script)],
            env=lab.env, check=True, cwd=lab.folder / "work",
        )  # fmt: skip

    tenants = ("nlp", "speech")
    jobs = [(tenants[at % 2], str(tasks)) for at, tasks in enumerate(arrays)]
    jobs += [(tenants[at % 2], "") for at in range(single)]
    with ThreadPoolExecutor(SUBMITTERS) as threads:
        list(threads.map(submit, jobs))
    return len(jobs)


def main() -> None:
    """One line of JSON a figure."""
    parser = arguments.Parser(__doc__)
    parser.add_argument("--waiting", type=arguments.count, default=10_000)
    parser.add_argument("--term", type=arguments.number, default=60.0)
    parser.add_argument("--seconds", type=arguments.number, default=150.0)
    parser.add_argument("--turns", action="store_true", help="print each tick that acts")
    parser.add_argument("--scheduler", default="", help="more words of SchedulerParameters")
    options = parser.parse_args()
    words = ",".join(filter(None, (SCHEDULER, options.scheduler)))
    spec = LabSpec(
        nodes=NODES, gpus_per_node=GPUS, cpus=64,
        settings={
            "MaxJobCount": "30000", "MaxArraySize": "1001", "MinJobAge": "60", "SchedulerParameters": words,
        },
    )  # fmt: skip
    with Lab(spec=spec) as lab:
        began = time.monotonic()
        records = fill(lab, options.waiting)
        print(
            json.dumps(
                {
                    "waiting": options.waiting,
                    "records": records,
                    "submitting_s": round(time.monotonic() - began),
                }
            )
        )
        tree = {
            "lease": {"term": options.term, "interval": 2, "grace": 2, "start_timeout": 20},
            "slurm": {"conf": str(lab.conf), "reports": "none"},
        }
        bench = Bench(lab, from_tree(tree, "the benchmark"), lab.pid("slurmctld"), options.turns)
        before = os.getloadavg()[0]
        bench.run(options.seconds)
        for name, value in bench.figures():
            print(json.dumps({name: value}))
        print(bench.rows(options.waiting, records, (before, os.getloadavg()[0])))


if __name__ == "__main__":
    main()
