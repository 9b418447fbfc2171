"""The project's own files, for the tests of its shape."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = ("slurm_fair", "plugins", "accounting", "sbatch_templates", "benchmarks", "tests")


@cache
def ours() -> tuple[Path, ...]:
    """Every text file that belongs to the project: what git knows, else all but what tools leave behind."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    if listed.returncode == 0 and listed.stdout:
        found = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        found = [path for path in ROOT.rglob("*") if not _left_behind(path)]
    return tuple(sorted(path for path in found if path.is_file()))


def _left_behind(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return any(part.startswith(".") or part == "__pycache__" or part.endswith(".egg-info") for part in parts)


@cache
def python() -> tuple[Path, ...]:
    return tuple(path for path in ours() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in CODE)


def named(path: Path) -> str:
    """The path from the project's root."""
    return path.relative_to(ROOT).as_posix()
