"""The runs of a sweep: each policy under each lease term, load and seed, and the options that list them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import click

from slurm_fair.cli.simulate.options import seconds_above_zero
from slurm_fair.cli.simulate.setups import PolicySetup, usual_lease
from slurm_fair.cli.written import each_once

OWN = "own"  # the policy's own lease term
MOST_LOAD = 1000.0
MOST_SEEDS = 10_000
LARGEST_SEED = 999_999_999
_SEEDS = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One run of a sweep by what tells it from the others."""

    policy: str  # with the settings of which the sweep has several
    lease_s: float | None  # None = leases never end
    load: float
    seed: int

    @property
    def name(self) -> str:
        """The key of the run in the file, and its name in progress lines and errors."""
        lease = "never ends" if self.lease_s is None else f"{self.lease_s:.15g} s"
        return f"{self.policy}, lease {lease}, load {self.load:.15g}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Grid:
    """Lease terms (None = the policy's own), loads and seeds, as options list them."""

    leases: tuple[float | None, ...]
    loads: tuple[float, ...]
    seeds: tuple[int, ...]

    def cells(self, setups: Iterable[tuple[str, PolicySetup]]) -> Iterator[tuple[SweepRun, PolicySetup]]:
        """Each run once. Those of the first seed come first, so that a file soon has something of everything."""
        known = list(setups)
        met: set[SweepRun] = set()
        for seed in self.seeds:
            for load in self.loads:
                for name, setup in known:
                    cell = SweepRun(name, usual_lease(setup.rules().terms.term), load, seed)
                    if cell not in met:  # a policy's own term may be listed by its number too
                        met.add(cell)
                        yield cell, setup


def lease_list(text: str) -> tuple[float | None, ...]:
    """Lease terms in the order in which they were written; None = the policy's own."""
    terms = (term.strip() for term in text.split(","))
    return each_once(text, [None if term == OWN else seconds_above_zero(term) for term in terms])


def load_list(text: str) -> tuple[float, ...]:
    """Loads in the order in which they were written."""
    try:
        loads = [float(load) for load in text.split(",")]
    except ValueError:
        loads = [math.nan]
    if not all(1 / MOST_LOAD <= load <= MOST_LOAD for load in loads):
        words = f"from {1 / MOST_LOAD:g} to {MOST_LOAD:g}: write 0.8,1,1.2"
        raise click.BadParameter(f"{text!r} is no list of loads {words}")
    return each_once(text, loads)


def seed_list(text: str) -> tuple[int, ...]:
    """Seeds and ranges of seeds in the order in which they were written."""
    found: list[int] = []
    for seeds in text.split(","):
        match = _SEEDS.fullmatch(seeds.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first:
            raise click.BadParameter(f"{text!r} is no list of seeds: write 0,1,2 or 0-9")
        if last > LARGEST_SEED and last - first < MOST_SEEDS:
            raise click.BadParameter(f"{text!r}: seeds go up to {LARGEST_SEED}")
        if len(found) + last - first >= MOST_SEEDS:
            raise click.BadParameter(f"{text!r} is more than {MOST_SEEDS} seeds: list fewer")
        found += range(first, last + 1)
    return each_once(text, found)
