"""The daemon's own report on whether it looks and acts, for users who may not read its storage."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path

from slurm_fair.host.state_folder import is_of_kind
from slurm_fair.model import Gate
from slurm_fair.model.counted import cut_at_word

NAME = "health.json"
_VERSION = 1
_MOST_BYTES = 4096
_MOST_TEXT = 300
SILENT_SECONDS = 60.0  # beside three intervals: a look may take long


class DaemonState(StrEnum):
    """The state of the daemon. A silent daemon does not say so: that it is silent follows from its age."""

    ACTING = "acting"
    PAUSED = "paused"
    SHADOW = "shadow"
    BLIND = "blind"
    STOPPED = "stopped"
    SILENT = "silent"


_PUBLISHED = frozenset(DaemonState) - {DaemonState.SILENT}  # states that a daemon tells of itself


@dataclass(frozen=True, slots=True)
class Health:
    """Written at every look, also at one that shows nothing; its age tells whether the daemon lives."""

    time: float
    interval_seconds: float
    seen: float  # the instant of the last look that was good
    state: DaemonState
    why: str = ""

    def acts_at(self, now: float) -> bool:
        """True if a controller that said this acts now; the submit hook has the same rule.

        What was said at a time to come is old: the clock was set back since, and nobody has written anew.
        """
        age = now - self.time
        fresh = -SILENT_SECONDS < age < 3 * self.interval_seconds + SILENT_SECONDS
        return fresh and self.state is DaemonState.ACTING

    def text(self) -> str:
        """The state as one JSON document."""
        return json.dumps({"v": _VERSION, **asdict(self), "why": cut_at_word(self.why, _MOST_TEXT)})


def hooks_file(gate: str, publish_dir: str) -> str:
    """The file that tells the submit hook that the controller acts; only where gates are holds, which stay."""
    return f"{publish_dir}/{NAME}" if gate == Gate.HOLD and publish_dir else ""


def read_health(path: Path) -> Health | None:
    """The health that the daemon published last; None where there is nothing that can be read."""
    try:
        with path.open("rb") as file:
            said = json.loads(file.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or said.pop("v", None) != _VERSION:
        return None
    known = {name: value for name, value in said.items() if name in _KINDS}
    if len(known) < len(_KINDS) or not all(is_of_kind(known[name], kind) for name, kind in _KINDS.items()):
        return None
    if known["state"] not in _PUBLISHED:
        return None
    return Health(**known | {"state": DaemonState(known["state"])})


_KINDS = {field.name: float if field.type == "float" else str for field in fields(Health)}
