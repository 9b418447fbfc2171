"""Nobody gains by a way round the turns: each way beside a control in which both accounts play by the rules."""

from __future__ import annotations

import os
import re
import signal
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from slurm_fair.lab import Lab, LabSpec, available
from tests.slurm.harness import Site
from tests.support.proofs import proved

pytestmark = pytest.mark.slurm
PLUGIN = Path(__file__).parents[2] / "plugins" / "slurm"
HONEST, OTHER = "vision", "nlp"
CHEAT = "games"  # the Unix user of the other account: no admin, and not the controller's account
JOBS = 12  # of each account, on eight GPUs
TERM = float(os.environ.get("SLURM_FAIR_CHEAT_TERM", "20"))
RUNS = int(os.environ.get("SLURM_FAIR_CHEAT_RUNS", "3"))
LEASES = 15
TOLERANCE = 0.05
LEASE = {"term": TERM, "interval": 0.5, "grace": 4, "start_timeout": 8}
_GPUS = re.compile(r"gres/gpu=([0-9]+)")
Way = Callable[[Site, ExitStack], None]


EMPTY_LUA = """
function slurm_job_submit() return slurm.SUCCESS end
function slurm_job_modify() return slurm.SUCCESS end
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Two nodes with four GPUs, a feature that both have, and the submit hook, which gates interactive jobs."""
    if (reason := available()) is not None:
        pytest.skip(reason)
    empty = tmp_path_factory.mktemp("lua") / "job_submit.lua"
    empty.write_text(EMPTY_LUA)
    spec = LabSpec(
        nodes=2, gpus_per_node=4, tenants={HONEST: 1, OTHER: 1}, users={CHEAT: (OTHER,)}, job_submit=empty
    )
    with Lab(spec=spec) as private:
        (private.folder / "slurm_fair_gate.lua").write_bytes((PLUGIN / "slurm_fair_gate.lua").read_bytes())
        text = (
            (PLUGIN / "job_submit.lua")
            .read_text()
            .replace("gate_seconds = 1800", f"gate_seconds = {2 * TERM:.0f}")
        )
        hook = private.folder / "job_submit.lua"
        hook.write_text(text.replace('interactive = "leave"', 'interactive = "gate"'))
        os.utime(hook, (time.time() + 2, time.time() + 2))  # slurmctld reads a file again if it is newer
        for node in ("n1", "n2"):
            private.run("scontrol", "update", f"nodename={node}", "availablefeatures=f1", "activefeatures=f1")
        yield private


def batch(*options: str, stamped: bool = True, asks: str = "--gres=gpu:1") -> Way:
    """Jobs of sbatch with these options."""

    def submit(site: Site, stack: ExitStack) -> None:
        for _ in range(JOBS):
            send(site, *options, stamped=stamped, asks=asks)

    return submit


def send(site: Site, *options: str, stamped: bool = True, asks: str = "--gres=gpu:1") -> str:
    """Submit one job of the other account; its id."""
    gated = stamped and not any(option.startswith("--begin") for option in options)
    words = (asks, *options)
    return site.submit(*words, tenant=OTHER, user=CHEAT, stamped=stamped, gated=gated).label


def interactive(site: Site, stack: ExitStack) -> None:
    """So many sruns side by side."""
    for _ in range(JOBS):
        argv = ["srun", "-Q", "-n1", "-A", OTHER, "--gres=gpu:1", "-t", "60", "sleep", "3600"]
        process = as_cheat(site, argv)
        stack.callback(process.wait, 10)
        stack.callback(process.kill)


def as_cheat(site: Site, argv: Sequence[str]) -> subprocess.Popen[bytes]:
    """A process of the other account's user, in a process group of its own."""
    return subprocess.Popen(
        argv, env=site.lab.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        cwd="/", user=CHEAT, group=CHEAT, extra_groups=(), start_new_session=True,
    )  # fmt: skip


def again_and_again(script: str, *options: str, jobs: int = JOBS, stamped: bool = True) -> Way:
    """Jobs, and beside them a loop of commands: `$jobs` are their ids, as scontrol takes them."""

    def submit(site: Site, stack: ExitStack) -> None:
        ids = ",".join(send(site, *options, stamped=stamped) for _ in range(jobs))
        of_state = f"of() {{ squeue -h -u {CHEAT} -t $1 -o %i | paste -sd,; }}"
        process = as_cheat(site, ["bash", "-c", f"jobs={ids}; {of_state}; while :; do {script}; done"])
        stack.callback(process.wait, 10)
        stack.callback(os.killpg, process.pid, signal.SIGKILL)

    return submit


def sent_anew(site: Site, stack: ExitStack) -> None:
    """Jobs that begin in a second, each of which is taken back and sent anew until it starts."""
    ended = threading.Event()

    def go_on() -> None:
        while not ended.wait(0.3):
            waiting = ("--state=PENDING", f"--user={CHEAT}")
            site.lab.run("scancel", *waiting, user=CHEAT, check=False)
            for _ in range(4):
                send(site, "--begin=now+1")

    sender = threading.Thread(target=go_on)
    sender.start()
    stack.callback(sender.join, 30)
    stack.callback(ended.set)


