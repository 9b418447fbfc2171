"""`slurm-fair trace`: traces converted, made up, and told in numbers."""

from __future__ import annotations

import json
from pathlib import Path

import click
import numpy as np

from slurm_fair.cli.base import OneLineErrors
from slurm_fair.cli.simulate.bad_rows import list_bad
from slurm_fair.cli.simulate.files import Outputs
from slurm_fair.cli.status import JSON
from slurm_fair.cli.table import TextColumn, clean, duration, print_table
from slurm_fair.errors import InputError
from slurm_fair.model.counted import counted
from slurm_fair.trace import (
    WORKLOADS,
    Description,
    TraceWish,
    describe,
    generate,
    read_machines,
    read_throughputs,
    read_trace,
)
from slurm_fair.trace.convert import SOURCES, convert
from slurm_fair.trace.write import check_target, fill_file

_MOST_LISTED = 20  # tenants
_USUAL_GPUS = 32
_FILE = click.Path(path_type=Path)
_OUT = click.option(
    "-o",
    "--out",
    type=_FILE,
    required=True,
    metavar="OUT.csv[.gz]",
    help="The trace to write; replaced whole.",
)
_SKIP = click.option("--skip-bad", is_flag=True, help="Leave bad rows out, count and list them.")
_THROUGHPUTS = click.option(
    "--throughputs", type=_FILE, metavar="FILE", help="Gives run times to jobs that only name their model."
)


@click.group(cls=OneLineErrors)
def trace() -> None:
    """Convert, make up and describe traces for simulations.

    A trace is a CSV file, one job a row; docs/traces.md has its columns.
    """


@trace.command(
    "convert", epilog="\b\nSources:\n" + "\n".join(f"  {n:<10} {s.about}" for n, s in SOURCES.items())
)
@click.argument("source", type=click.Choice(list(SOURCES), case_sensitive=False))
@click.argument("input_file", metavar="INPUT", type=_FILE)
@_OUT
@_SKIP
@_THROUGHPUTS
def convert_command(
    source: str, input_file: Path, out: Path, skip_bad: bool, throughputs: Path | None
) -> None:
    """Convert a public trace or your own history.

    INPUT may be gzip. In the trace the first submission is at 0.
    """
    check_target(out)
    with Outputs([input_file, *([throughputs] if throughputs else [])]) as outputs:
        beside = outputs.will_write(out)
        rates = read_throughputs(throughputs) if throughputs else None
        reading = convert(source, input_file, skip_bad=skip_bad, throughputs=rates)
        fill_file(reading.trace, beside)
        outputs.commit()
    list_bad(input_file, reading)
    left = [f"{count} {why}" for why, count in sorted(reading.left_out.items())]
    left += [counted(len(reading.bad), "bad row")] if reading.bad else []
    click.echo(
        f"{out}: {counted(len(reading.trace), 'job')}" + (f"; left out: {', '.join(left)}" if left else "")
    )


@trace.command("generate")
@click.option("--jobs", type=int, default=500, show_default=True, help="Number of jobs.")
@click.option("--rate", type=float, help="Jobs submitted per hour.")
@click.option(
    "--load",
    type=float,
    help="GPU time asked for, divided by the GPU time of --gpus; 1 unless --rate is given.",
)
@click.option("--gpus", type=int, help=f"GPUs of the cluster of --load; {_USUAL_GPUS} unless given.")
@click.option("--tenants", type=int, default=8, show_default=True, help="Number of tenants that submit them.")
@click.option(
    "--zipf",
    type=float,
    default=1.0,
    show_default=True,
    help="Tenant k has 1/k^ZIPF of the first one's jobs.",
)
@click.option(
    "--classes",
    type=click.Choice(list(WORKLOADS)),
    default="shockwave",
    show_default=True,
    help="The paper that the job sizes are taken from.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="The same seed makes the same trace.",
)
@_OUT
def generate_command(
    jobs: int,
    rate: float | None,
    load: float | None,
    gpus: int | None,
    tenants: int,
    zipf: float,
    classes: str,
    seed: int,
    out: Path,
) -> None:
    """Make up a trace with the job sizes of a paper.

    Arrivals are a Poisson process, as dense as --rate or --load makes it; tenants have uneven appetites.
    """
    check_target(out)
    if rate is not None and gpus is not None:
        raise InputError("--gpus is the cluster that --load speaks of: leave it out beside --rate")
    cluster = _USUAL_GPUS if gpus is None else gpus
    wish = TraceWish(jobs, rate, load, cluster, tenants, zipf, WORKLOADS[classes])
    with Outputs([]) as outputs:
        beside = outputs.will_write(out)
        made = generate(wish, np.random.default_rng(seed))
        fill_file(made, beside)
        outputs.commit()
    hours = float(made.gpu_seconds.sum()) / 3600
    click.echo(
        f"{out}: {counted(len(made), 'job')}, {hours:.1f} GPU-hours, over {duration(float(made.submit_s.max()))}"
    )


