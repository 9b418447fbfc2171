"""Runs of a sweep that differ by their seeds alone, as one group with mean and spread."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import click

from slurm_fair.cli.simulate.repeats import over_runs
from slurm_fair.cli.simulate.table import Metric, metrics
from slurm_fair.cli.sweep.results_file import DONE
from slurm_fair.cli.sweep.task import Row
from slurm_fair.cli.written import Written
from slurm_fair.suggest import did_you_mean

_TOGETHER = ("policy", "lease_s", "load")
NOT_MEASURED = frozenset({"run", "policy", "lease_s", "load", "seed", "state", "problem", "version"})


@dataclass(frozen=True, slots=True)
class Group:
    """A policy under a lease term and a load, over all seeds that are done."""

    policy: str
    lease_s: float | None
    load: float
    seeds: tuple[int, ...]
    lost: tuple[int, ...]  # seeds of runs that failed
    over_seeds: dict[str, Any]  # as `simulate --repeat` tells of several runs

    @property
    def lease_words(self) -> str:
        """The lease term as people read it."""
        return "never ends" if self.lease_s is None else f"{self.lease_s:g} s"

    @property
    def name(self) -> str:
        """The group in words."""
        return f"{self.policy}, lease {self.lease_words}, load {self.load:g}"

    @property
    def row(self) -> Row:
        """The group as the tables of `simulate` take a policy's row."""
        return {"policy": self.policy, "repeated": self.over_seeds}

    def mean(self, key: str) -> float:
        """The mean over the seeds; nan = not known."""
        value = self.over_seeds["mean"].get(key)
        return math.nan if value is None else float(value)

    def deviation(self, key: str) -> float:
        """The standard deviation over the seeds; nan = not known, as of a single one."""
        value = self.over_seeds["spread"].get(key)
        return math.nan if value is None else float(value)

    def document(self, keys: Sequence[str]) -> Row:
        """The group as JSON holds it."""
        wanted = keys or list(self.over_seeds["mean"])
        return {
            "policy": self.policy,
            "lease_s": self.lease_s,
            "load": self.load,
            "seeds": list(self.seeds),
            "failed": len(self.lost),
            **{side: {key: self.over_seeds[side].get(key) for key in wanted} for side in ("mean", "spread")},
        }


def groups_of(rows: Sequence[Row]) -> list[Group]:
    """The groups of rows that come policy by policy, as a file gives them."""
    return [_group(list(some)) for _, some in groupby(rows, lambda row: [row[name] for name in _TOGETHER])]


def _group(rows: Sequence[Row]) -> Group:
    done = [measures(row) for row in rows if row["state"] == DONE]
    over_seeds = over_runs(done) if done else {"runs": 0, "mean": {}, "spread": {}}
    seeds, lost = (
        tuple(row["seed"] for row in rows if (row["state"] == DONE) is well) for well in (True, False)
    )
    return Group(rows[0]["policy"], rows[0]["lease_s"], rows[0]["load"], seeds, lost, over_seeds)


def measures(row: Row) -> Row:
    """The numbers of a run without what says which run it is."""
    return {key: value for key, value in row.items() if key not in NOT_MEASURED}


def metrics_in(text: str) -> tuple[Metric, ...]:
    """Metrics by their JSON keys, in the order in which they were written."""
    known = {metric.key: metric for metric in metrics()}
    found = list[Metric]()
    for key in (piece.strip() for piece in text.split(",")):
        if key not in known:
            raise click.BadParameter(
                f"no metric {key!r}; {did_you_mean(key, known, 'docs/metrics.md has them')}"
            )
        if known[key] in found:
            raise click.BadParameter(f"{text!r}: {key} is there twice: keep one of them")
        found.append(known[key])
    return tuple(found)


METRICS = Written("KEY[,KEY...]", metrics_in)


def by_load(groups: Sequence[Group]) -> Iterator[list[Group]]:
    """The groups of each load, which can be compared."""
    for load in sorted({group.load for group in groups}):
        yield [group for group in groups if group.load == load]
