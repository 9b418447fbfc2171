"""Read `scontrol show job` of several jobs so that one job's text can never speak for another job."""

from __future__ import annotations

from collections.abc import Iterable

from slurm_fair.slurm.command import Commands


def show_jobs(commands: Commands, records: Iterable[int], *options: str) -> dict[int, str]:
    """Per record its one line; an empty one where Slurm explains it with none or two, nothing without an answer.

    Names and comments hold newlines (slurm-facts: comments-keep-newlines). So after each answer scontrol repeats a
    word that is drawn anew: what stands between two of them is about one job and its array. scontrol itself prints
    the commands that it reads.
    """
    asked = list(records)
    word = f"end{commands.draw()}here"  # a number at its end would be a range of hosts
    lines = [line for record in asked for line in (f"show job {record}", f"show hostnames {word}")]
    answer = commands.run("scontrol", *options, "-o", stdin="\n".join([*lines, "exit", ""]))
    parts = answer.out.split(f"\n{word}\n")
    if answer.timed_out or len(parts) != len(asked) + 1:
        return {}
    return {record: _line_of(record, part) for record, part in zip(asked, parts, strict=False)}


def _line_of(record: int, part: str) -> str:
    """The id of an array's first record lists the whole array."""
    mine = [line for line in part.split("\n") if line.startswith(f"JobId={record} ")]
    return mine[0] if len(mine) == 1 else ""
