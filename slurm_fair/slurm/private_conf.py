"""A private copy of slurm.conf with a short MessageTimeout: a dead controller costs 3 s a call, not 10.

(slurm-facts: message-timeout)
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from slurm_fair.output import write_text

USUAL = Path("/etc/slurm/slurm.conf")  # where Slurm itself looks
_USUAL = (USUAL, Path("/etc/slurm-llnl/slurm.conf"))
_LINE = re.compile(r"(?im)^[ \t]*MessageTimeout[ \t]*=.*$")
_INCLUDE = re.compile(r"(?im)^[ \t]*include\s")


def site_conf(configured: str) -> Path | None:
    """The site's slurm.conf; None on a configless site."""
    named = configured or os.environ.get("SLURM_CONF", "")
    candidates = (Path(named),) if named else _USUAL
    return next((path for path in candidates if os.path.isfile(path)), None)


def short_timeout_copy(conf: Path, copy: Path, seconds: int) -> Path:
    """The copy, or the site's own file where a copy would not mean the same (it includes others by name)."""
    try:
        text = conf.read_text(errors="surrogateescape")
        if _INCLUDE.search(text):
            return conf
        wanted = f"{_LINE.sub('', text).rstrip()}\nMessageTimeout={seconds}\n"
        if not os.path.isfile(copy) or copy.read_text(errors="surrogateescape") != wanted:
            write_text(copy, wanted, 0o600)
    except OSError:
        return conf
    return copy
