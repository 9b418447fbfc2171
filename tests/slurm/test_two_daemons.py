"""Two daemons with two storage folders on one real Slurm: the second is refused, and may follow a dead one."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from tests.slurm.harness import REPOSITORY, Site, stays, wait_until

pytestmark = pytest.mark.slurm
LEASE = {"term": 12, "grace": 3}
ALL_GPUS = 24


def noticed(site: Site) -> Site:
    """A site whose daemon leaves a notice, as it does by default."""
    site.config.write_text(site.config.read_text().replace("notice = false\n", ""))
    return site


def notices(site: Site) -> list[str]:
    """Comments of the jobs that are notices."""
    return site.lab.run("squeue", "-h", "-a", "-n", "slurm_fair", "-t", "PD", "-o", "%k").stdout.splitlines()


def refused(site: Site, *options: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "slurm_fair.cli", "--config", str(site.config), "run", *options]
    return subprocess.run(argv, cwd=REPOSITORY, env=site.lab.env, capture_output=True, text=True, timeout=40)


@pytest.mark.parametrize("account", [None, "daemon"])
def test_a_second_storage_is_refused_until_the_first_daemon_is_gone(
    new_site: Callable[..., Site], account: str | None
) -> None:
    first = noticed(new_site("begin", LEASE, account=account)).start()
    second = noticed(new_site("begin", LEASE))
    running = first.submit(ALL_GPUS).runs()
    assert len(notices(first)) == 1
    done = refused(second)
    assert done.returncode == 1
    assert "another daemon acts on this cluster: pid" in done.stderr
    assert str(first.storage) in done.stderr
    assert second.acts() == []
    assert len(notices(first)) == 1, "who is refused leaves nothing"
    assert "another daemon acts on this cluster" in second.cli("check", check=False).stdout
    shadow = second.start("--dry-run")
    shadow.ticks_pass(2)
    assert shadow.stop() == 0
    assert len(notices(first)) == 1, "a shadow leaves none, and is refused by none"
    first.signal(signal.SIGKILL)
    for pid in first.deadmen():
        subprocess.run(["kill", "-9", str(pid)], check=True)
    died = time.monotonic()
    assert refused(second).returncode == 1, "it may be coming back"
    wait_until(lambda: refused_or_lives(second), 3 * first.term, "the second daemon takes over")
    assert time.monotonic() - died < first.term + 10
    second.ticks_pass(2)
    stays(lambda: running.state == "RUNNING" and running.now().restarts == 0, 3)
    if account is None:  # else its storage is not ours to open
        done = refused(first)
        assert done.returncode == 1
        assert str(second.storage) in done.stderr
    assert second.stop() == 0
    mine = [text for text in notices(second) if str(second.storage) in text]
    assert mine == [], "a clean stop takes it away"


def refused_or_lives(site: Site) -> bool:
    """Start it once more; whether it acts now."""
    try:
        site.start()
    except AssertionError:
        return False
    return True


def test_a_daemon_that_finds_another_before_it_ends_and_leaves_its_jobs_to_it(
    new_site: Callable[..., Site],
) -> None:
    lease = {**LEASE, "term": 30}  # nobody takes the first daemon for dead while it is stopped
    first = noticed(new_site("hold", lease)).start()
    second = noticed(new_site("hold", lease))
    first.submit(ALL_GPUS).runs()
    waiting = first.submit(8, tenant="nlp").waits()
    comment = notices(first)[0]
    first.signal(signal.SIGSTOP)  # else it may leave its notice anew before the second one has begun
    first.lab.run("scancel", "-n", "slurm_fair", "-t", "PENDING")
    second.start()
    first.signal(signal.SIGCONT)
    assert len(notices(first)) == 1
    assert notices(first)[0] != comment
    assert first.process is not None
    assert first.process.wait(first.term) == 1
    assert "another daemon acts on this cluster" in first.said()
    wait_until(lambda: not first.deadmen(), 10, "the dead-man of the first one ends and frees nothing")
    stays(lambda: waiting.is_gated() or waiting.state == "RUNNING", 2)
    second.ticks_pass(3)


def test_what_a_user_writes_locks_nobody_out(new_site: Callable[..., Site]) -> None:
    site = noticed(new_site("begin", LEASE))
    forged = "slurm_fair:notice,v=1,id=" + "a" * 16 + ",until=9999999999,host=h,pid=1,dir=/x"
    for comment in (forged, f"x\n7|{forged}"):
        site.lab.run(
            "sbatch", "-H", "-A", "vision", "-J", "slurm_fair", f"--comment={comment}", "--wrap", "true",
            user="games", cwd=site.work("games"),
        )  # fmt: skip
    site.start()
    site.ticks_pass(2)
