"""The job's side on a real Slurm: the protocol between requests and requeues."""

from __future__ import annotations

import json
import os
import pwd
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slurm_fair import lease
from slurm_fair.lab import Lab, LabSpec, available
from slurm_fair.model import Answer
from slurm_fair.slurm.reading.acks import Asked, read_comment
from slurm_fair_templates import Options, render
from slurm_fair_templates.demo_counter import verify
from tests.slurm.demo_training import COUNTER, REPOSITORY
from tests.slurm.job_records import record, until
from tests.slurm.stopwatch_jobs import FAIR_SBATCH
from tests.support.answers import read_acknowledgement

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(available() is not None, reason=str(available())),
]
NOWHERE = (Path("/nonexistent/user"), Path("/nonexistent/site"))
HASH = r",script=[0-9a-f]{16}$"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Two nodes with eight GPUs each."""
    with Lab(spec=LabSpec(nodes=2, database=False, settings={"JobRequeue": "1", "KillWait": "5"})) as private:
        yield private


@pytest.fixture
def folder(lab: Lab, tmp_path: Path) -> Iterator[Path]:
    """A work folder; no job outlives the test."""
    yield tmp_path
    lab.run("scancel", "-u", "root", check=False)
    until(lambda: not lab.run("squeue", "-h", "-t", "R,PD,CG").stdout)


class Job:
    """A counting job, submitted, and what the controller does to it."""

    def __init__(self, lab: Lab, folder: Path, job: str) -> None:
        self.lab, self.folder, self.job = lab, folder, job

    @property
    def state(self) -> str:
        """R, PD, CG, CD, ..."""
        return self.lab.run("squeue", "-h", "-t", "all", "-j", self.job, "-o", "%t").stdout.strip()

    def read(self, name: str) -> dict[str, Any]:
        """One message of the job, or nothing yet."""
        path = self.folder / ".slurm-fair" / self.job / name
        document: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return document

    def asked(self, when: float) -> Asked:
        """The request to its first run, at that time."""
        return Asked(pwd.getpwuid(os.geteuid()).pw_name, str(self.folder), self.job, 0, when, time.time())

    def answer(self, asked: float) -> int:
        """The job's answer as the controller reads it."""
        return read_acknowledgement(self.asked(asked))

    def lines(self, name: str) -> list[list[str]]:
        """One of the counter's logs."""
        path = self.folder / "out" / name
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def result(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.folder / "out" / "result.json").read_text())
        return document

    def open_gate(self) -> None:
        """Let it start, not within the second in which it stopped."""
        self.lab.run("scontrol", "update", f"jobid={self.job}", "eligibletime=now+1")

    def counts(self, more: int = 5) -> None:
        """Wait for it to make progress."""
        at = len(self.lines("steps.log"))
        until(lambda: len(self.lines("steps.log")) >= at + more)

    def ask(self, signal: str = "USR2") -> None:
        """Ask for the GPUs."""
        self.lab.run("scancel", "--batch", f"--signal={signal}", self.job)

    def requeue(self) -> None:
        self.lab.run("scontrol", "requeue", "incomplete", self.job)
        until(lambda: self.state == "PD")

    def finishes(self) -> None:
        """Wait for the end."""
        until(lambda: self.state == "CD")


def count(
    lab: Lab, folder: Path, *options: str, steps: int = 100, more: str = "", first: str = "true"
) -> Job:
    """Submit the counter by fair-sbatch; its script has an option of its own."""
    words = f"{sys.executable} {COUNTER} --steps {steps} --step-seconds 0.05 --directory out {more}"
    (folder / "count.sh").write_text(f'#!/bin/bash\n#SBATCH --gres=gpu:2\necho "got $*"\n{first}\n{words}\n')
    argv = [*FAIR_SBATCH, "--parsable", *options, "count.sh", "a b", "c"]
    return Job(lab, folder, lab.run(*argv, cwd=folder).stdout.strip())


