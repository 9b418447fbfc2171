"""Everything the doctor asks Slurm, asked once; a controller that does not answer costs one short call."""

from __future__ import annotations

import os
import pwd
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from slurm_fair.config.sections import Config
from slurm_fair.daemon.parts import conf_of
from slurm_fair.errors import NotHere, SlurmError, SlurmFairError
from slurm_fair.host.state_folder import Places
from slurm_fair.model import Blind, Snapshot
from slurm_fair.slurm.cluster import SlurmCluster
from slurm_fair.slurm.command import CommandResult, Commands
from slurm_fair.slurm.fail_open import NoIntents
from slurm_fair.slurm.history import SlurmHistory
from slurm_fair.slurm.notice import Notice, read_notices
from slurm_fair.slurm.ownership.doubt import ListsInHand
from slurm_fair.slurm.ownership.marks import MarksInHand
from slurm_fair.slurm.reading.nodes import NodeListing, read_nodes
from slurm_fair.slurm.reading.queue import Queue
from slurm_fair.store import open_reader

PROGRAMS = ("scontrol", "squeue", "sinfo", "scancel", "sacct", "sacctmgr", "sshare")
_VERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})(?:\.\S+)?")
_AS_OF = re.compile(r"Configuration data as of ([0-9]{1,12})")
_WHOLE = re.compile(r"-?[0-9]{1,10}")
_HISTORY_SECONDS = 600.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Facts:
    """Answers of Slurm and of this machine; one that Slurm did not give is empty, and `silence` says why."""

    config: Config
    places: Places
    now: float
    uid: int
    account: str
    conf: Path | None = None
    missing: tuple[str, ...] = ()
    client: str = ""
    silence: str = "Slurm was not asked"
    slurm: Mapping[str, str] = field(default_factory=dict)  # scontrol show config
    clock_ahead: float = 0.0  # slurmctld's clock less ours
    seconds: Mapping[str, float] = field(default_factory=dict)  # by kind of call
    machines: NodeListing | str = "Slurm was not asked"
    snapshot: Snapshot | str = "Slurm was not asked"
    history: str = ""  # why accounting does not answer
    admin_level: str = ""  # what accounting knows the account as; empty: nothing
    notices: tuple[Notice, ...] | str = ()  # of daemons that act here, or why they cannot be seen
    known: Mapping[str, frozenset[str] | str] = field(default_factory=dict)  # accounts and QOS

    def commands(self) -> Commands:
        """The commands, for findings that ask Slurm more."""
        return _commands(self.config)[0]

    @property
    def reachable(self) -> bool:
        """True if the controller answered."""
        return not self.silence

    def words_of(self, key: str) -> Mapping[str, str]:
        """`a=1,b,c=2` of Slurm's configuration as a mapping, keys in lower case."""
        pairs = (part.strip().partition("=") for part in self.value(key).split(","))
        return {name.lower(): value for name, _, value in pairs if name}

    def value(self, key: str) -> str:
        """A value of Slurm's configuration; empty when it is unset."""
        text = self.slurm.get(key, "")
        return "" if text in ("(null)", "N/A", "NONE") else text

    def whole(self, key: str, default: int) -> int:
        """A number of Slurm's configuration, such as `30 sec`."""
        return number_or(self.value(key).split(" ")[0], default)

    @property
    def all_powerful(self) -> bool:
        """Root and SlurmUser may do everything and know no rate limit."""
        return self.uid == 0 or self.value("SlurmUser").endswith(f"({self.uid})")


def number_or(text: str, default: int) -> int:
    """A whole number as slurm.conf has it, or what holds where there is none."""
    return int(text) if _WHOLE.fullmatch(text) else default


def gather(config: Config, places: Places, now: float) -> Facts:
    """Look at everything; nothing is changed."""
    commands, conf = _commands(config)
    uid = os.geteuid()
    start = Facts(config, places, now, uid, _name_of(uid), conf)
    missing = tuple(name for name in PROGRAMS if not _is_there(commands, name))
    if "scontrol" in missing:
        return replace(start, missing=missing, silence="Slurm's commands are not here")
    answer = commands.run("scontrol", "--version")
    client = match[0] if (match := _VERSION.search(answer.out)) else ""
    ping = commands.run("scontrol", "ping")
    if not ping.whole or "is UP" not in ping.out:
        said = ping.out.splitlines()[0].strip() if ping.out.strip() else ping.complaint
        return replace(start, missing=missing, client=client, silence=said)
    if missing:
        return replace(start, missing=missing, client=client, silence=f"{', '.join(missing)} not found")
    return _ask(replace(start, client=client), commands)


