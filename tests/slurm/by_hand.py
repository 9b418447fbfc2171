"""Runs inside the machine of test_by_hand.py: a lab, then the page's commands, one after another."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
import time
from pathlib import Path

from slurm_fair.lab import Lab, LabSpec

TOP = Path(sys.argv[1])
BOARD = Path("/run/slurm-fair/board.json")
# As sudo: another user's rights, and little of root's environment.
SUDO = """#!/bin/bash
[[ $1 == -u ]] || exit 99
user=$2; shift 2
exec setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups env -i PATH="$PATH" HOME=/ USER="$user" "$@"
"""
SPEC = LabSpec(nodes=2, gpus_per_node=4, users={"games": ("vision",), "news": ("vision",)})


def main() -> None:
    """Bring the lab up and go through the page."""
    programs = TOP / "bin"
    programs.mkdir()
    (programs / "sudo").write_text(SUDO)
    (programs / "slurm-fair").write_text(
        f'#!/bin/bash\nexec "{os.environ["PYTHON"]}" -m slurm_fair.cli "$@"\n'
    )
    for file in programs.iterdir():
        file.chmod(0o755)
    with Lab(spec=SPEC) as lab:
        env = {**os.environ, **lab.env, "PATH": f"{programs}:{os.environ['PATH']}"}
        try:
            install(env)
            shadow(lab, env)
            hidden(lab, env)
        finally:
            for pid in started:
                os.kill(pid, signal.SIGTERM)


started: list[int] = []


def install(env: dict[str, str]) -> None:
    """The commands of the installation; the package itself is here already."""
    for line in os.environ["INSTALL"].splitlines():
        if line.startswith("pip "):
            continue
        run(line, env)
    for name in ("/var/lib/slurm-fair", "/run/slurm-fair"):
        found = Path(name).stat()
        print(f"folder: {pwd.getpwuid(found.st_uid).pw_name} {found.st_mode & 0o777:o} {name}")
    for line in Path("/etc/systemd/system/slurm-fair.service").read_text().splitlines():
        if line.startswith("Environment="):
            print("unit:", line)
    print("DONE install")


def shadow(lab: Lab, env: dict[str, str]) -> None:
    """The shadow beside the lab's Slurm, and an ordinary user who looks."""
    job = lab.run(
        "sbatch", "--parsable", "-A", "vision", "--gpus=1", "--wrap", "sleep 600", user="games"
    ).stdout.strip()
    first, *others = os.environ["SHADOW"].splitlines()
    process = begin(first, env)
    for line in others:
        program = line.replace("JOB", job)
        done = run(f"sudo -u games {program}", env)
        print(f"{program.split()[1]}: {done.splitlines()[0]}")
    denied = run("sudo -u games slurm-fair report tenants", env, code=1)
    print(f"report: {denied.splitlines()[-1]}")
    end(process)
    print("DONE shadow")


def hidden(lab: Lab, env: dict[str, str]) -> None:
    """The same where Slurm hides jobs from each other."""
    with lab.conf.open("a") as file:
        file.write("PrivateData=jobs\n")
    lab.run("scontrol", "reconfigure")
    BOARD.unlink()
    process = begin(os.environ["SHADOW"].splitlines()[0], env)
    assert not lab.run("squeue", "-h", user="news").stdout.strip(), "Slurm itself shows the job"
    said = run("sudo -u news slurm-fair queue --json", env) + BOARD.read_text()
    check = run("sudo -u slurm-fair slurm-fair check", env)
    for who in ("games", "news"):
        own = json.loads(run(f"sudo -u {who} slurm-fair queue --me --json", env))["jobs"]
        print(f"own: {who} finds {len(own)} of its own")
    end(process)
    assert "without names of users" in check, check
    jobs = json.loads(BOARD.read_text())["jobs"]
    assert len(jobs) == 1, jobs
    print("hidden: names of", "somebody" if "games" in said or "vision" in said else "nobody")


def begin(line: str, env: dict[str, str]) -> subprocess.Popen[bytes]:
    """The daemon, once it has published."""
    log = (TOP / "daemon.log").open("ab")
    process = subprocess.Popen(["bash", "-c", f"exec {line}"], env=env, cwd="/", stdout=log, stderr=log)
    started.append(process.pid)
    until = time.monotonic() + 30
    while not BOARD.exists():
        assert process.poll() is None, (TOP / "daemon.log").read_text()
        assert time.monotonic() < until, (TOP / "daemon.log").read_text()
        time.sleep(0.1)
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(20)
    started.remove(process.pid)


def run(line: str, env: dict[str, str], code: int = 0) -> str:
    """A line as an admin types it."""
    done = subprocess.run(
        ["bash", "-c", line], env=env, cwd="/", capture_output=True, text=True, timeout=60, check=False
    )
    print(f"$ {line}\n{done.stdout}{done.stderr}")
    assert done.returncode == code, f"{line}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


if __name__ == "__main__":
    main()
