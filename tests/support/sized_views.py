"""Views for the policies that choose sizes, and what they grant in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurm_fair.model import Sizes, Told
from slurm_fair.policy import View, load
from slurm_fair.policy.check import objections
from tests.support.accounts import places, view
from tests.support.builders import JobSpec, NodeSpec, lease, leases, node, snapshot

NOW = 10_000.0
TYPES: dict[str, int | NodeSpec] = {"n1": node(4, gpu_type="x"), "n2": node(4, gpu_type="y")}


def sight(
    jobs: list[JobSpec],
    nodes: dict[str, int | NodeSpec],
    elastic: dict[int, tuple[int, ...]] | None = None,
    rates: list[list[float]] | None = None,
    over: dict[int, dict[str, int]] | None = None,
    scaling: float = float("nan"),
) -> View:
    """A view; `elastic` are all sizes of some rows, their gang among them."""
    seen = snapshot(time=NOW, nodes=nodes, jobs=jobs)
    said = Told.nothing(len(jobs), len(seen.gpu_types)).with_columns(scaling=np.full(len(jobs), scaling))
    said = said if rates is None else said.with_columns(rate=np.array(rates))
    of = [(row, gpus, gpus == jobs[row].gpus) for row in elastic or {} for gpus in (elastic or {})[row]]
    if of:
        row, gpus, usual = (np.array(column) for column in zip(*of, strict=True))
        seen = replace(seen, sizes=Sizes(row, gpus, usual))
    held = leases(*(lease(base, on, end=NOW - 1) for base, on in (over or {}).items()))
    return view(replace(seen, told=said), held)


def granted(name: str, seen: View, **settings: object) -> dict[str, dict[str, int]]:
    made = load(name, settings).plan(seen)
    assert objections(made, seen) == ""
    return places(seen.snapshot, made)
