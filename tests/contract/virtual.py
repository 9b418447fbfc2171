"""The virtual cluster as a third stage: jobs are submitted by hand, and time passes when somebody waits."""

from __future__ import annotations

import math

import numpy as np

from slurm_fair.model import Gate, JobState, parse_label
from slurm_fair.model.mark import Mark
from slurm_fair.ports import Cluster
from slurm_fair.sim import Manners, Submission, VirtualClock, VirtualCluster
from slurm_fair.trace import uniform
from tests.contract.stages import GATE_SECONDS, Job
from tests.support.veil import Veil

BEGAN, TERM, ENDLESS = 1_800_000_000.0, 900.0, 1e7


class VirtualStage:
    """Three nodes with eight GPUs; a partition of somebody else's is GPUs that are lent."""

    def __init__(self, gate: str) -> None:
        self.gate = self.shut_by = gate
        self._clock = VirtualClock(BEGAN)
        manners = Manners(
            Gate.HOLD if gate == "hold" else Gate.BEGIN, lists_ended_seconds=300.0, patience_seconds=60.0
        )
        self._virtual = VirtualCluster.bare(uniform(24, 8), self._clock, TERM, manners=manners)
        self._veil = Veil(self._virtual, self._clock)
        self.cluster: Cluster = self._veil

    def now(self) -> float:
        return self._clock.now()

    def wait(self, seconds: float) -> None:
        """Let virtual time pass."""
        self._clock.sleep_until(self.now() + seconds)

    def submit(self, job: Job) -> str:
        """A job as the templates submit it; one without our stamp neither answers nor is gated."""
        if job.partition == "other":
            self._virtual.by_hand.lend("n3", job.gpus)
            return ""
        first, _, last = job.tasks.partition("-")
        number = self._virtual.by_hand.submit(
            Submission(
                gpus=job.gpus,
                seconds=ENDLESS,
                tenant="vision",
                nodes=job.nodes,
                gpus_per_node=job.gpus_per_node,
                tasks=tuple(range(int(first), int(last) + 1)) if job.tasks else (),
                gated=job.gated,
                gate_seconds=math.inf if self.gate == "hold" else GATE_SECONDS,
                begin=self.now() + job.begin_in if job.begin_in and not job.gated else 0.0,
                checkpoints=job.stamped,
                requeueable=job.requeue,
                reports=False,
                leaves_in=job.leaves_in,
                deadline=self.now() + job.deadline_in if job.deadline_in else math.inf,
                time_limit=60.0 * job.minutes or math.inf,
                gpus_choices=job.choices,
            )
        )
        return str(number)

    def finish(self, label: str) -> None:
        """The job ends by itself."""
        self._virtual.by_hand.finish(parse_label(label))

    def cancel(self, label: str) -> None:
        """Its user ends it."""
        self._virtual.by_hand.cancel(parse_label(label))

    def hold(self, label: str, by_admin: bool) -> None:
        """Somebody keeps it back."""
        self._virtual.by_hand.hold(parse_label(label), by_admin)

    def release(self, label: str) -> None:
        """Somebody lets it go."""
        self._virtual.by_hand.release(parse_label(label))

    def move_begin(self, label: str, instant: float) -> None:
        """Its user gives it another begin time."""
        self._virtual.by_hand.move_begin(parse_label(label), instant)

    def drain(self, node: str, back: bool) -> None:
        """Drain a node or bring it back."""
        (self._virtual.by_hand.resume if back else self._virtual.by_hand.drain)(node)

    def cut(self, dead: bool) -> None:
        """Not to be seen, or seen again."""
        self._veil.reason = "nobody answers" if dead else ""

    def priority(self, label: str) -> int:
        """0 for whoever is held, by people or by a gate of ours that is a hold; there is no other priority."""
        jobs, row = self._virtual.jobs, self._row(label)
        return int(row not in self._virtual.life.odd.held and not math.isinf(jobs.gate_until[row]))

    def wanted_nodes(self, label: str) -> str:
        """The nodes that an opened job waits for."""
        names = self._virtual.scenario.machines.names
        return ",".join(names[node] for node in self._virtual.life.pinned.get(self._row(label), ()))

    def marks(self) -> list[Mark]:
        """The marks on waiting jobs: the cluster is its own memory of them."""
        jobs = self._virtual.jobs
        waiting = jobs.state[: jobs.count] == JobState.WAITING
        marked = waiting & (jobs.gated[: jobs.count] | jobs.pinned[: jobs.count])
        return [
            Mark(
                int(jobs.key[row]), int(jobs.record[row]), False, float(jobs.submit[row]), int(jobs.restarts[row]),
                float(jobs.gate_until[row]), bool(jobs.pinned[row]), float(jobs.gate_set[row]),
            )
            for row in np.flatnonzero(marked).tolist()
        ]  # fmt: skip

    def clear(self) -> None:
        """A virtual cluster lasts for one test."""

    def _row(self, label: str) -> int:
        (row,) = np.flatnonzero(self._virtual.jobs.key == parse_label(label)).tolist()
        return int(row)
