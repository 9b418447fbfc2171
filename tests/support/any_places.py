"""Small problems of exact places, drawn by hypothesis, and one that is easy to write down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from slurm_fair.solve import How
from slurm_fair.solve.places import PlacesProblem, violations
from slurm_fair.solve.places.problem import Picks

# The job, the kind, GPUs, spread or not, the worth.
Column = tuple[int, int, int, bool, float]


def places(
    free: Sequence[int],
    columns: Sequence[Column],
    *,
    kind: Sequence[int] | None = None,
    block: Sequence[int] | None = None,
    size: Sequence[int] | None = None,
    jobs: int | None = None,
) -> PlacesProblem:
    """Servers of 8 GPUs and one kind in one rack, unless told otherwise."""
    job, on, gpus, spread, value = zip(*columns, strict=True) if columns else ((),) * 5
    nought = [0] * len(free)
    return PlacesProblem(
        free=_ints(free),
        kind=_ints(nought if kind is None else kind),
        block=_ints(nought if block is None else block),
        size=_ints([8] * len(free) if size is None else size),
        job=_ints(job),
        on=_ints(on),
        gpus=_ints(gpus),
        several=np.array(spread, dtype=bool),
        value=np.array(value, dtype=np.float64),
        jobs=1 + max(job, default=-1) if jobs is None else jobs,
    )


def sites_by_job(problem: PlacesProblem, picks: Picks) -> dict[int, list[tuple[int, int]]]:
    """Servers and GPUs of each job, in a plan that holds."""
    answer = picks.answer(problem, np.inf, How.EXACT)
    assert violations(problem, answer) == []
    found: dict[int, list[tuple[int, int]]] = {}
    for job, server, gpus in zip(
        answer.job.tolist(), answer.server.tolist(), answer.gpus.tolist(), strict=True
    ):
        found.setdefault(job, []).append((server, gpus))
    return found


def _ints(values: Sequence[int]) -> Any:
    return np.array(values, dtype=np.int64)


@st.composite
def problems(draw: st.DrawFn) -> PlacesProblem:
    """Idle and partly filled servers of up to three kinds in racks; sizes up to several servers."""
    servers, kinds = draw(st.integers(0, 9)), draw(st.integers(1, 3))
    size = draw(st.sampled_from([[4], [8], [4, 8], [3]]))
    full = draw(st.lists(st.sampled_from(size), min_size=servers, max_size=servers))
    idle = draw(st.sampled_from([0.0, 0.5, 1.0]))
    parts = draw(st.lists(st.floats(0, 1), min_size=servers, max_size=servers))
    free = [all_ if part <= idle else int(part * all_) for part, all_ in zip(parts, full, strict=True)]
    kind = sorted(draw(st.lists(st.integers(0, kinds - 1), min_size=servers, max_size=servers)))
    block = sorted(draw(st.lists(st.integers(0, 2), min_size=servers, max_size=servers)))
    largest = draw(st.sampled_from([4, 8, 16, 40]))
    column = st.tuples(
        st.integers(0, 6),
        st.integers(0, kinds - 1),
        st.integers(1, largest),
        st.booleans(),
        st.one_of(st.just(0.0), st.floats(0.01, 100.0), st.integers(1, 5).map(float)),
    )
    columns = draw(st.lists(column, max_size=24))
    return places(free, columns, kind=kind, block=block, size=full, jobs=7)
