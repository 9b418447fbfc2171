"""Jobs that count: each step changes a hash, so what ran twice, or from the wrong snapshot, shows at the end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

# `deaf` never answers a request; `leave` answers and then ends by itself at about the moment of its requeue.
# No process of its own per step: read(1) from a pipe that nobody writes to is the pause.
SCRIPT = r"""#!/bin/bash
steps=${1:-1000000} pause=${2:-0.2} code=${3:-0} manner=${4:-}
name=$SLURM_JOB_ID
[ -n "$SLURM_ARRAY_JOB_ID" ] && name=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
restart=${SLURM_RESTART_COUNT:-0} step=0 hash=7 request=0
exec 9<> <(:)
[ -f "$name.state" ] && read -r step hash < "$name.state"
echo "$restart $EPOCHREALTIME $SLURM_JOB_NODELIST $step" >> "$name.starts"
save() { echo "$step $hash" > "$name.state.$restart" && mv "$name.state.$restart" "$name.state"; }
answer() {
    [ "$manner" = deaf ] && return
    save
    request=$((request + 1))
    mkdir -p ".slurm-fair/$name"
    local head='"v": 1, "what": "ack", "job": "%s", "restart": %d'
    printf "{$head"', "request": %d, "saved": true, "step": %d, "save_s": 0, "time": %s}' \
        "$name" "$restart" "$request" "$step" "$EPOCHREALTIME" > ".slurm-fair/$name/ack.new"
    mv ".slurm-fair/$name/ack.new" ".slurm-fair/$name/ack.json"
    [ "$manner" = leave ] && { read -rt "0.$((RANDOM % 6))" -u 9; exit "$code"; }
    local until=$((SECONDS + 6))
    while [ "$SECONDS" -lt "$until" ]; do read -rt 0.1 -u 9; done
}
trap answer USR2
while [ "$step" -lt "$steps" ]; do
    read -rt "$pause" -u 9
    step=$((step + 1)) hash=$(((hash * 1103515245 + step) % 2147483648))
    echo "$restart $step" >> "$name.steps"
done
save
echo "$step $hash" > "$name.result"
exit "$code"
"""

# Knows nothing of the protocol.
PLAIN_SCRIPT = r"""#!/bin/bash
name=$SLURM_JOB_ID
[ -n "$SLURM_ARRAY_JOB_ID" ] && name=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
echo "${SLURM_RESTART_COUNT:-0} $EPOCHREALTIME $SLURM_JOB_NODELIST 0" >> "$name.starts"
sleep "${1:-600}"
exit "${2:-0}"
"""


def hash_after(steps: int) -> int:
    """The result of an undisturbed job."""
    value = 7
    for step in range(1, steps + 1):
        value = (value * 1103515245 + step) % 2147483648
    return value


@dataclass(frozen=True, slots=True)
class Start:
    """One start of a job, as its script noted it."""

    restart: int
    time: float
    nodes: str
    step: int


@dataclass(frozen=True, slots=True)
class Diary:
    """A job's own record of itself."""

    folder: Path
    label: str

    def starts(self) -> list[Start]:
        """All starts, oldest first."""
        lines = [line.split() for line in self._lines("starts")]
        return [Start(int(r), float(t), nodes, int(step)) for r, t, nodes, step in lines]

    def steps(self) -> list[tuple[int, int]]:
        """(restart, step) of every step executed, in order."""
        return [(int(a), int(b)) for a, b in (line.split() for line in self._lines("steps"))]

    def result(self) -> tuple[int, int] | None:
        """(steps, hash) of a job that ended by itself."""
        lines = self._lines("result")
        return (int(lines[0].split()[0]), int(lines[0].split()[1])) if lines else None

    def _lines(self, name: str) -> list[str]:
        path = self.folder / f"{self.label}.{name}"
        return path.read_text().splitlines() if path.exists() else []
