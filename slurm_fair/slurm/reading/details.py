"""Details that no look lists, asked now and then and remembered: stamp, directory, nodes that a job excludes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from slurm_fair.errors import SlurmTextError
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.reading import values
from slurm_fair.slurm.reading.bearers import NOBODY, RunId
from slurm_fair.slurm.reading.scheduled import LastScheduled
from slurm_fair.slurm.reading.stamp import Stamp, read_stamp
from slurm_fair.slurm.reading.user_text import ask_text
from slurm_fair.slurm_text import hostlist

_COLUMNS = "fxZkj"  # constraint, excluded nodes, directory, comment, name
UNSTAMPED = Stamp()
NO_BEGINS: Mapping[RunId, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Details:
    """Details of one Slurm record, which `squeue` does not list at each look."""

    stamp: Stamp | None
    work_dir: str
    excluded: tuple[str, ...]
    constraint: str = ""  # features of nodes that it asks for
    name: str = ""

    @property
    def gate_stamp(self) -> Stamp:
        """The stamp, or one that says nothing."""
        return self.stamp or UNSTAMPED


UNKNOWN = Details(None, "", ())


@dataclass(slots=True)
class JobDetails:
    """Remembers details by (record, restarts): a requeue, or another job under the id, asks again.

    So does a begin time that is new and that nobody explains. An owner or an admin may change all of them on a
    waiting job, and no column of a look tells: `spacing.py` finds the jobs to ask about `again`.
    """

    commands: Commands
    scheduled: LastScheduled = field(init=False)
    naming: set[RunId] = field(default_factory=set)  # those that name sizes
    profiled: set[int] = field(default_factory=set)  # records whose speed is to be measured
    _known: dict[RunId, Details] = field(default_factory=dict)
    _said: dict[RunId, int] = field(default_factory=dict)  # hashes of Slurm's words
    _begins: Mapping[RunId, float] = field(default_factory=dict)  # those of the last time

    def __post_init__(self) -> None:
        self.scheduled = LastScheduled(self.commands)

    def learn(
        self,
        identities: Iterable[RunId],
        begins: Mapping[RunId, float] = NO_BEGINS,
        again: Collection[RunId] = NOBODY,
    ) -> str:
        """Ask for the unknown ones and for some `again`; a complaint when Slurm does not answer well.

        `begins` are begin times that nothing explains.
        """
        identities = list(identities)
        wanted = set(identities)
        self._known = {who: known for who, known in self._known.items() if who in wanted}
        if len(self._said) > len(self._known):
            self._said = {who: said for who, said in self._said.items() if who in self._known}
        new = {who for who, begin in begins.items() if begin != self._begins.get(who)}.union(again)
        missing = [who for who in identities if who in new or who not in self._known]
        rows = ask_text(self.commands, sorted({record for record, _ in missing}), _COLUMNS) if missing else {}
        if isinstance(rows, str):
            return rows
        for who in missing:
            self._hear(who, rows.get(who[0]))
        if missing or len(self.naming) > len(wanted):
            stamps = [(who, known.gate_stamp) for who, known in self._known.items()]
            self.naming = {who for who, stamp in stamps if stamp.sizes or stamp.bad_sizes}
            self.profiled = {record for (record, _), stamp in stamps if stamp.profile}
        self._begins = begins
        return ""

    def _hear(self, who: RunId, row: list[str] | None) -> None:
        """Keep what Slurm says now; what it does not list stays as it was, and the same words are read once."""
        if not row:
            self._known.setdefault(who, UNKNOWN)
            return
        said = hash(tuple(row))
        if who not in self._known or self._said.get(who) != said:
            self._known[who], self._said[who] = _details(row), said

    def forget(self, runs: Iterable[RunId]) -> None:
        """Ask anew for these when they are next wanted: their records bear other jobs."""
        for who in runs:
            self._known.pop(who, None)

    def of(self, record: int, restarts: int) -> Details:
        """The known details of a record."""
        return self._known.get((record, restarts), UNKNOWN)


def _details(row: list[str]) -> Details:
    constraint, excluded, work_dir, comment, name = row
    try:
        names = hostlist.expand(excluded)
    except SlurmTextError:  # its directory's name holds a separator: a job that confuses only itself
        return UNKNOWN
    wanted = "" if values.is_nothing(constraint) else constraint
    return Details(read_stamp(comment), work_dir, names, wanted, name)
