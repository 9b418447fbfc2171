"""Two ordinary users on a real Slurm: what one puts into folders of both moves nothing of the other's."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slurm_fair.lab import Lab, LabSpec, available
from slurm_fair_templates import Options, wrap
from tests.slurm.listing import wait_until

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(available() is not None, reason=str(available())),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as another user"),
]
ALICE, BOB = "games", "news"
NOWHERE = (Path("/nonexistent/user"), Path("/nonexistent/site"))
JOBS = 6  # of each kind
PYTHON = "/usr/bin/python3"  # one that users can run
SPEC = LabSpec(
    nodes=2,
    gpus_per_node=16,
    database=False,
    users={ALICE: (), BOB: ()},
    settings={"JobRequeue": "1", "KillWait": "5"},
)
# What a bad neighbour has run, if any of it is.
PAYLOAD = "import os; open({mark!r}, 'a').write(f'{{os.getuid()}}\\n')"
# As fast as it can: whatever appears in the folder of a job, or beside it, is exchanged.
ATTACKER = """
import contextlib, itertools, os, sys
work, mark, first, last = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
python = f"import os; open({mark!r}, 'a').write(f'{{os.getuid()}}\\\\n')"
shell = f"#!/bin/sh\\nid -u >> {mark}\\n"
ack = '{"v": 1, "what": "ack", "job": "%d", "restart": 0, "request": 1, "saved": true, "time": %d}'
def put(path, text, mode=0o755):
    with contextlib.suppress(OSError):
        with open(path, "w") as file: file.write(text)
        os.chmod(path, mode)
def trap(folder, job):
    with contextlib.suppress(OSError): os.mkdir(folder); os.chmod(folder, 0o777)
    with contextlib.suppress(OSError): os.mkdir(folder + "/script")
    put(folder + "/script/__main__.py", python)
    put(folder + "/ack.json", ack % (job, 4_000_000_000))
for turn in itertools.count():
    with contextlib.suppress(OSError): os.rename(f"{work}/.slurm-fair", f"{work}/away{turn}.{os.getpid()}")
    with contextlib.suppress(OSError): os.mkdir(f"{work}/.slurm-fair"); os.chmod(f"{work}/.slurm-fair", 0o777)
    for job in range(first, last):
        trap(f"{work}/.slurm-fair/{job}", job)
        put(f"{work}/.slurm-fair/{job}/script.new", shell)
        with contextlib.suppress(OSError):
            os.rename(f"{work}/.slurm-fair/{job}/script.new", f"{work}/.slurm-fair/{job}/script")
    for name in os.listdir("/tmp"):
        if name.startswith("tmp."):
            put(f"/tmp/{name}", shell)
            with contextlib.suppress(OSError): os.rename(f"/tmp/{name}", f"/tmp/bob{turn}")
            put(f"/tmp/{name}/script", shell)
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Two nodes, two ordinary users."""
    with Lab(spec=SPEC) as private:
        yield private


@pytest.fixture
def work(lab: Lab) -> Iterator[Path]:
    """A working folder that everybody may write in; no job outlives the test."""
    folder = lab.folder / f"work{time.monotonic_ns()}"
    folder.mkdir()
    folder.chmod(0o777)
    yield folder
    lab.run("scancel", "-u", ALICE, check=False)
    wait_until(lambda: not lab.run("squeue", "-h", "-t", "R,PD,CG").stdout, 30, "the queue is empty")


@contextmanager
def attacked(work: Path, mark: Path, first: int) -> Iterator[None]:
    """Bob at work on the folders of the next jobs, with three processes."""
    words = [str(work), str(mark), str(first), str(first + 2 * JOBS + 2)]
    bob = ["setpriv", f"--reuid={BOB}", f"--regid={BOB}", "--clear-groups", PYTHON, "-I", "-c", ATTACKER]
    running = [subprocess.Popen([*bob, *words], cwd="/", stderr=subprocess.DEVNULL) for _ in range(3)]
    try:
        time.sleep(0.5)
        yield
        assert [process.poll() for process in running] == [None] * 3, "the attack ended before its time"
    finally:
        for process in running:
            process.kill()
            process.wait()


def submit(lab: Lab, work: Path, script: str, options: Options | None = None, *words: str) -> str:
    """Alice's job, by the unchanged template; its id."""
    file = lab.folder / f"batch{time.monotonic_ns()}.sh"
    file.write_text(wrap(script, (), options or Options(gate="none"), NOWHERE))
    file.chmod(0o644)
    argv = ("sbatch", "--parsable", "--requeue", "--open-mode=append", "--gpus=1", *words, str(file))
    return lab.run(*argv, user=ALICE, cwd=work).stdout.strip()


