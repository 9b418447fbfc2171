"""The controller's own troubles on a real Slurm: a full disk, a lost journal, blindness, programs that hang."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slurm_fair.host.state_folder import Places, last_beat, pause_of
from tests.slurm.crowds import ALL_GPUS, USER, crowd, is_plain
from tests.slurm.harness import Job, Site, stays, wait_until

pytestmark = pytest.mark.slurm
LEASE = {"term": 6, "grace": 3}
# squeue as it is, but for the daemon: it fails, or hangs, while a file says so.
WRAPPER = """#!/bin/sh
if ! tr '\\0' ' ' < /proc/$PPID/cmdline | grep -q deadman; then
    [ -e {folder}/blind ] && {{ echo 'squeue: error: odd' >&2; exit 1; }}
    [ -e {folder}/hang ] && {{ touch {folder}/hangs; exec sleep 600; }}
fi
exec {real} "$@"
"""


def wrapped(site: Site) -> Path:
    """Slurm's commands in a folder of their own, so that some can be made to fail or hang."""
    folder = site.folder / "bin"
    folder.mkdir()
    path = site.lab.env["PATH"]
    for name in ("squeue", "sinfo", "scontrol", "scancel", "sacct", "sacctmgr", "sshare", "sprio", "sbatch"):
        real = shutil.which(name, path=path)
        assert real is not None
        (folder / name).write_text(WRAPPER.format(folder=site.folder, real=real))
        (folder / name).chmod(0o755)
    text = site.config.read_text()
    site.config.write_text(text.replace("[slurm]\n", f'[slurm]\nbin_dir = "{folder}"\n'))
    return site.folder


@pytest.fixture
def small_disk(new_site: Callable[..., Site]) -> Iterator[Site]:
    """A site whose storage is a small file system of its own."""
    site = new_site("begin", LEASE)
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m,mode=0750", "tmpfs", str(site.storage)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a tmpfs is not allowed here")
    try:
        yield site
    finally:
        site.close()
        subprocess.run(["umount", "-l", str(site.storage)], check=False)


def test_a_full_disk_is_waited_out_without_a_restart(small_disk: Site) -> None:
    site = small_disk.start()
    running, waiting = crowd(site, ALL_GPUS, 8)
    filler = site.storage / "filler"
    with filler.open("wb", buffering=0) as file:
        while True:
            try:
                file.write(b"x" * 4096)
            except OSError:
                break
    wait_until(lambda: "the disk is full" in site.said(), 20, "the full disk is noticed")
    acts = site.acts()
    places = Places(site.storage)
    stays(lambda: site.process is not None and site.process.poll() is None, 2 * site.term)
    assert site.acts() == acts, "nothing is done that cannot be written down"
    beat = last_beat(places)
    assert beat is not None
    assert time.time() - beat.time < 5
    assert "the disk is full" in beat.blind
    assert site.said().count("the disk is full") < 5, "said once, not at each look"
    assert site.cli("pause", "--why", "no room").returncode == 0, "a full disk is no hindrance to a pause"
    pause = pause_of(places)
    assert pause is not None, "the wish stands, whether its reason found room or not"
    assert "the disk is full" in site.cli("status").stdout
    site.cli("resume")
    filler.unlink()
    wait_until(lambda: "sees again after" in site.said(), 10, "it sees again")
    waiting[0].runs(30)
    assert running.now().restarts == 1
    assert site.stop() == 0
    assert "Logging error" not in places.deadman_log.read_text()


def test_a_journal_removed_under_the_daemon_stops_every_act_and_can_be_put_back(
    new_site: Callable[..., Site],
) -> None:
    site = new_site("begin", LEASE).start()
    running, waiting = crowd(site, ALL_GPUS, 8)
    had = site.ledger().tenants.had.sum()
    for name in ("journal.db", "journal.db-wal", "journal.db-shm"):
        (site.storage / name).unlink()
    wait_until(lambda: "was removed or replaced" in site.said(), 10, "it is noticed at the next look")
    stays(lambda: running.now().restarts == 0 and running.state == "RUNNING", 2 * site.term)
    assert site.said().count("was removed or replaced") == 1
    assert site.stop() == 0
    (saved,) = site.storage.glob("journal.db.rescued-*")
    saved.rename(site.storage / "journal.db")
    site.start()
    assert "a new ledger begins" not in site.said().split("stopped")[-1]
    assert site.ledger().tenants.had.sum() >= had
    waiting[0].runs(30)


def test_names_that_slurm_does_not_know_are_warned_of_at_the_start(new_site: Callable[..., Site]) -> None:
    site = new_site("begin", LEASE)
    text = site.config.read_text()
    unknown = 'partitions = ["gpu", "gpux"]\naccounts = ["vision", "visoin"]\nqos = ["nosuch"]'
    site.config.write_text(text.replace('partitions = ["gpu"]', unknown))
    site.start()
    for key, name in (("partitions", "gpux"), ("accounts", "visoin"), ("qos", "nosuch")):
        assert site.said().count(f"[scope] {key}: Slurm knows no {name}") == 1


def test_a_start_waits_for_a_shell_that_holds_the_journal(new_site: Callable[..., Site]) -> None:
    site = new_site("begin", LEASE).start()
    assert site.stop() == 0
    before = site.last_tick()
    shell = sqlite3.connect(site.storage / "journal.db", isolation_level=None)
    shell.execute("PRAGMA locking_mode = EXCLUSIVE")
    shell.execute("BEGIN EXCLUSIVE")
    site.start(wait=False)
    wait_until(lambda: "waiting up to" in site.said(), 40, "it says what it waits for")
    shell.close()
    wait_until(lambda: site.last_tick() > before, 40, "its first tick")


