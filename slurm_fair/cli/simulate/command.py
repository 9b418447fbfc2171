"""`slurm-fair simulate`: one trace, one cluster, one or more policies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from slurm_fair.cli.simulate.bad_rows import list_bad
from slurm_fair.cli.simulate.bar import progress
from slurm_fair.cli.simulate.case import Case, CaseOptions, read_case
from slurm_fair.cli.simulate.files import Outputs, columns_to_write, write_jobs
from slurm_fair.cli.simulate.one_run import FinishedRun, SimulationOrder
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
    CostOptions,
    FileOptions,
    LeaseOptions,
    Part,
    RunOptions,
    Seconds,
    part,
    with_options,
)
from slurm_fair.cli.simulate.repeats import merged, repeat_note, run_repeated
from slurm_fair.cli.simulate.runs import warn_of_costs
from slurm_fair.cli.simulate.table import print_comparison
from slurm_fair.cli.simulate.text import document_of, lead_of, notes_of, row_of
from slurm_fair.cli.simulate.turns import PolicyTurn, policies_of, turns_of
from slurm_fair.cli.status import JSON
from slurm_fair.errors import InputError
from slurm_fair.model.speeds import USUAL_EXPONENT
from slurm_fair.trace.files import write_with


@click.command()
@click.argument("trace", metavar="TRACE", type=FILE)
@with_options(POLICIES, MACHINES, TERM, LEASES)
@click.option(
    "--rounds",
    type=click.Choice(["conserving", "gavel"]),
    default="conserving",
    show_default=True,
    help="gavel: time goes in rounds of --lease; GPUs of a job that ended stay idle until its round ends.",
)
@with_options(COSTS)
@click.option("--throughputs", type=FILE, metavar="FILE", help="Measured speeds by model and GPU type.")
@click.option(
    "--throughputs-source",
    metavar="NAME",
    help="The source to read in the file of --throughputs; its first unless given.",
)
@click.option(
    "--elastic-exponent",
    type=Part(),
    default=USUAL_EXPONENT,
    show_default=True,
    metavar="E",
    help="Speed of jobs with more or fewer GPUs than they ask for: that power of them where it was not measured.",
)
@click.option("--regimes", type=FILE, metavar="FILE", help="How jobs change their batch size.")
@click.option(
    "--outages",
    type=FILE,
    metavar="FILE.csv",
    help="A table time_s,node,event; an event is drain, down or up.",
)
@click.option(
    "--weights",
    default="equal",
    show_default=True,
    metavar="equal|demand|requested|FILE",
    help="Weights of the tenants: alike, by the GPU time or by the GPUs that their jobs ask for, or a file's.",
)
@with_options(GPU_WEIGHTS, COUNTED, JOB_SHARE)
@click.option(
    "--report-share",
    type=click.Choice(["demand", "quota"]),
    default="demand",
    show_default=True,
    help="What results say tenants are owed: at most what their jobs ask for, or all of their quota.",
)
@click.option(
    "--until", type=Seconds(above_zero=True), help="End the simulation at this second of the trace."
)
@with_options(JOBS, RUN, FILES)
@JSON
def simulate(trace: Path, policies: str, as_json: bool, **options: Any) -> None:
    """Simulate a trace under one or more policies and compare them.

    The same controller, policies and accounts as on a real cluster, on virtual time. With several policies,
    --jobs-out and --events-out write a file for each: jobs.csv is jobs.astraea.csv. docs/schema/simulate.json has
    the keys of --json.
    """
    run, leases, inputs = part(RunOptions, options), part(LeaseOptions, options), part(CaseOptions, options)
    gavel = _in_rounds(inputs.rounds, leases)
    names, costs = policies_of(policies), part(CostOptions, options).costs()
    turns = turns_of(names, leases, run, costs.checkpoint, leases.ledger(), gavel_rounds=gavel)
    with Outputs([trace, *inputs.files]) as outputs:
        beside = _claim(outputs, part(FileOptions, options), run.html, names)
        case, reading = read_case(trace, costs, inputs)
        list_bad(trace, reading)
        orders = _orders(case, turns, beside)
        warn_of_costs(orders)
        with progress(names, len(case.scenario.trace)) as beat:
            runs = run_repeated(orders, run.repeat, run.workers, beat)
        rows = [merged(some, partial(row_of, turn)) for turn, some in zip(turns, runs, strict=True)]
        dones = [some[0] for some in runs]  # files and notes are of the first run
        notes = [*repeat_note(run.repeat), *notes_of(case, dones)]
        _write(case, dones, rows, beside, notes)
        outputs.commit()
    if as_json:
        click.echo(json.dumps(document_of(case, run.seed, rows, run.repeat), allow_nan=False))
    else:
        _print(case, rows, notes)


def _in_rounds(rounds: str, leases: LeaseOptions) -> bool:
    """True if rounds are Gavel's; options that make no sense beside them are refused."""
    if rounds != "gavel":
        return False
    if leases.align == "rolling":
        raise InputError("--rounds gavel has aligned leases: leave --align rolling out")
    if leases.interval is not None:
        raise InputError("--rounds gavel looks only where a round ends: leave --interval out")
    return True


def _print(case: Case, rows: Sequence[dict[str, Any]], notes: Sequence[str]) -> None:
    click.echo("\n".join(lead_of(case)) + "\n")
    print_comparison(rows)
    for line in notes:
        click.echo(line)


# -- files ----------------------------------------------------------------------------------------------------

Beside = dict[tuple[str, str], Path]


def _claim(outputs: Outputs, files: FileOptions, html: Path | None, names: Sequence[str]) -> Beside:
    """Claim each output file. One that cannot be written is refused now rather than after the work."""
    beside: Beside = {}
    if files.events_out is not None and files.events_out.suffix == ".gz":
        raise InputError(f"{files.events_out}: events are written plain: take .gz off its name")
    for kind, path in (("jobs", files.jobs_out), ("events", files.events_out)):
        if path is not None:
            each = outputs.claim_each(path, names, many=len(names) > 1)
            beside |= {(kind, name): file for name, file in each.items()}
    if html is not None:
        beside["html", ""] = outputs.claim(html)
    return beside


def _orders(case: Case, turns: Sequence[PolicyTurn], beside: Beside) -> list[SimulationOrder]:
    where = any(kind in ("jobs", "html") for kind, _ in beside)
    return [
        SimulationOrder(case.scenario, turn, beside.get(("events", turn.policy)), where) for turn in turns
    ]


def _write(
    case: Case,
    dones: Sequence[FinishedRun],
    rows: Sequence[dict[str, Any]],
    beside: Beside,
    notes: Sequence[str],
) -> None:
    columns = columns_to_write(case.scenario.trace) if any(kind == "jobs" for kind, _ in beside) else {}
    for done in dones:
        path = beside.get(("jobs", done.result.policy))
        if path is not None:
            write_jobs(path, case.scenario.trace, columns, done)
    page = beside.get(("html", ""))
    if page is not None:
        from slurm_fair.cli.simulate.page import page_of  # only who wants a page pays for it

        whole = page_of(case, dones, rows, [*lead_of(case), *notes])
        write_with(page, lambda text: text.writelines([whole]))
