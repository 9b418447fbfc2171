"""Elastic jobs on a real Slurm: they start with the size that was granted, and get their own request back."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest

from slurm_fair.config.sections import Config, SlurmSection
from slurm_fair.lab import LabSpec, available
from slurm_fair.model import Action, Outcome, Result, Snapshot, Verb, parse_label
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.cluster import SlurmCluster
from slurm_fair.slurm.command import CommandResult, Commands
from slurm_fair.slurm.fail_open import liberate
from tests.support.adapter_on_slurm import Adapter
from tests.support.fake_cluster import MemoryJournal
from tests.support.on_slurm import Slurm

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(available(database=True) is not None, reason=str(available(database=True))),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as another user"),
]
SPEC = LabSpec(nodes=3, gpus_per_node=8, settings={"KillWait": "2", "MessageTimeout": "2"})
CHOICES = "1+2+4+8+12"
ONE, TWO = ("n1",), ("n1", "n2")


class Asked(NamedTuple):
    """The request or the share of a job as Slurm tells it."""

    tres: str
    per_node: str
    per_job: str
    tasks: str


def asked(slurm: Slurm, job: str) -> Asked:
    """The request as squeue shows it."""
    names = ("tres-alloc", "tres-per-node", "tres-per-job", "NumTasks")
    layout = ",".join(f"{name}:|" for name in names)
    row = slurm.lab.run("squeue", "-h", "-t", "all", "--array-unique", "-j", job, "-O", layout).stdout.strip()
    return Asked(*row.rstrip("|").split("|"))


def gpus(slurm: Slurm, job: str) -> int:
    """GPUs that it asks for, or has."""
    return int(re.search(r"gres/gpu=([0-9]+)", asked(slurm, job).tres)[1])  # type: ignore[index]


def elastic(begin: Adapter, *options: str, choices: str = CHOICES) -> str:
    """The id of a new job that names sizes, behind our gate."""
    stamp = f"--comment=slurm_fair:v1,signal=USR2,gate=+600,gpus={choices}"
    argv = ("sbatch", "--parsable", "-A", "vision", "-o", "/dev/null", "--begin=now+600", "--requeue", stamp)
    return begin.slurm.lab.run(*argv, *options, "--wrap", "sleep 300").stdout.strip()


def sizes(seen: Snapshot, row: int) -> list[int]:
    """The sizes with which a look shows that the job can run."""
    return [] if seen.sizes is None else seen.sizes.gpus[seen.sizes.row == row].tolist()


def opened(begin: Adapter, job: str, size: int, nodes: tuple[str, ...]) -> Outcome:
    """The outcome of opening it with this size."""
    (outcome,) = begin.cluster.actuate([begin.action(Verb.OPEN, job, nodes)._replace(gpus=size)])
    return outcome


def runs_with(begin: Adapter, job: str, size: int, nodes: tuple[str, ...]) -> None:
    """Open it, and see that it has this size."""
    outcome = opened(begin, job, size, nodes)
    assert outcome.result is Result.DONE, outcome
    begin.slurm.wait_state(job, "RUNNING")
    assert gpus(begin.slurm, job) == size
    seen, row = begin.job(job)
    held = seen.held.gpus[seen.held.row == row].tolist()
    assert (sum(held), len(held), seen.jobs.gpus.item(row)) == (size, len(nodes), size)


@pytest.mark.parametrize(
    ("options", "turns"),
    [
        (("--gres=gpu:2",), ((4, ONE), (1, ("n2",)), (8, ("n2",)))),
        (("--gres=gpu:a100:2", "-c4", "--mem=1G"), ((4, ONE), (2, ONE), (1, ONE))),
        (("--gpus-per-node=2", "-N1"), ((1, ONE), (4, ONE))),
        (("--gpus=2",), ((4, ONE), (12, TWO), (1, ONE))),
        (("-N2", "--gpus-per-node=2"), ((8, TWO), (2, TWO), (4, ONE), (12, ("n1", "n2", "n3")))),
        (
            ("-N1", "--gres=gpu:2", "-c4", "--mem=1G"),
            ((8, TWO), (2, ONE), (12, ("n1", "n2", "n3")), (2, TWO)),
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value[0], str) else "",
)
def test_each_run_has_the_size_that_was_granted_and_the_job_waits_with_its_own(
    begin: Adapter, options: tuple[str, ...], turns: tuple[tuple[int, tuple[str, ...]], ...]
) -> None:
    job = elastic(begin, *options)
    seen, row = begin.job(job)
    usual, before = seen.jobs.gpus.item(row), asked(begin.slurm, job)
    assert sizes(seen, row) == [1, 2, 4, 8, 12]
    for size, nodes in turns:
        runs_with(begin, job, size, nodes)
        seen, row = begin.job(job)
        assert (seen.jobs.usual_gpus.item(row), sizes(seen, row)) == (usual, [1, 2, 4, 8, 12])
        begin.requeue(job)
        seen, row = begin.job(job)
        assert (seen.jobs.gpus.item(row), seen.jobs.usual_gpus.item(row)) == (usual, usual)
        begin.done(Verb.CLOSE, job)
        assert asked(begin.slurm, job) == before
        time.sleep(1)  # no start in the second in which it left its node (slurm-facts: same-second)


def test_cpus_and_memory_of_each_node_stay_as_they_were_asked_for(begin: Adapter) -> None:
    job = elastic(begin, "-N1", "--gres=gpu:2", "-c4", "--mem=1G")
    runs_with(begin, job, 8, TWO)
    assert asked(begin.slurm, job).tres.startswith("cpu=8,mem=2G,node=2,")


def test_memory_that_is_asked_for_by_the_gpu_goes_along(begin: Adapter) -> None:
    job = elastic(begin, "--gres=gpu:2", "--mem-per-gpu=100M")
    runs_with(begin, job, 4, ONE)
    assert ",mem=400M," in asked(begin.slurm, job).tres


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("-n2", "--gpus-per-task=1"), "asked for by the task"),
        (("--gres=gpu:2", "--cpus-per-gpu=2"), "CPUs are asked for by the GPU"),
        (("--gres=gpu:3",), "3 GPUs, which is none of its sizes"),
        (("--gres=gpu",), "not a plain number"),
        (("-N1", "--gpus=2"), "for a number of nodes"),
        (("-N2", "--gpus=4"), "for a number of nodes"),
        (("--gres=gpu:2", "--no-requeue"), "cannot save and be requeued"),
    ],
)
def test_a_job_whose_size_slurm_would_not_change_safely_stays_rigid(
    begin: Adapter, options: tuple[str, ...], why: str
) -> None:
    job = elastic(begin, *options)
    seen, row = begin.job(job)
    assert sizes(seen, row) == []
    assert why in seen.rigid[seen.jobs.key.item(row)]
    before = asked(begin.slurm, job)
    outcome = opened(begin, job, 0, ONE)
    assert outcome.result is Result.DONE, outcome
    begin.slurm.wait_state(job, "RUNNING")
    assert asked(begin.slurm, job)[1:] == before[1:]


@pytest.mark.parametrize("choices", ["1+2+x", "0+2", "+".join(map(str, range(1, 30)))])
def test_one_bad_stamp_costs_that_job_its_sizes_and_nothing_else(begin: Adapter, choices: str) -> None:
    bad, good = elastic(begin, "--gres=gpu:2", choices=choices), elastic(begin, "--gres=gpu:2")
    seen, row = begin.job(bad)
    assert sizes(seen, row) == []
    assert "cannot be read" in seen.rigid[seen.jobs.key.item(row)]
    seen, row = begin.job(good)
    assert sizes(seen, row) == [1, 2, 4, 8, 12]


def test_an_array_task_changes_its_size_alone(begin: Adapter) -> None:
    array = elastic(begin, "--gres=gpu:2", "--array=1-3")
    runs_with(begin, f"{array}_2", 4, ONE)
    for task in (1, 3):
        seen, row = begin.job(f"{array}_{task}")
        assert seen.jobs.gpus.item(row) == 2
    begin.requeue(f"{array}_2")
    begin.done(Verb.CLOSE, f"{array}_2")
    assert gpus(begin.slurm, f"{array}_2") == 2


# -- users ---------------------------------------------------------------------------------------------


def test_a_user_who_changes_the_number_gets_it(begin: Adapter) -> None:
    job = elastic(begin, "--gres=gpu:2")
    runs_with(begin, job, 8, ONE)
    begin.requeue(job)
    begin.slurm.update(job, "gres=gpu:4")
    seen, row = begin.job(job)
    assert (seen.jobs.gpus.item(row), seen.jobs.usual_gpus.item(row)) == (4, 4)
    begin.done(Verb.CLOSE, job)
    assert gpus(begin.slurm, job) == 4
    runs_with(begin, job, 1, ("n2",))
    begin.requeue(job)
    begin.done(Verb.CLOSE, job)
    assert gpus(begin.slurm, job) == 4


def test_a_size_that_does_not_lie_evenly_is_refused_and_nothing_is_changed(begin: Adapter) -> None:
    job = elastic(begin, "--gres=gpu:2", choices="1+2+3")
    before = asked(begin.slurm, job)
    outcome = opened(begin, job, 3, TWO)
    assert (outcome.result, "evenly" in outcome.detail) == (Result.REFUSED, True)
    assert asked(begin.slurm, job) == before


# -- failures ------------------------------------------------------------------------------------------


class Cut(Commands):
    """Commands that change what scontrol is told."""

    change: Callable[[str], str] = staticmethod(lambda line: line)

    def run(self, *argv: str, **options: object) -> CommandResult:
        """Run it with other lines on its standard input."""
        if isinstance(text := options.get("stdin"), str):
            options["stdin"] = "".join(f"{self.change(line)}\n" for line in text.splitlines())
        return super().run(*argv, **options)  # type: ignore[arg-type]


def cluster(slurm: Slurm, journal: MemoryJournal, change: Callable[[str], str]) -> SlurmCluster:
    """A controller of its own, whose lines to scontrol are changed on their way."""
    commands = Cut(slurm.lab.conf)
    commands.change = change
    config = replace(Config(), slurm=SlurmSection(gate="begin"))
    return SlurmCluster(commands, config.cluster, time.time, journal, journal)


def act(cluster: SlurmCluster, action: Action) -> Outcome:
    """The outcome of one act after a look."""
    cluster.observe({})
    (outcome,) = cluster.actuate([action])
    return outcome


def test_a_request_that_was_changed_by_half_is_put_back_and_refused(begin: Adapter) -> None:
    job = elastic(begin, "-N1", "--gres=gpu:2", "-c4")
    before, first = asked(begin.slurm, job), [True]

    def half(line: str) -> str:
        if "numtasks" in line and first:
            first.clear()
            return line.replace("numtasks=2 ", "").replace("trespernode=gres:gpu:4", "")
        return line

    action = begin.action(Verb.OPEN, job, TWO)._replace(gpus=8)
    outcome = act(cluster(begin.slurm, MemoryJournal(), half), action)
    assert (outcome.result, "did not become 8 GPUs" in outcome.detail) == (Result.REFUSED, True), outcome
    assert asked(begin.slurm, job) == before
    assert begin.slurm.look(job).state == "PENDING"


def crashed_before_opening(begin: Adapter, job: str, size: int) -> tuple[Mark, ...]:
    """The marks of a controller that died when it had changed the size and not opened the gate."""
    journal = MemoryJournal()

    def die(line: str) -> str:
        if "starttime=now" in line or "eligibletime" in line:
            raise KeyboardInterrupt
        return line

    action = begin.action(Verb.OPEN, job, ONE)._replace(gpus=size)
    with pytest.raises(KeyboardInterrupt):
        act(cluster(begin.slurm, journal, die), action)
    assert gpus(begin.slurm, job) == size
    return tuple(journal.marks())


def test_after_a_crash_the_next_controller_knows_whose_size_it_is(begin: Adapter) -> None:
    job = elastic(begin, "--gres=gpu:2")
    marks, journal = crashed_before_opening(begin, job, 8), MemoryJournal()
    journal.set_marks(marks)
    again = cluster(begin.slurm, journal, lambda line: line)
    seen = again.observe({})
    assert isinstance(seen, Snapshot)
    (row,) = (seen.jobs.key == parse_label(job)).nonzero()[0].tolist()
    assert (seen.jobs.gpus.item(row), seen.jobs.pinned.item(row)) == (2, True)
    assert act(again, begin.action(Verb.OPEN, job, ("n2",))._replace(gpus=4)).result is Result.DONE
    begin.slurm.wait_state(job, "RUNNING")
    assert gpus(begin.slurm, job) == 4


def test_fail_open_gives_a_waiting_job_its_own_size_back(begin: Adapter) -> None:
    job = elastic(begin, "--gres=gpu:2")
    marks = crashed_before_opening(begin, job, 8)
    freed = liberate(Commands(begin.slurm.lab.conf), marks, time.time)
    assert (freed.freed, freed.left) == (1, ())
    begin.slurm.wait_state(job, "RUNNING")
    assert gpus(begin.slurm, job) == 2
