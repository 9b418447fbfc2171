"""The lab itself: it comes up, behaves like a cluster, obeys the fault switches and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import slurm_fair
from slurm_fair.errors import InputError, LabError
from slurm_fair.lab import Lab, LabSpec, NodeGroup, available
from slurm_fair.lab.ports import name_is_loopback
from slurm_fair.lab.sweep import lab_processes

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(available() is not None, reason=str(available())),
]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as another user")
PLAIN = LabSpec(nodes=2, database=False, settings={"MessageTimeout": "2"})
NAMESPACES = ("unshare", "--uts", "--mount")
SYSTEM_PYTHON = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin")


def may_rename_the_machine() -> bool:
    """True where this process may give itself another host name and /etc/hosts; no other process sees them."""
    if shutil.which(NAMESPACES[0]) is None:
        return False
    probe = [*NAMESPACES, "sh", "-c", "hostname elsewhere && mount --bind /etc/hostname /etc/hosts"]
    return subprocess.run(probe, capture_output=True, timeout=10).returncode == 0


def wait_for(what: Callable[[], bool], seconds: float = 20.0) -> None:
    """Poll until it holds; the assertion shows what was waited for."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, f"still not after {seconds} s: {what}"
        time.sleep(0.05)


def submit(lab: Lab, *arguments: str, user: str | None = None) -> str:
    """The job id of a new batch job."""
    return lab.run("sbatch", "--parsable", *arguments, user=user).stdout.strip()


def field(lab: Lab, job: str, letter: str) -> str:
    """One column of squeue for a job, finished ones included."""
    return lab.run("squeue", "-h", "-t", "all", "-j", job, "-o", f"%{letter}").stdout.strip()


def listening(ports: range) -> dict[int, str]:
    """Port -> local address, in the kernel's own notation, of everything that listens on these ports."""
    found = {}
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            address, _, port = line.split()[1].rpartition(":")
            if line.split()[3] == "0A" and int(port, 16) in ports:
                found[int(port, 16)] = address
    return found


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """One lab with a database for everything that does not break it."""
    users = {"games": ("nlp",), "nobody": ("vision", "nlp")} if os.geteuid() == 0 else {}
    with Lab(spec=LabSpec(users=users, operators=("daemon",) if users else ())) as running:
        yield running


def test_a_job_gets_eight_typed_gpus_on_the_node_it_is_pinned_to_and_sacct_remembers(lab: Lab) -> None:
    script = "echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES"
    job = submit(lab, "-A", "speech", "--gpus=a100:8", "-w", "n3", "-o", "pinned.txt", "--wrap", script)
    wait_for(lambda: field(lab, job, "T") == "COMPLETED")
    assert (lab.folder / "work" / "pinned.txt").read_text() == "n3 0,1,2,3,4,5,6,7\n"

    def recorded() -> str:
        return lab.run("sacct", "-nPX", "-j", job, "-o", "state,account,nodelist,alloctres").stdout

    wait_for(lambda: recorded().startswith("COMPLETED|speech|n3|"))
    assert "gres/gpu=8" in recorded()


def test_nodes_share_their_gpus_among_jobs_and_refuse_the_ninth(lab: Lab) -> None:
    jobs = [submit(lab, "--gpus=4", "-w", "n1", "-o", "/dev/null", "--wrap", "sleep 60") for _ in range(3)]
    wait_for(lambda: [field(lab, job, "t") for job in jobs] == ["R", "R", "PD"])
    lab.run("scancel", *jobs)
    with pytest.raises(LabError, match="Requested node configuration is not available"):
        submit(lab, "--gpus-per-node=9", "--wrap", "true")


def test_tenants_have_the_shares_that_were_asked_for(lab: Lab) -> None:
    said = lab.run("sacctmgr", "-nP", "show", "assoc", "format=account,user,fairshare").stdout.split()
    assert {"vision||1", "nlp||1", "speech||2"} <= set(said)


