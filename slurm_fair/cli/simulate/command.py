"""`slurm-fair simulate`: one trace, one cluster, one or more policies."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import click

from slurm_fair.cli.simulate.bad_rows import list_bad
from slurm_fair.cli.simulate.bar import progress_bar
from slurm_fair.cli.simulate.case import CaseOptions, read_case
from slurm_fair.cli.simulate.files import Outputs, ResultFiles
from slurm_fair.cli.simulate.given import CostOptions, FileOptions, LeaseOptions, RunOptions, part
from slurm_fair.cli.simulate.options import (
    COSTS,
    COUNTED,
    FILE,
    FILES,
    GPU_WEIGHTS,
    JOB_SHARE,
    JOBS,
    LEASES,
    MACHINES,
    POLICIES,
    RUN,
    TERM,
    with_options,
)
from slurm_fair.cli.simulate.repeats import merged_row, repeat_note, run_repeated
from slurm_fair.cli.simulate.runs import warn_of_costs
from slurm_fair.cli.simulate.scenario_options import END, OWED, ROUNDS, SPEEDS, TENANTS, in_rounds
from slurm_fair.cli.simulate.setups import policies_of, setups_of
from slurm_fair.cli.simulate.table import print_comparison
from slurm_fair.cli.simulate.text import document_of, lead_of, notes_of, row_of
from slurm_fair.cli.status import JSON


@click.command()
@click.argument("trace", metavar="TRACE", type=FILE)
@with_options(POLICIES, MACHINES, TERM, LEASES)
@with_options(ROUNDS, COSTS, SPEEDS, TENANTS, GPU_WEIGHTS, COUNTED, JOB_SHARE, OWED, END)
@with_options(JOBS, RUN, FILES)
@JSON
def simulate(trace: Path, policies: str, as_json: bool, **options: Any) -> None:
    """Simulate a trace under one or more policies and compare them.

    The same controller, policies and accounts as on a real cluster, on virtual time. With several policies,
    --jobs-out and --events-out write a file for each: jobs.csv is jobs.astraea.csv. docs/schema/simulate.json has
    the keys of --json.
    """
    run, leases, inputs = part(RunOptions, options), part(LeaseOptions, options), part(CaseOptions, options)
    gavel = in_rounds(inputs.rounds, leases)
    names, costs = policies_of(policies), part(CostOptions, options).costs()
    setups = setups_of(names, leases, run, costs.checkpoint, leases.ledger(), gavel_rounds=gavel)
    with Outputs([trace, *inputs.files]) as outputs:
        files = ResultFiles.checked(outputs, part(FileOptions, options), run.html, names)
        case, reading = read_case(trace, costs, inputs)
        list_bad(trace, reading)
        orders = files.orders(case, setups)
        warn_of_costs(orders)
        with progress_bar(names, len(case.scenario.trace)) as beat:
            runs = run_repeated(orders, run.repeat, run.workers, beat)
        rows = [merged_row(some, partial(row_of, setup)) for setup, some in zip(setups, runs, strict=True)]
        dones = [some[0] for some in runs]  # files and notes are of the first run
        lead, notes = lead_of(case), [*repeat_note(run.repeat), *notes_of(case, dones)]
        files.write(case, dones, rows, [*lead, *notes])
        outputs.commit()
    if as_json:
        click.echo(json.dumps(document_of(case, run.seed, rows, run.repeat), allow_nan=False))
    else:
        print_comparison(rows, lead, notes)
