"""The adapter as the daemon has it, on a real Slurm, one act at a time."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np

from slurm_fair.config.sections import Config
from slurm_fair.config.sections import SlurmSection as SlurmConfig
from slurm_fair.model import Action, Blind, Blocked, Outcome, Result, Snapshot, Verb, parse_label
from slurm_fair.model.columns import find
from slurm_fair.model.ids import TASK_BITS, pack
from slurm_fair.slurm.cluster import SlurmCluster
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.fail_open import NoIntents
from slurm_fair.slurm.ownership.marks import MarksInHand
from tests.support.on_slurm import Slurm


@dataclass
class Adapter:
    """A cluster as the daemon sees it, and a hand on it that acts on one job at a time."""

    slurm: Slurm
    gate: str
    reports: str = "auto"
    cluster: SlurmCluster = field(init=False)

    def __post_init__(self) -> None:
        config = replace(Config(), slurm=SlurmConfig(gate=self.gate, reports=self.reports))
        self.commands = Commands(self.slurm.lab.conf)
        self.cluster = SlurmCluster(self.commands, config.cluster, time.time, MarksInHand(), NoIntents())

    def submit(self, *options: str, body: str = "sleep 300", user: str | None = None) -> str:
        """A job gated at its submission, as a template would do it."""
        begin = ("--begin=now+600", "--comment=slurm_fair:v1,gate=+600")
        hold = ("-H", "--comment=slurm_fair:v1,gate=hold")
        return self.slurm.sbatch(*(begin if self.gate == "begin" else hold), *options, body=body, user=user)

    def observe(self, asked: dict[int, float] | None = None) -> Snapshot:
        """A look that must not be blind."""
        seen = self.cluster.observe(asked or {})
        assert not isinstance(seen, Blind), seen.reason
        return seen

    def job(self, job: str) -> tuple[Snapshot, int]:
        """A look, and the job's row in it."""
        seen = self.observe()
        row = int(find(seen.jobs.key, np.array([parse_label(job)], dtype=np.int64))[0])
        assert row >= 0, job
        return seen, row

    def blocked(self, job: str) -> Blocked:
        """The reason why the job may not be planned."""
        seen, row = self.job(job)
        return Blocked(int(seen.jobs.blocked[row]))

    def action(self, verb: Verb, job: str, nodes: tuple[str, ...] = (), whole: bool = False) -> Action:
        """An act as the reconciler would order it after a look now."""
        seen, row = self.job(job)
        jobs = seen.jobs
        until = float(jobs.gate_until[row]) if verb is Verb.OPEN else float(int(time.time()) + 900)
        key = pack(int(jobs.key[row]) >> TASK_BITS) if whole else int(jobs.key[row])
        return Action(
            verb, key, int(jobs.record[row]), float(jobs.submit[row]), int(jobs.restarts[row]), nodes, until,
            whole,
        )  # fmt: skip

    def do(self, verb: Verb, job: str, *nodes: str, whole: bool = False) -> Outcome:
        """Look, act, and the one outcome."""
        (outcome,) = self.cluster.actuate([self.action(verb, job, nodes, whole)])
        return outcome

    def done(self, verb: Verb, job: str, *nodes: str, whole: bool = False) -> None:
        """An act that must be done."""
        outcome = self.do(verb, job, *nodes, whole=whole)
        assert outcome.result is Result.DONE, outcome

    def start(self, job: str, node: str) -> None:
        """Open and wait until it runs there."""
        self.done(Verb.OPEN, job, node)
        assert self.slurm.wait_state(job, "RUNNING").nodes == node

    def requeue(self, job: str) -> None:
        """Requeue and wait until it waits again."""
        self.done(Verb.REQUEUE, job)
        self.slurm.wait_state(job, "PENDING")