def test_a_job_asked_saved_requeued_and_resumed_loses_nothing(lab: Lab, folder: Path) -> None:
    job = count(lab, folder, "--comment=mine", "--array=4")
    job.job += "_4"
    assert job.state == "PD"
    assert re.fullmatch(
        r"mine slurm_fair:v1,signal=USR2,grace=120,gate=uts\d+" + HASH, record(lab, job.job)["Comment"]
    )
    job.open_gate()
    saved_at = []
    for restart in (0, 1):
        job.counts()
        job.ask()
        until(lambda restart=restart: job.read("ack.json").get("restart") == restart)  # type: ignore[misc]
        answer = job.read("ack.json")
        assert (answer["request"], answer["saved"]) == (1, True)
        saved_at.append(str(answer["step"]))
        assert job.state == "R"
        assert len(job.lines("steps.log")) == answer["step"]
        job.requeue()
        job.open_gate()
    job.finishes()
    assert [(line[0], line[3]) for line in job.lines("starts.log")] == [
        ("0", "0"),
        ("1", saved_at[0]),
        ("2", saved_at[1]),
    ]
    assert verify(job.result(), 100)
    assert (job.result()["executed_steps"], job.result()["lost_steps"], job.result()["restarts"]) == (
        100,
        0,
        2,
    )
    (output,) = folder.glob("slurm-*.out")
    assert output.read_text().count("got a b c") == 3


def test_a_job_that_comes_back_with_another_size_goes_on_and_is_told_it(lab: Lab, folder: Path) -> None:
    told = "s = lease.status(); print('size', s.gpus, s.nodes, s.learning_rate_factor)"
    first = f'{sys.executable} -c "from slurm_fair import lease; {told}"'
    job = count(lab, folder, "--gpus-choices=1,2,4", "--lr-rule=linear", first=first)
    assert re.search(r",gpus=1\+2\+4" + HASH, record(lab, job.job)["Comment"])
    job.open_gate()
    job.counts()
    job.ask()
    until(lambda: job.read("ack.json").get("saved") is True)
    saved_at = job.read("ack.json")["step"]
    job.requeue()
    lab.run("scontrol", "update", f"jobid={job.job}", "gres=gpu:4")
    job.open_gate()
    job.finishes()
    assert verify(job.result(), 100)
    assert [(line[0], line[3]) for line in job.lines("starts.log")] == [("0", "0"), ("1", str(saved_at))]
    (output,) = folder.glob("slurm-*.out")
    sizes = [line for line in output.read_text().splitlines() if line.startswith("size")]
    assert sizes == ["size 2 1 1.0", "size 4 1 2.0"]


def test_a_job_whose_gpus_nobody_takes_goes_on_and_answers_the_next_request(lab: Lab, folder: Path) -> None:
    job = count(lab, folder, "--grace=1")
    job.open_gate()
    job.counts()
    for number in (1, 2):
        job.ask()
        until(lambda number=number: job.read("ack.json").get("request") == number)  # type: ignore[misc]
        job.counts()
    job.finishes()
    assert verify(job.result(), 100)
    assert (job.result()["lost_steps"], len(job.lines("starts.log"))) == (0, 1)


def test_a_job_requeued_without_notice_repeats_what_it_had_not_saved(lab: Lab, folder: Path) -> None:
    job = count(lab, folder, more="--checkpoint-every 20")
    job.open_gate()
    until(lambda: len(job.lines("steps.log")) >= 25)
    job.requeue()
    at = len(job.lines("steps.log"))
    job.open_gate()
    job.finishes()
    assert verify(job.result(), 100)
    assert job.result()["lost_steps"] == at % 20


