"""The programs that a lab needs, and how they come onto a Debian machine without starting any service."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from slurm_fair.errors import LabError

PACKAGES = (
    "munge",
    "slurmctld",
    "slurmd",
    "slurm-client",
    "slurm-wlm-basic-plugins",
    "slurmdbd",
    "mariadb-server",
)
SLURM_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "sinfo")
DATABASE_PROGRAMS = ("slurmdbd", "sacctmgr", "mariadbd", "mariadb-install-db")
SERVICES = ("munge", "slurmctld", "slurmd", "slurmdbd", "mariadb")
SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
APT_GET = Path("/usr/bin/apt-get")
UNIT_FOLDERS = ("/lib/systemd/system", "/etc/systemd/system")
POLICY = Path("/usr/sbin/policy-rc.d")
NO_SERVICES = "#!/bin/sh\n# Installed packages start no service while this file is here.\nexit 101\n"
INSTALL_SECONDS = 900.0


def path_with_system_folders() -> str:
    """PATH with the folders of system programs, which an ordinary user often lacks."""
    given = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    return os.pathsep.join([*given, *(folder for folder in SYSTEM_FOLDERS if folder not in given)])


def missing_programs(database: bool = True) -> tuple[str, ...]:
    """The programs of a lab that are not on this machine."""
    wanted = SLURM_PROGRAMS + (DATABASE_PROGRAMS if database else ())
    return tuple(name for name in wanted if shutil.which(name, path=path_with_system_folders()) is None)


def available(database: bool = True) -> str | None:
    """None when a lab can be started here now, else why not and what to install, in one line."""
    if not Path("/proc/self/environ").exists():
        return "a lab needs Linux with /proc mounted"
    missing = missing_programs(database)
    if missing:
        return f"a lab needs {', '.join(missing)}: on Debian or Ubuntu, {install_command()}"
    return None


def install_command() -> str:
    """The command that installs everything."""
    return f"sudo apt-get install --no-install-recommends {' '.join(PACKAGES)}"


def ensure_packages(say: Callable[[str], None]) -> None:
    """Install what is missing, saying so first; who may not install is told what to ask for."""
    reason = available()
    if reason is None:
        return
    if os.geteuid() != 0 or not APT_GET.exists():
        raise LabError(reason)
    say(f"lab: installing {' '.join(PACKAGES)} with apt-get ({reason.partition(':')[0]})")
    fresh = tuple(name for name in SERVICES if not _unit_exists(name))
    with _no_services_start():
        _apt_get("update")
        _apt_get("install", "-y", "--no-install-recommends", *PACKAGES)
    _disable(fresh)
    reason = available()
    if reason is not None:
        raise LabError(f"after apt-get install, still: {reason}")


def _apt_get(*arguments: str) -> None:
    """One apt-get command that asks no questions."""
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = _run((str(APT_GET), "-q", *arguments), env)
    if done.returncode != 0:
        words = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()[-1]
        raise LabError(f"apt-get {arguments[0]} failed: {words}")


def _run(argv: tuple[str, ...], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=INSTALL_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{argv[0]} {argv[-1]} took longer than {INSTALL_SECONDS:g} s") from error


@contextlib.contextmanager
def _no_services_start() -> Iterator[None]:
    """Keep packages from starting daemons on the machine's default ports; its own policy returns afterwards."""
    saved = POLICY.with_name("policy-rc.d.slurm-fair")
    if POLICY.exists():
        POLICY.rename(saved)
    POLICY.write_text(NO_SERVICES)
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink(missing_ok=True)
        if saved.exists():
            saved.rename(POLICY)


def _unit_exists(name: str) -> bool:
    """True when the machine had this service before us, so that it is not ours to disable."""
    return any(Path(folder, f"{name}.service").exists() for folder in UNIT_FOLDERS)


def _disable(services: tuple[str, ...]) -> None:
    """Keep the services that came with the packages from starting at the next boot."""
    if services and shutil.which("systemctl") is not None:
        _run(("systemctl", "disable", *services), os.environ)
