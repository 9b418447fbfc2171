"""Text that users wrote, asked so that one job's text can never speak for another job."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_fair.slurm.command import Commands, only_ids
from slurm_fair.slurm.reading.queue import BETWEEN, ROW_END

_MOST_IDS = 200  # squeue itself picks several ids out of the whole queue, for each call anew


def ask_text(commands: Commands, ids: Sequence[int], columns: str) -> dict[int, list[str]] | str:
    """Per record the columns of `squeue -o` (letters), or why there is no answer.

    Slurm keeps separators and newlines in comments (slurm-facts: comments-keep-newlines). So columns and rows end
    with a mark that is drawn anew for each call. Whatever a text holds, it stays in its column, and no text costs
    a call more.
    """
    if not ids:
        return {}
    mark = commands.draw()
    between, end = f"{BETWEEN}{mark}", f"{ROW_END}{mark}"
    layout = between.join(f"%{letter}" for letter in f"A{columns}") + end
    only = ("-j", only_ids([str(record) for record in ids])) if len(ids) <= _MOST_IDS else ()
    answer = commands.squeue(*only, "-o", layout)
    if only and not answer.whole and "Invalid job id" in answer.err:
        return {}  # the only id asked for is gone from memory
    if not answer.whole:
        return answer.complaint
    *rows, rest = answer.out.split(f"{end}\n")
    if rest:
        return "squeue: the last row is cut off"
    cells = [row.split(between) for row in rows]
    asked = {str(record): record for record in ids}
    # Tasks of one record repeat its text.
    return {asked[r[0]]: r[1:] for r in cells if r[0] in asked and len(r) == len(columns) + 1}