def test_a_program_that_knows_nothing_of_it_is_not_harmed_by_a_request(lab: Lab, folder: Path) -> None:
    (folder / "plain.sh").write_text(
        "#!/bin/sh\n#SBATCH --gpus=1\nsrun sleep 2\nsleep 1\necho whole; exit 0\n"
    )
    argv = [*FAIR_SBATCH, "--parsable", "--begin=now", "plain.sh"]
    job = Job(lab, folder, lab.run(*argv, cwd=folder).stdout.strip())
    until(lambda: job.state == "R" and ".0" in lab.run("squeue", "-h", "-s", "-j", job.job).stdout)
    job.ask()
    until(lambda: job.read("request.json").get("request") == 1)
    job.finishes()
    assert "whole" in (folder / f"slurm-{job.job}.out").read_text()


GRACE_SECONDS, STEP_SECONDS = 2, 6


@pytest.mark.parametrize(
    ("what", "option", "answered", "lost"),
    [
        ("with last store", "--last-store", True, 0),
        ("without it, all since its own save", "", False, 2),
    ],
)
def test_what_a_job_loses_whose_steps_are_longer_than_the_grace(
    lab: Lab, folder: Path, what: str, option: str, answered: bool, lost: int
) -> None:
    more = f"--step-seconds {STEP_SECONDS} --checkpoint-every 3 {option}"
    job = count(lab, folder, f"--grace={GRACE_SECONDS}", steps=3, more=more)
    job.open_gate()
    until(lambda: len(job.lines("steps.log")) == 2)
    asked = time.time()
    job.ask()
    until(lambda: job.answer(asked) == Answer.SAVED or time.time() > asked + GRACE_SECONDS)
    assert job.answer(asked) == (Answer.SAVED if answered else Answer.NONE), what
    job.requeue()
    job.open_gate()
    job.finishes()
    assert verify(job.result(), 3)
    assert (job.result()["executed_steps"], job.result()["lost_steps"]) == (3 + lost, lost), what


def test_a_step_that_ends_before_the_requeue_is_stored_too(lab: Lab, folder: Path) -> None:
    job = count(lab, folder, "--grace=60", steps=4, more="--step-seconds 4 --last-store")
    job.open_gate()
    until(lambda: len(job.lines("steps.log")) == 1)
    job.ask()
    for step in (1, 2):
        until(lambda step=step: job.read("ack.json").get("step") == step)  # type: ignore[misc]
        assert (job.read("ack.json")["request"], job.read("ack.json")["saved"]) == (1, True)
    job.requeue()
    job.open_gate()
    until(lambda: len(job.lines("starts.log")) == 2)
    assert job.lines("starts.log")[1][3] == "2"


CATCHER = """import signal, time
signal.signal(signal.SIGUSR2, lambda *_: print("caught", flush=True))
print("ready", flush=True)
time.sleep(60)
"""
ASKER = """import os, time
import slurm_fair.lease as lease
lease.should_stop()
print("ready", flush=True)
while not lease.should_stop(): time.sleep(0.1)
print("caught", os.environ["SLURM_PROCID"], lease.acknowledge(7), flush=True)
lease.wait_for_requeue()
"""


@pytest.mark.parametrize(
    ("what", "program", "pass_on"),
    [("by signal", CATCHER, "steps"), ("by the request file", ASKER, "none")],
)
def test_a_request_reaches_every_rank(lab: Lab, folder: Path, what: str, program: str, pass_on: str) -> None:
    (folder / "rank.py").write_text(program)
    lines = f"export PYTHONPATH={REPOSITORY}\nsrun {sys.executable} rank.py\n"
    (folder / "ranks.sh").write_text(f"#!/bin/sh\n#SBATCH -N2 -n2 --gpus-per-node=1\n{lines}")
    argv = [*FAIR_SBATCH, "--parsable", f"--pass-on={pass_on}", "ranks.sh"]
    job = Job(lab, folder, lab.run(*argv, cwd=folder).stdout.strip())
    output = folder / f"slurm-{job.job}.out"
    job.open_gate()
    until(lambda: output.exists() and output.read_text().count("ready") == 2)
    job.ask()
    until(lambda: output.read_text().count("caught") == 2)
    assert job.state == "R", what
    job.requeue()


