"""A check of what looks are shown of virtual jobs, most of which is kept from look to look."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from slurm_fair.model import JobTable
from slurm_fair.model.columns import Ints
from slurm_fair.sim.world.columns import JobColumns


def compared(patch: pytest.MonkeyPatch) -> None:
    """From now on each look at virtual jobs is compared with their columns as they are."""
    kept = JobColumns.seen

    def seen(columns: JobColumns, rows: Ints) -> JobTable:
        shown = kept(columns, rows)
        for name, column in shown._arrays().items():
            if name == "gpu_weight" and name in columns._steady_names:
                continue  # no GPUs are weighed
            anew = getattr(columns, name)[rows]
            assert np.array_equal(column, anew, equal_nan=column.dtype.kind == "f"), (
                f"{name} is not as it was"
            )
        return shown

    patch.setattr(JobColumns, "seen", seen)


@pytest.fixture(autouse=True)
def looks_are_compared() -> Iterator[None]:
    """All tests of a folder whose conftest names it."""
    with pytest.MonkeyPatch.context() as patch:
        compared(patch)
        yield
