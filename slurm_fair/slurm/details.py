"""What is asked once per job and remembered: its stamp, its directory, the nodes it excludes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from slurm_fair.slurm import hostlist
from slurm_fair.slurm.command import Commands, only_ids, rows_of
from slurm_fair.slurm.queue import BETWEEN, ROW_END
from slurm_fair.slurm.stamp import Stamp, read_stamp

# The user's own text comes last, and a row counts only when its id was asked for and comes once: a comment
# that forges a row makes its owner's job count as unstamped, nothing else.
_FORMAT = f"%A{BETWEEN}%x{BETWEEN}%Z{BETWEEN}%k{ROW_END}"
_AT_ONCE = 500
UNSTAMPED = Stamp()


@dataclass(frozen=True, slots=True)
class Details:
    """Of one Slurm record."""

    stamp: Stamp | None
    work_dir: str
    excluded: tuple[str, ...]

    @property
    def gate_stamp(self) -> Stamp:
        """The stamp, or one that says nothing."""
        return self.stamp or UNSTAMPED


UNKNOWN = Details(None, "", ())


@dataclass(slots=True)
class DetailsBook:
    """Remembers details by (record, restarts): a requeue, or another job under the id, asks again."""

    commands: Commands
    _known: dict[tuple[int, int], Details] = field(default_factory=dict)

    def learn(self, identities: Iterable[tuple[int, int]]) -> str:
        """Ask for the unknown ones; a complaint when Slurm does not answer well."""
        identities = list(identities)
        wanted = set(identities)
        self._known = {who: known for who, known in self._known.items() if who in wanted}
        missing = [who for who in identities if who not in self._known]
        for first in range(0, len(missing), _AT_ONCE):
            complaint = self._ask(missing[first : first + _AT_ONCE])
            if complaint:
                return complaint
        return ""

    def of(self, record: int, restarts: int) -> Details:
        """What is known of a record."""
        return self._known.get((record, restarts), UNKNOWN)

    def _ask(self, identities: Sequence[tuple[int, int]]) -> str:
        ids = only_ids([str(record) for record, _ in identities])
        answer = self.commands.run("squeue", "-h", "-a", "-t", "all", "-j", ids, "-o", _FORMAT)
        rows = rows_of(answer, 4, ROW_END, BETWEEN)
        if isinstance(rows, str) and "columns instead" not in rows:
            return "" if "Invalid job id" in rows else rows
        found = {} if isinstance(rows, str) else _once(rows)
        for record, restarts in identities:
            row = found.get(str(record))
            self._known[record, restarts] = _details(row) if row else UNKNOWN
        return ""


def _once(rows: list[list[str]]) -> dict[str, list[str]]:
    counts: dict[str, int] = {}
    for row in rows:
        counts[row[0]] = counts.get(row[0], 0) + 1
    return {row[0]: row for row in rows if counts[row[0]] == 1}


def _details(row: list[str]) -> Details:
    _, excluded, work_dir, comment = row
    names = hostlist.expand(excluded) if excluded and excluded != "(null)" else ()
    return Details(read_stamp(comment), work_dir, names)
