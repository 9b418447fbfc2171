"""A private, real Slurm on this machine, in one folder, on the loopback interface only."""

from __future__ import annotations

import os
import pwd
import secrets
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from pathlib import Path
from types import TracebackType
from typing import Self

from slurm_fair.errors import InputError, LabError
from slurm_fair.lab import build
from slurm_fair.lab import sweep as sweeping
from slurm_fair.lab.daemons import LabDaemon
from slurm_fair.lab.packages import available, path_with_system_folders
from slurm_fair.lab.ports import PortLock, lock_ports, name_is_loopback
from slurm_fair.lab.spec import SOCKET_PATH_BYTES, LabSite, LabSpec, longest_socket_path

READY_SECONDS = 60.0
# What the commands of another Slurm may have left in the environment: all of it would change ours.
FOREIGN = (
    "SLURM",
    "SBATCH_",
    "SQUEUE_",
    "SINFO_",
    "SACCT",
    "SRUN_",
    "SALLOC_",
    "SCANCEL_",
    "SCONTROL_",
    "SSHARE_",
)
NAMELESS = "a line 127.0.0.1 with this machine's name in /etc/hosts would keep Slurm private"
STATEFUL = ("slurmctld", "slurmdbd", "mariadbd")
USABLE = frozenset({"idle", "mix", "alloc", "comp"})


