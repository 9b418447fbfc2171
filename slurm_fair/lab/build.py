"""From a spec to files and daemons: the provisioning that the tests, the demo and the containers share."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from slurm_fair.errors import LabError
from slurm_fair.lab import spec as render
from slurm_fair.lab.daemons import LabDaemon, socket_answers
from slurm_fair.lab.ports import port_answers
from slurm_fair.lab.spec import LabSite, LabSpec

FOLDERS = ("munge", "state", "spool", "run", "log", "dev", "work", "tmp")
SETUP_SECONDS = 60.0
PING_SECONDS = 5.0
# A lab outlives no power cut, so its database need not either; small files make it start sooner.
CARELESS_INNODB = (
    "--innodb-log-file-size=8M",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-flush-method=nosync",
    "--innodb-doublewrite=0",
    "--innodb-autoextend-increment=8",
    "--innodb-temp-data-file-path=ibtmp1:1M:autoextend",
    "--innodb-use-native-aio=0",
)


def slurm_version(env: Mapping[str, str]) -> tuple[int, int]:
    """The release of the installed slurmctld, such as (22, 5)."""
    done = command(("slurmctld", "-V"), env)
    found = re.search(r"(\d+)\.(\d+)", done.stdout)
    if found is None:
        raise LabError(f"slurmctld -V says {done.stdout.strip()!r}, which names no version")
    return int(found[1]), int(found[2])


def command(argv: tuple[str, ...], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """One command of the bring-up; a failure is a LabError with the command's own words."""
    try:
        done = subprocess.run(
            argv,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SETUP_SECONDS,
        )
    except FileNotFoundError as error:
        raise LabError(f"{argv[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{argv[0]} took longer than {SETUP_SECONDS:g} s") from error
    if done.returncode != 0:
        words = (done.stderr.strip() or done.stdout.strip() or "it said nothing").replace("\n", "; ")
        raise LabError(f"{argv[0]} failed with code {done.returncode}: {words}")
    return done


def write_files(spec: LabSpec, site: LabSite) -> None:
    """Everything that the daemons read. Other users must reach the configuration and the munge socket."""
    for name in FOLDERS:
        (site.folder / name).mkdir(mode=0o755, parents=True, exist_ok=True)
    for folder in (site.folder, site.folder / "munge", site.folder / "log"):
        folder.chmod(0o755)  # munged refuses what the group may write, whatever the umask
    (site.folder / "work").chmod(0o1777)
    (site.folder / "tmp").chmod(0o1777)
    _write(site.conf, render.slurm_conf(spec, site), 0o644)
    _write(site.folder / "gres.conf", render.gres_conf(spec, site), 0o644)
    cgroup = render.cgroup_conf(site)
    if cgroup is not None:
        _write(site.folder / "cgroup.conf", cgroup, 0o644)
    if spec.job_submit is not None:
        _write(site.folder / "job_submit.lua", spec.job_submit.read_text(), 0o644)
    for number in range(max(group.gpus for group in spec.groups)):
        link = site.folder / "dev" / f"gpu{number}"
        if not link.is_symlink():
            link.symlink_to("/dev/null")
    for node in spec.node_names:
        (site.folder / "spool" / node).mkdir(mode=0o755, exist_ok=True)
    key = site.folder / "munge" / "key"
    if not key.exists():
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
    if spec.database:
        _write(site.folder / "slurmdbd.conf", render.slurmdbd_conf(site), 0o600)
        _write(site.folder / "database.sql", render.database_init(site), 0o600)
        _write(site.folder / "associations", render.associations(spec, site.user), 0o644)


def _write(path: Path, text: str, mode: int) -> None:
    """A file that has its mode before its content, since one of them holds a password."""
    path.touch(mode=0o600)
    path.chmod(mode)
    path.write_text(text)


def install_database(site: LabSite, env: Mapping[str, str]) -> None:
    """An empty MariaDB, unless the folder has one; its root account opens to the lab's owner only."""
    data = site.folder / "db"
    if (data / "mysql").exists():
        return
    command(
        (
            "mariadb-install-db",
            "--no-defaults",
            f"--datadir={data}",
            f"--user={site.user}",
            "--auth-root-authentication-method=socket",
            f"--auth-root-socket-user={site.user}",
            "--skip-test-db",
            "--skip-name-resolve",
            *CARELESS_INNODB,
            f"--tmpdir={site.folder}/tmp",
        ),
        env,
    )