MOVE = "scontrol update jobid=$jobs starttime=now; sleep 0.2"
RELEASE = "waits=$(of PD); scontrol hold $waits; sleep 0.2; scontrol release $waits; sleep 0.1"
REQUEUE = (
    f"scontrol requeue $(of R); sleep 0.5; scontrol update jobid=$jobs starttime=now; sleep {TERM / 2:g}"
)
KEEP = "scontrol update jobid=$(of R) requeue=0; sleep 0.2"
ONE = f"scontrol update jobid=$(of PD | cut -d, -f1) starttime=now; sleep {TERM:g}"
STOP = "scancel --signal=STOP $(of R | tr , ' '); sleep 0.5"
# A job without GPUs is nobody's to gate; it asks for its GPU when it is in the queue, and is released.
GROW = f"""
if [ $(squeue -h -u {CHEAT} | wc -l) -lt {JOBS} ]; then
    id=$(sbatch --parsable -H -A {OTHER} -n1 -t 60 -o /dev/null --wrap "sleep 3600")
    scontrol update jobid=$id gres=gres:gpu:1; scontrol release $id
else
    sleep 1
fi"""
WAYS: Mapping[str, Way] = {
    "srun, which the site gates": interactive,
    "a feature that all nodes have": batch("-C", "f1"),
    "plain sbatch": batch("-t", "60", stamped=False),
    "--exclusive with one GPU": batch("--exclusive"),
    "--no-requeue": batch("--no-requeue", "-t", "60"),
    "--deadline just behind --time": batch("-t", "60", "--deadline=now+3700"),
    "a loop of scontrol update starttime=now": again_and_again(MOVE),
    "plain sbatch and starttime=now on one job a lease": again_and_again(ONE, "-t", "60", stamped=False),
    "whole nodes without a word of GPUs": batch("--exclusive", "-t", "60", stamped=False, asks="-n1"),
    "a loop of scontrol hold and release": again_and_again(RELEASE),
    "a loop of scontrol requeue and starttime=now": again_and_again(REQUEUE),
    "scontrol update requeue=0 when it runs": again_and_again(KEEP),
    "a flood of jobs that begin in a second": sent_anew,
    "scancel --signal=STOP when it runs": again_and_again(STOP),
    "--exclusive=user with one GPU": batch("--exclusive=user"),
    "--deadline that comes near while it runs": batch("-t", "60", f"--deadline=now+{3600 + 4 * TERM:.0f}"),
    "jobs that ask for their GPU when they are in the queue": again_and_again(GROW, jobs=0),
}


@dataclass
class Shares:
    """Mean GPUs of both accounts, of each run."""

    honest: list[float] = field(default_factory=list)
    other: list[float] = field(default_factory=list)

    def add(self, one: tuple[float, float]) -> None:
        self.honest.append(one[0])
        self.other.append(one[1])

    def means(self) -> tuple[float, float]:
        return statistics.mean(self.honest), statistics.mean(self.other)

    def scatter(self) -> float:
        """The most by which a run differs from the mean of all, of either account."""
        return max(
            max(abs(each - statistics.mean(column)) for each in column)
            for column in (self.honest, self.other)
        )

    def __str__(self) -> str:
        return f"{self.means()[0]:.2f} : {self.means()[1]:.2f}"


def played(lab: Lab, way: Way) -> tuple[float, float]:
    """Mean GPUs of the honest account and of the other, in the last two thirds of one run."""
    with site_on(lab) as site, ExitStack() as stack:
        for _ in range(JOBS):
            site.submit("--gres=gpu:1", tenant=HONEST)
        way(site, stack)
        began, samples = time.monotonic(), []
        while (passed := time.monotonic() - began) < LEASES * TERM:
            if passed > LEASES * TERM / 3:
                samples.append(held(lab))
            time.sleep(0.5)
        honest, other = (statistics.mean(column) for column in zip(*samples, strict=True))
        return honest, other


@contextmanager
def site_on(lab: Lab) -> Iterator[Site]:
    """A controller of its own, and an empty cluster before and after."""
    site = Site(lab, lease=LEASE)
    site.write_config('[scope]\npartitions = []\ninteractive = "gate"\n')
    try:
        yield site.start()
    finally:
        site.close()


def held(lab: Lab) -> tuple[int, int]:
    """GPUs that each account holds now, by Slurm's own word."""
    gpus = {HONEST: 0, OTHER: 0}
    rows = lab.run("squeue", "-h", "-a", "-t", "R,CG,STOPPED", "-O", "Account:20,tres-alloc:200").stdout
    for line in rows.splitlines():
        found = _GPUS.search(line)
        gpus[line.split()[0]] += int(found[1]) if found else 0
    return gpus[HONEST], gpus[OTHER]


@pytest.fixture(scope="module")
def control(lab: Lab) -> Shares:
    """Both accounts by the rules."""
    shares = Shares()
    for _ in range(RUNS):
        shares.add(played(lab, batch()))
    print(f"control: {shares}, each run {shares.honest} : {shares.other}")
    return shares


@pytest.mark.prove
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("what", WAYS)
def test_no_way_round_the_turns_pays(lab: Lab, control: Shares, what: str) -> None:
    shares = Shares()
    for _ in range(RUNS):
        shares.add(played(lab, WAYS[what]))
    (honest, other), (fair, usual) = shares.means(), control.means()
    allowed = TOLERANCE * usual + control.scatter()
    proved(
        f"{what} gains nothing (two equal accounts, 8 GPUs, {LEASES} leases of {TERM:g} s)",
        f"<= 5 % beyond the control's scatter ({control.scatter():.2f} GPUs)",
        f"honest : other = {shares} GPUs, control {control}, mean of {RUNS} runs each",
    )
    assert other <= usual + allowed, (shares, control)
    assert honest >= fair - allowed, (shares, control)