class Lab:
    """Bring up with start() or `with`, end with stop(); it also ends when this process does, in any way."""

    def __init__(self, folder: Path | None = None, spec: LabSpec | None = None) -> None:
        self.spec = LabSpec() if spec is None else spec
        self._temporary = folder is None
        self.folder = _fresh_folder(self.spec) if folder is None else folder.absolute()
        self.conf = self.folder / "slurm.conf"
        self.node_names = self.spec.node_names
        self.env = _environment(self.conf)
        self._daemons: dict[str, LabDaemon] = {}
        self._ports: PortLock | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._finalizer: weakref.finalize[[int, Path, bool], Lab] | None = None

    def start(self) -> None:
        """Bring everything up and wait until all nodes are idle; a failure leaves logs and no process."""
        if self._daemons:
            raise LabError(f"the lab in {self.folder} is already up")
        self._check()
        if self._temporary:
            self.folder.mkdir(mode=0o755, exist_ok=True)  # a caller may have put files for Slurm there
        try:
            self._start()
        except BaseException as error:
            self.stop(keep=isinstance(error, LabError))
            raise

    def stop(self, keep: bool = False) -> None:
        """End every process of the lab; a temporary folder goes too unless it is to be kept."""
        if keep or not self._temporary:
            for name in STATEFUL:
                if name in self._daemons:
                    self._daemons[name].halt()
        for daemon in self._daemons.values():
            daemon.kill()
        survivors = sweeping.kill_leftovers(self.folder)
        self._daemons.clear()
        if self._ports is not None:
            self._ports.release()
        if survivors:
            raise LabError(
                f"lab: processes {survivors} of {self.folder} would not end: ask `ps -o stat,wchan`"
            )
        if self._temporary and not keep:
            shutil.rmtree(self.folder, ignore_errors=True)
        self._dismiss_guard()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(keep=kind is not None)
        if kind is not None:
            print(f"lab: logs kept in {self.folder / 'log'}", file=sys.stderr)

    def run(
        self,
        *argv: str,
        user: str | None = None,
        check: bool = True,
        timeout_seconds: float = 60,
        input: str | None = None,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """A command that talks to this Slurm, in the lab's work folder; root may run it as another user."""
        shown = shlex.join(argv)
        env, identity = self.env, _identity(user)
        if user is not None:
            env = {**env, "USER": user, "LOGNAME": user, "HOME": str(self.folder / "work")}
        try:
            done = subprocess.run(
                argv,
                env=env,
                input="" if input is None else input,
                capture_output=True,
                text=True,
                timeout=timeout_seconds,
                cwd=self.folder / "work" if cwd is None else cwd,
                user=identity[0],
                group=identity[1],
                extra_groups=identity[2],
            )
        except FileNotFoundError as error:
            raise LabError(f"{shown}: no such program or folder ({error.filename})") from error
        except subprocess.TimeoutExpired as error:
            raise LabError(f"{shown} took longer than {timeout_seconds:g} s") from error
        if check and done.returncode != 0:
            words = (done.stderr.strip() or done.stdout.strip() or "it said nothing").replace("\n", "; ")
            raise LabError(f"{shown} failed with code {done.returncode}: {words}")
        return done

    def pid(self, daemon: str) -> int:
        """The process of a daemon that runs."""
        (found,) = self._named(daemon, None)
        if found.pid is None:
            raise LabError(f"{daemon} does not run")
        return found.pid

    def kill(self, daemon: str, node: str | None = None) -> None:
        """SIGKILL slurmctld, slurmdbd, slurmd (one node or all), munged or mariadbd; on return it is gone."""
        for each in self._named(daemon, node):
            each.kill()

    def halt(self, daemon: str, node: str | None = None) -> None:
        """End a daemon in good order and wait until it is gone."""
        for each in self._named(daemon, node):
            each.halt()

    def revive(self, daemon: str, node: str | None = None) -> None:
        """Start a daemon again and wait until it answers; one that runs is left alone."""
        chosen = self._named(daemon, node)
        for each in chosen:
            each.start()
        for each in chosen:
            each.wait_ready(READY_SECONDS)

    def freeze(self, daemon: str, node: str | None = None) -> None:
        """Hold a daemon still: its port stays open, and whatever is sent to it waits."""
        for each in self._named(daemon, node):
            each.freeze()

    def thaw(self, daemon: str, node: str | None = None) -> None:
        """Let a frozen daemon go on."""
        for each in self._named(daemon, node):
            each.thaw()

    def wait_idle_nodes(self, timeout_seconds: float = READY_SECONDS) -> None:
        """Wait until every node answers the controller and can take jobs (running ones do not matter)."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            said = self.run("sinfo", "-h", "-N", "-o", "%N %t", check=False).stdout.split()
            states = dict(zip(said[::2], said[1::2], strict=False))
            if states and USABLE.issuperset(states.values()):
                return
            if time.monotonic() > deadline:
                shown = ", ".join(f"{node} {state}" for node, state in states.items() if state not in USABLE)
                raise LabError(f"nodes not usable after {timeout_seconds:g} s: {shown or 'none is listed'}")
            time.sleep(0.05)

    def describe(self) -> str:
        """The commands by which a person talks to this Slurm."""
        spec = self.spec
        gpus = sum(group.count * group.gpus for group in spec.groups)
        unchecked = "" if spec.database else " (no database: names are not checked)"
        heard = "this machine only" if name_is_loopback() else f"every network ({NAMELESS})"
        account = next(iter(spec.tenants), "root")
        return "\n".join(
            [
                f"Slurm with {len(self.node_names)} nodes and {gpus} pretend GPUs, in {self.folder}",
                f"  tenants:    {', '.join(spec.tenants)}{unchecked}",
                f"  partitions: {', '.join(spec.partitions)}",
                f"  logs:       {self.folder / 'log'}",
                f"  listens on: {heard}",
                "Talk to it from any shell:",
                f"  export SLURM_CONF={self.conf}",
                f"  sbatch -A {account} --gpus=2 --wrap 'sleep 60'; squeue; sinfo -N -l",
            ]
        )

    def _check(self) -> None:
        """Refuse at once what would fail late and obscurely."""
        reason = available(self.spec.database)
        if reason is not None:
            raise LabError(reason)
        if longest_socket_path(self.folder, self.node_names) > SOCKET_PATH_BYTES:
            raise InputError(f"lab: {self.folder} is too long a path for Unix sockets: choose a shorter one")
        used = not self._temporary and self.folder.exists() and any(self.folder.iterdir())
        if used and not self.conf.exists():
            raise InputError(f"lab: {self.folder} holds something else: choose an empty folder")
        for user in (*self.spec.users, *self.spec.operators):
            _identity(user)
        sweeping.kill_leftovers(self.folder)

    def _start(self) -> None:
        """Start the daemons in the order in which they need each other."""
        self._post_guard()
        site = self._site()
        build.write_files(self.spec, site)
        self._up("munged", build.munged(site, self.env))
        if self.spec.database:
            build.install_database(site, self.env)
            self._up("mariadbd", build.mariadbd(site, self.env))
            self._up("slurmdbd", build.slurmdbd(site, self.env))
            build.load_tenants(site, self.env)
        self._up("slurmctld", build.slurmctld(site, self.env))
        for number, node in enumerate(self.node_names):
            daemon = build.slurmd(site, self.env, node, site.first_node_port + number)
            self._daemons[daemon.name] = daemon
        self.revive("slurmd")
        self.wait_idle_nodes()

    def _up(self, name: str, daemon: LabDaemon) -> None:
        self._daemons[name] = daemon
        daemon.start()
        daemon.wait_ready(READY_SECONDS)

    def _site(self) -> LabSite:
        self._ports = lock_ports(3 + len(self.node_names))
        ctld, dbd, mariadb, first = self._ports.ports[:4]
        return LabSite(
            folder=self.folder,
            hostname=socket.gethostname().partition(".")[0],
            loopback_only=name_is_loopback(),
            user=pwd.getpwuid(os.geteuid()).pw_name,
            version=build.slurm_version(self.env),
            ctld_port=ctld,
            dbd_port=dbd,
            mariadb_port=mariadb,
            first_node_port=first,
            database_password=secrets.token_hex(16),
        )

    def _named(self, daemon: str, node: str | None) -> tuple[LabDaemon, ...]:
        """One daemon, or the slurmd of every node."""
        name = daemon if node is None else f"{daemon}-{node}"
        found = tuple(each for key, each in self._daemons.items() if key == name)
        if daemon == "slurmd" and node is None:
            found = tuple(each for key, each in self._daemons.items() if key.startswith("slurmd-"))
        if not found:
            raise LabError(f"the lab has no {name}: it runs {', '.join(self._daemons) or 'nothing'}")
        return found

    def _post_guard(self) -> None:
        """A process that cleans up if this one vanishes; the finalizer covers an ordinary exit."""
        remove = "remove" if self._temporary else "keep"
        self._guard = subprocess.Popen(
            (sys.executable, "-I", "-S", sweeping.__file__, str(self.folder), remove),
            stdin=subprocess.PIPE,
            start_new_session=True,
            cwd="/",
        )
        self._finalizer = weakref.finalize(self, _clean_up, os.getpid(), self.folder, self._temporary)

    def _dismiss_guard(self) -> None:
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.communicate(sweeping.STOPPED)
        if self._finalizer is not None:
            self._finalizer.detach()


def _clean_up(owner_pid: int, folder: Path, remove: bool) -> None:
    """Stop a lab that nobody stopped; a forked child of its owner keeps its hands off."""
    if os.getpid() != owner_pid:
        return
    sweeping.kill_leftovers(folder)
    if remove:
        shutil.rmtree(folder, ignore_errors=True)


def _fresh_folder(spec: LabSpec) -> Path:
    """A name that nobody has, below $TMPDIR unless that is closed to others (munged refuses it) or too long."""
    for parent in (tempfile.gettempdir(), "/tmp"):
        folder = Path(parent, f"lab-{secrets.token_hex(4)}").absolute()
        open_to_all = all(above.stat().st_mode & 0o001 for above in folder.parents)
        if open_to_all and longest_socket_path(folder, spec.node_names) <= SOCKET_PATH_BYTES:
            break
    return folder


def _environment(conf: Path) -> dict[str, str]:
    """This process's environment without what points at another Slurm."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
    return {**kept, "SLURM_CONF": str(conf), "PATH": path_with_system_folders()}


def _identity(user: str | None) -> tuple[int | None, int | None, list[int] | None]:
    """The ids that subprocess needs to run as this Unix user; None where it stays the caller."""
    if user is None:
        return None, None, None
    try:
        entry = pwd.getpwnam(user)
    except KeyError as error:
        raise InputError(f"lab: this machine has no Unix user {user!r}: create it or name another") from error
    return entry.pw_uid, entry.pw_gid, os.getgrouplist(user, entry.pw_gid)
