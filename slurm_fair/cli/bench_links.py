"""`slurm-fair bench-links`: how fast the links between GPUs are, for `[throughput] links`."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict

import click

from slurm_fair.bench_links import PretendedRanks, Rates, Timing, joined, rates_of, timed_groups
from slurm_fair.cli.status import JSON
from slurm_fair.errors import InputError, SlurmTextError
from slurm_fair.model.counted import counted
from slurm_fair.slurm_text.hostlist import expand
from slurm_fair.throughput.links import RATES

_SMALL, _TIMES = 1 / 16, 20
_TYPED = ("SLURM_GPUS_PER_NODE", "SLURM_GPUS", "SLURM_GPUS_PER_TASK")  # such as a100:4


@click.command("bench-links")
@JSON
@click.option(
    "--gpu-type",
    metavar="TYPE",
    help="Type of the GPUs as Slurm names it; unless given, the type that the job asked for, or gpu.",
)
@click.option(
    "--by",
    type=click.Choice(("nccl", "gloo", "sockets")),
    default="nccl",
    show_default=True,
    help="nccl measures GPUs; gloo (PyTorch on CPUs) and sockets (no PyTorch) try the command out.",
)
@click.option(
    "--parameters",
    type=click.IntRange(1 << 10, 1 << 30),
    default=1 << 24,
    show_default=True,
    help="Numbers of 4 bytes in an all-reduce.",
)
@click.option(
    "--times",
    type=click.IntRange(1, 10_000),
    default=_TIMES,
    show_default=True,
    help="All-reduces of each group; their median counts.",
)
@click.option(
    "--pretend",
    type=(click.IntRange(1, 8), click.IntRange(1, 8)),
    default=(2, 2),
    show_default=True,
    metavar="NODES GPUS",
    help="With --by sockets: try it with NODES nodes that have GPUS GPUs each.",
)
def bench_links(
    as_json: bool, gpu_type: str | None, by: str, parameters: int, times: int, pretend: tuple[int, int]
) -> None:
    """Measure the links between GPUs of one type: all-reduces on one node and across nodes.

    Start one process for each GPU, on two nodes or more:

    \b
    srun -N 2 --ntasks-per-node=8 --gres=gpu:a100:8 slurm-fair bench-links --gpu-type a100

    What it prints at the end goes into the configuration.
    """
    kind = gpu_type or _asked_type(os.environ)
    sizes = max(int(parameters * _SMALL), 1), parameters
    if by == "sockets":
        if pretend[0] * pretend[1] < 2:
            raise InputError("--pretend 1 1: one GPU has no links; give more nodes or GPUs")
        timings = timed_groups(PretendedRanks(*pretend), sizes, times, _note)
        _print(as_json, kind, by, measured_timings(timings, sizes))
        return
    ranks = joined(os.environ, _first_host(os.environ), by)
    first = ranks.rank == 0
    timings = timed_groups(ranks, sizes, times, _note if first else lambda _: None)
    ranks.leave()
    if first:
        _print(as_json, kind, by, measured_timings(timings, sizes))


def measured_timings(timings: list[Timing], sizes: tuple[int, int]) -> list[Timing]:
    """The timings; InputError where one of them says nothing, because a larger all-reduce took no longer."""
    for one in timings:
        if math.isnan(one.seconds):
            raise InputError(
                f"--parameters {sizes[1]}: {counted(one.gpus, 'GPU')} on {counted(one.nodes, 'node')} "
                "took no longer for them than for "
                f"{sizes[0]}, so nothing was measured: give more --parameters, or more --times"
            )
    return timings


def _note(text: str) -> None:
    click.echo(text, err=True)


def _asked_type(environ: Mapping[str, str]) -> str:
    """The GPU type that the job asked for by name; a GPU without a type is called gpu."""
    for name in _TYPED:
        kind, colon, _ = environ.get(name, "").rpartition(":")
        if colon:
            return kind
    return "gpu"


def _first_host(environ: Mapping[str, str]) -> str:
    """The node of rank 0."""
    try:
        nodes = expand(environ.get("SLURM_STEP_NODELIST") or environ.get("SLURM_JOB_NODELIST", ""))
    except SlurmTextError:
        nodes = ()
    return nodes[0] if nodes else "127.0.0.1"


def _print(as_json: bool, kind: str, by: str, timings: list[Timing]) -> None:
    rates = rates_of(timings)
    if as_json:
        by_link = {name: _plain(getattr(rates, name)) for name in RATES}
        groups = [asdict(one) for one in timings]
        click.echo(json.dumps({"gpu_type": kind, "by": by, **by_link, "off": rates.off, "groups": groups}))
        return
    for line in text_of(kind, by, rates):
        click.echo(line)


def _plain(rate: float) -> float | str | None:
    """A rate as JSON has it: null = not measured, "inf" = it takes no time."""
    return None if math.isnan(rate) else "inf" if math.isinf(rate) else rate


def text_of(kind: str, by: str, rates: Rates) -> list[str]:
    """Lines that a configuration takes as they are."""
    pairs = [(name, getattr(rates, name)) for name in RATES]
    known = ", ".join(f"{name} = {_toml(rate)}" for name, rate in pairs if not math.isnan(rate))
    lines = [f"# The times are off these rates by {100 * rates.off:.3g} % at most."]
    if math.isnan(rates.net) or math.isinf(rates.net):
        lines.append(
            "# No rate between nodes was measured: run it on two nodes or more, or add net yourself."
        )
    if by != "nccl":
        lines.append(f"# Measured by {by}: these are no rates of GPUs. Do not put them into a configuration.")
    return [*lines, "[throughput.links]", f"{json.dumps(kind)} = {{ {known} }}"]


def _toml(rate: float) -> str:
    return "inf" if math.isinf(rate) else f"{rate:.4g}" if rate < 1e6 else f"{rate:.3e}"
