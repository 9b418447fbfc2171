"""Lease, state and what blocks a job as one number."""

from __future__ import annotations

import numpy as np

from slurm_fair.model import Blocked, JobState, LeasePhase
from slurm_fair.policy.situations import MAY_START, NO_LEASE, PHASE_OVER, SITUATIONS, situations

# Whether columns as narrow as the tables' are wide enough differs between releases of NumPy.
PHASES = (*LeasePhase, PHASE_OVER, NO_LEASE)


def narrow(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    return np.array(values, dtype=np.int8)


def test_every_case_has_its_own_number() -> None:
    every = [(p, s, b) for p in PHASES for s in JobState for b in Blocked]
    over = np.array([row for row, (phase, _, _) in enumerate(every) if phase == PHASE_OVER])
    phase = [int(LeasePhase.RUNNING) if p == PHASE_OVER else int(p) for p, _, _ in every]
    found = situations(
        narrow(phase), narrow([int(s) for _, s, _ in every]), narrow([int(b) for _, _, b in every]), over
    )
    assert [SITUATIONS[number] for number in found.tolist()] == every
    assert SITUATIONS[int(MAY_START)] == (NO_LEASE, JobState.WAITING, Blocked.NOT_BLOCKED)
