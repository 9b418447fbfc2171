"""`make prove`: run the long proofs on a real Slurm and write their figures to docs/proofs.md."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Run, collect, write; the exit code is pytest's."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.time()
        command = [sys.executable, "-m", "pytest", "--prove", "-m", "prove", *sys.argv[1:]]
        code = subprocess.run(command, cwd=ROOT, env=os.environ | {"SLURM_FAIR_PROOFS": folder}, check=False)
        figures = Path(folder) / "figures.jsonl"
        rows = [json.loads(line) for line in figures.read_text().splitlines()] if figures.exists() else []
        write(rows, code.returncode, time.time() - began)
    return code.returncode


def write(rows: list[dict[str, Any]], code: int, seconds: float) -> None:
    """The page, in a form that differs between runs only where the figures do."""
    slurm = subprocess.run(["sinfo", "--version"], capture_output=True, text=True, check=False).stdout.strip()
    lines = [
        "# Proofs",
        "",
        "Written by `make prove`; every figure was measured by the run below, on a real Slurm in the lab",
        "(`slurm_fair.lab`), with everything on one machine. The proofs are the tests marked `prove`.",
        "",
        f"* {time.strftime('%Y-%m-%d')}, {slurm or 'Slurm of unknown version'}, "
        f"Python {platform.python_version()}, {os.cpu_count()} cores, {seconds / 60:.0f} minutes",
        f"* {'all proofs hold' if code == 0 else 'NOT ALL PROOFS HOLD: see the run'}",
        "",
        "| claim | goal | measured |",
        "| --- | --- | --- |",
        *(f"| {row['claim']} | {row['goal']} | {row['measured']} |" for row in rows),
        "",
    ]
    (ROOT / "docs" / "proofs.md").write_text("\n".join(lines))


if __name__ == "__main__":
    sys.exit(main())