@trace.command("describe")
@click.argument("trace_file", metavar="TRACE", type=_FILE)
@click.option("--gpus", type=click.IntRange(min=1), help="Show the load on so many GPUs.")
@click.option("--cluster", type=_FILE, metavar="FILE.toml", help="Show the load on this cluster.")
@_THROUGHPUTS
@_SKIP
@JSON
def describe_command(
    trace_file: Path,
    gpus: int | None,
    cluster: Path | None,
    throughputs: Path | None,
    skip_bad: bool,
    as_json: bool,
) -> None:
    """Tell what a trace holds.

    Jobs, tenants, GPU-hours, sizes, arrivals, and the load on a cluster. docs/schema/trace-describe.json has the
    keys of --json.
    """
    if gpus and cluster:
        raise InputError("--gpus and --cluster both say what the load is on: give one of them")
    capacity = float(gpus) if gpus else (read_machines(cluster).capacity if cluster else None)
    rates = read_throughputs(throughputs) if throughputs else None
    reading = read_trace(trace_file, skip_bad=skip_bad, throughputs=rates, need_durations=False)
    about = describe(reading, capacity)
    list_bad(trace_file, reading)
    if as_json:
        click.echo(json.dumps({"trace": str(trace_file), **about.document()}, allow_nan=False))
    else:
        _print(trace_file, about)


def _print(path: Path, about: Description) -> None:
    click.echo(f"{clean(path)}\n")
    facts = [{"what": what, "value": value} for what, value in _facts(about) if value]
    width = max(len(fact["what"]) for fact in facts)
    for fact in facts:
        click.echo(f"{fact['what']:<{width}}  {fact['value']}")
    click.echo()
    print_table(
        _SIZES, [{**size, "jobs_part": size["jobs"] / about.jobs} for size in about.document()["sizes"]]
    )
    click.echo()
    parts = about.document()["per_tenant"]
    print_table(_TENANTS, parts[:_MOST_LISTED])
    if len(parts) > _MOST_LISTED:
        click.echo(f"and {len(parts) - _MOST_LISTED} more tenants (all with --json)")


def _facts(about: Description) -> list[tuple[str, str]]:
    """The facts above the tables; empty texts are not shown."""
    lengths = (about.duration_min_s, about.duration_p50_s, about.duration_p95_s, about.duration_max_s)
    return [
        ("jobs", str(about.jobs)),
        ("bad rows left out", str(about.bad_rows or "")),
        ("tenants", str(about.tenants)),
        ("users", str(about.users)),
        ("models", str(about.models or "")),
        ("span of submissions", duration(about.span_s)),
        ("arrivals per hour", "" if about.arrivals_per_hour is None else f"{about.arrivals_per_hour:.2f}"),
        ("GPU-hours", f"{about.gpu_seconds / 3600:.1f}"),
        ("run time min, median, p95, max", "" if None in lengths else "  ".join(map(duration, lengths))),
        ("jobs without a run time", str(about.jobs_without_duration or "")),
        ("jobs with a part of a GPU", str(about.jobs_with_fractional_gpus or "")),
        ("GPUs of the largest job", f"{about.max_gpus:g}"),
        ("load", "" if about.load is None else f"{about.load:.3f} of {about.cluster_gpus:g} GPUs"),
        ("ended", ", ".join(f"{count} {word}" for word, count in about.statuses.items())),
    ]


def _hours(gpu_seconds: float) -> str:
    return f"{gpu_seconds / 3600:.1f}"


def _part(share: float) -> str:
    return f"{share:.3f}"


_SIZES = (
    TextColumn("GPUs", "gpus"),
    TextColumn("Jobs", "jobs"),
    TextColumn("Part", "jobs_part", _part),
    TextColumn("GPU-hours", "gpu_seconds", _hours),
)
_TENANTS = (
    TextColumn("Tenant", "tenant", is_name=True),
    TextColumn("Jobs", "jobs"),
    TextColumn("GPU-hours", "gpu_seconds", _hours),
    TextColumn("Share", "share", _part),
)
