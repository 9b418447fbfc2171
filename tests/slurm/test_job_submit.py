"""job_submit.lua on a real Slurm: which jobs it gates, how, and which it leaves alone."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_fair.board.health import DaemonState, Health
from slurm_fair.lab import Lab, LabSpec, available
from slurm_fair_templates.quoting import directive
from tests.slurm.job_records import record, until
from tests.slurm.submit_hook import EMPTY_LUA, PLUGIN, settle
from tests.support.on_slurm import Slurm

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(available() is not None, reason=str(available())),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Two nodes with eight GPUs each, two partitions; `settle` puts our job_submit script in."""
    empty = tmp_path_factory.mktemp("lua") / "job_submit.lua"
    empty.write_text(EMPTY_LUA)
    spec = LabSpec(
        nodes=2,
        database=False,
        partitions={"gpu": ("ALL",), "free": ("ALL",)},
        job_submit=empty,
        settings={"JobRequeue": "1", "KillWait": "5"},
    )
    with Lab(spec=spec) as private:
        (private.folder / "slurm_fair_gate.lua").write_bytes((PLUGIN / "slurm_fair_gate.lua").read_bytes())
        yield private


@pytest.fixture
def folder(lab: Lab, tmp_path: Path) -> Iterator[Path]:
    """A work folder; no job outlives the test, and the gate is the shipped one again."""
    settle(lab)
    yield tmp_path
    lab.run("scancel", "-u", "root", check=False)
    until(lambda: not lab.run("squeue", "-h", "-t", "R,PD,CG").stdout)


def submit(lab: Lab, folder: Path, *words: str) -> str:
    """Submit a job that does nothing; its id."""
    return lab.run("sbatch", "--parsable", *words, "--wrap=true", cwd=folder).stdout.strip()


def gates(lab: Lab, folder: Path, *words: str) -> tuple[str, bool]:
    """The comment of a new job, with its gate's time left out, and whether Slurm keeps it to that time."""
    job = record(lab, submit(lab, folder, *words))
    at = re.search(r"gate=uts(\d+)", job["Comment"])
    is_kept = at is not None and job["EligibleTime"] == at[1] and job["JobState"] == "PENDING"
    return re.sub(r"uts\d{2,}", "uts", job["Comment"]).replace("(null)", ""), is_kept


GATED = ("slurm_fair:v0,gate=uts", True)


@pytest.mark.parametrize(
    ("what", "words", "expected"),
    [
        ("a plain GPU job", ["--gres=gpu:2"], GATED),
        ("GPUs by type", ["--gres=gpu:a100:1"], GATED),
        ("--gpus", ["--gpus=3"], GATED),
        ("--gpus-per-node", ["-N2", "--gpus-per-node=2"], GATED),
        ("--gpus-per-task", ["-n2", "--gpus-per-task=1"], GATED),
        ("an array", ["--array=1-3", "--gpus=1"], GATED),
        ("begin now is no wish to wait", ["--gpus=1", "--begin=now"], GATED),
        ("two partitions", ["-p", "free,gpu", "--gpus=1"], GATED),
        ("a dependency", ["--gpus=1", "--dependency=singleton"], GATED),
        ("a user's comment", ["--gpus=1", "--comment=my own"], ("my own slurm_fair:v0,gate=uts", True)),
        (
            "a stamp without a gate",
            ["--gpus=1", "--comment=a slurm_fair:v1,signal=USR1,grace=9 b"],
            ("a slurm_fair:v1,signal=USR1,grace=9,gate=uts b", True),
        ),
        (
            "a stamp whose gate was overridden",
            ["--gpus=1", "--comment=slurm_fair:v1,gate=+1800,grace=9", "--begin=now"],
            ("slurm_fair:v1,grace=9,gate=uts", True),
        ),
        ("whole nodes without a word of GPUs", ["--exclusive"], GATED),
        ("whole nodes for one user", ["--exclusive=user"], GATED),
        (
            "whole nodes later",
            ["--exclusive", "--begin=now+500"],
            ("slurm_fair:v0,gate=uts0,begin=uts", False),
        ),
        ("whole nodes elsewhere", ["--exclusive", "-p", "free"], ("", False)),
        ("a CPU job", ["-n4"], ("", False)),
        ("no GPU at all", ["--gres=gpu:0"], ("", False)),
        ("another partition", ["-p", "free", "--gpus=1"], ("", False)),
        ("a begin time of its own", ["--gpus=1", "--begin=now+500"], ("slurm_fair:v0,begin=uts", False)),
        ("the same of a CPU job", ["-n4", "--begin=now+500"], ("slurm_fair:v0,begin=uts", False)),
        (
            "the same elsewhere",
            ["-p", "free", "--gpus=1", "--begin=now+500"],
            ("slurm_fair:v0,begin=uts", False),
        ),
        ("a begin time that is as good as now", ["--gpus=1", "--begin=now+5"], GATED),
        ("a hold of its own", ["--gpus=1", "-H"], ("", False)),
        (
            "a template's own gate",
            ["--gpus=1", "--comment=slurm_fair:v1,gate=+500", "--begin=now+500"],
            ("slurm_fair:v1,gate=+500", False),
        ),
        ("another account", ["--gpus=1", "-A", "speech"], ("", False)),
        ("a managed account", ["--gpus=1", "-A", "nlp"], GATED),
    ],
)
def test_the_begin_gate_at_submission(
    lab: Lab, folder: Path, what: str, words: list[str], expected: tuple[str, bool]
) -> None:
    settle(lab, partitions='{"gpu"}', accounts='{"vision", "nlp"}')
    account = [] if "-A" in words else ["-A", "vision"]
    assert gates(lab, folder, *account, *words) == expected, what


