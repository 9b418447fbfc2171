"""Stages for one contract: a real private Slurm and the fake one, with the same handles (virtual.py has more)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from slurm_fair.config.sections import Config, ScopeSection, SlurmSection
from slurm_fair.config.tree import from_tree
from slurm_fair.lab import Lab, LabSpec
from slurm_fair.model import Action, Blind, JobState, Outcome, Result, Snapshot, Verb, parse_label
from slurm_fair.model.mark import Mark
from slurm_fair.ports import Cluster
from slurm_fair.slurm.cluster import SlurmCluster
from slurm_fair.slurm.command import Commands
from tests.support.fake_cluster import FakeCluster, MemoryJournal
from tests.support.fake_commands import FakeCommands
from tests.support.fake_slurm import ADMIN, USER, PushedClock, Work, World

GATE_SECONDS = 600
_FAR_SECONDS = (
    86_400  # from 24.11 on Slurm takes no job whose limit, counted from its gate, ends behind its deadline
)
# n3 is shared with a partition that is not managed.
SPEC = LabSpec(
    nodes=4,
    gpus_per_node=8,
    partitions={"gpu": ("n1", "n2", "n3"), "other": ("n3", "n4")},
    tenants={"vision": 1, "nlp": 1},
    settings={"MessageTimeout": "3", "KillWait": "4"},
)
SCRIPT = """#!/bin/bash
name=$SLURM_JOB_ID; [ -z "$SLURM_ARRAY_JOB_ID" ] || name=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
mkdir -p .slurm-fair/$name
answer() {
    printf '{"v":1,"what":"ack","job":"%s","restart":%d,"saved":true,"time":%d}' \
        "$name" "${SLURM_RESTART_COUNT:-0}" "$(date +%s)" > new.$name
    mv new.$name .slurm-fair/$name/ack.json
}
trap answer USR2
trap "sleep $1; exit 143" TERM
while sleep 0.05; do [ ! -e end.$name ] || exit 0; done
"""


@dataclass(frozen=True, slots=True)
class Job:
    """The options with which a job is submitted."""

    gpus: int = 2
    nodes: int = 1
    freely: bool = False  # its user leaves to Slurm how its GPUs lie on its nodes
    tasks: str = ""  # "1-4"
    gated: bool = True
    begin_in: float = 0.0  # its user's own begin time
    stamped: bool = True
    requeue: bool = True
    leaves_in: float = 0.0
    partition: str = "gpu"
    deadline_in: float = 0.0
    minutes: int = 0  # its time limit
    choices: tuple[int, ...] = ()  # sizes with which it can run

    @property
    def gpus_per_node(self) -> int:
        """0 = any split."""
        return 0 if self.freely or (self.nodes == 1 and not self.choices) else self.gpus // self.nodes


USUAL = Job()


class Stage(Protocol):
    """The acts on a cluster that a sentence of the contract has beside the port itself."""

    gate: str  # that jobs are submitted with
    shut_by: str  # what a closed job is kept back by
    cluster: Cluster

    def now(self) -> float: ...
    def wait(self, seconds: float) -> None: ...
    def submit(self, job: Job) -> str: ...
    def finish(self, label: str) -> None: ...
    def cancel(self, label: str) -> None: ...
    def hold(self, label: str, by_admin: bool) -> None: ...
    def release(self, label: str) -> None: ...
    def move_begin(self, label: str, instant: float) -> None: ...
    def drain(self, node: str, back: bool) -> None: ...
    def cut(self, dead: bool) -> None: ...
    def priority(self, label: str) -> int: ...
    def wanted_nodes(self, label: str) -> str: ...
    def marks(self) -> list[Mark]: ...
    def clear(self) -> None: ...


def _config(gate: str) -> Config:
    scope, slurm = ScopeSection(partitions=("gpu",)), SlurmSection(gate=gate, reports="file")
    return replace(from_tree({}, "contract"), scope=scope, slurm=slurm)


class RealStage:
    """A private Slurm; time passes by itself."""

    def __init__(self, lab: Lab, gate: str) -> None:
        self.lab, self.gate, self.shut_by, self.journal = lab, gate, "begin", MemoryJournal()
        self.commands = Commands(lab.conf, 20.0)
        self.config = _config(gate)
        self.cluster: Cluster = SlurmCluster(
            self.commands, self.config.cluster, time.time, self.journal, self.journal
        )
        self._script = lab.folder / "work" / "contract.sh"
        self._script.write_text(SCRIPT)

    def now(self) -> float:
        return time.time()

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def submit(self, job: Job) -> str:
        """sbatch as the templates do."""
        stamp = ["slurm_fair:v1", "signal=USR2"] if job.stamped else []
        stamp += [f"gpus={'+'.join(map(str, job.choices))}"] if job.choices else []
        words = ["--parsable", "-A", "vision", "-p", job.partition, "-o", "/dev/null", f"-N{job.nodes}"]
        words += [f"--gpus-per-node={job.gpus_per_node}" if job.gpus_per_node else f"--gpus={job.gpus}"]
        words += [f"--array={job.tasks}"] if job.tasks else []
        words += ["--requeue" if job.requeue else "--no-requeue"]
        if job.gated and self.gate == "hold":
            words, stamp = [*words, "-H"], [*stamp, "gate=hold"]
        elif job.gated:
            words, stamp = [*words, f"--begin=now+{GATE_SECONDS}"], [*stamp, f"gate=+{GATE_SECONDS}"]
        elif job.begin_in:
            words.append(f"--begin=now+{job.begin_in:.0f}")
        words += [f"--comment={','.join(stamp)}"] if job.stamped else []
        words += [f"--deadline=now+{_FAR_SECONDS}"] if job.deadline_in else []
        words += [f"--time={job.minutes}"] if job.minutes else []
        label = self.lab.run("sbatch", *words, str(self._script), str(job.leaves_in)).stdout.strip()
        if job.deadline_in:
            self.lab.run("scontrol", "update", f"jobid={label}", f"deadline=now+{job.deadline_in:.0f}")
        return label

    def finish(self, label: str) -> None:
        """The job ends by itself."""
        (self.lab.folder / "work" / f"end.{label}").touch()

    def cancel(self, label: str) -> None:
        self.lab.run("scancel", label)

    def hold(self, label: str, by_admin: bool) -> None:
        """scontrol hold or uhold."""
        self.lab.run("scontrol", "hold" if by_admin else "uhold", label)

    def release(self, label: str) -> None:
        self.lab.run("scontrol", "release", label)

    def move_begin(self, label: str, instant: float) -> None:
        self.lab.run("scontrol", "update", f"jobid={label}", f"starttime=uts{int(instant)}")

    def drain(self, node: str, back: bool) -> None:
        """Drain a node or bring it back."""
        words = ["state=resume"] if back else ["state=drain", "reason=contract"]
        self.lab.run("scontrol", "update", f"nodename={node}", *words)

    def cut(self, dead: bool) -> None:
        """No controller, or one again."""
        if dead:
            self.lab.halt("slurmctld")
        else:
            self.lab.revive("slurmctld")
            self.lab.wait_idle_nodes()

    def _squeue(self, label: str, field: str) -> str:
        rows = self.lab.run("squeue", "-h", "-r", "-t", "all", "-j", label, "-O", f"{field}:|").stdout
        return rows.split("\n")[0].rstrip("|")

    def priority(self, label: str) -> int:
        """A priority of 0 holds it."""
        return int(self._squeue(label, "PriorityLong"))

    def wanted_nodes(self, label: str) -> str:
        """Its node list in Slurm."""
        return self._squeue(label, "ReqNodes")

    def marks(self) -> list[Mark]:
        """The marks that the adapter remembers to have set."""
        return list(self.journal.marks())

    def clear(self) -> None:
        """No job of anybody."""
        self.lab.run("scancel", "-u", "root", check=False)
        deadline = time.monotonic() + 20
        while self.lab.run("squeue", "-h").stdout.strip():
            assert time.monotonic() < deadline, "the queue does not get empty"
            time.sleep(0.1)


class FakeStage:
    """The fake; time passes when somebody waits."""

    def __init__(self, gate: str) -> None:
        self.gate, self.shut_by, self.journal = gate, "begin", MemoryJournal()
        self.world = World(PushedClock(), {"n1": 8, "n2": 8, "n3": 8, "n4": 8}, seed=1)
        self.world.machines["n4"].partition = "other"
        self.commands = FakeCommands(self.world)
        self.config = _config(gate)
        self.cluster: Cluster = FakeCluster(self.commands, self.config, self.journal)

    def now(self) -> float:
        return self.world.clock.now()

    def wait(self, seconds: float) -> None:
        """Let virtual time pass."""
        self.world.clock.advance(seconds)
        self.world.catch_up()

    def submit(self, job: Job) -> str:
        """A job as the templates submit it; an open one of the other partition takes GPUs of the shared node."""
        if job.partition == "other" and not job.gated:
            self.world.take("n3", job.gpus)
            return ""
        first, _, last = job.tasks.partition("-")
        number = self.world.submit(
            job.gpus,
            "vision",
            partition=job.partition,
            work=Work(leaves_in=job.leaves_in or 0.1),
            tasks=range(int(first), int(last) + 1) if job.tasks else (),
            begin=self.now() + job.begin_in if job.begin_in else 0.0,
            nodes=job.nodes,
            gpus_per_node=job.gpus_per_node,
            requeue=job.requeue,
            stamped=job.stamped,
            hold=job.gated and self.gate == "hold",
            gate_seconds=GATE_SECONDS if job.gated and self.gate == "begin" else 0.0,
            deadline=self.now() + job.deadline_in if job.deadline_in else 0.0,
            time_limit=60.0 * job.minutes or math.inf,
            choices=job.choices,
        )
        return str(number)

    def finish(self, label: str) -> None:
        """The job ends by itself."""
        self.world.finish(*_ids(label))

    def cancel(self, label: str) -> None:
        self.world.cancel(*_ids(label))

    def hold(self, label: str, by_admin: bool) -> None:
        """scontrol hold or uhold."""
        self.world.hold(*_ids(label), by=ADMIN if by_admin else USER)

    def release(self, label: str) -> None:
        self.world.release(*_ids(label))

    def move_begin(self, label: str, instant: float) -> None:
        self.world.move_begin(_ids(label)[0], instant, _ids(label)[1])

    def drain(self, node: str, back: bool) -> None:
        """Drain a node or bring it back."""
        (self.world.resume if back else self.world.drain)(node)

    def cut(self, dead: bool) -> None:
        """No controller, or one again."""
        self.commands.trouble.dead = dead

    def priority(self, label: str) -> int:
        """A priority of 0 holds it."""
        return 0 if self.world.record(*_ids(label)).held else 1

    def wanted_nodes(self, label: str) -> str:
        """Its node list in Slurm."""
        return ",".join(self.world.record(*_ids(label)).wanted)

    def marks(self) -> list[Mark]:
        """The marks that the adapter remembers to have set."""
        return list(self.journal.marks())

    def clear(self) -> None:
        """A fake lasts for one test."""


def _ids(label: str) -> tuple[int, int]:
    base, _, task = label.partition("_")
    return int(base), int(task) if task else -1


# -- what sentences are made of -------------------------------------------------------------------------------


def look(stage: Stage, asked: Mapping[int, float] | None = None) -> Snapshot:
    """The cluster now; being blind is a failure here."""
    snapshot = stage.cluster.observe(asked or {})
    assert not isinstance(snapshot, Blind), snapshot.reason
    return snapshot


def row_of(snapshot: Snapshot, label: str) -> int:
    """Row of a job; it must be listed."""
    rows = np.flatnonzero(snapshot.jobs.key == parse_label(label)).tolist()
    assert rows, f"job {label} is not in the snapshot"
    return int(rows[0])


def state(stage: Stage, label: str) -> JobState:
    """The state of a job now."""
    snapshot = look(stage)
    return JobState(int(snapshot.jobs.state[row_of(snapshot, label)]))


def until(stage: Stage, true: Callable[[], object], what: str, seconds: float = 15.0) -> None:
    """Wait until it is so."""
    deadline = stage.now() + seconds
    while not true():
        assert stage.now() < deadline, f"not within {seconds:g} s: {what}"
        stage.wait(0.1)


def until_state(stage: Stage, label: str, wanted: JobState, seconds: float = 15.0) -> None:
    """Wait until a job does that."""
    until(stage, lambda: state(stage, label) == wanted, f"job {label} is {wanted.name}", seconds)


def action(stage: Stage, verb: Verb, label: str, **more: object) -> Action:
    """An act on a job as it is seen now."""
    snapshot = look(stage)
    jobs, row = snapshot.jobs, row_of(snapshot, label)
    usual = {"until": float(jobs.gate_until[row])} if verb is Verb.OPEN else {}
    return Action(
        verb,
        int(jobs.key[row]),
        int(jobs.record[row]),
        float(jobs.submit[row]),
        int(jobs.restarts[row]),
        **{**usual, **more},  # type: ignore[arg-type]
    )


def act(stage: Stage, verb: Verb, label: str, **more: object) -> Outcome:
    """Do one act and return what came of it."""
    return do(stage, action(stage, verb, label, **more))


def do(stage: Stage, what: Action) -> Outcome:
    (outcome,) = stage.cluster.actuate([what])
    assert outcome.action == what
    return outcome


def sites_of(stage: Stage, label: str) -> dict[str, int]:
    """GPUs that a job holds, by node."""
    snapshot = look(stage)
    names, sites = snapshot.nodes.names, snapshot.held.sites.get(row_of(snapshot, label), [])
    return {names[node]: gpus for node, gpus in sites}


def nodes_of(stage: Stage, label: str) -> set[str]:
    """The nodes on which a job holds GPUs."""
    return set(sites_of(stage, label))


def running(stage: Stage, job: Job = USUAL, node: str = "n1") -> str:
    """A job that was opened and runs."""
    label = stage.submit(job)
    assert act(stage, Verb.OPEN, label, nodes=(node,)).result is Result.DONE
    until_state(stage, label, JobState.RUNNING)
    return label


Sentence = Callable[[Stage], None]


@dataclass(slots=True)
class Promises:
    """Sentences; those marked so have nothing to do with the gate."""

    all: list[Sentence] = field(default_factory=list)
    of_any_gate: set[str] = field(default_factory=set)

    def promise(self, check: Sentence) -> Sentence:
        """One sentence; its name says it."""
        self.all.append(check)
        return check

    def whatever_the_gate(self, check: Sentence) -> Sentence:
        """One sentence that a real Slurm need keep only once."""
        self.of_any_gate.add(check.__name__)
        return self.promise(check)
