"""The description of a lab, and the Slurm configuration made from it: values in, text out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from slurm_fair.errors import InputError

CLUSTER = "lab"
DATABASE = "slurm_acct_db"
DATABASE_USER = "lab"
WORD = re.compile(r"[A-Za-z0-9_.-]+\Z")
# Slurm names the socket of a step SPOOL/NODE_JOB.STEP, and a Unix socket's path has at most 107 bytes.
SOCKET_PATH_BYTES = 107
LONGEST_STEP = "67108863.4294967291"
# It starts jobs at once; with many waiting jobs it makes slurmctld slow (slurm-facts: backfill-locks).
SCHEDULER = (
    "sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0,bf_continue,"
    "default_queue_depth=1000,bf_max_job_test=1000"
)


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Some nodes that are alike."""

    count: int
    gpus: int = 8
    gpu_type: str = "a100"
    cpus: int = 64
    memory_mb: int = 512_000


@dataclass(frozen=True, slots=True)
class LabSpec:
    """The cluster that a lab pretends to be; node_types, where given, overrides nodes to memory_mb."""

    nodes: int = 4
    gpus_per_node: int = 8
    gpu_type: str = "a100"
    cpus: int = 64
    memory_mb: int = 512_000
    node_types: tuple[NodeGroup, ...] = ()
    tenants: Mapping[str, int] = field(default_factory=lambda: {"vision": 1, "nlp": 1, "speech": 2})
    users: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    operators: tuple[str, ...] = ()
    partitions: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"gpu": ("ALL",)})
    database: bool = True
    job_submit: Path | None = None
    billing: str = ""  # TRESBillingWeights of every partition; Slurm bills CPUs unless told
    settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what would only show as an obscure complaint of a daemon."""
        words = [*self.tenants, *self.users, *self.operators, *self.partitions]
        words += [group.gpu_type for group in self.groups]
        for word in words:
            if not WORD.match(word):
                raise InputError(f"lab: {word!r} is no name for Slurm: use letters, digits, '_', '.' and '-'")
        if any(group.count < 1 or group.gpus < 0 or group.cpus < 1 for group in self.groups):
            raise InputError("lab: a group of nodes needs at least one node and one CPU")
        if not self.partitions:
            raise InputError("lab: jobs need at least one partition")
        if any(share < 0 for share in self.tenants.values()):
            raise InputError("lab: the share of a tenant is a whole number, 0 or more")
        unknown = {account for accounts in self.users.values() for account in accounts} - set(self.tenants)
        if unknown:
            raise InputError(f"lab: users name {sorted(unknown)}, which are not among the tenants")

    @property
    def groups(self) -> tuple[NodeGroup, ...]:
        """The nodes, kind by kind, in the order of their numbers."""
        if self.node_types:
            return self.node_types
        return (NodeGroup(self.nodes, self.gpus_per_node, self.gpu_type, self.cpus, self.memory_mb),)

    @property
    def node_names(self) -> tuple[str, ...]:
        """n1, n2, ... over all groups."""
        return tuple(f"n{number + 1}" for number in range(sum(group.count for group in self.groups)))


@dataclass(frozen=True, slots=True)
class LabSite:
    """The place of one lab: its folder, host, owner, ports and the version of Slurm that it runs.

    Slurm's only choice beside "every interface" is the address of the machine's own name, so loopback_only is
    false on a machine whose name means anything but 127.0.0.1.
    """

    folder: Path
    hostname: str
    loopback_only: bool
    user: str
    version: tuple[int, int]
    ctld_port: int
    dbd_port: int
    mariadb_port: int
    first_node_port: int
    database_password: str

    @property
    def conf(self) -> Path:
        """slurm.conf; the other configuration files lie beside it."""
        return self.folder / "slurm.conf"

    @property
    def munge_socket(self) -> Path:
        """The socket of the lab's own munged."""
        return self.folder / "munge" / "sock"

    @property
    def logs(self) -> Path:
        """The folder of the daemons' logs."""
        return self.folder / "log"


def longest_socket_path(folder: Path, node_names: tuple[str, ...]) -> int:
    """Bytes of the longest Unix socket path that Slurm may make for a step in this folder."""
    node = max(node_names, key=len)
    return len(str(folder / "spool" / node / f"{node}_{LONGEST_STEP}").encode())