@pytest.mark.parametrize(
    ("settings", "words", "expected"),
    [
        ({"plain": '"leave"'}, ["--gpus=1"], ("", False)),
        (
            {"plain": '"leave"'},
            ["--gpus=1", "--comment=slurm_fair:v1,signal=USR2"],
            ("slurm_fair:v1,signal=USR2,gate=uts", True),
        ),
        ({"plain": '"leave"'}, ["--gpus=1", "--comment=slurm_fair:v0"], ("slurm_fair:v0", False)),
        ({"plain": '"revoke"'}, ["--gpus=1"], GATED),
        ({"interactive": '"gate"'}, ["--gpus=1"], GATED),
    ],
)
def test_a_site_says_what_plain_jobs_are(
    lab: Lab, folder: Path, settings: dict[str, str], words: list[str], expected: tuple[str, bool]
) -> None:
    settle(lab, **settings)
    assert gates(lab, folder, *words) == expected


def test_who_submits_a_job_that_cannot_save_is_told_what_it_waits_for(lab: Lab, folder: Path) -> None:
    told = lab.run("sbatch", "--gpus=1", "--wrap=true", cwd=folder).stderr
    assert "cannot save" in told
    assert "fair-sbatch" in told
    stamp = "--comment=slurm_fair:v1,signal=USR2"
    for quiet in (["--gpus=1", stamp], ["-n1"]):
        assert "slurm_fair" not in lab.run("sbatch", *quiet, "--wrap=true", cwd=folder).stderr
    settle(lab, plain='"revoke"')
    assert "slurm_fair" not in lab.run("sbatch", "--gpus=1", "--wrap=true", cwd=folder).stderr


@pytest.mark.parametrize(("interactive", "gated"), [('"leave"', False), ('"gate"', True)])
def test_an_interactive_job_is_gated_where_the_site_says_so(
    lab: Lab, folder: Path, interactive: str, gated: bool
) -> None:
    settle(lab, interactive=interactive)
    name = f"of-{gated}"
    argv = ["srun", "-Q", "-n1", "--gpus=1", "-J", name, "sleep", "30"]
    process = subprocess.Popen(argv, env=lab.env, stdin=subprocess.DEVNULL, cwd=folder)
    try:
        state = "PENDING" if gated else "RUNNING"
        row = ("squeue", "-h", "-n", name, "-o", "%T %k")
        until(lambda: lab.run(*row).stdout.startswith(state))
        assert ("slurm_fair:v0,gate=uts" in lab.run(*row).stdout) is gated
    finally:
        process.kill()
        process.wait(10)


def test_the_gate_of_a_job_opens_after_two_leases(lab: Lab, folder: Path) -> None:
    job = record(lab, submit(lab, folder, "--gpus=1"))
    assert int(job["EligibleTime"]) - int(job["SubmitTime"]) in (1799, 1800, 1801)


DUE = ("--gpus=1", "--time=1", "--deadline=now+900")


def test_a_deadline_before_the_gate_opens_is_no_reason_to_refuse_a_job_up_to_some_release(
    lab: Lab, folder: Path
) -> None:
    """sbatch compares it with its own --begin alone, and no Slurm tells the hook of it."""
    if Slurm(lab).release >= (24, 11):
        refused = lab.run("sbatch", *DUE, "--wrap=true", cwd=folder, check=False)
        assert "Requested time limit is invalid" in refused.stderr
        return
    job = record(lab, submit(lab, folder, *DUE))
    assert (job["JobState"], int(job["EligibleTime"]) - int(job["SubmitTime"]) > 1700) == ("PENDING", True)
    lab.run("scontrol", "update", f"jobid={job['JobId']}", "eligibletime=now+1")
    until(lambda: record(lab, job["JobId"])["JobState"] == "COMPLETED")


@pytest.mark.parametrize(
    ("gate", "more"),
    [('"hold"', ()), ('"begin"', ("--begin=now+300",))],
    ids=["hold", "a begin time of its own"],
)
def test_a_close_deadline_is_no_reason_to_refuse_a_job_on_any_release(
    lab: Lab, folder: Path, gate: str, more: tuple[str, ...]
) -> None:
    """The gate is a hold, or the job waits behind a nearer begin time, as `fair-sbatch` gives it."""
    settle(lab, gate=gate)
    assert record(lab, submit(lab, folder, *DUE, *more))["JobState"] == "PENDING"


