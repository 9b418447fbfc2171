"""Text that users wrote, asked so that one job's text can never speak for another job."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_fair.slurm.command import Answer, Commands, only_ids
from slurm_fair.slurm.queue import BETWEEN, ROW_END

_AT_ONCE = 500


def ask_text(commands: Commands, ids: Sequence[int], columns: str) -> dict[int, list[str]] | str:
    """Per record the columns of `squeue -o` (letters, the freest text last), or why there is no answer.

    Slurm keeps separators and newlines in comments. An answer that such a comment could have forged is asked
    for again in halves; one job asked for alone can only forge itself, and counts as without text then.
    """
    found: dict[int, list[str]] = {}
    waiting = [list(ids[first : first + _AT_ONCE]) for first in range(0, len(ids), _AT_ONCE)]
    while waiting:
        some = waiting.pop()
        answer = _ask(commands, some, columns)
        if not answer.whole:
            if "Invalid job id" in answer.err:
                continue
            return answer.complaint
        rows = _read(answer.out, set(some), len(columns))
        if rows is not None:
            found |= rows
        elif len(some) > 1:
            middle = len(some) // 2
            waiting += [some[:middle], some[middle:]]
    return found


def _ask(commands: Commands, ids: Sequence[int], columns: str) -> Answer:
    letters = BETWEEN.join(f"%{letter}" for letter in f"A{columns}")
    return commands.squeue("-j", only_ids([str(record) for record in ids]), "-o", f"{letters}{ROW_END}")


def _read(text: str, asked: set[int], columns: int) -> dict[int, list[str]] | None:
    """The rows by record; None when some text may have made up a row."""
    *rows, rest = text.split(f"{ROW_END}\n")
    if rest:
        return None
    found: dict[int, list[str]] = {}
    for row in rows:
        record, *fields = row.split(BETWEEN, columns)
        plain = record.isascii() and record.isdigit() and len(record) <= 10
        if not plain or len(fields) != columns or ROW_END in row:
            return None
        if found.setdefault(int(record), fields) != fields:  # tasks of one record repeat its text
            return None
    return {record: fields for record, fields in found.items() if record in asked}