def test_a_blind_daemon_under_hold_loses_its_jobs_within_a_lease_and_goes_on_when_it_sees(
    new_site: Callable[..., Site],
) -> None:
    site = new_site("hold", LEASE)
    flags = wrapped(site)
    site.start()
    running, waiting = crowd(site, ALL_GPUS, 8)
    (flags / "blind").touch()
    began = time.monotonic()
    wait_until(lambda: is_plain(site, waiting), 2 * site.term, "free")
    assert time.monotonic() - began < 1.5 * site.term
    assert site.process is not None
    assert site.process.poll() is None, "the daemon is not fenced"
    assert "blind" in site.cli("status").stdout
    late = site.submit(8, tenant="nlp", user=USER)
    wait_until(lambda: late.now().free, 2 * site.term, "a job that came later is freed too")
    (flags / "blind").unlink()
    wait_until(lambda: "sees again after" in site.said(), 10)
    freed = Places(site.storage).freeing.stat().st_mtime
    waiting[0].runs(40)
    assert Places(site.storage).freeing.stat().st_mtime == freed, "nobody fights the daemon"
    assert running.now().restarts >= 1
    assert len(site.deadmen()) == 1


@pytest.mark.parametrize("gate", ["begin"])
def test_sigterm_ends_a_daemon_whose_commands_hang(new_site: Callable[..., Site], gate: str) -> None:
    site = new_site(gate, LEASE)
    flags = wrapped(site)
    site.start()
    crowd(site, ALL_GPUS, 8)
    (flags / "hang").touch()
    wait_until(lambda: (flags / "hangs").exists(), 10, "a command hangs")
    began = time.monotonic()
    site.signal(signal.SIGTERM)
    assert site.process is not None
    site.process.wait(20)
    assert time.monotonic() - began < 5.5
    (flags / "hang").unlink()
    site.start()


def test_started_from_a_hostile_folder_neither_daemon_nor_dead_man_imports_from_it(
    new_site: Callable[..., Site],
) -> None:
    site = new_site("begin", LEASE)
    hostile = site.folder / "hostile"
    hostile.mkdir()
    for name in ("click.py", "json.py", "numpy.py", "logging.py"):
        (hostile / name).write_text(f"open({str(hostile / 'was-run')!r}, 'a').write(__file__)\n")
    shutil.copy(site.config, hostile / "fair.toml")
    program = Path(sys.executable).parent / "slurm-fair"
    env = site.lab.env | {"LD_LIBRARY_PATH": str(hostile), "SECRET": "x"}
    with site.log.open("ab") as log:
        site.process = subprocess.Popen(
            [str(program), "--config", "fair.toml", "run"], cwd=hostile, env=env, stdout=log, stderr=log
        )
    site.config = hostile / "fair.toml"
    wait_until(lambda: site.last_tick() > 0 and bool(site.deadmen()), 20, "both live")
    time.sleep(1)
    (pid,) = site.deadmen()
    seen = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"SECRET" not in seen
    assert b"LD_LIBRARY_PATH" not in seen
    assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")
    assert b"-I" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    assert not (hostile / "was-run").exists()


def what_slurm_says(site: Site, jobs: list[Job]) -> list[str]:
    """Each job's record without what moves by itself."""
    moves = ("RunTime=", "LastSchedEval=", "Scheduler=", "AccrueTime=", "PreemptEligibleTime=", "Priority=")
    shown = [site.lab.run("scontrol", "-o", "show", "job", job.label).stdout.split() for job in jobs]
    return [" ".join(word for word in words if not word.startswith(moves)) for words in shown]


def test_a_shadow_changes_nothing_in_any_jobs_record(new_site: Callable[..., Site]) -> None:
    site = new_site("begin", LEASE)
    running = site.submit(ALL_GPUS, gated=False, user=USER).runs()
    waiting = [site.submit(gpus, tenant="nlp", user=USER) for gpus in (ALL_GPUS, 8)]
    waiting.append(site.submit(8, tenant="nlp", gated=False, user=USER))
    time.sleep(3)
    before = what_slurm_says(site, [running, *waiting])
    site.start("--dry-run")
    site.ticks_pass(int(3 * site.term), 40)
    with site.reader() as journal:
        planned = {o.action.verb.value for tick in journal.ticks() for o in tick.outcomes}
        assert journal.intents() == ()
        assert journal.marks() == ()
    assert {"ask", "close"} <= planned, "there was something that it would have done"
    assert what_slurm_says(site, [running, *waiting]) == before
    assert len(running.starts()) == 1
    assert not Places(site.storage).heartbeat.exists()
    assert site.deadmen() == []


@pytest.mark.parametrize("gate", ["begin", "hold"])
def test_jobs_that_come_gated_after_fail_open_are_freed_by_the_timers_look(
    new_site: Callable[..., Site], gate: str
) -> None:
    site = new_site(gate, LEASE).start()
    site.cli("fail-open")
    wait_until(lambda: site.process is not None and site.process.poll() is not None, 20)
    site.submit(ALL_GPUS, gated=False, user=USER).runs()
    late = site.submit(1, user=USER)
    held, later = (site.submit(1, option, gated=False) for option in ("--hold", "--begin=now+600"))
    assert site.cli("deadman", "--once").stdout == "1 job freed\n"
    assert is_plain(site, [late])
    late.scontrol("hold")
    assert "no job waits behind a gate of ours" in site.cli("deadman", "--once").stdout
    assert [job.now().priority == 0 for job in (late, held)] == [True, True]
    assert not is_plain(site, [later])