def state(lab: Lab, job: str) -> str:
    """R, PD, CG, CD, ..."""
    return lab.run("squeue", "-h", "-t", "all", "-j", job, "-o", "%t").stdout.strip()


def done(out: Path, jobs: list[str]) -> dict[str, str]:
    """The output of alice's jobs of themselves."""
    return {job: (out / job).read_text().strip() for job in jobs if (out / job).exists()}


def alices_folder(lab: Lab) -> Path:
    """A folder in which nobody else may write."""
    out = lab.folder / f"alice{time.monotonic_ns()}"
    out.mkdir()
    shutil.chown(out, ALICE)
    return out


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_nobody_elses_code_runs_as_the_jobs_user_and_all_jobs_finish(lab: Lab, work: Path, mode: int) -> None:
    work.chmod(mode)
    out, mark = alices_folder(lab), lab.folder / f"mark{mode:o}"
    mark.touch()
    mark.chmod(0o666)
    shell = f"#!/bin/bash\nsleep 0.3\necho mine > {out}/$SLURM_JOB_ID\n"
    python = f"#!{PYTHON}\nimport os, time\ntime.sleep(0.3)\n"
    python += f"open('{out}/' + os.environ['SLURM_JOB_ID'], 'w').write('mine')\n"
    first = int(submit(lab, work, "#!/bin/sh\ntrue\n")) + 1
    with attacked(work, mark, first):
        jobs = [submit(lab, work, script) for _ in range(JOBS) for script in (shell, python)]
        wait_until(lambda: len(done(out, jobs)) == len(jobs), 90, "alice's jobs have run")
    assert set(done(out, jobs).values()) == {"mine"}
    assert mark.read_text() == "", "somebody ran bob's code"


def test_a_trap_that_lies_there_before_the_job_runs_nothing(lab: Lab, work: Path) -> None:
    out, mark = alices_folder(lab), lab.folder / "mark"
    mark.touch()
    mark.chmod(0o666)
    python = f"#!{PYTHON}\nimport os\nopen('{out}/' + os.environ['SLURM_JOB_ID'], 'w').write('mine')\n"
    first = int(submit(lab, work, "#!/bin/sh\ntrue\n")) + 1
    wait_until(lambda: state(lab, str(first - 1)) == "CD", 20, "the first job has run")
    shutil.rmtree(work / ".slurm-fair")
    for job in range(first, first + 3):
        trap = work / ".slurm-fair" / str(job) / "script"
        trap.mkdir(parents=True)
        (trap / "__main__.py").write_text(PAYLOAD.format(mark=str(mark)))
    for place in (work / ".slurm-fair", *(work / ".slurm-fair").rglob("*")):
        shutil.chown(place, BOB)
        place.chmod(0o777)
    jobs = [submit(lab, work, python) for _ in range(3)]
    assert jobs[0] == str(first)
    wait_until(lambda: all(state(lab, job) in ("CD", "F") for job in jobs), 30, "alice's jobs have run")
    assert mark.read_text() == "", "somebody ran bob's code"
    assert set(done(out, jobs).values()) == {"mine"}


