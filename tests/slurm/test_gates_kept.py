"""Changes that a job's owner makes on a real Slurm, and the submit hook's answer to them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_fair.board.health import DaemonState, Health
from slurm_fair.lab import Lab, LabSpec, available
from tests.slurm.job_records import record, until
from tests.slurm.submit_hook import EMPTY_LUA, PLUGIN, settle

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(available() is not None, reason=str(available())),
]
OWNER = "games"
STAMP = "--comment=slurm_fair:v1,signal=USR2"
GATE = 600  # seconds; a wish lasts half of that


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One node with four GPUs, a partition of them that is not managed, and the shipped hook."""
    empty = tmp_path_factory.mktemp("lua") / "job_submit.lua"
    empty.write_text(EMPTY_LUA)
    spec = LabSpec(
        nodes=1,
        gpus_per_node=4,
        tenants={"vision": 1, "nlp": 1, "speech": 1},
        users={OWNER: ("vision", "nlp", "speech")},
        partitions={"gpu": ("ALL",), "free": ("ALL",)},
        job_submit=empty,
    )
    with Lab(spec=spec) as private:
        (private.folder / "slurm_fair_gate.lua").write_bytes((PLUGIN / "slurm_fair_gate.lua").read_bytes())
        yield private


class Owner:
    """A user who is no admin, and their jobs."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    def send(self, *words: str, account: str = "vision") -> str:
        asked = [] if "-n1" in words else ["--gpus=1"]
        argv = ("sbatch", "--parsable", "-A", account, *asked, STAMP, "-o", "/dev/null", "-D", "/", *words)
        return self.lab.run(*argv, "--wrap=sleep 600", user=OWNER).stdout.strip()

    def update(self, job: str, *words: str) -> bool:
        """True where Slurm took the change."""
        done = self.lab.run("scontrol", "update", f"jobid={job}", *words, user=OWNER, check=False)
        return done.returncode == 0

    def do(self, verb: str, job: str) -> None:
        self.lab.run("scontrol", verb, job, user=OWNER)

    def ahead(self, job: str) -> float:
        """In how many seconds its begin time comes; 26.05 knows none of a job that waits for another alone."""
        eligible = record(self.lab, job)["EligibleTime"]
        return 0.0 if eligible == "Unknown" else float(eligible) - time.time()

    def key(self, job: str) -> str:
        """The last key of its stamp: whose the begin time is."""
        return re.sub(r".*,(\w+)=uts\d+$", r"\1", record(self.lab, job)["Comment"])

    def runs(self, job: str) -> None:
        until(lambda: record(self.lab, job)["JobState"] == "RUNNING")


@pytest.fixture
def owner(lab: Lab) -> Iterator[Owner]:
    """No job outlives the test, and nobody has had a wish: the hook is read anew."""
    settle(
        lab,
        gate_seconds=str(GATE),
        partitions='{"gpu"}',
        interactive=f'"leave", -- {time.monotonic_ns()}\n  x = ""',
    )
    yield Owner(lab)
    lab.run("scancel", "-u", OWNER, check=False)
    until(lambda: not lab.run("squeue", "-h", "-t", "R,PD,CG").stdout)


CPUS, FREE = ("-n1",), ("-p", "free")
GPUS, HERE = "gres=gpu:1", "partition=gpu"


def is_gated(owner: Owner, job: str) -> bool:
    return owner.key(job) == "gate" and GATE - 30 < owner.ahead(job) <= GATE + 1


def test_no_owner_moves_a_gate(owner: Owner) -> None:
    jobs = [owner.send(), owner.send("--no-requeue"), owner.send("--array=1-3"), owner.send(account="nlp")]
    jobs.append(f"{jobs[2]}_2")
    for job in jobs:
        for now in ("starttime=now", "starttime=now-500", "eligibletime=now", "starttime=now+15"):
            assert not owner.update(job, now)
        assert is_gated(owner, job)


def test_a_begin_time_of_its_owners_own_that_becomes_now_ends_at_a_gate(owner: Owner) -> None:
    job = owner.send("--begin=now+900")
    assert owner.key(job) == "begin"
    assert owner.update(job, "starttime=now")
    assert is_gated(owner, job)
    assert not owner.update(job, "starttime=now")


def test_a_held_job_may_begin_now_and_waits_behind_its_gate_when_it_is_released(owner: Owner) -> None:
    job = owner.send("-H", "--begin=now+900")
    assert owner.update(job, "starttime=now")
    owner.do("release", job)
    assert is_gated(owner, job)


WHOLE = ("-n1", "--exclusive")


def test_a_job_that_asks_for_whole_nodes_alone_has_a_gate_that_stays(owner: Owner) -> None:
    """It takes GPUs without asking for them, as each node of its partition has some."""
    for words in (WHOLE, ("-n1", "--exclusive=user"), (*WHOLE, "-H")):
        job = owner.send(*words)
        owner.do("release", job)
        assert is_gated(owner, job)
        assert not owner.update(job, "starttime=now")
        assert owner.update(job, "comment=x", "starttime=now+900")
        assert owner.update(job, "comment=y")
        assert owner.update(job, "starttime=now")
        assert is_gated(owner, job)
        assert not owner.update(job, "comment=" + "x" * 1010)
    job = owner.send(*WHOLE, *FREE, "--begin=now+900")
    assert not owner.update(job, HERE)


def test_a_job_of_whole_nodes_leaves_room_for_the_gate_in_its_comment(lab: Lab, owner: Owner) -> None:
    long = ("-A", "vision", "-D", "/", "-o", "/dev/null", "--comment=" + "x" * 1000, "--wrap=true")
    refused = lab.run("sbatch", "--exclusive", *long, user=OWNER, check=False)
    assert (refused.returncode, "leaves no room" in refused.stderr) == (1, True)
    lab.run("sbatch", "--gpus=1", *long, user=OWNER)


def test_gpus_that_slurm_works_out_itself_are_gated(owner: Owner) -> None:
    job = owner.send("-n1", "-n2", "--ntasks-per-gpu=1")
    assert is_gated(owner, job)
    assert not owner.update(job, "starttime=now")


def test_a_forged_begin_time_opens_no_gate(owner: Owner) -> None:
    for digits in ("9" * 20, "9223372036854775807", "5"):
        job = owner.send(f"--comment=slurm_fair:v1,signal=USR2 slurm_fair:v1,begin=uts{digits}")
        assert owner.update(job, "numtasks=1")
        assert GATE - 30 < owner.ahead(job) <= GATE + 1


def test_a_change_of_an_array_leaves_its_tasks_their_own_words(lab: Lab, owner: Owner) -> None:
    array = owner.send("--array=1-3")
    assert owner.update(f"{array}_2", "comment=mine")
    assert owner.update(f"{array}_3", "starttime=now+5000")
    for verb in ("hold", "release"):
        owner.do(verb, array)
    words = {task: record(lab, f"{array}_{task}") for task in (2, 3)}
    assert words[2]["Comment"].startswith("mine slurm_fair:v1,signal=USR2,gate=uts")
    assert is_gated(owner, f"{array}_2")
    assert (owner.key(f"{array}_3"), owner.ahead(f"{array}_3") > 4900) == ("begin", True)


def test_a_running_job_goes_on_to_say_that_it_saves(lab: Lab, owner: Owner) -> None:
    job = owner.send("--requeue")
    lab.run("scontrol", "update", f"jobid={job}", "starttime=now")
    owner.runs(job)
    assert owner.update(job, "comment=x")
    assert record(lab, job)["Comment"].startswith("x slurm_fair:v1,signal=USR2,gate=uts")


def test_a_change_that_slurm_makes_in_part_opens_no_way(lab: Lab, owner: Owner) -> None:
    """Slurm makes the first part of such a change, refuses the second, and does not set the hook's gate."""
    first = owner.send("-H", *CPUS)
    for words, change in ((FREE, HERE), (CPUS, GPUS)):
        job = owner.send(f"--dependency=afterany:{first}", *words)
        before = record(lab, job)
        for bad in ("nice=-100", "features=nosuch", "corespec=5", ""):
            assert not owner.update(job, change, *([bad] if bad else []))
        assert record(lab, job)["Partition"] == before["Partition"]
        owner.do("hold", job)
        assert owner.update(job, change, "dependency=")
        assert not owner.update(job, "priority=4294967295", "nice=-100")
        owner.do("release", job)
        assert is_gated(owner, job)


