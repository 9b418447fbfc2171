"""`slurm-fair replay`: the site's own past under other policies, beside what really happened."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import click

from slurm_fair.cli.replay.as_the_site import site_notes
from slurm_fair.cli.replay.case import KnownPast, Origin, PastSource, case_of, read_known_past
from slurm_fair.cli.simulate.bar import progress_bar
from slurm_fair.cli.simulate.case import Case, CaseOptions
from slurm_fair.cli.simulate.files import Outputs, ResultFiles
from slurm_fair.cli.simulate.given import CostOptions, FileOptions, LeaseOptions, RunOptions, part
from slurm_fair.cli.simulate.one_run import FinishedRun, Grant
from slurm_fair.cli.simulate.options import (
    COSTS,
    FILE,
    FILES,
    GPU_WEIGHTS,
    JOBS,
    LEASES,
    MACHINES,
    PAST_COUNTED,
    PAST_JOB_SHARE,
    PERIOD,
    POLICIES,
    RUN,
    TERM,
    WEIGHTS,
    with_options,
)
from slurm_fair.cli.simulate.repeats import merged_row, repeat_note, run_repeated
from slurm_fair.cli.simulate.runs import warn_of_costs
from slurm_fair.cli.simulate.setups import PolicySetup, given_settings, policies_of, setups_of
from slurm_fair.cli.simulate.table import print_comparison
from slurm_fair.cli.simulate.text import document_of, lead_of, notes_of, row_of
from slurm_fair.cli.status import JSON
from slurm_fair.errors import InputError
from slurm_fair.ledger.metrics.windows import Steps
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.sim.past import RECORDED, nodes_of_runs, recorded_result

# What accounting cannot know of the past, or makes no sense for it.
_NOT_RECORDED = (
    "decision_p50_s", "decision_p95_s", "decision_max_s", "looks", "plans_weighed", "plans_proven",
    "plans_solved", "plans_improved", "plans_gap_mean", "plans_solved_s", "wall_s", "cpu_s", "peak_rss_mb",
    "lease_s", "interval_s", "aligned",
)  # fmt: skip


@click.command()
@with_options(PERIOD)
@click.option("--sacct", "saved", type=FILE, metavar="FILE", help="Read a saved file instead of slurmdbd.")
@with_options(POLICIES, MACHINES, WEIGHTS, GPU_WEIGHTS, PAST_COUNTED, PAST_JOB_SHARE)
@with_options(TERM, LEASES, COSTS, JOBS, RUN, FILES)
@JSON
@click.pass_context
def replay(context: click.Context, /, policies: str, as_json: bool, **options: Any) -> None:
    """Replay the site's own past under other policies, beside what really happened.

    The past is out of slurmdbd, or a file of `TZ=UTC sacct --parsable2 --duplicates --allusers`; the nodes are
    the cluster's own as they are now, the weights Slurm's shares. The column `recorded` is what happened; a dash
    is what accounting cannot know. --jobs-out and --events-out write a file for each: jobs.csv is
    jobs.astraea.csv and jobs.recorded.csv. docs/schema/replay.json has the keys of --json.
    """
    names, wish, origin = policies_of(policies), part(CaseOptions, options), part(Origin, options)
    run, leases = part(RunOptions, options), part(LeaseOptions, options)
    _check(names, origin, run)
    with Outputs([*wish.files, *origin.files]) as outputs:
        files = ResultFiles.checked(outputs, part(FileOptions, options), run.html, (RECORDED, *names))
        past = read_known_past(context, origin, part(CostOptions, options), time.time(), load_in_work=True)
        ledger = leases.ledger(past.ledger)
        setups = setups_of(names, leases, run, past.known.costs.checkpoint, ledger)
        case, about_nodes = case_of(past, wish)
        orders = files.orders(case, setups)
        warn_of_costs(orders)
        with progress_bar(names, len(case.scenario.trace)) as beat:
            runs = run_repeated(orders, run.repeat, run.workers, beat)
        dones = [some[0] for some in runs]  # files and notes are of the first run
        really = _recorded(past.source, case, ledger)
        _warn_of_size(case, really)
        simulated = [
            merged_row(some, partial(row_of, setup)) for setup, some in zip(setups, runs, strict=True)
        ]
        rows = [_row(past.source, case, setups[0], really), *simulated]
        below = [*repeat_note(run.repeat), *about_nodes, *past.source.notes()]
        below += [*site_notes(past.live, setups, all_save=not case.plain), *notes_of(case, dones)]
        lead = [lead_of(case)[0], past.known.words]
        files.write(case, [really, *dones], rows, [*lead, *below])
        if RECORDED in files.events:
            from slurm_fair.cli.replay.events import write_recorded  # only who wants events pays for it

            write_recorded(files.events[RECORDED], case, past.source.jobs, really)
        outputs.commit()
    if as_json:
        click.echo(json.dumps(_document(past, case, run, rows), allow_nan=False))
    else:
        print_comparison(rows, lead, below)


def _document(past: KnownPast, case: Case, run: RunOptions, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    document = document_of(case, run.seed, rows, run.repeat)
    document["options"]["costs"] = past.known.document()
    return {"source": past.source.document(), **document}


def _check(names: Sequence[str], origin: Origin, run: RunOptions) -> None:
    """Refuse options that do not go together."""
    given_settings(run.settings, names)
    origin.check()
    if RECORDED in names:
        raise InputError(f"--policy {RECORDED}: what really happened is always shown: leave it out")


def _recorded(source: PastSource, case: Case, ledger: LedgerSettings) -> FinishedRun:
    """The recorded past, in the form of a simulation's result."""
    result = recorded_result(source.jobs, case.scenario, ledger)
    grants = (Grant(key, when, nodes) for key, when, nodes in nodes_of_runs(source.jobs, result))
    here = set(case.scenario.machines.names)
    return FinishedRun(result, tuple(grant for grant in grants if here.issuperset(grant.nodes)))


def _warn_of_size(case: Case, really: FinishedRun) -> None:
    """Warn on standard error if what was recorded cannot have been on a cluster so small."""
    runs = really.result.runs
    most = int(Steps.of(runs.start, runs.end, runs.gpus).level.max(initial=0.0))
    here = case.scenario.machines.total_gpus
    if most > here:
        click.echo(
            f"warning: up to {most} GPUs were held at once, the cluster has {here}: what was recorded was on a "
            "larger one, and is no measure for what is simulated",
            err=True,
        )


def _row(source: PastSource, case: Case, setup: PolicySetup, really: FinishedRun) -> dict[str, Any]:
    """The recorded metrics by their JSON keys; None for what accounting cannot know."""
    jobs = set(map(str, case.scenario.trace.job_id.tolist()))
    return {
        **row_of(setup, really),
        **dict.fromkeys(_NOT_RECORDED),
        "settings": {},
        "repeated": None,
        "jobs_not_ended": len(jobs.intersection(source.jobs.cut)),
    }