def test_every_daemon_listens_on_the_loopback_interface_only_if_the_machines_name_allows_it(lab: Lab) -> None:
    conf = dict(line.split("=", 1) for line in lab.conf.read_text().splitlines())
    first = int(conf["SlurmctldPort"])
    found = listening(range(first, first + 3 + len(lab.node_names)))
    assert len(found) == 3 + len(lab.node_names)
    assert found.pop(first + 2) == "0100007F", "MariaDB"
    assert set(found.values()) == {"0100007F" if name_is_loopback() else "00000000"}


@needs_root
def test_a_job_of_another_user_runs_as_that_user(lab: Lab) -> None:
    job = submit(lab, "-o", "who.txt", "--wrap", "id -un", user="games")
    wait_for(lambda: field(lab, job, "T") == "COMPLETED")
    assert (lab.folder / "work" / "who.txt").read_text() == "games\n"
    assert field(lab, job, "a") == "nlp"


@needs_root
def test_only_members_may_charge_a_tenant(lab: Lab) -> None:
    with pytest.raises(LabError, match="Invalid account"):
        submit(lab, "-A", "speech", "--wrap", "true", user="games")


@needs_root
def test_an_operator_holds_the_jobs_of_others_and_nobody_else_does(lab: Lab) -> None:
    job = submit(lab, "-H", "-o", "/dev/null", "--wrap", "true", user="games")
    refused = lab.run("scontrol", "hold", job, user="nobody", check=False)
    assert refused.returncode != 0
    lab.run("scontrol", "hold", job, user="daemon")
    assert field(lab, job, "r") == "JobHeldAdmin"
    lab.run("scancel", job)


def test_a_killed_controller_comes_back() -> None:
    with Lab(spec=PLAIN) as lab:
        lab.kill("slurmctld")
        assert lab.run("scontrol", "ping", check=False).returncode != 0
        lab.revive("slurmctld")
        lab.wait_idle_nodes()
        job = submit(lab, "-o", "/dev/null", "--wrap", "true")
        wait_for(lambda: field(lab, job, "T") == "COMPLETED")


def test_a_controller_that_ends_in_good_order_keeps_its_jobs() -> None:
    with Lab(spec=PLAIN) as lab:
        job = submit(lab, "-H", "-o", "/dev/null", "--wrap", "true")
        lab.halt("slurmctld")
        lab.revive("slurmctld")
        assert field(lab, job, "r") == "JobHeldUser"


def test_a_frozen_controller_answers_nothing_until_it_is_thawed() -> None:
    with Lab(spec=PLAIN) as lab:
        lab.freeze("slurmctld")
        with pytest.raises(LabError, match="took longer than"):
            lab.run("squeue", timeout_seconds=1)
        lab.thaw("slurmctld")
        wait_for(lambda: lab.run("squeue", check=False).returncode == 0)


def test_one_node_can_be_killed_and_the_others_go_on() -> None:
    with Lab(spec=PLAIN) as lab:
        lab.kill("slurmd", "n1")
        job = submit(lab, "-w", "n2", "-o", "/dev/null", "--wrap", "true")
        wait_for(lambda: field(lab, job, "T") == "COMPLETED")
        lab.revive("slurmd", "n1")
        lab.wait_idle_nodes()
        with pytest.raises(LabError, match="the lab has no slurmd-n9"):
            lab.kill("slurmd", "n9")


def test_without_a_database_jobs_run_and_sacct_says_why_it_cannot() -> None:
    with Lab(spec=PLAIN) as lab:
        job = submit(lab, "-A", "anything", "--gpus=a100:1", "-o", "/dev/null", "--wrap", "true")
        wait_for(lambda: field(lab, job, "T") == "COMPLETED")
        assert "accounting storage is disabled" in lab.run("sacct", check=False).stderr
        assert not (lab.folder / "db").exists()


def test_a_stopped_lab_leaves_neither_process_nor_folder_even_with_a_job_that_hides() -> None:
    with Lab(spec=PLAIN) as lab:
        job = submit(lab, "-o", "/dev/null", "--wrap", "setsid sleep 600 & sleep 600")
        wait_for(lambda: field(lab, job, "T") == "RUNNING")
        wait_for(lambda: len(lab_processes(lab.folder)) >= 7)
    assert lab_processes(lab.folder) == ()
    assert not lab.folder.exists()