def test_a_checkpoint_command_answers_for_the_program(lab: Lab, folder: Path) -> None:
    job = count(lab, folder, "--checkpoint-command=touch saved", steps=200)
    job.open_gate()
    job.counts()
    job.ask()
    until(lambda: job.read("ack.json").get("request") == 1)
    assert (job.read("ack.json")["saved"], (folder / "saved").exists()) == (True, True)
    job.requeue()


def test_a_rendered_script_is_submitted_with_plain_sbatch(lab: Lab, folder: Path) -> None:
    words = f"{sys.executable} {COUNTER} --steps 20 --step-seconds 0.05 --directory out\n"
    options = Options(gate_seconds=700, lease_py=lease.__file__)
    sbatch = {"gres": "gpu:2", "comment": "my own", "job-name": "it's mine"}
    (folder / "rendered.sh").write_text(render("generic", words, options, sbatch=sbatch, search=NOWHERE))
    job = Job(lab, folder, lab.run("sbatch", "--parsable", "rendered.sh", cwd=folder).stdout.strip())
    known = record(lab, job.job)
    assert known["Comment"] == "my own slurm_fair:v1,signal=USR2,grace=120,gate=+700"
    assert int(known["EligibleTime"]) - int(known["SubmitTime"]) in (699, 700, 701)
    assert known["Requeue"] == "1"
    job.open_gate()
    job.finishes()
    assert verify(job.result(), 20)


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        (["--deadline=now+900", "--time=5"], 300),
        (["--deadline=now+900"], 450),
        (["--deadline=now+1hour", "--time=59", "--gate-seconds=1000"], 30),
    ],
)
def test_a_deadline_before_the_sites_gate_is_accepted_and_the_job_runs(
    lab: Lab, folder: Path, options: list[str], seconds: int
) -> None:
    job = count(lab, folder, *options, steps=3)
    known = record(lab, job.job)
    assert abs(int(known["EligibleTime"]) - int(known["SubmitTime"]) - seconds) <= 1
    assert re.search(f"gate=uts{known['EligibleTime']}" + HASH, known["Comment"])
    assert job.state == "PD"
    job.open_gate()
    job.finishes()


def test_a_rendered_script_with_a_deadline_is_accepted(lab: Lab, folder: Path) -> None:
    by = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 900))
    words = f"#!/bin/sh\n#SBATCH --gres=gpu:1\n#SBATCH --deadline={by}\n#SBATCH --time=1\ntrue\n"
    (folder / "rendered.sh").write_text(render("generic", words, Options(), search=NOWHERE))
    job = Job(lab, folder, lab.run("sbatch", "--parsable", "rendered.sh", cwd=folder).stdout.strip())
    known = record(lab, job.job)
    assert int(known["EligibleTime"]) - int(known["SubmitTime"]) in (59, 60, 61)
    assert known["Comment"].endswith("gate=+60")


def test_where_the_site_says_so_the_answer_travels_in_the_jobs_comment(lab: Lab, folder: Path) -> None:
    (folder / "site.toml").write_text(f'[slurm]\nreports = "comment"\nconf = "{lab.conf}"\n')
    words = f"{sys.executable} {COUNTER} --steps 100 --step-seconds 0.05 --directory out"
    (folder / "count.sh").write_text(f"#!/bin/bash\n#SBATCH --gres=gpu:2\n{words}\n")
    argv = [*FAIR_SBATCH, "--parsable", "--comment=my own words", "count.sh"]
    env = f"SLURM_FAIR_CONFIG={folder / 'site.toml'}"
    job = Job(lab, folder, lab.run("env", env, *argv, cwd=folder).stdout.strip())
    job.open_gate()
    job.counts()
    asked = time.time()
    for _ in range(2):
        job.ask()
        until(lambda: read_comment(record(lab, job.job)["Comment"], job.asked(asked)) == Answer.SAVED)
    words = record(lab, job.job)["Comment"]
    assert words.startswith("my own words slurm_fair:v1,")
    assert words.count("slurm_fair_ack:") == 1
