"""The submit hook of a lab, with settings of a site."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from slurm_fair.lab import Lab

PLUGIN = Path(__file__).parents[2] / "plugins" / "slurm"
EMPTY_LUA = """
function slurm_job_submit() return slurm.SUCCESS end
function slurm_job_modify() return slurm.SUCCESS end
"""


def settle(lab: Lab, **settings: str) -> None:
    """Install job_submit.lua with other settings; slurmctld reads a file again if it is seconds newer."""
    text = (PLUGIN / "job_submit.lua").read_text()
    for name, value in settings.items():
        text, changed = re.subn(rf"(?m)^  {name} = [^-]*?,", f"  {name} = {value},", text)
        assert changed == 1
    installed = lab.folder / "job_submit.lua"
    if installed.read_text() != text:
        newer = max(installed.stat().st_mtime, time.time()) + 2
        installed.write_text(text)
        os.utime(installed, (newer, newer))