def test_two_labs_that_start_at_once_do_not_meet() -> None:
    labs = (Lab(spec=LabSpec(nodes=1)), Lab(spec=LabSpec(nodes=20, database=False)))
    with ThreadPoolExecutor() as pool:
        list(pool.map(Lab.start, labs))
    try:
        job = submit(labs[0], "-H", "--wrap", "true")
        assert field(labs[0], job, "r") == "JobHeldUser"
        assert labs[1].run("squeue", "-h").stdout == ""
        assert len(labs[1].run("sinfo", "-h", "-N").stdout.splitlines()) == 20
    finally:
        for lab in labs:
            lab.stop()
    assert [lab_processes(lab.folder) for lab in labs] == [(), ()]
    assert not any(lab.folder.exists() for lab in labs)


def test_a_lab_whose_owner_is_killed_ends_by_itself() -> None:
    program = (
        "import os, signal\n"
        "from slurm_fair.lab import Lab, LabSpec\n"
        "lab = Lab(spec=LabSpec(nodes=1, database=False))\n"
        "lab.start()\n"
        "print(lab.folder, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    root = Path(slurm_fair.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=60
    )
    folder = Path(done.stdout.strip())
    assert folder.name.startswith("lab-"), done.stderr
    wait_for(lambda: lab_processes(folder) == () and not folder.exists())


def test_a_given_folder_stays_and_starts_again_with_its_jobs() -> None:
    with tempfile.TemporaryDirectory(prefix="lab-kept-") as folder:
        spec = LabSpec(nodes=1, database=False)
        with Lab(Path(folder), spec) as lab:
            job = submit(lab, "-H", "-o", "/dev/null", "--wrap", "true")
        assert lab_processes(Path(folder)) == ()
        with Lab(Path(folder), spec) as again:
            again.run("scontrol", "release", job)
            wait_for(lambda: field(again, job, "T") == "COMPLETED")


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    short = Path(tempfile.gettempdir(), f"lab-link-{os.getpid()}")
    short.symlink_to(tmp_path)
    try:
        with pytest.raises(InputError, match="holds something else: choose an empty folder"):
            Lab(short, PLAIN).start()
    finally:
        short.unlink()
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_path_too_long_for_sockets_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too long a path for Unix sockets: choose a shorter one"):
        Lab(tmp_path / ("x" * 100), PLAIN).start()


def test_a_submission_hook_decides_about_jobs(tmp_path: Path) -> None:
    hook = tmp_path / "hook.lua"
    hook.write_text(
        "function slurm_job_submit(job_desc, part_list, submit_uid)\n"
        "  if job_desc.name == 'unwanted' then return slurm.ERROR end\n"
        "  job_desc.comment = 'seen by the hook'\n"
        "  return slurm.SUCCESS\n"
        "end\n"
        "function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)\n"
        "  return slurm.SUCCESS\n"
        "end\n"
    )
    with Lab(spec=LabSpec(nodes=1, database=False, job_submit=hook)) as lab:
        job = submit(lab, "-H", "--wrap", "true")
        assert field(lab, job, "k") == "seen by the hook"
        with pytest.raises(LabError, match="Batch job submission failed"):
            submit(lab, "-H", "-J", "unwanted", "--wrap", "true")


def test_groups_of_nodes_and_partitions_are_as_asked_for() -> None:
    spec = LabSpec(
        node_types=(NodeGroup(2, 8, "a100"), NodeGroup(1, 4, "h100", cpus=16), NodeGroup(1, gpus=0)),
        partitions={"gpu": ("n[1-3]",), "cpu": ("n4",)},
        database=False,
    )
    with Lab(spec=spec) as lab:
        said = lab.run("sinfo", "-h", "-N", "-o", "%N %P %G %c").stdout.split("\n")
        assert [" ".join(line.split()) for line in said if line] == [
            "n1 gpu* gpu:a100:8 64",
            "n2 gpu* gpu:a100:8 64",
            "n3 gpu* gpu:h100:4 16",
            "n4 cpu (null) 64",
        ]
        job = submit(lab, "--gpus=h100:4", "-o", "/dev/null", "--wrap", "true")
        wait_for(lambda: field(lab, job, "T") == "COMPLETED")
        assert field(lab, job, "N") == "n3"


