"""Examples of the pages, with what their commands say now."""

from __future__ import annotations

import shlex

from tests.support.command_line import call


def said(block: str) -> str:
    """The block with what its commands say, without the machine's own numbers."""
    lines = []
    for line in block.splitlines():
        if line.startswith("$ slurm-fair "):
            answer = call(*shlex.split(line)[2:])
            assert (answer.code, answer.err) == (0, "")
            table = answer.out.partition("This run\n")[0]
            lines += [line, *table.splitlines()]
    return "\n".join(lines) + "\n"
