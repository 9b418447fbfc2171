"""`slurm-fair demo`: the whole thing on a private Slurm, or a virtual cluster, in a few minutes, with proof."""

from __future__ import annotations

import functools
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click
from rich.console import Console

from slurm_fair.cli.stopping import StoppedBySignal
from slurm_fair.cli.table import TextColumn, print_table
from slurm_fair.demo import comparison, live, proofs, scenario, stage, virtual
from slurm_fair.demo.measure import hungry_in_all, measure
from slurm_fair.demo.scenario import Scheduler
from slurm_fair.errors import InputError, LabError, SlurmFairError
from slurm_fair.lab import ensure_packages
from slurm_fair.model.counted import counted
from slurm_fair.store import open_reader
from slurm_fair_accounting import build_report_group

_COMPLAINTS_SHOWN = 10
_NEXT = (
    "Next: `slurm-fair init` on your controller node; `slurm-fair replay --start now-2weeks` shows what it would "
    "have made of your own cluster."
)


@click.command()
@click.option("--nodes", type=int, help="Nodes of the private Slurm; 4 unless given.")
@click.option("--gpus-per-node", type=int, help="Pretend GPUs of each; 8 unless given.")
@click.option("--lease", type=float, metavar="SECONDS", help="Lease term; 8 unless given.")
@click.option(
    "--quick", is_flag=True, help="Play a small demo: 2 nodes with 4 GPUs, leases of 5 s, under a minute."
)
@click.option("--keep", is_flag=True, help="Keep the folder with logs, journal and jobs.")
@click.option(
    "--no-fifo", is_flag=True, help="Leave out the comparison with plain Slurm: fair share, and FIFO."
)
@click.option(
    "--full", is_flag=True, help="End with the reports of tenants and jobs, all figures and every proof."
)
@click.option(
    "--virtual",
    "made_up",
    is_flag=True,
    help=f"Play the same demo on a virtual cluster, without Slurm, at {virtual.SPEED:g} times real speed.",
)
@click.option(
    "--or-virtual", is_flag=True, help="Use Slurm if it is found or can be installed, else --virtual."
)
@click.option("--fast", is_flag=True, help="With --virtual: at full speed, as always without a terminal.")
@click.pass_context
def demo(
    context: click.Context,
    /,
    keep: bool,
    no_fifo: bool,
    full: bool,
    made_up: bool,
    or_virtual: bool,
    fast: bool,
    **size: Any,
) -> None:
    """Show it: three tenants, about 30 jobs with checkpoints, real Slurm, a proof and a comparison.

    Starts a private Slurm on this machine (as root on Debian it installs the packages, saying so first) and the
    daemon with short leases. Beside it, two more run the same jobs alone: Slurm with fair share and backfill, and
    Slurm first in first out. Exit code 0 only if every proof holds.
    """
    began = time.monotonic()
    if fast and not (made_up or or_virtual):
        raise InputError("--fast is for a virtual cluster: give --virtual too, or leave it out")
    plot = _plot(**size)
    made_up = made_up or not _slurm_is_here(or_virtual)
    with _folder(keep) as (folder, keep_it), _heeding_signals("clusters" if made_up else "private Slurm"):
        _introduce(plot, no_fifo, made_up)
        if made_up:
            played = virtual.play_virtual(plot, folder, not no_fifo, Console(), fast)
        else:
            played = stage.play(plot, folder, not no_fifo, functools.partial(live.show_acts, Console()))
        failed = _tell(plot, played, full)
        if failed:
            keep_it()
            _say_what_failed(failed, played)
    click.echo(f"All of it took {time.monotonic() - began:.0f} s. {_NEXT}")
    if failed:
        context.exit(1)


def _plot(
    quick: bool, nodes: int | None, gpus_per_node: int | None, lease: float | None
) -> scenario.DemoScenario:
    """The scenario that is played: the small demo has its own cluster, the other one is as big as is asked for."""
    asked = {"--nodes": nodes, "--gpus-per-node": gpus_per_node, "--lease": lease}
    given = {name: value for name, value in asked.items() if value is not None}
    if quick and given:
        raise InputError(
            f"--quick is always 2 nodes with 4 GPUs and leases of 5 s: leave {' and '.join(given)} out"
        )
    if quick:
        return scenario.quick()
    return scenario.full(
        scenario.NODES if nodes is None else nodes,
        scenario.GPUS_PER_NODE if gpus_per_node is None else gpus_per_node,
        scenario.LEASE_SECONDS if lease is None else lease,
    )


def _slurm_is_here(or_virtual: bool) -> bool:
    """True if Slurm is here, installed where that is possible. False when it cannot be had and need not be."""
    try:
        ensure_packages(lambda words: click.echo(words, err=True))
    except LabError as problem:
        if not or_virtual:
            raise LabError(f"{problem}; or see it without Slurm: slurm-fair demo --virtual") from problem
        click.echo(f"No Slurm can be had here ({problem}): a virtual cluster takes its place.", err=True)
        return False
    return True