def test_a_lab_that_cannot_start_says_why_in_one_line_and_leaves_no_process() -> None:
    lab = Lab(spec=LabSpec(nodes=1, database=False, settings={"SelectType": "select/none_such"}))
    with pytest.raises(LabError, match=r"slurmctld ended at once: .*none_such") as caught:
        lab.start()
    assert "\n" not in str(caught.value)
    assert lab_processes(lab.folder) == ()
    assert (lab.folder / "log" / "slurmctld.log").exists()
    shutil.rmtree(lab.folder)


def test_an_error_inside_the_block_keeps_the_logs_and_says_where(capsys: pytest.CaptureFixture[str]) -> None:
    lab = Lab(spec=PLAIN)
    with pytest.raises(RuntimeError, match="of the test"), lab:
        raise RuntimeError("of the test")
    assert capsys.readouterr().err == f"lab: logs kept in {lab.folder}/log\n"
    assert lab_processes(lab.folder) == ()
    assert (lab.folder / "log" / "slurmctld.log").exists()
    shutil.rmtree(lab.folder)


def test_the_lab_forgets_what_the_environment_says_of_another_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_JOB_ID", "SBATCH_ACCOUNT", "SQUEUE_FORMAT", "SLURM_CONF"):
        monkeypatch.setenv(name, "foreign")
    lab = Lab(spec=PLAIN)
    assert "foreign" not in lab.env.values()
    assert lab.env["SLURM_CONF"] == str(lab.conf)


@needs_root
@pytest.mark.skipif(not may_rename_the_machine(), reason="needs namespaces of its own")
@pytest.mark.parametrize(
    ("hosts", "loopback_only"),
    [
        ("127.0.0.1 localhost\n127.0.1.1 elsewhere\n", False),
        ("127.0.0.1 localhost elsewhere\n", True),
        ("127.0.0.1 localhost\n", False),
        ("127.0.0.1 localhost\n192.0.2.7 elsewhere\n", False),
    ],
    ids=["Debian's 127.0.1.1", "loopback", "no address", "an address of another machine"],
)
def test_the_name_of_the_machine_may_mean_anything(hosts: str, loopback_only: bool, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text(hosts)
    program = (
        "from slurm_fair.lab import Lab, LabSpec\n"
        "with Lab(spec=LabSpec(nodes=2, database=False)) as lab:\n"
        "    print('this machine only' in lab.describe())\n"
        "    print(lab.run('srun', '-N2', 'hostname', timeout_seconds=20).stdout, end='')\n"
    )
    script = 'hostname elsewhere && mount --bind "$1" /etc/hosts && exec "$2" -c "$3"'
    done = subprocess.run(
        [*NAMESPACES, "sh", "-c", script, "sh", str(tmp_path / "hosts"), sys.executable, program],
        cwd=Path(slurm_fair.__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.stdout == f"{loopback_only}\nelsewhere\nelsewhere\n", done.stderr


@needs_root
@pytest.mark.skipif(SYSTEM_PYTHON is None, reason="needs a Python that every user may run")
def test_an_ordinary_user_has_a_lab_with_database_twice_in_one_folder() -> None:
    program = (
        "from pathlib import Path\n"
        "from slurm_fair.lab import Lab, LabSpec\n"
        "for _ in range(2):\n"
        "    with Lab(Path('lab'), LabSpec(nodes=1)) as lab:\n"
        "        print(lab.run('srun', '-A', 'nlp', '--gpus=1', 'id', '-un').stdout, end='')\n"
    )
    with tempfile.TemporaryDirectory(prefix="lab-user-") as folder:
        shutil.chown(folder, "games", "games")
        Path(folder).chmod(0o755)
        shutil.copytree(Path(slurm_fair.__file__).parent, Path(folder, "slurm_fair"))
        done = subprocess.run(
            [str(SYSTEM_PYTHON), "-B", "-c", program],
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", "HOME": "/tmp"},
            user="games",
            group="games",
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.stdout == "games\ngames\n", done.stderr
