"""Send the lines of many jobs to several scontrol processes, which Slurm answers side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from slurm_fair.model import Action
from slurm_fair.slurm.command import CommandResult, Commands

_AT_LEAST = 16  # acts of one scontrol: a further process costs as much as some acts
_TOGETHER = 8  # scontrols


def send_lines(commands: Commands, lines: Mapping[Action, Sequence[str]]) -> dict[Action, CommandResult]:
    """All lines of all acts; those of one act stay together, in their order."""
    everybody = list(lines)
    size = max(_AT_LEAST, math.ceil(len(everybody) / _TOGETHER))
    parts = [everybody[at : at + size] for at in range(0, len(everybody), size)]
    texts = [[line for action in part for line in lines[action]] for part in parts]
    if len(parts) == 1:
        return dict.fromkeys(everybody, _scontrol(commands, texts[0]))
    with ThreadPoolExecutor(_TOGETHER, thread_name_prefix="scontrol") as threads:
        said = list(threads.map(lambda text: _scontrol(commands, text), texts))
    return {action: answer for part, answer in zip(parts, said, strict=True) for action in part}


def _scontrol(commands: Commands, lines: Sequence[str]) -> CommandResult:
    """One scontrol for all; an act that needs nothing to be sent needs no scontrol."""
    if not lines:
        return CommandResult(("scontrol",), 0, "", "", 0.0)
    return commands.run("scontrol", stdin="\n".join([*lines, "exit", ""]))