@contextmanager
def _folder(keep: bool) -> Iterator[tuple[Path, Callable[[], None]]]:
    """The folder of the acts: gone at the end, unless it is wanted or something went wrong."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-fair-demo-"))
    folder.chmod(0o755)
    wanted = [keep]
    try:
        yield folder, lambda: wanted.append(True)
    except SlurmFairError:
        wanted.append(True)
        raise
    finally:
        if any(wanted):
            click.echo(f"Logs, journal and jobs are in {folder}", err=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _heeding_signals(what: str) -> Iterator[None]:
    """Every way of asking us to end is Ctrl-C, and once is enough."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupt(number: int, frame: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)  # what we started is being ended, which takes a few seconds
        click.echo(f"stopping the daemon and the {what} ...", err=True)
        raise KeyboardInterrupt if number == signal.SIGINT else StoppedBySignal(number)

    before = {each: signal.signal(each, interrupt) for each in numbers}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _say_what_failed(failed: Sequence[proofs.Check], played: stage.Played) -> None:
    for check in failed:
        click.echo(f"slurm-fair: it does not hold that {check.title}: {check.found}", err=True)
    for complaint in played.fair.complaints[-_COMPLAINTS_SHOWN:]:
        click.echo(f"slurm-fair: the daemon's log: {complaint}", err=True)


def _introduce(plot: scenario.DemoScenario, no_fifo: bool, made_up: bool) -> None:
    tenants = ", ".join(f"{name} (weight {weight})" for name, weight in plot.weights.items())
    click.echo(
        f"{counted(plot.nodes, 'node')} with {counted(plot.gpus_per_node, 'GPU')} each; tenants {tenants}; "
        f"{len(plot.jobs)} jobs that need {plot.work_gpu_seconds:.0f} GPU-seconds; "
        f"leases of {plot.lease_seconds:g} s."
    )
    click.echo(
        f"{scenario.FLOOD} submits all its jobs at once, the others a few seconds later; one job of "
        f"{scenario.THIRD} wants the whole cluster."
    )
    if made_up:
        click.echo(
            "The cluster is virtual and so is time; daemon, journal, report and proof are the real ones."
        )
    if not no_fifo:
        click.echo(
            "Two more clusters get the same jobs at the same times without slurm_fair: one has fair share with "
            f"backfill, one goes first in first out (FIFO). {_fair_share_here(plot, made_up)}"
        )


def _fair_share_here(plot: scenario.DemoScenario, made_up: bool) -> str:
    """A sentence on fair share where jobs take seconds."""
    if made_up:
        return "Fair share and backfill are those of the policy `slurm`."
    return (
        "Slurm counts usage once a minute at most; so that fair share sees it here, its slurmctld is started anew "
        f"every {plot.recount_seconds:g} s."
    )


def _tell(plot: scenario.DemoScenario, played: stage.Played, full: bool) -> Sequence[proofs.Check]:
    """Comparison and proof, with --full the reports too; the checks that failed."""
    if full:
        _reports(played)
    _comparison(plot, played, full)
    click.echo(f"The daemon made {proofs.ticks(played.fair.tick_seconds)}.")
    own_time = measure(played.fair.runs, plot.weights, plot.total_gpus)
    checks = list(proofs.prove(plot, played.fair, own_time))
    for scheduler, facts in played.plain.items():
        checks += proofs.prove_plain(plot, scheduler, facts)
    failed = [check for check in checks if not check.holds]
    if not full:
        click.echo(f"{len(checks) - len(failed)} of {len(checks)} proofs hold (--full lists them).")
    else:
        click.echo("\nProof")
    for check in checks if full else failed:
        click.echo(f"  {'holds ' if check.holds else 'FAILED'}  {check.title}: {check.found}")
    return failed


def _reports(played: stage.Played) -> None:
    """The product's own reports over the demo's journal."""
    until = played.until
    group = build_report_group(lambda _: open_reader(played.journal), lambda: until or time.time())
    for name in ("tenants", "jobs"):
        click.echo()
        group.main([name], prog_name="slurm-fair report", standalone_mode=False)


def _comparison(plot: scenario.DemoScenario, played: stage.Played, full: bool) -> None:
    facts = {Scheduler.SLURM_FAIR: played.fair, **played.plain}
    runs = [each.runs for each in facts.values()]
    window = hungry_in_all(runs, plot.weights, plot.total_gpus)
    acts = {
        scheduler: measure(each.runs, plot.weights, plot.total_gpus, window)
        for scheduler, each in facts.items()
    }
    when = f", from second {window.since:.0f} to {window.until:.0f}" if window else ""
    click.echo(f"\nEach tenant's part of the GPU time while every tenant wanted more than its share{when}")
    for line in comparison.bars_of(plot, acts):
        click.echo(line)
    click.echo(f"\nThe same jobs, from {played.fair.runs_from}")
    columns = [TextColumn("", "what"), *(TextColumn(each.value, each.value) for each in acts)]
    print_table(columns, comparison.figures(plot, acts, full))
    for sentence in comparison.gains_and_costs(plot, acts):
        click.echo(sentence)