@pytest.mark.parametrize(
    ("words", "reason", "comment"),
    [
        (["--gpus=1"], "JobHeldUser", "slurm_fair:v0,gate=hold"),
        (["--gpus=1", "-H"], "JobHeldUser", "(null)"),
        (["--gpus=1", "--begin=now+500"], "BeginTime", "slurm_fair:v0,begin=uts"),
        (
            ["--gpus=1", "--comment=x slurm_fair:v1,signal=USR2"],
            "JobHeldUser",
            "x slurm_fair:v1,signal=USR2,gate=hold",
        ),
    ],
)
def test_the_hold_gate_at_submission(
    lab: Lab, folder: Path, words: list[str], reason: str, comment: str
) -> None:
    settle(lab, gate='"hold"')
    job = submit(lab, folder, *words)
    until(lambda: record(lab, job)["Reason"] != "None")
    said = re.sub(r"uts\d+", "uts", record(lab, job)["Comment"])
    assert (record(lab, job)["Reason"], said) == (reason, comment)


def said_by_a_controller(file: Path, state: DaemonState, ago: float) -> None:
    """The file that a controller with looks every ten seconds wrote so long ago."""
    file.write_text(Health(time.time() - ago, 10.0, time.time() - ago, state).text())


@pytest.mark.parametrize(
    ("state", "ago", "holds"),
    [
        (DaemonState.ACTING, 0, True),
        (DaemonState.ACTING, 80, True),
        (DaemonState.ACTING, 120, False),
        (DaemonState.ACTING, -1, True),
        (DaemonState.ACTING, -3600, False),  # it died, and the clock was set back since
        (DaemonState.STOPPED, 0, False),
        (DaemonState.BLIND, 0, False),
        (DaemonState.PAUSED, 0, False),
        (None, 0, False),
    ],
)
def test_the_hook_holds_no_job_while_no_controller_acts(
    lab: Lab, folder: Path, state: DaemonState | None, ago: float, holds: bool
) -> None:
    """A hold does not end by itself: nobody but a controller would ever open it."""
    file = folder / "health.json"
    if state is not None:
        said_by_a_controller(file, state, ago)
    settle(lab, gate='"hold"', health=f'"{file}"')
    job = record(lab, submit(lab, folder, "--gpus=1"))
    assert (job["Comment"] == "slurm_fair:v0,gate=hold", job["Priority"] == "0") == (holds, holds)


def test_interactive_jobs_start_at_once_under_both_gates(lab: Lab, folder: Path) -> None:
    for gate in ('"begin"', '"hold"'):
        settle(lab, gate=gate)
        assert lab.run("srun", "--gpus=1", "echo", "here", cwd=folder, timeout_seconds=30).stdout == "here\n"


def test_a_heterogeneous_job_is_left_alone(lab: Lab, folder: Path) -> None:
    job = lab.run(
        "sbatch", "--parsable", "--gpus=1", ":", "--gpus=1", "--wrap=true", cwd=folder
    ).stdout.strip()
    assert record(lab, job)["Comment"] == "(null)"


def test_a_job_that_names_another_qos_is_left_alone(lab: Lab, folder: Path) -> None:
    settle(lab, qos='{"high"}')
    assert gates(lab, folder, "--gpus=1") == GATED  # which QOS it gets the hook is not shown
    settle(lab, qos='{"normal"}')
    assert gates(lab, folder, "--gpus=1", "--qos=normal") == GATED
    settle(lab, qos='{"high"}')
    assert gates(lab, folder, "--gpus=1", "--qos=normal") == ("", False)


def test_an_error_in_the_gate_lets_the_job_pass(lab: Lab, folder: Path) -> None:
    settle(lab, gate_seconds='"many"')
    assert gates(lab, folder, "--gpus=1") == ("", False)


def test_a_long_comment_keeps_nobody_waiting(lab: Lab, folder: Path) -> None:
    """Slurm asks the hook before it refuses such a comment, and does nothing else meanwhile."""
    comment = "slurm_fair:v0" * 40_000
    script = f"#!/bin/sh\n#SBATCH --comment={comment}\n#SBATCH --gpus=1 --begin=now+3600\ntrue\n"
    refused = lab.run("sbatch", input=script, cwd=folder, check=False, timeout_seconds=20)
    assert "too long" in refused.stderr


HARD_TEXTS = (
    "a b",
    "a#b # c",
    'q"uo"te\'s',
    "back\\slash",
    "$x `y` $(z)",
    "a;b|c&d",
    "tab\there",
    "日本 x",
    ":: a::",
)


@pytest.mark.parametrize("text", HARD_TEXTS)
def test_sbatch_reads_every_directive_back(lab: Lab, folder: Path, text: str) -> None:
    script = f"#!/bin/sh\n#SBATCH --comment={directive(text)}\n#SBATCH --hold\ntrue\n"
    job = lab.run("sbatch", "--parsable", input=script, cwd=folder).stdout.strip()
    assert record(lab, job)["Comment"] == text
