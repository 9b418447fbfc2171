"""Text that users wrote, asked so that one job's text can never speak for another job."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_fair.slurm.command import Commands, only_ids
from slurm_fair.slurm.queue import BETWEEN, ROW_END

_AT_ONCE = 500


def ask_text(commands: Commands, ids: Sequence[int], columns: str) -> dict[int, list[str]] | str:
    """Per record the columns of `squeue -o` (letters), or why there is no answer.

    Slurm keeps separators and newlines in comments. So columns and rows end with a mark that is drawn anew for
    each call: whatever a text holds, it stays in its column, and no text costs a call more.
    """
    found: dict[int, list[str]] = {}
    for first in range(0, len(ids), _AT_ONCE):
        some, mark = ids[first : first + _AT_ONCE], commands.draw()
        between, end = f"{BETWEEN}{mark}", f"{ROW_END}{mark}"
        layout = between.join(f"%{letter}" for letter in f"A{columns}") + end
        answer = commands.squeue("-j", only_ids([str(record) for record in some]), "-o", layout)
        if not answer.whole and "Invalid job id" in answer.err:
            continue  # the only id asked for is gone from memory
        if not answer.whole:
            return answer.complaint
        *rows, rest = answer.out.split(f"{end}\n")
        if rest:
            return "squeue: the last row is cut off"
        cells = [row.split(between) for row in rows]
        asked = {str(record): record for record in some}
        # Tasks of one record repeat its text.
        found |= {asked[r[0]]: r[1:] for r in cells if r[0] in asked and len(r) == len(columns) + 1}
    return found
