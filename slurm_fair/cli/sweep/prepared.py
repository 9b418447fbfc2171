"""The input of a sweep, read and checked before any run begins."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from slurm_fair.cli.simulate.bad_rows import list_bad
from slurm_fair.cli.simulate.case import Case, CaseOptions, read_case
from slurm_fair.cli.simulate.given import CostOptions, LeaseOptions, RunOptions, part
from slurm_fair.cli.simulate.one_run import SimulationOrder
from slurm_fair.cli.simulate.runs import check_time_to_work, warn_of_costs
from slurm_fair.cli.simulate.scenario_options import in_rounds
from slurm_fair.cli.simulate.setups import PolicySetup, policies_of, setups_of
from slurm_fair.cli.sweep.grid import Grid
from slurm_fair.cli.sweep.results_file import About
from slurm_fair.cli.sweep.task import SweepTask
from slurm_fair.cli.sweep.variants import variants_of
from slurm_fair.config.lease import AUTO
from slurm_fair.errors import InputError
from slurm_fair.policy.registry import in_full, load
from slurm_fair.sim.run import refuse_endless

# Options that may differ from one command to the next on the same file: what is listed, where it is simulated,
# and settings, which belong to their policy.
_FREE = frozenset(
    {"trace", "out", "policies", "lease_list", "loads", "seeds", "processes", "dask", "settings"}
)
# What holds where nothing is given and click knows no default.
_USUAL = {"gpus_per_node": 8, "align": "rolling", "half_life": 0.0} | dict.fromkeys(
    ("checkpoint_cost", "start_cost", "restart_cost", "requeue_delay"), 0.0
)


@dataclass(frozen=True, slots=True)
class ReadySweep:
    """A case, the setups of the policies under each lease term, and what a file must hold to be this sweep's."""

    case: Case
    about: About
    setups: tuple[tuple[str, PolicySetup], ...]  # by the name of the policy, which tells settings that differ

    @property
    def settings(self) -> dict[str, dict[str, object]]:
        """The settings of each policy, with the defaults of those that were not given."""
        return {
            name: dict(in_full(setup.policy, load(setup.policy, setup.settings), setup.settings))
            for name, setup in self.setups
        }

    @property
    def policies(self) -> list[str]:
        """Each policy once, in the order given."""
        return list(dict.fromkeys(setup.policy for _, setup in self.setups))

    def tasks(self, grid: Grid) -> list[SweepTask]:
        """Every run of the sweep, in the order in which they are to be simulated."""
        return [SweepTask(cell, setup, self.case.scenario) for cell, setup in grid.cells(self.setups)]


def prepared(
    context: click.Context,
    trace: Path,
    policies: str,
    terms: Sequence[float | None],
    options: Mapping[str, Any],
) -> ReadySweep:
    """Read and check everything; InputError says what is wrong where."""
    inputs, leases = part(CaseOptions, options), part(LeaseOptions, options)
    costs, gavel = part(CostOptions, options).costs(), in_rounds(inputs.rounds, leases)
    setups = tuple(
        (variant.name, setup)
        for term in terms
        for variant in variants_of(options["settings"], policies_of(policies))
        for setup in setups_of(
            [variant.policy],
            replace(leases, lease=term),
            RunOptions(variant.settings, 0, 1, None),
            costs.checkpoint,
            leases.ledger(),
            gavel_rounds=gavel,
        )
    )
    for path in (trace, *inputs.files):
        if os.path.exists(path) and not os.path.isfile(path):
            raise InputError(f"{path}: is no plain file: a sweep reads it twice, to know it again")
    case, reading = read_case(trace, costs, inputs)
    list_bad(trace, reading)
    for _, setup in setups:
        check_time_to_work(costs, setup)
        refuse_endless(case.scenario, setup.rules().terms.shortest)
    warn_of_costs([SimulationOrder(case.scenario, setup) for _, setup in setups])
    given = _given(context, options) | _times_of(setups[0][1])
    about_trace = case.trace_document() | {"sha256": _digest(trace)}
    return ReadySweep(case, About(about_trace, case.cluster_document(), given), setups)


def _given(context: click.Context, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that somebody gave, by their names; a file stands for its content."""
    found: dict[str, Any] = {}
    for param in context.command.params:
        name = param.name or ""
        if name in _FREE or name not in options or name in ("interval", "renewal"):
            continue
        value = options[name]
        if value is not None and value != param.get_default(context) and value != _USUAL.get(name):
            found[param.opts[0]] = _plain(value, named=name == "weights")
    return found


def _plain(value: Any, named: bool) -> Any:
    """A value as JSON holds it; a weight's word that is none of the usual ones names a file."""
    if named and value not in ("equal", "demand", "requested"):
        value = Path(value)
    if value == math.inf:
        return "never"
    return {"file": value.name, "sha256": _digest(value)} if isinstance(value, Path) else value


def _times_of(setup: PolicySetup) -> dict[str, Any]:
    """The distance between looks, which a file of settings may say, and how long renewed leases last.

    A file that does not say so is of leases that were renewed for a whole term.
    """
    looks = {"--interval": "auto" if setup.interval_min else setup.interval}
    if setup.aligned or setup.renewal == math.inf:
        return looks
    return looks | {"--renewal": AUTO if setup.renewal is None else setup.renewal}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
