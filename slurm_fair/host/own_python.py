"""Start a Python of our own that imports only from its installation and inherits no setting."""

from __future__ import annotations

import os
import sys

from slurm_fair.slurm.command import search_path

FOLDER = "/"  # the working folder may be anybody's
_KEPT = ("SLURM_CONF", "TZ")


def our_program(*words: str) -> tuple[str, ...]:
    """`slurm-fair WORDS` as an argument list."""
    return (sys.executable, "-I", "-m", "slurm_fair.cli", *words)


def our_environment() -> dict[str, str]:
    """The environment of such a process; Slurm's commands get less."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {"PATH": search_path(), "HOME": "/", "LC_ALL": "C.UTF-8", **kept}