def test_a_later_begin_time_is_its_owners_own(owner: Owner) -> None:
    job = owner.send()
    for ahead in (300, 900):
        assert owner.update(job, f"starttime=now+{ahead}")
        assert owner.key(job) == "begin"
        assert ahead - 20 < owner.ahead(job) <= ahead + 1


def test_a_released_job_waits_behind_its_gate(owner: Owner) -> None:
    for words in ((), ("-H",)):
        job = owner.send(*words)
        owner.do("hold", job)
        owner.do("release", job)
        assert is_gated(owner, job)


def test_a_released_job_keeps_the_begin_time_of_its_owners_own(owner: Owner) -> None:
    job = owner.send("--begin=now+5000")
    owner.do("hold", job)
    owner.do("release", job)
    assert (owner.key(job), owner.ahead(job) > 4900) == ("begin", True)


def test_a_begin_time_that_is_as_good_as_now_is_gated_at_submission(owner: Owner) -> None:
    assert is_gated(owner, owner.send("--begin=now+2"))
    job = owner.send("--begin=now+60")
    assert (owner.key(job), 40 < owner.ahead(job) <= 61) == ("begin", True)


def test_a_job_that_cannot_be_taken_back_any_more_waits_behind_its_gate(lab: Lab, owner: Owner) -> None:
    """Its gate may have been opened for what it was before."""
    full = owner.send("--gpus=4")
    lab.run("scontrol", "update", f"jobid={full}", "starttime=now")
    owner.runs(full)
    job = owner.send("-t", "1")
    lab.run("scontrol", "update", f"jobid={job}", "starttime=now")
    assert owner.ahead(job) <= 0
    assert owner.update(job, "timelimit=30")
    assert is_gated(owner, job)
    lab.run("scontrol", "update", f"jobid={job}", "starttime=now")
    assert owner.update(job, "timelimit=20")
    assert owner.ahead(job) <= 0
    assert owner.update(job, "requeue=0")
    assert is_gated(owner, job)