def load_tenants(site: LabSite, env: Mapping[str, str]) -> None:
    """Cluster, accounts and members, before slurmctld asks for them.

    Slurm knows root from the beginning; another owner must be known before `load` listens to him.
    """
    if site.user != "root" and site.user not in _known_users(env):
        command(("sacctmgr", "-i", "add", "cluster", render.CLUSTER), env)
        command(("sacctmgr", "-i", "add", "user", site.user, "Account=root", "AdminLevel=Administrator"), env)
    command(("sacctmgr", "-i", "load", f"file={site.folder}/associations"), env)


def _known_users(env: Mapping[str, str]) -> tuple[str, ...]:
    """The users in the accounting database; a folder that was used before has everyone already."""
    return tuple(command(("sacctmgr", "-nP", "show", "user", "format=user"), env).stdout.split())


def munged(site: LabSite, env: Mapping[str, str]) -> LabDaemon:
    """The lab's own munge, with its own key."""
    folder = site.folder / "munge"
    argv = (
        "munged",
        "--foreground",
        "--num-threads=4",
        f"--key-file={folder}/key",
        f"--socket={site.munge_socket}",
        f"--pid-file={folder}/pid",
        f"--log-file={site.logs}/munged.log",
        f"--seed-file={folder}/seed",
    )
    return _daemon("munged", argv, site, env, functools.partial(socket_answers, site.munge_socket))


def mariadbd(site: LabSite, env: Mapping[str, str]) -> LabDaemon:
    """The accounting database: small, on the loopback interface, careless about power cuts."""
    argv = (
        "mariadbd",
        "--no-defaults",
        f"--user={site.user}",
        f"--datadir={site.folder}/db",
        f"--socket={site.folder}/run/db.sock",
        f"--pid-file={site.folder}/run/mariadbd.pid",
        f"--tmpdir={site.folder}/tmp",
        f"--init-file={site.folder}/database.sql",
        f"--port={site.mariadb_port}",
        "--bind-address=127.0.0.1",
        "--skip-name-resolve",
        "--performance-schema=off",
        "--innodb-buffer-pool-size=64M",
        *CARELESS_INNODB,
        "--innodb-lock-wait-timeout=900",
        "--max-allowed-packet=16M",
    )
    return _daemon("mariadbd", argv, site, env, functools.partial(port_answers, site.mariadb_port))


def slurmdbd(site: LabSite, env: Mapping[str, str]) -> LabDaemon:
    """The accounting daemon, which finds slurmdbd.conf beside slurm.conf."""
    return _daemon(
        "slurmdbd",
        ("slurmdbd", "-D"),
        site,
        env,
        functools.partial(port_answers, site.dbd_port),
    )


def slurmctld(site: LabSite, env: Mapping[str, str]) -> LabDaemon:
    argv = ("slurmctld", "-D", "-f", str(site.conf))
    return _daemon("slurmctld", argv, site, env, functools.partial(_controller_answers, dict(env)))


def slurmd(site: LabSite, env: Mapping[str, str], node: str, port: int) -> LabDaemon:
    argv = ("slurmd", "-D", "-f", str(site.conf), "-N", node)
    return _daemon(f"slurmd-{node}", argv, site, env, functools.partial(port_answers, port))


def _daemon(
    name: str, argv: tuple[str, ...], site: LabSite, env: Mapping[str, str], answers: Callable[[], bool]
) -> LabDaemon:
    program = shutil.which(argv[0], path=env.get("PATH"))
    if program is None:
        raise LabError(f"{argv[0]} is not installed")
    return LabDaemon(name, (program, *argv[1:]), site.logs / f"{name}.out", env, answers)


def _controller_answers(env: Mapping[str, str]) -> bool:
    """`scontrol ping` fails within milliseconds while nobody listens."""
    try:
        done = subprocess.run(
            ("scontrol", "ping"), env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=PING_SECONDS
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