def slurm_conf(spec: LabSpec, site: LabSite) -> str:
    """slurm.conf: base lines, overridden by spec.settings (an empty value drops the line), then the nodes."""
    lines = {**_base(site), **(_with_database(site) if spec.database else _without_database(site))}
    lines["DefMemPerCPU"] = str(min(group.memory_mb // group.cpus for group in spec.groups))
    if spec.job_submit is not None:
        lines["JobSubmitPlugins"] = "lua"
    spelled = {key.lower(): key for key in lines}
    for key, value in spec.settings.items():
        lines[spelled.get(key.lower(), key)] = value
    text = [f"{key}={value}" for key, value in lines.items() if value]
    return "\n".join([*text, *_node_lines(spec, site), *_partition_lines(spec)]) + "\n"


def _base(site: LabSite) -> dict[str, str]:
    """Settings of every lab's slurm.conf; plugins that do nothing (task/none and so on) are Slurm's defaults."""
    folder = site.folder
    return {
        "ClusterName": CLUSTER,
        "SlurmctldHost": f"{site.hostname}(127.0.0.1)",
        "SlurmctldPort": str(site.ctld_port),
        "SlurmUser": site.user,
        "SlurmdUser": site.user,
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={site.munge_socket}",
        "CommunicationParameters": "NoCtldInAddrAny,NoInAddrAny" if site.loopback_only else "",
        "StateSaveLocation": f"{folder}/state",
        "SlurmdSpoolDir": f"{folder}/spool/%n",
        "SlurmctldPidFile": f"{folder}/run/slurmctld.pid",
        "SlurmdPidFile": f"{folder}/run/slurmd-%n.pid",
        "SlurmctldLogFile": f"{site.logs}/slurmctld.log",
        "SlurmdLogFile": f"{site.logs}/slurmd-%n.log",
        "SlurmdParameters": "config_overrides",
        "ProctrackType": "proctrack/linuxproc",
        "MpiDefault": "none",
        "MailProg": "/bin/true",
        "PropagateResourceLimits": "NONE",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_CPU_Memory",
        "GresTypes": "gpu",
        "SchedulerType": "sched/backfill",
        "SchedulerParameters": SCHEDULER,
        "PriorityType": "priority/multifactor",
        "PriorityWeightAge": "100",
        "PriorityWeightFairshare": "1000",
        "PreemptType": "preempt/none",
        "JobRequeue": "1",
        "MinJobAge": "300",
        "KillWait": "5",
        "MessageTimeout": "10",
        "SlurmdTimeout": "30",
        "ReturnToService": "2",
    }


def _with_database(site: LabSite) -> dict[str, str]:
    """Settings for slurmdbd; AccountingStoragePass is the munge socket (slurm-facts: dbd-munge-socket)."""
    return {
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": "127.0.0.1",
        "AccountingStoragePort": str(site.dbd_port),
        "AccountingStoragePass": str(site.munge_socket),
        "AccountingStorageEnforce": "associations,limits,qos",
        "AccountingStorageTRES": "gres/gpu",
    }


def _without_database(site: LabSite) -> dict[str, str]:
    """Lines for a cluster without slurmdbd, where AccountingStorageTRES is fatal; a file keeps ended jobs."""
    return {
        "JobCompType": "jobcomp/filetxt",
        "JobCompLoc": f"{site.logs}/jobcomp.txt",
        "PriorityWeightFairshare": "",
    }


def _node_lines(spec: LabSpec, site: LabSite) -> list[str]:
    """One line a group; every slurmd has its own port of the loopback interface."""
    lines, first = [], 1
    for group in spec.groups:
        last = first + group.count - 1
        port = site.first_node_port + first - 1
        gres = f" Gres=gpu:{group.gpu_type}:{group.gpus}" if group.gpus else ""
        lines.append(
            f"NodeName={_span('n', first, last)} NodeAddr=127.0.0.1 NodeHostname={site.hostname} "
            f"Port={_span('', port, port + group.count - 1)} CPUs={group.cpus} "
            f"RealMemory={group.memory_mb}{gres} State=UNKNOWN"
        )
        first = last + 1
    return lines


def _partition_lines(spec: LabSpec) -> list[str]:
    """The first partition is the default one."""
    return [
        f"PartitionName={name} Nodes={','.join(nodes)} Default={'NO' if index else 'YES'} State=UP"
        + (f" TRESBillingWeights={spec.billing}" if spec.billing else "")
        for index, (name, nodes) in enumerate(spec.partitions.items())
    ]


def _span(prefix: str, first: int, last: int) -> str:
    """Slurm's range notation: n[1-4], or n3 alone."""
    return f"{prefix}{first}" if first == last else f"{prefix}[{first}-{last}]"


def gres_conf(spec: LabSpec, site: LabSite) -> str:
    """The pretend GPUs: slurmd drops GPUs without a device file, so each has a link to /dev/null.

    (slurm-facts: gpus-need-files)
    """
    lines, first = ["AutoDetect=off"], 1
    for group in spec.groups:
        nodes = _span("n", first, first + group.count - 1)
        first += group.count
        if group.gpus:
            files = _span(f"{site.folder}/dev/gpu", 0, group.gpus - 1)
            lines.append(f"NodeName={nodes} Name=gpu Type={group.gpu_type} File={files}")
    return "\n".join(lines) + "\n"


def cgroup_conf(site: LabSite) -> str | None:
    """Slurm 24.11 and later want to be told that there are no cgroups; earlier versions refuse the word."""
    return "CgroupPlugin=disabled\n" if site.version >= (24, 11) else None


def slurmdbd_conf(site: LabSite) -> str:
    """slurmdbd.conf; host and port are given because clients look for the socket in different places."""
    return "\n".join(
        [
            "AuthType=auth/munge",
            f"AuthInfo=socket={site.munge_socket}",
            *(["CommunicationParameters=NoInAddrAny"] if site.loopback_only else []),
            "DbdHost=localhost",
            "DbdAddr=127.0.0.1",
            f"DbdPort={site.dbd_port}",
            f"SlurmUser={site.user}",
            f"LogFile={site.logs}/slurmdbd.log",
            f"PidFile={site.folder}/run/slurmdbd.pid",
            "StorageType=accounting_storage/mysql",
            "StorageHost=127.0.0.1",
            f"StoragePort={site.mariadb_port}",
            f"StorageUser={DATABASE_USER}",
            f"StoragePass={site.database_password}",
            f"StorageLoc={DATABASE}",
            "",
        ]
    )


def database_init(site: LabSite) -> str:
    """The statements that MariaDB runs before it accepts its first connection."""
    who = f"'{DATABASE_USER}'@'127.0.0.1'"
    return (
        f"CREATE DATABASE IF NOT EXISTS {DATABASE};\n"
        f"CREATE OR REPLACE USER {who} IDENTIFIED BY '{site.database_password}';\n"
        f"GRANT ALL ON {DATABASE}.* TO {who};\n"
    )


def associations(spec: LabSpec, caller: str) -> str:
    """The tenants as `sacctmgr load` reads them; the caller belongs to all, a user's first is the default."""
    listed = {user: accounts for user, accounts in spec.users.items() if accounts}
    members = {caller: tuple(spec.tenants), **listed}
    outside = [user for user in spec.operators if user not in members]
    lines = [f"Cluster - '{CLUSTER}':Fairshare=1", "Parent - 'root'"]
    for name, share in spec.tenants.items():
        lines.append(f"Account - '{name}':Description='{name}':Fairshare={share}")
    lines += [_user_line(user, "root", spec.operators) for user in outside]
    for account in spec.tenants:
        lines.append(f"Parent - '{account}'")
        lines += [
            _user_line(user, accounts[0], spec.operators)
            for user, accounts in members.items()
            if account in accounts
        ]
    return "\n".join(lines) + "\n"


def _user_line(user: str, default: str, operators: tuple[str, ...]) -> str:
    """One member of an account; root and the lab's owner are administrators anyway."""
    level = ":AdminLevel='Operator'" if user in operators else ""
    return f"User - '{user}':DefaultAccount='{default}'{level}:Fairshare=1"
