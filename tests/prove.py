"""`make prove`: run the long proofs, on a real Slurm and in simulations; write their figures to docs/proofs.md."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.support.proofs import joined

ROOT = Path(__file__).resolve().parent.parent


PAGE = ROOT / "docs" / "proofs.md"
HEAD = ("claim", "goal", "measured", "run")


def main() -> int:
    """Run, collect, write; the exit code is pytest's. Tests named on the command line renew only their rows."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pytest", "--prove", "-m", "prove", *sys.argv[1:]]
        code = subprocess.run(command, cwd=ROOT, env=os.environ | {"SLURM_FAIR_PROOFS": folder}, check=False)
        figures = Path(folder) / "figures.jsonl"
        lines = [json.loads(line) for line in figures.read_text().splitlines()] if figures.exists() else []
    rows, broken = joined(lines)
    before = known_rows() if of_some(sys.argv[1:]) else []
    write(rows, [row for row in before if row["claim"] not in broken])
    return code.returncode


def of_some(words: list[str]) -> bool:
    """True where the command line names tests; without names all proofs run, and those that fail leave no row."""
    return any(
        word.startswith(("-k", "--lf", "--part")) or (ROOT / word.split("::")[0]).exists() for word in words
    )


def write(rows: list[dict[str, Any]], before: list[dict[str, str]]) -> None:
    """The page: the newest figure of every claim, with the day and the Slurm that it was measured on."""
    run = f"{time.strftime('%Y-%m-%d')}, {slurm_version()}"
    kept = {row["claim"]: row for row in before}
    kept |= {row["claim"]: row | {"run": run} for row in rows}
    table = [" | ".join(str(row[name]) for name in HEAD) for row in kept.values()]
    lines = [
        "# Proofs",
        "",
        "Written by `make prove`: every figure was measured by it, on a real Slurm in the lab (`slurm_fair.lab`)",
        f"or in simulations, with everything on one machine, in the last run of {os.cpu_count()} cores. A proof",
        "that does not hold leaves no row, or one that misses its goal. The proofs are the tests marked `prove`.",
        "",
        f"| {' | '.join(HEAD)} |",
        "| --- | --- | --- | --- |",
        *(f"| {row} |" for row in table),
        "",
    ]
    PAGE.write_text("\n".join(lines))


def known_rows() -> list[dict[str, str]]:
    """The rows of the page as it stands."""
    lines = PAGE.read_text().splitlines() if PAGE.exists() else []
    cells = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| ")
    ]
    return [
        dict(zip(HEAD, row, strict=True))
        for row in cells
        if len(row) == len(HEAD) and row[0] not in ("claim", "---")
    ]


def slurm_version() -> str:
    """The Slurm that the lab runs."""
    done = subprocess.run(["slurmctld", "-V"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "Slurm of unknown version"


if __name__ == "__main__":
    sys.exit(main())
