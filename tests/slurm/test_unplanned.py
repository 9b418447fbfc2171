"""Jobs that nobody can plan, on a real Slurm whose site refuses them: refused whole, and users are told why."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from slurm_fair.lab import Lab, LabSpec, NodeGroup, available
from tests.slurm.job_records import record, until
from tests.slurm.submit_hook import EMPTY_LUA, PLUGIN, settle

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(available() is not None, reason=str(available())),
]
OWNER, DENIED = "games", "Access/permission denied"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A node of each of two GPU types, a partition that is not managed, and a user who is no admin."""
    empty = tmp_path_factory.mktemp("lua") / "job_submit.lua"
    empty.write_text(EMPTY_LUA)
    spec = LabSpec(
        node_types=(NodeGroup(1, 4, "a100"), NodeGroup(1, 4, "v100")),
        tenants={"vision": 1},
        users={OWNER: ("vision",)},
        partitions={"gpu": ("ALL",), "free": ("ALL",)},
        job_submit=empty,
    )
    with Lab(spec=spec) as private:
        (private.folder / "slurm_fair_gate.lua").write_bytes((PLUGIN / "slurm_fair_gate.lua").read_bytes())
        settle(private, partitions='{"gpu"}', unplanned='"refuse"')
        yield private
        private.run("scancel", "-u", OWNER, check=False)


def send(lab: Lab, *words: str, user: str | None = OWNER) -> tuple[str, str]:
    """The id of a new job, or none; and what its user reads."""
    argv = ("sbatch", "--parsable", "-A", "vision", "-o", "/dev/null", "-D", "/", *words)
    done = lab.run(*argv, "--wrap=sleep 600", user=user, check=False)
    return done.stdout.strip(), done.stderr


def waits(lab: Lab) -> list[str]:
    return lab.run("squeue", "-h", "-o", "%i", "-u", OWNER).stdout.split()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--gres=gpu:1", ":", "--gres=gpu:1"), "heterogeneous"),
        (("-n1", ":", "--gres=gpu:1"), "heterogeneous"),
        (("--gpus=a100:2,v100:2",), "several GPU types"),
        (("--gres=gpu:a100:1,gpu:v100:1",), "several GPU types"),
    ],
)
def test_a_job_that_nobody_can_plan_is_refused_whole(lab: Lab, words: tuple[str, ...], why: str) -> None:
    before = waits(lab)
    job, said = send(lab, *words)
    assert (job, why in said, waits(lab)) == ("", True, before), said


@pytest.mark.parametrize(
    "words",
    [
        ("-n1", ":", "-n1"),
        ("-p", "free", "--gres=gpu:1", ":", "-p", "free", "--gres=gpu:1"),
        ("--gpus=a100:1",),
        ("--gpus=a100:1", "-N1"),
    ],
)
def test_all_others_are_taken(lab: Lab, words: tuple[str, ...]) -> None:
    job, said = send(lab, *words)
    assert job, said
    lab.run("scancel", job)


def test_no_waiting_job_becomes_such_a_one(lab: Lab) -> None:
    job, said = send(lab, "--gpus=a100:1")
    assert "gate=uts" in record(lab, job)["Comment"], said
    two = lab.run("scontrol", "update", f"jobid={job}", "gres=gpu:a100:1,gpu:v100:1", user=OWNER, check=False)
    assert (DENIED in two.stderr, "v100" in lab.run("squeue", "-h", "-j", job, "-o", "%b").stdout) == (
        True,
        False,
    )
    parts = ("-p", "free", "--gres=gpu:1")
    elsewhere, said = send(lab, *parts, "--begin=now+600", ":", *parts)
    first = lab.run("scontrol", "update", f"jobid={elsewhere}+0", "partition=gpu", user=OWNER, check=False)
    places = set(lab.run("squeue", "-h", "-j", elsewhere, "-o", "%P").stdout.split())
    assert (DENIED in first.stderr, places) == (True, {"free"}), (first.stderr, said)
    lab.run("scancel", job, elsewhere)
    until(lambda: not waits(lab))
