"""Files of virtual counters: the same that a real counter writes, made from what its runs did.

Work that the cluster or the controller lost, or counted twice, shows in them as it would in those of real jobs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

from slurm_fair.demo.scenario import STEP_SECONDS, DemoJob
from slurm_fair.model.end_words import COMPLETED
from slurm_fair.sim import Run
from slurm_fair_templates.demo_counter import START_HASH, step_hash

_ROUNDING = 1e-6  # of a step: instants are floats


def _steps(seconds: float) -> int:
    """Whole steps in so much work."""
    return math.floor(seconds / STEP_SECONDS + _ROUNDING)


def leave_behind(job: DemoJob, runs: Sequence[Run], folder: Path) -> None:
    """steps.log, starts.log and, when the last run ended well, result.json of one job."""
    own = folder / job.name
    own.mkdir(parents=True)
    snapshots, state, executed = {0: START_HASH}, START_HASH, list[str]()
    for run in runs:
        first, last, kept = _steps(run.resumed_from), _steps(run.reached), _steps(run.saved)
        state = snapshots.get(first, START_HASH)
        for step in range(first + 1, last + 1):
            state = step_hash(state, step)
            executed.append(f"{run.restarts} {step}\n")
            if step == kept:
                snapshots[kept] = state
    (own / "steps.log").write_text("".join(executed))
    (own / "starts.log").write_text(
        "".join(f"{r.restarts} {r.nodes[0]} {r.start:.3f} {_steps(r.resumed_from)}\n" for r in runs)
    )
    if runs and runs[-1].word == COMPLETED:
        reached = _steps(runs[-1].reached)
        result = {
            "steps": reached,
            "hash": state.hex(),
            "restarts": runs[-1].restarts,
            "executed_steps": len(executed),
            "lost_steps": len(executed) - reached,
        }
        (own / "result.json").write_text(json.dumps(result))
