"""The table of runs that accounting tells."""

from __future__ import annotations

import pytest

from slurm_fair.model import JobState
from slurm_fair.model.ids import pack
from tests.support.builders import run, runs

TOLD = runs(
    run(1, 1010, 1050, submit=1000, requeued=True),
    run(1, 1060, 1090, submit=1050),
    run(2, 1020, 1055, submit=1005, requeued=True, gpus=4),  # resized
    run(2, 1055, 1080, submit=1005, gpus=2),
)


@pytest.mark.parametrize(
    ("instant", "rows"),
    [
        (1002, [(1, 0, 0, JobState.WAITING, 0)]),
        (1010, [(1, 1010, 0, JobState.RUNNING, 0), (2, 0, 0, JobState.WAITING, 0)]),
        (1049, [(1, 1010, 0, JobState.RUNNING, 0), (2, 1020, 0, JobState.RUNNING, 0)]),
        (
            1052,
            [
                (1, 1010, 1050, JobState.DONE, 1),
                (1, 0, 0, JobState.WAITING, 0),
                (2, 1020, 0, JobState.RUNNING, 0),
            ],
        ),
    ],
)
def test_runs_stand_as_they_did_at_an_instant(
    instant: float, rows: list[tuple[int, float, float, JobState, int]]
) -> None:
    some = TOLD.as_it_stood(instant)
    columns = (some.key, some.start, some.end, some.state, some.requeued)
    found = list(zip(*(column.tolist() for column in columns), strict=True))
    assert found == [(pack(row[0]), *row[1:]) for row in rows]


def test_runs_stand_as_they_are_when_all_is_over() -> None:
    some = TOLD.as_it_stood(1100)
    assert some.end.tolist() == TOLD.end.tolist()
    assert some.requeued.tolist() == TOLD.requeued.tolist()
    assert len(runs().as_it_stood(1100)) == 0
