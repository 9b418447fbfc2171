"""Rows of sacct for tests: say what matters, the rest is quiet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from slurm_fair.slurm.history import FIELDS
from slurm_fair.slurm.past import MORE_FIELDS, Listing, Past

COLUMNS = (*FIELDS, *MORE_FIELDS)
BEGAN = 1_790_000_000
NEVER = "Unknown"


def run(
    job: str,
    submit: int,
    start: int | None,
    end: int | None,
    gpus: int = 1,
    tenant: str = "a",
    state: str = "COMPLETED",
    **cells: str,
) -> dict[str, str]:
    """One run; instants count from a beginning, None = not yet."""
    tres = f"cpu=1,gres/gpu={gpus},node=1" if gpus else "cpu=1,node=1"
    row = {
        "JobID": job,
        "Account": tenant,
        "User": f"u{tenant}",
        "Submit": str(BEGAN + submit),
        "Start": NEVER if start is None else str(BEGAN + start),
        "End": NEVER if end is None else str(BEGAN + end),
        "State": state,
        "AllocTRES": "" if start is None else tres,
        "ReqTRES": tres,
        "NNodes": "1",
        "TimelimitRaw": "60",
        "NodeList": "None assigned" if start is None else "n1",
    }
    return row | cells


def past(rows: Iterable[dict[str, str]]) -> Past:
    """Runs as accounting would tell them."""
    listing = Listing()
    for row in rows:
        listing.add(row)
    return listing.past()


def saved(path: Path, rows: Iterable[dict[str, str]], columns: Sequence[str] = COLUMNS) -> Path:
    """The same as a file of `sacct --parsable2`."""
    lines = ["|".join(columns), *("|".join(row[name] for name in columns) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path
