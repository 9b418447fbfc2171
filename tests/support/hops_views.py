"""Views for the policy hops, and its plans of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurm_fair.model import Sizes, Told, labels
from slurm_fair.policy import View, load
from slurm_fair.policy.check import objections
from tests.support.accounts import places, view
from tests.support.builders import JobSpec, NodeSpec, lease, leases, snapshot

NOW = 10_000.0


def sight(
    jobs: list[JobSpec],
    nodes: dict[str, int | NodeSpec] | None = None,
    *,
    waited: dict[str, float] | None = None,
    elastic: dict[int, tuple[int, ...]] | None = None,
    over: dict[int, dict[str, int]] | None = None,
    rates: list[list[float]] | None = None,
    **told: list[float] | list[list[float]],
) -> View:
    """A view: `elastic` are further sizes by row, `over` the places of jobs whose lease is over."""
    seen = snapshot(time=NOW, nodes=nodes or {"n1": 8, "n2": 8}, jobs=jobs)
    said = Told.nothing(len(jobs), len(seen.gpu_types)).with_columns(
        **{name: np.array(values) for name, values in told.items()}
    )
    if rates is not None:
        said = said.with_columns(rate=np.array(rates))
    sizes = [
        (row, gpus, gpus == jobs[row].gpus)
        for row, more in sorted((elastic or {}).items())
        for gpus in sorted({jobs[row].gpus, *more})
    ]
    if sizes:
        row, gpus, usual = (np.array(column) for column in zip(*sizes, strict=True))
        seen = replace(seen, sizes=Sizes(row, gpus, usual))
    held = leases(*(lease(base, on, end=NOW - 1) for base, on in (over or {}).items()))
    shown = view(replace(seen, told=said), held)
    accounts = shown.ledger.jobs
    seconds = [(waited or {}).get(label, 0.0) for label in labels(accounts.key)]
    accounts = accounts.with_columns(waited=np.array(seconds))
    return replace(shown, ledger=replace(shown.ledger, jobs=accounts))


def plan(seen: View, **settings: object) -> dict[str, dict[str, int]]:
    """Places of the granted jobs; the controller has no objection to the plan."""
    made = load("hops", settings).plan(seen)
    assert objections(made, seen) == ""
    return places(seen.snapshot, made)
