"""Play one real run of `make fidelity`: a private Slurm, the daemon, jobs at their times; keep what all noted."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.fidelity_job import SCRIPT, notes
from benchmarks.fidelity_trace import DECLARED_MINUTES, GPUS_PER_NODE, NODES, WEIGHTS, PlannedJob
from slurm_fair.demo.controller import Controller
from slurm_fair.errors import LabError
from slurm_fair.lab import Lab, LabSpec
from slurm_fair.model import Blind
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.history import SlurmHistory
from slurm_fair.store import open_reader

_LOOK_SECONDS = 2.0  # between two questions whether all jobs have ended
_ACCOUNTED_SECONDS = 20.0  # until accounting knows of the last end


@dataclass(frozen=True, slots=True)
class Way:
    """The settings that the runs of one row of the table have in common."""

    name: str
    policy: str
    align: str
    term: float = 10.0
    interval: float = 1.0
    grace: float = 5.0

    def configuration(self, slurm_conf: Path, storage: Path, published: Path) -> str:
        """The text of the daemon's slurm-fair.toml."""
        return "\n".join(
            [
                '[scope]\npartitions = ["gpu"]',
                f"[lease]\nterm = {self.term:g}\ninterval = {self.interval:g}\ngrace = {self.grace:g}",
                f'align = "{self.align}"\npublish_dir = "{published}"',
                f'[policy]\nname = "{self.policy}"',
                f'[slurm]\nconf = "{slurm_conf}"\ngate = "begin"\nnotice = false',
                f'[storage]\ndir = "{storage}"\n',
            ]
        )


WAYS = (
    Way("aligned", "astraea", "aligned"),
    Way("rolling", "astraea", "rolling"),
    Way("fifo", "fifo", "rolling"),
)


def played(way: Way, jobs: Sequence[PlannedJob], folder: Path) -> None:
    """Run it and leave `recording.json` in a folder of its own."""
    work, said = folder / "jobs", dict[str, object](way=asdict(way))
    work.mkdir(parents=True)
    controller = Controller(folder)
    lab = Lab(spec=LabSpec(NODES, GPUS_PER_NODE, tenants=WEIGHTS))
    script = work / "job.sh"
    script.write_text(SCRIPT)
    try:
        lab.start()
        controller.start(way.configuration(lab.conf, controller.places.directory, controller.board.parent))
        stage = _Stage(lab, controller, way, work, script)
        said |= {"began": stage.began, "jobs": stage.play(jobs), "load": stage.load}
        said |= {"runs": _billed(lab, stage.began, len(jobs)), "complaints": controller.complaints()}
    finally:
        controller.stop()
        with contextlib.suppress(OSError):
            shutil.copy(lab.folder / "log" / "slurmctld.log", folder)
        lab.stop()
    said |= _journal(controller.places.journal)
    (folder / "recording.json").write_text(json.dumps(said))


class _Stage:
    """Submits what is due, waits until nothing is left."""

    def __init__(self, lab: Lab, controller: Controller, way: Way, work: Path, script: Path) -> None:
        self._lab, self._controller, self._way, self._work, self._script = lab, controller, way, work, script
        now = time.time() + 0.5
        self.began = (now // way.term + 1) * way.term  # aligned leases end then
        self.load: list[float] = []  # of the machine, over the last minute

    def play(self, jobs: Sequence[PlannedJob]) -> list[dict[str, object]]:
        """Submit all jobs at their times and tell what became of each."""
        called = {job.name: self._submitted(job) for job in jobs}
        patience = time.time() + 120 + 3 * max(job.work for job in jobs) + 0.1 * len(jobs) * self._way.term
        while left := [job.name for job in jobs if not (self._work / f"{job.name}.end").exists()]:
            self._controller.check()
            if time.time() > patience:
                raise LabError(f"{len(left)} jobs have not ended: {', '.join(left[:5])} ...")
            time.sleep(_LOOK_SECONDS)
            self.load.append(os.getloadavg()[0])
        return [{**asdict(job), **called[job.name], **self._noted(job)} for job in jobs]

    def _submitted(self, job: PlannedJob) -> dict[str, object]:
        time.sleep(max(self.began + job.at - time.time(), 0.0))
        self.load.append(os.getloadavg()[0])
        before = time.time()
        apiece = job.gpus if job.nodes == 1 else GPUS_PER_NODE
        said = self._lab.run(
            "sbatch", "--parsable", "--requeue", "--open-mode=append", "--output=/dev/null", "--begin=now+600",
            f"--account={job.tenant}", f"--nodes={job.nodes}", f"--gpus-per-node={apiece}",
            f"--job-name={job.name}", f"--time={DECLARED_MINUTES}",
            "--comment=slurm_fair:v1,signal=USR2,gate=+600",
            str(self._script), str(round(job.work * 1e6)), str(round(self._way.grace * 1e6)), cwd=self._work,
        ).stdout  # fmt: skip
        return {"id": int(said.strip().partition(";")[0]), "called": before, "submitted": time.time()}

    def _noted(self, job: PlannedJob) -> dict[str, object]:
        kinds = ("starts", "asked", "end")
        return {
            kind: [[n.restart, n.time, n.done] for n in notes(self._work, job.name, kind)] for kind in kinds
        }


def _billed(lab: Lab, began: float, jobs: int) -> list[list[object]]:
    """Tenant, GPUs, start and end of each run, from sacct."""
    history, deadline = SlurmHistory(Commands(lab.conf)), time.monotonic() + _ACCOUNTED_SECONDS
    while True:
        runs = history.runs(began - 5, time.time(), ())
        if not isinstance(runs, Blind) and len(set(runs.key.tolist())) == jobs and (runs.end > 0).all():
            tenants = [runs.tenants[row] for row in runs.tenant.tolist()]
            columns = (runs.key.tolist(), tenants, runs.gpus.tolist(), runs.start.tolist(), runs.end.tolist())
            return [list(row) for row in zip(*columns, strict=True)]
        if time.monotonic() > deadline:
            raise LabError("accounting does not know the end of every job")
        time.sleep(0.5)


def _journal(path: Path) -> dict[str, object]:
    """Looks with the seconds of their parts, events, and the accounts at the last look."""
    with open_reader(path) as journal:
        looks = [[tick.time, dict(tick.seconds)] for tick in journal.ticks()]
        events = [[event.time, str(event.kind), event.key, dict(event.detail)] for event in journal.events()]
        standing = journal.latest()
    assert standing is not None
    tenants = standing.ledger.tenants
    columns = zip(tenants.names, tenants.had.tolist(), tenants.owed_demand.tolist(), strict=True)
    return {"looks": looks, "events": events, "accounts": {name: [had, owed] for name, had, owed in columns}}
