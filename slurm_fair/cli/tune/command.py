"""`slurm-fair tune-lease`: which lease term suits a trace, or the site's own past."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from slurm_fair.cli.replay.as_the_site import site_notes
from slurm_fair.cli.replay.case import Origin
from slurm_fair.cli.simulate.bar import progress_bar
from slurm_fair.cli.simulate.case import Case, CaseOptions
from slurm_fair.cli.simulate.files import Outputs
from slurm_fair.cli.simulate.given import CostOptions, LeaseOptions, RunOptions, part
from slurm_fair.cli.simulate.one_run import FinishedRun, SimulationOrder
from slurm_fair.cli.simulate.options import (
    COSTS,
    FILE,
    GPU_WEIGHTS,
    JOBS,
    LEASES,
    MACHINES,
    PAST_COUNTED,
    PAST_JOB_SHARE,
    PERIOD,
    RUN,
    WEIGHTS,
    Part,
    with_options,
)
from slurm_fair.cli.simulate.repeats import merged_row, run_repeated
from slurm_fair.cli.simulate.setups import PolicySetup, given_settings, policies_of, setups_of
from slurm_fair.cli.simulate.text import row_of
from slurm_fair.cli.status import JSON
from slurm_fair.cli.tune.sources import Subject, ground_of
from slurm_fair.cli.tune.text import TuneAnswer, trials_of
from slurm_fair.cli.written import Written, each_once
from slurm_fair.config.lease import LEAST_SECONDS
from slurm_fair.errors import InputError
from slurm_fair.model import NEVER_ENDS_SECONDS
from slurm_fair.policy.registry import DEFAULT_POLICY
from slurm_fair.sim.scenario import Costs
from slurm_fair.sim.tune import DEFAULT_TERMS, Tolerances, advise
from slurm_fair.trace.cells import CENTURY
from slurm_fair.trace.files import write_with


def _terms(text: str) -> tuple[float, ...]:
    """Lease terms in ascending order, each once."""
    try:
        terms = sorted(float(term) for term in text.split(","))
    except ValueError:
        terms = [math.nan]
    if not all(math.isfinite(term) and term > 0 for term in terms):
        raise click.BadParameter(f"{text!r} is no list of seconds above 0: write 60,300,900")
    if terms[0] < LEAST_SECONDS or terms[-1] > CENTURY:
        raise click.BadParameter(
            f"{text!r} is not within a millisecond and a hundred years ({CENTURY:.0f} s)"
        )
    if terms[-1] >= NEVER_ENDS_SECONDS:
        raise click.BadParameter(f"{terms[-1]:g}: leases of ten years never end: give shorter ones")
    return each_once(text, terms)


def _part(name: str, usual: float, words: str) -> Callable[[Any], Any]:
    kind = Part()
    return click.option(name, type=kind, default=usual, show_default=True, metavar="PART", help=words)


_USUAL = Tolerances()
TOLERANCES = (
    _part(
        "--job-tolerance",
        _USUAL.jobs,
        "A term is fair enough if the jobs with sharing loss are at most so much more, as a part of all jobs, "
        "than under the best term.",
    ),
    _part(
        "--tenant-tolerance",
        _USUAL.tenant_hours,
        "A term is fair enough if unfair hours of tenants are at most so much more, as a part of all their hours, "
        "than under the best term.",
    ),
    _part(
        "--jct-tolerance",
        _USUAL.jct,
        "A term is quick enough if its mean completion time is longer by at most this part than the shortest.",
    ),
    _part(
        "--overhead-limit",
        _USUAL.overhead,
        "The largest part of the GPU time that changes of hands may take.",
    ),
)


@click.command("tune-lease")
@click.argument("trace", metavar="[TRACE]", type=FILE, required=False)
@click.option("--history", is_flag=True, help="Read the site's own past out of slurmdbd.")
@with_options(PERIOD)
@click.option("--sacct", "saved", type=FILE, metavar="FILE", help="Read a saved file of `sacct --parsable2`.")
@click.option(
    "--policy",
    default=DEFAULT_POLICY,
    show_default=True,
    metavar="NAME",
    help="The policy that hands out the leases.",
)
@click.option(
    "--terms",
    type=Written("S[,S...]", _terms),
    default=DEFAULT_TERMS,
    show_default=",".join(f"{term:g}" for term in DEFAULT_TERMS),
    help="Lease terms to try.",
)
@with_options(TOLERANCES)
@with_options(MACHINES, WEIGHTS, GPU_WEIGHTS, PAST_COUNTED, PAST_JOB_SHARE)
@click.option("--throughputs", type=FILE, metavar="FILE", help="With TRACE: speeds by model and GPU type.")
@click.option(
    "--regimes",
    type=FILE,
    metavar="FILE",
    help="With TRACE: a file of the instants at which jobs change their batch size.",
)
@with_options(LEASES, COSTS, JOBS, RUN)
@JSON
@click.pass_context
def tune_lease(
    context: click.Context, /, policy: str, terms: tuple[float, ...], as_json: bool, **options: Any
) -> None:
    """Recommend a lease term for a TRACE, or for the site's own past (--history, or --sacct FILE).

    The jobs are simulated under each term, with what saving and coming back cost. Terms that cost more GPU time
    than --overhead-limit are left out. A term is good if its sharing loss, its unfair tenant hours and its mean
    JCT lie within the tolerances of the best of the others; of the good terms the one with the fewest pre-emptions
    is recommended. docs/schema/tune-lease.json has the keys of --json.
    """
    subject, wish, origin = part(Subject, options), part(CaseOptions, options), part(Origin, options)
    subject.check()
    origin.check()
    run, leases = part(RunOptions, options), part(LeaseOptions, options)
    _check_settings(policy, run)
    limits = _tolerances(options)
    with Outputs([*subject.files, *wish.files]) as outputs:
        page = outputs.will_write(run.html) if run.html else None
        ground = ground_of(context, subject, origin, wish, part(CostOptions, options), time.time())
        tried, short = _long_enough(terms, ground.known.costs)
        ledger, cost = leases.ledger(ground.ledger), ground.known.costs.checkpoint
        setups = [
            setup
            for term in tried
            for setup in setups_of([policy], replace(leases, lease=term), run, cost, ledger)
        ]
        if ground.is_past:
            more = site_notes(ground.live, setups, lease=False, all_save=not ground.case.plain)
            ground = replace(ground, notes=[*ground.notes, *more])
        runs = _simulated(ground.case, setups, run)
        rows = [merged_row(some, partial(row_of, setup)) for setup, some in zip(setups, runs, strict=True)]
        trials, dones = trials_of(runs, rows), [some[0] for some in runs]
        advice = advise(trials, limits)
        answer = TuneAnswer(ground, dones, rows, trials, advice, short, limits, run.seed, run.repeat)
        if page is not None:
            _write_page(page, answer)
        outputs.commit()
    if as_json:
        click.echo(json.dumps(answer.document(), allow_nan=False))
    else:
        answer.show()


def _tolerances(options: dict[str, Any]) -> Tolerances:
    return Tolerances(
        jobs=options.pop("job_tolerance"),
        tenant_hours=options.pop("tenant_tolerance"),
        jct=options.pop("jct_tolerance"),
        overhead=options.pop("overhead_limit"),
    )


def _check_settings(policy: str, run: RunOptions) -> None:
    """Refuse several policies, and settings that cannot be."""
    names = policies_of(policy)
    if len(names) > 1:
        raise InputError(f"--policy {policy}: a term is tuned for one policy: name one")
    given_settings(run.settings, names)


def _long_enough(terms: Sequence[float], costs: Costs) -> tuple[list[float], list[float]]:
    """Terms in which a job can make progress, and those that a change of hands uses up."""
    least = costs.of_one_change
    tried = [term for term in terms if term > least]
    if not tried:
        raise InputError(
            f"a change of hands costs {least:g} s and no term of --terms leaves time to work: give longer ones"
        )
    return tried, [term for term in terms if term <= least]


def _simulated(case: Case, setups: Sequence[PolicySetup], run: RunOptions) -> list[list[FinishedRun]]:
    """One after another, or side by side; the bars are called by their terms."""
    names = [f"{setup.lease:g} s" for setup in setups]
    orders = [
        SimulationOrder(case.scenario, setup, label=name) for setup, name in zip(setups, names, strict=True)
    ]
    with progress_bar(names, len(case.scenario.trace)) as beat:
        return run_repeated(orders, run.repeat, run.workers, beat)


def _write_page(path: Path, answer: TuneAnswer) -> None:
    from slurm_fair.cli.tune.page import tune_page  # only who wants a page pays for it

    whole = tune_page(answer)
    write_with(path, lambda text: text.writelines([whole]))