def names_known(config: Config, places: Places, commands: Commands) -> Facts:
    """The facts that tell if names in the configuration are Slurm's; cheap enough for each start."""
    uid = os.geteuid()
    return Facts(
        config,
        places,
        time.time(),
        uid,
        _name_of(uid),
        machines=read_nodes(commands),
        known=_known(commands),
    )


def _known(commands: Commands) -> dict[str, frozenset[str] | str]:
    return {"accounts": _names(commands, "account", "Account"), "qos": _names(commands, "qos", "Name")}


def _commands(config: Config) -> tuple[Commands, Path | None]:
    """Commands with the site's own slurm.conf: the doctor leaves no copy behind."""
    conf = conf_of(config)
    bin_dir = Path(config.slurm.bin_dir) if config.slurm.bin_dir else None
    return Commands(conf, config.slurm.timeout, bin_dir), conf


def _ask(start: Facts, commands: Commands) -> Facts:
    shown = commands.run("scontrol", "show", "config")
    if not shown.whole:
        return replace(start, silence=shown.complaint)
    as_of, answered = _AS_OF.search(shown.out), time.time()
    times = CallTimes()
    machines = times.time("nodes (sinfo)", lambda: read_nodes(commands))
    times.time("queue (squeue)", lambda: Queue(commands).read())
    notices = _notices(commands)
    snapshot = times.time("a whole look", lambda: _look(start, commands, notices))
    history = times.time("accounting (sacct)", lambda: _history(start, commands))
    return replace(
        start,
        silence="",
        slurm=dict(_pairs(shown)),
        clock_ahead=_ahead(float(as_of[1]), shown.seconds, answered) if as_of else 0.0,
        seconds={"configuration (scontrol)": shown.seconds, **times.seconds},
        machines=machines,
        snapshot=snapshot,
        history=history,
        notices=notices,
        admin_level=_admin_level(start, commands),
        known=_known(commands),
    )


def _notices(commands: Commands) -> tuple[Notice, ...] | str:
    try:
        return read_notices(commands)
    except SlurmFairError as problem:
        return str(problem)


@dataclass(slots=True)
class CallTimes:
    """Seconds that each call took."""

    seconds: dict[str, float] = field(default_factory=dict)

    def time(self, name: str, call: Callable[[], T]) -> T:
        """Make the call and remember its time."""
        began = time.monotonic()
        result = call()
        self.seconds[name] = time.monotonic() - began
        return result


def _ahead(as_of: float, took: float, answered: float) -> float:
    """Slurm's whole second against the interval in which it was said; 0 when it lies within."""
    earliest = answered - took - 1.0
    return max(as_of - answered, 0.0) or min(as_of - earliest, 0.0)


def _pairs(shown: CommandResult) -> Iterator[tuple[str, str]]:
    for line in shown.out.splitlines():
        key, equals, value = line.partition("=")
        if equals:
            yield key.strip(), value.strip()


def _look(start: Facts, commands: Commands, notices: tuple[Notice, ...] | str) -> Snapshot | str:
    """The snapshot that the daemon would take now."""
    try:
        with open_reader(start.places.journal) as journal:
            marks, lists = journal.marks(), journal.lists_at_first()
    except NotHere:
        marks, lists = (), None
    except SlurmFairError:  # it is there, and closed to us or broken: whose node lists are whose is not known
        marks, lists = (), {}
    cluster = SlurmCluster(commands, start.config.cluster, time.time, MarksInHand(marks), NoIntents())
    cluster.lists = ListsInHand(lists)
    cluster.notices.update(notice.job for notice in notices if isinstance(notice, Notice))
    seen = cluster.observe({})
    return seen.reason if isinstance(seen, Blind) else seen


def _history(start: Facts, commands: Commands) -> str:
    partitions = start.config.scope.partitions
    runs = SlurmHistory(commands).runs(start.now - _HISTORY_SECONDS, start.now, partitions)
    return runs.reason if isinstance(runs, Blind) else ""


def _admin_level(start: Facts, commands: Commands) -> str:
    """None, Operator or Administrator; empty when accounting does not know the account, or does not answer."""
    answer = commands.run("sacctmgr", "-n", "-P", "show", "user", start.account, "format=User,AdminLevel")
    rows = (line.split("|") for line in answer.out.splitlines()) if answer.whole else ()
    return next((row[1] for row in rows if len(row) == 2 and row[0] == start.account), "")


def _names(commands: Commands, kind: str, column: str) -> frozenset[str] | str:
    answer = commands.run("sacctmgr", "-n", "-P", "show", kind, f"format={column}")
    return frozenset(answer.out.split("\n")) - {""} if answer.whole else answer.complaint


def _is_there(commands: Commands, program: str) -> bool:
    try:
        return bool(commands.path(program))
    except SlurmError:
        return False


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
