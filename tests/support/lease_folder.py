"""The runtime's side of a job's folder: requests, answers and the environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def environment(folder: Path, **more: str) -> dict[str, str]:
    """The variables that the runtime sets, for run 1 of job 7."""
    return {
        "SLURM_FAIR_MANAGED": "1",
        "SLURM_FAIR_DIR": str(folder),
        "SLURM_FAIR_GRACE": "5",
        "SLURM_FAIR_SIGNAL": "USR2",
        "SLURM_JOB_ID": "7",
        "SLURM_RESTART_COUNT": "1",
        **more,
    }


def ask(folder: Path, request: int, restart: int = 1) -> None:
    """A request as the runtime writes it."""
    (folder / "request.json").write_text(
        json.dumps({"v": 1, "what": "request", "job": "7", "restart": restart, "request": request, "time": 1})
    )


def read(folder: Path, name: str) -> dict[str, Any]:
    """One of the files that the controller reads."""
    document: dict[str, Any] = json.loads((folder / name).read_text())
    return document
