"""Reports in jobs' own comments, for sites where we do not see their files: numbers alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.reading.user_text import ask_text

EVERY_SECONDS = 60.0  # comments are read
AT_ONCE = 200  # jobs; of more squeue would list all there are
RENEWED_SECONDS = 1200.0  # a job changes its comment once a lease: for so long it is not taken to be silent
_NUMBER = r"[0-9][0-9.eE+-]{0,23}"
_TOKEN = re.compile(
    r"(?:^|(?<=\s))slurm_fair_report:job=([0-9]{1,10}(?:_[0-9]{1,10})?),restart=([0-9]{1,9})"
    rf"((?:,[a-z_]{{1,16}}={_NUMBER}){{1,12}})(?=\s|$)"
)


def read_report(comment: str, job: str) -> dict[str, object]:
    """The numbers of the last report of this job by key, as its file would have them; none where there is none."""
    said = [found for found in _TOKEN.findall(comment) if found[0] == job]
    if not said:
        return {}
    _, restart, pairs = said[-1]
    numbers = {key: _number(text) for key, _, text in (pair.partition("=") for pair in pairs[1:].split(","))}
    known = {key: number for key, number in numbers.items() if number is not None}
    return {**known, "restart": int(restart)}


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def reports_in_comments(
    commands: Commands, jobs: Mapping[int, tuple[int, str]]
) -> dict[int, dict[str, object]]:
    """Reports by key, of jobs by record and label; none where Slurm does not answer: asked again next time."""
    records: Sequence[int] = sorted({record for record, _ in jobs.values()})
    comments = ask_text(commands, records, "k")
    if isinstance(comments, str):
        return {}
    return {
        key: read_report(comments[record][0], name)
        for key, (record, name) in jobs.items()
        if record in comments
    }