def test_a_running_job_stays_one_that_can_be_requeued(lab: Lab, owner: Owner) -> None:
    job = owner.send("--requeue")
    lab.run("scontrol", "update", f"jobid={job}", "starttime=now")
    owner.runs(job)
    assert not owner.update(job, "requeue=0")
    assert owner.update(job, "requeue=1")
    lab.run("scontrol", "update", f"jobid={job}", "requeue=0")
    assert record(lab, job)["Requeue"] == "0"


def test_admins_and_jobs_without_gpus_and_other_changes_are_free(lab: Lab, owner: Owner) -> None:
    first, second, without = owner.send(), owner.send(), owner.send("-n1", "--begin=now+900")
    for job in (first, second):
        lab.run("scontrol", "update", f"jobid={job}", "starttime=now")
        owner.runs(job)
    assert owner.update(without, "starttime=now")
    assert owner.ahead(without) <= 0
    assert owner.update(owner.send(), "nice=10", "name=x")


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        (CPUS, [GPUS]),
        (FREE, [HERE]),
        (FREE, ["partition=free,gpu"]),
        ((*FREE, "--begin=now+3600"), [HERE, "starttime=now"]),
    ],
)
def test_a_job_is_held_when_it_becomes_managed_and_gated_when_it_is_let_go(
    owner: Owner, words: tuple[str, ...], changes: list[str]
) -> None:
    """It waited for a job of its owner's, without a gate; one change would start it on GPUs."""
    first = owner.send("-H", *CPUS)
    job = owner.send(f"--dependency=afterany:{first}", *words)
    assert not owner.update(job, *changes, "dependency=")
    owner.do("hold", job)
    assert owner.update(job, *changes, "dependency=")
    owner.do("release", job)
    assert is_gated(owner, job)


def test_a_job_whose_gpus_are_taken_away_waits_behind_its_gate(owner: Owner) -> None:
    job = owner.send()
    assert owner.update(job, "gres=gpu:0", "starttime=now")
    assert is_gated(owner, job)


@pytest.mark.parametrize(
    "change",
    [
        "features=",
        "reqnodelist=",
        "excnodelist=",
        "tresperjob=gres:gpu:2",
        "numtasks=2",
        "numnodes=1-1",
        "numcpus=2",
        "mincpusnode=2",
        "minmemorynode=100",
        "cpuspertask=2",
        "comment=x",
    ],
)
def test_a_job_that_changes_with_its_gate_open_waits_behind_it_anew(
    lab: Lab, owner: Owner, change: str
) -> None:
    """The gate was opened, or taken away, for what the job was before; its words are no matter."""
    first = owner.send("-H", *CPUS)
    job = owner.send(f"--dependency=afterany:{first}")
    lab.run("scontrol", "update", f"jobid={job}", "starttime=now")
    assert owner.update(job, change)
    assert (owner.ahead(job) > GATE - 30) is (change != "comment=x")


def test_a_job_that_comes_back_is_held_first(owner: Owner) -> None:
    """Elsewhere its begin time is its owner's to move."""
    first = owner.send("-H", *CPUS)
    job = owner.send(f"--dependency=afterany:{first}")
    assert owner.update(job, "partition=free", "starttime=now")
    assert not owner.update(job, HERE, "dependency=")
    owner.do("hold", job)
    assert owner.update(job, HERE, "dependency=")
    owner.do("release", job)
    assert is_gated(owner, job)


def test_a_job_that_becomes_managed_keeps_the_begin_time_of_its_owners_own(owner: Owner) -> None:
    first, second = owner.send(*FREE, "--begin=now+5000"), owner.send(*CPUS, "--begin=now+900")
    assert owner.update(second, "starttime=now+5000")
    for job, change in ((first, HERE), (second, GPUS)):
        owner.do("hold", job)
        assert owner.update(job, change)
        owner.do("release", job)
        assert (owner.key(job), owner.ahead(job) > 4900) == ("begin", True)


def test_nobody_is_kept_while_no_controller_acts(lab: Lab, owner: Owner, tmp_path: Path) -> None:
    file = lab.folder / "health.json"
    for state, kept in ((DaemonState.ACTING, True), (DaemonState.PAUSED, False)):
        settle(lab, gate_seconds=str(GATE), health=f'"{file}"')
        file.write_text(Health(time.time(), 10.0, time.time(), DaemonState.ACTING).text())
        jobs = [owner.send(account="speech") for _ in range(2)]
        file.write_text(Health(time.time(), 10.0, time.time(), state).text())
        taken = [owner.update(job, "starttime=now") for job in jobs]
        assert taken[1] is not kept
