"""The README's commands, run as they stand there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.slurm.harness import REPOSITORY, Site

pytestmark = pytest.mark.slurm
_COMMAND = re.compile(r"`((?:slurm-fair|fair-sbatch|slurm-fair-acct)\b[^`]*)`")
TRAIN = "#!/bin/bash\n#SBATCH --gpus=1 --account=vision\nsleep 60\n"


def commands() -> list[str]:
    """Every command of ours that the README names."""
    return sorted(set(_COMMAND.findall((REPOSITORY / "README.md").read_text())))


def at_home(command: str, site: Site, job: str) -> list[str]:
    """The command of this installation, its job a real one, and writing nothing outside the test's folder."""
    program, *words = shlex.split(command)
    words = [{"1234": job, "NAME": "fifo"}.get(word, word) for word in words]
    more = {"init": ["--dir", str(site.folder / "system")], "run": ["--once"]}
    extra = more.get(words[0], []) if words else []
    return [str(Path(sys.executable).parent / program), *words, *extra]


def test_every_command_of_the_readme_works(new_site: Callable[..., Site]) -> None:
    site = new_site()
    (site.work() / "train.sh").write_text(TRAIN)
    (site.folder / "system").mkdir()
    job = site.submit(1, steps=1000)
    site.start()
    job.runs()
    site.stop()
    assert len(commands()) >= 6
    for command in commands():
        argv = at_home(command, site, job.label)
        env = site.lab.env | {"SLURM_FAIR_CONFIG": str(site.config), "USER": "root"}
        done = subprocess.run(argv, cwd=site.work(), env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{command}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
        assert "Traceback" not in done.stderr
