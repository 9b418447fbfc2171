"""`slurm-fair sweep`: one trace under many policies, lease terms, loads and seeds, into one file."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from slurm_fair.cli.base import OneLineErrors, configuration_read, our_version
from slurm_fair.cli.simulate.crew import Crew, OrderEnd
from slurm_fair.cli.simulate.given import part
from slurm_fair.cli.simulate.options import (
    COSTS,
    COUNTED,
    FILE,
    GPU_WEIGHTS,
    JOB_SHARE,
    JOBS,
    LEASES,
    MACHINES,
    POLICIES,
    SETTINGS,
    with_options,
)
from slurm_fair.cli.simulate.scenario_options import END, OWED, ROUNDS, SPEEDS, TENANTS
from slurm_fair.cli.simulate.text import lead_of, many, notes_on_case
from slurm_fair.cli.sweep.grid import OWN, Grid, lease_list, load_list, seed_list
from slurm_fair.cli.sweep.groups import groups_of
from slurm_fair.cli.sweep.plot import plot_command
from slurm_fair.cli.sweep.prepared import prepared
from slurm_fair.cli.sweep.progress import SweepProgress, progress
from slurm_fair.cli.sweep.results_file import ResultsFile
from slurm_fair.cli.sweep.table import (
    print_failures,
    print_groups,
    say_versions,
    table_command,
    usual_metrics,
)
from slurm_fair.cli.sweep.task import Row, SweepTask, simulated_metrics
from slurm_fair.cli.written import Written
from slurm_fair.errors import InputError, SlurmFairError
from slurm_fair.suggest import did_you_mean


class _OrATrace(OneLineErrors):
    """A group in which a first word that is none of its commands belongs to `run`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`sweep TRACE ...` is `sweep run TRACE ...`."""
        commands = self.list_commands(ctx)
        if not args or args[0] in (*commands, *ctx.help_option_names):
            return super().parse_args(ctx, args)
        if not args[0].startswith("-") and not os.path.exists(args[0]):
            _refuse_mistyped(ctx, args[0], commands)
        return super().parse_args(ctx, ["run", *args])


def _refuse_mistyped(ctx: click.Context, word: str, commands: Sequence[str]) -> None:
    hint = did_you_mean(word, commands, " ").strip()
    if hint:
        raise click.UsageError(f"no trace '{word}' is there, and no command is called so; {hint}", ctx)


@click.group(cls=_OrATrace, subcommand_metavar="TRACE [OPTIONS] | table FILE | plot FILE")
def sweep() -> None:
    """Simulate a trace under many policies, lease terms, loads and seeds; keep all results in one file.

    \b
    slurm-fair sweep trace.csv.gz --gpus 64 --policy astraea,srtf \\
        --lease 300,900,3600 --load 0.8,1,1.2 --seed 0-4 --out sweep.db
    slurm-fair sweep table sweep.db
    slurm-fair sweep plot sweep.db --out sweep.svg

    Here each policy runs under three lease terms and three loads with five seeds: 90 runs, as many at a time as
    there are cores. The same command once more goes on where it was stopped; with more policies, lease terms,
    loads or seeds it adds those. FILE is an SQLite database: table `runs` has a row for each run.

    `slurm-fair sweep run --help` has the options of the first form; docs/sweep.md tells the rest.
    """


@dataclass(frozen=True, slots=True)
class HandsOptions:
    """The place where runs are simulated, and how many at a time."""

    processes: int | None
    dask: str | None

    def check(self) -> None:
        """A Dask cluster has its own processes, and has to answer before a file is made."""
        if self.processes is not None and self.dask is not None:
            raise InputError("--processes and --dask both say where runs are simulated: give one of them")
        if self.dask is not None:
            from slurm_fair.cli.sweep.over_dask import check_scheduler

            check_scheduler(self.dask)

    def ends(self, tasks: Sequence[SweepTask], show: SweepProgress) -> Generator[OrderEnd[Row], None, None]:
        """Simulate all of them, and say of each that it has ended."""
        if self.dask is not None:
            from slurm_fair.cli.sweep.over_dask import over_dask  # nobody else waits for Dask

            return over_dask(self.dask, tasks, our_version())
        most = self.processes or len(os.sched_getaffinity(0))
        return Crew(tasks, most, simulated_metrics, show.beat, "--processes").ends()


@sweep.command("run")
@click.argument("trace", metavar="TRACE", type=FILE)
@click.option("--out", type=FILE, required=True, metavar="FILE.db", help="The file of the results.")
@with_options(POLICIES)
@click.option(
    "--lease",
    "lease_list",
    type=Written("S[,S...]", lease_list),
    default=OWN,
    show_default=True,
    help="Lengths of leases, in seconds; `own` is the policy's own, else 900.",
)
@click.option(
    "--load",
    "loads",
    type=Written("F[,F...]", load_list),
    default="1",
    show_default=True,
    help="How many times as fast as in the trace jobs are submitted.",
)
@click.option(
    "--seed",
    "seeds",
    type=Written("N[-N][,...]", seed_list),
    default="0",
    show_default=True,
    help="Seeds, to see how far results differ by chance: 0 is the run of `simulate`; each other one has its "
    "looks at other instants, other delays of submissions and other draws of the policies.",
)
@click.option(
    "--processes",
    type=click.IntRange(min=1),
    metavar="N",
    show_default="one for each core",
    help="Runs at the same time, each in a process of its own.",
)
@click.option("--dask", metavar="ADDRESS", help="Simulate on the Dask cluster of this scheduler.")
@with_options(MACHINES, LEASES, ROUNDS, COSTS, SPEEDS, TENANTS, GPU_WEIGHTS, COUNTED, JOB_SHARE, OWED, END)
@with_options(JOBS, SETTINGS)
@click.pass_context
def run_command(context: click.Context, /, trace: Path, out: Path, policies: str, **options: Any) -> int:
    """Simulate TRACE once for each policy, lease term, load and seed, and write each result to --out at once.

    \b
    slurm-fair sweep trace.csv.gz --gpus 64 --policy astraea,srtf,fifo \\
        --lease 300,900 --load 0.8,1,1.2 --seed 0-4 --out sweep.db

    Several values of a setting (`--set fair.price_hours=0.5,1,2`) are simulated like several policies.
    Runs whose results are in the file are not simulated again. A run that fails is told, costs its row alone, and
    is tried again by the same command; the exit code is 1 then. Ctrl-C leaves a file with all runs that were over.
    """
    hands = part(HandsOptions, options)
    hands.check()
    grid = Grid(options["lease_list"], options["loads"], options["seeds"])
    ready = prepared(context, trace, policies, grid.leases, options)
    with ResultsFile.to_write(out, [trace, *configuration_read(context)]) as results:
        results.belong(ready.about, ready.settings)
        every, there = ready.tasks(grid), results.done()
        tasks = [task for task in every if task.name not in there]
        if len(tasks) < len(every):
            old = len(every) - len(tasks)
            click.echo(f"{out}: {old} of {many(len(every), 'run')} are there already", err=True)
        failed = _simulated(results, tasks, hands)
        rows = results.rows()
    say_versions(rows)
    click.echo("\n".join(lead_of(ready.case)) + "\n")
    print_groups(groups_of(rows), usual_metrics())
    for note in notes_on_case(ready.case, ready.policies):
        click.echo(note)
    print_failures(rows)
    if failed:
        click.echo(
            f"{out}: {failed} of {many(len(tasks), 'run')} failed: the same command tries them again",
            err=True,
        )
    return 1 if failed else 0


def _simulated(results: ResultsFile, tasks: Sequence[SweepTask], hands: HandsOptions) -> int:
    """Simulate, and write each result when it is there; the number of runs that failed."""
    failed = over = 0
    if not tasks:
        return 0
    try:
        with (
            progress(len(tasks), len(tasks[0].scenario.trace)) as show,
            closing(hands.ends(tasks, show)) as ends,
        ):
            for end in ends:
                cell, problem = tasks[end.at].cell, str(end.problem or "")
                if end.result is None:
                    failed += 1
                    results.fail(cell, problem, our_version())
                else:
                    results.keep(cell, end.result, our_version())
                over += 1
                show.ended(cell.name, problem if end.result is None else None)
    except (KeyboardInterrupt, SlurmFairError):
        kept = f"{over - failed} of {many(len(tasks), 'run')} done and kept"
        click.echo(f"{results.path}: {kept}: the same command goes on", err=True)
        raise
    return failed


sweep.add_command(table_command)
sweep.add_command(plot_command)
