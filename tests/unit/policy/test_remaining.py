"""Work left: reported, declared, of the class, or as much as was run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.model import JobState, Told
from slurm_fair.policy.remaining import LeftBy, Remaining
from tests.support.accounts import Account, view
from tests.support.builders import job, snapshot

NAN = float("nan")
# declared, reported left, reported done, deviation of the class, seconds run, time limit -> left, source
CASES = {
    "what is reported stands": (9000.0, 500.0, 3000.0, NAN, 4000.0, np.inf, 500.0, LeftBy.REPORTED),
    "declared less what was run": (9000.0, NAN, NAN, NAN, 4000.0, np.inf, 5000.0, LeftBy.DECLARED),
    "declared less the work done": (9000.0, NAN, 3000.0, NAN, 4000.0, np.inf, 6000.0, LeftBy.DECLARED),
    "a quarter more once it is over": (3000.0, NAN, NAN, NAN, 4000.0, np.inf, 1000.0, LeftBy.DECLARED),
    "what its class leaves": (NAN, 700.0, NAN, 0.5, 4000.0, np.inf, 700.0, LeftBy.CLASS),
    "a quarter more than its class took": (NAN, 1.0, NAN, 0.5, 4000.0, np.inf, 1000.0, LeftBy.CLASS),
    "as much as it ran": (NAN, NAN, NAN, NAN, 4000.0, np.inf, 4000.0, LeftBy.ATTAINED),
    "no more than its limit leaves": (NAN, NAN, NAN, NAN, 4000.0, 5000.0, 1000.0, LeftBy.ATTAINED),
    "a quarter of a lease at first": (NAN, NAN, NAN, NAN, 0.0, np.inf, 225.0, LeftBy.ATTAINED),
    "a report of nothing left is a second": (NAN, 0.0, 3000.0, NAN, 4000.0, np.inf, 1.0, LeftBy.REPORTED),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_work_left_is(case: tuple[float, ...]) -> None:
    declared, left, done, spread, ran, limit, expected, source = case
    snap = snapshot(jobs=[job(1, state=JobState.RUNNING, time_limit_seconds=limit)])
    told = Told.nothing(1, len(snap.gpu_types)).with_columns(
        declared_seconds=np.array([declared]),
        left_seconds=np.array([left]),
        done_seconds=np.array([done]),
        left_spread=np.array([spread]),
    )
    seen = view(replace(snap, told=told), None, None, {"1": Account(ran, 0.0, ran)})
    found = Remaining.of(seen)
    assert found.seconds.tolist() == [expected]
    assert found.by.tolist() == [source]
    assert found.known.tolist() == [source != LeftBy.ATTAINED]