def test_a_folder_that_bob_made_first_is_not_used_and_the_job_is_heard_by_its_comment(
    lab: Lab, work: Path
) -> None:
    (work / ".slurm-fair").mkdir()
    (work / ".slurm-fair").chmod(0o777)
    shutil.chown(work / ".slurm-fair", BOB)
    options = Options(gate="none", checkpoint_command="true", grace_seconds=30)
    job = submit(lab, work, "#!/bin/sh\nsleep 60\n", options)
    output = work / f"slurm-{job}.out"
    wait_until(lambda: output.exists() and "alone" in output.read_text(), 20, "the job says what is wrong")
    lab.run("scancel", "--batch", "--signal=USR2", job)
    heard = lambda: "slurm_fair_ack:job=" in lab.run("squeue", "-h", "-j", job, "-o", "%k").stdout  # noqa: E731
    wait_until(heard, 20, "the answer stands in the comment")
    assert list((work / ".slurm-fair").iterdir()) == []
    assert f"{work}/.slurm-fair/{job} is not this user's alone" in output.read_text()


# Loaded as root, because Python often lies where only root can read; the rights are given away then. The reader
# is a process of the account itself.
OPERATOR = """
import json, os, pwd, sys, time
from dataclasses import replace
from pathlib import Path
import numpy
from slurm_fair.config.tree import from_tree
from slurm_fair.model import Blind, parse_label
from slurm_fair.slurm.reading import messages, readers
from slurm_fair.slurm.cluster import SlurmCluster
from slurm_fair.slurm.command import Commands
from tests.support.fake_cluster import MemoryJournal
conf, account, python, job, asked, seconds, user, work = sys.argv[1:]
entry = pwd.getpwnam(account)
os.setgroups([]); os.setgid(entry.pw_gid); os.setuid(entry.pw_uid)
os.chdir("/")
journal = MemoryJournal()
processes = readers.Readers((python, "-I", "-S", messages.__file__))
cluster = SlurmCluster(
    Commands(Path(conf), 20.0), from_tree({}, "test").cluster, time.time, journal, journal, processes
)
key, end = parse_label(job), float(asked) + float(seconds)
while time.time() < end:
    seen = cluster.observe({key: float(asked)})
    assert not isinstance(seen, Blind), seen
    answer = seen.jobs.acknowledged[seen.jobs.key == key].tolist()
    if answer != [0]:
        break
    time.sleep(0.1)
took = time.time() - float(asked)
print(json.dumps([answer, took, processes.complaints({0: messages.Wanted(user, work, job)})[0]]))
"""
HEARD_SECONDS = 15  # much less than the grace, also on a busy machine


@pytest.mark.parametrize(
    ("where", "mode", "by"),
    [("an open folder", 0o755, "file"), ("a closed home", 0o700, "comment")],
)
def test_an_operator_without_capabilities_hears_the_answer_of_another_users_job(
    lab: Lab, where: str, mode: int, by: str
) -> None:
    work = alices_folder(lab)
    work.chmod(mode)
    script = "#!/bin/bash\necho ready\nsleep 100\n"
    job = submit(
        lab, work, script, Options(gate="none", checkpoint_command="true"), "--comment=slurm_fair:v1"
    )
    output = work / f"slurm-{job}.out"
    wait_until(lambda: output.exists() and "ready" in output.read_text(), 20, "the job runs")
    asked = str(time.time())
    lab.run("scancel", "--batch", "--signal=USR2", job)
    words = [str(lab.conf), "daemon", PYTHON, job, asked, str(HEARD_SECONDS), ALICE, str(work)]
    argv = [sys.executable, "-c", OPERATOR, *words]
    root = Path(__file__).parents[2]
    done = subprocess.run(
        argv,
        env={**lab.env, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (answer, seconds, why) = json.loads(done.stdout)
    print(f"{where}: heard after {seconds:.1f} s")
    assert answer == [1], where
    assert why == ("" if by == "file" else f"{work}/.slurm-fair is closed to this account")
    comment = lab.run("squeue", "-h", "-j", job, "-o", "%k").stdout
    told = re.search(r"slurm_fair_ack:.*time=([0-9]+)", comment)
    if by == "comment":
        assert told, comment
    elif told:  # nobody requeued it for three seconds, so that it could not know that its file was read
        assert int(told[1]) >= int(float(asked)) + 3, comment
    lab.run("scancel", job)
