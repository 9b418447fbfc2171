"""The batch script of `make fidelity`: it works for so long, saves when it is asked, and notes its instants."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

# Work is microseconds by the wall clock. One process a job: reading a pipe that nobody writes to is the pause.
# A request interrupts it, and then it goes on: a pause within the answer would take its time limit away. From the
# answer on the job makes no progress until its patience is over: `since` then lies ahead.
SCRIPT = r"""#!/bin/bash
work=$1 patience=$2 name=$SLURM_JOB_NAME id=$SLURM_JOB_ID
restart=${SLURM_RESTART_COUNT:-0} done=0 request=0
exec 9<> <(:)
[ -f "$name.saved" ] && read -r done < "$name.saved"
since=${EPOCHREALTIME/./}
answer() {
    local at=${EPOCHREALTIME/./}
    request=$((request + 1))
    [ "$at" -gt "$since" ] && done=$((done + at - since))
    since=$((at + patience))
    echo "$done" > "$name.saved.$restart" && mv "$name.saved.$restart" "$name.saved"
    mkdir -p ".slurm-fair/$id"
    local head='"v": 1, "what": "ack", "job": "%s", "restart": %d'
    printf "{$head"', "request": %d, "saved": true, "step": null, "save_s": 0, "time": %s}' \
        "$id" "$restart" "$request" "$EPOCHREALTIME" > ".slurm-fair/$id/ack.new"
    mv ".slurm-fair/$id/ack.new" ".slurm-fair/$id/ack.json"
    echo "$restart $at $done" >> "$name.asked"
}
trap answer USR2
echo "$restart $since $done" >> "$name.starts"
while left=$((work - done - ${EPOCHREALTIME/./} + since)) && [ "$left" -gt 0 ]; do
    printf -v left '%d.%06d' $((left / 1000000)) $((left % 1000000))
    read -rt "$left" -u 9
done
echo "$restart ${EPOCHREALTIME/./} $work" > "$name.end"
"""


@dataclass(frozen=True, slots=True)
class Note:
    """One line of a job's notes: which run, when, and seconds of work done by then."""

    restart: int
    time: float
    done: float


def notes(folder: Path, name: str, what: str) -> list[Note]:
    """The `starts`, `asked` or `end` that a job noted, oldest first."""
    path = folder / f"{name}.{what}"
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [line.split() for line in lines]
    return [Note(int(restart), int(time) / 1e6, int(done) / 1e6) for restart, time, done in rows]
