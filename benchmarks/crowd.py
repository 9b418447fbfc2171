"""How a real Slurm with many waiting jobs is adopted, renewed and switched: seconds of the controller's ticks.

Brings up a private Slurm, fills its GPUs, and lets thousands of one-GPU jobs wait, about half of them in arrays.
Then the controller's own tick runs beside it, and every tick is timed with its journal.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from slurm_fair.config import Config, from_tree
from slurm_fair.lab import Lab, LabSpec
from slurm_fair.model import JobState, LeasePhase, Result, Standing, Verb
from slurm_fair.policy.registry import load
from slurm_fair.slurm.cluster import SlurmCluster
from slurm_fair.slurm.command import Commands
from slurm_fair.store import open_journal
from slurm_fair.tick import Done, Rules, Stopwatch, tick
from slurm_fair.wall import WallClock

NODES, GPUS = 8, 8
ARRAYS = (50, 120, 200)
SUBMITTERS = 4
BUSY_SECONDS = 0.12
# Answers at once, as a job that saves quickly; its checkpoint is nothing.
SCRIPT = r"""#!/bin/bash
name=$SLURM_JOB_ID
[ -n "$SLURM_ARRAY_JOB_ID" ] && name=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
trap 'leave=1' USR2
exec 9<> <(:)
while [ -z "$leave" ]; do read -rt 0.2 -u 9; done
sleep 5
"""


@dataclass(slots=True)
class Turn:
    """One tick."""

    began: float
    wall: float
    seconds: dict[str, float]
    acts: Counter[str]
    unshut: int  # jobs that wait without a gate


@dataclass(slots=True)
class Bench:
    """The controller in this process, beside a lab."""

    lab: Lab
    config: Config
    turns: list[Turn] = field(default_factory=list)

    def run(self, seconds: float) -> None:
        """Tick as the daemon does for so long."""
        journal = open_journal(self.lab.folder / "journal.db")
        clock = WallClock()
        rules = Rules("astraea", load("astraea", {}), {}, self.config.lease.terms())
        cluster = SlurmCluster(Commands(self.lab.conf, 60.0), self.config, clock.now, journal, journal)
        standing, end = Standing.new(clock.now()), clock.now() + seconds
        while clock.now() < end:
            began = clock.now()
            done = tick(cluster, clock, journal, rules, standing, Stopwatch(time.monotonic))
            wall, standing = clock.now() - began, done.standing
            self.turns.append(_turn(done, began, wall))
            phases = standing.leases.phase
            busy = ((phases == LeasePhase.REVOKING) | (phases == LeasePhase.GRANTED)).any()
            pause = BUSY_SECONDS if busy else rules.terms.interval - wall
            time.sleep(max(pause, 0.05))
        journal.close()

    def figures(self) -> Iterator[tuple[str, object]]:
        """What it came to."""
        first = self.turns[0]
        shut = next((turn for turn in self.turns if not turn.unshut), self.turns[-1])
        yield "first look, s", round(first.seconds["observe"], 2)
        yield "first adoption, s", round(shut.began + shut.wall - first.began, 2)
        yield "longest tick, s", round(max(turn.wall for turn in self.turns), 2)
        yield "longest tick after the adoption, s", round(self._longest_after(shut), 2)
        quiet = [turn.wall for turn in self.turns if not turn.acts]
        yield "quiet tick p50, s", round(float(np.median(quiet)), 3) if quiet else None
        for number, boundary in enumerate(self._boundaries(), 1):
            yield f"switches {number}", boundary

    def _longest_after(self, shut: Turn) -> float:
        return max((turn.wall for turn in self.turns if turn.began > shut.began), default=0.0)

    def _boundaries(self) -> list[dict[str, float]]:
        """From each round of requests to the last gate that was opened before the next."""
        asks = [at for at, turn in enumerate(self.turns) if turn.acts["ask done"]]
        firsts = [at for at in asks if not any(before in asks for before in range(at - 5, at))]
        found = []
        for at, following in zip(firsts, [*firsts, len(self.turns)][1:], strict=True):
            turns = self.turns[at:following]
            opens = [turn for turn in turns if turn.acts["open done"]]
            if opens:
                seconds = opens[-1].began + opens[-1].wall - turns[0].began
                counts = {
                    verb: sum(turn.acts[f"{verb} done"] for turn in turns)
                    for verb in ("ask", "requeue", "open")
                }
                found.append({**counts, "seconds": round(seconds, 2)})
        return found


def _turn(done: Done, began: float, wall: float) -> Turn:
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
    return Turn(began, wall, dict(record.seconds), acts, int(free.sum()))


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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waiting", type=int, default=10_000)
    parser.add_argument("--term", type=float, default=60.0)
    parser.add_argument("--seconds", type=float, default=150.0)
    options = parser.parse_args()
    spec = LabSpec(
        nodes=NODES, gpus_per_node=GPUS, cpus=64,
        settings={"MaxJobCount": "30000", "MaxArraySize": "1001", "MinJobAge": "60"},
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
        bench = Bench(lab, from_tree(tree, "the benchmark"))
        bench.run(options.seconds)
        for name, value in bench.figures():
            print(json.dumps({name: value}))


if __name__ == "__main__":
    main()
