"""Options that say what a trace is simulated on: `simulate` and `sweep` take all of them."""

from __future__ import annotations

import click

from slurm_fair.cli.simulate.given import LeaseOptions
from slurm_fair.cli.simulate.options import FILE, SECONDS_ABOVE_ZERO, Part
from slurm_fair.errors import InputError
from slurm_fair.model.speeds import USUAL_EXPONENT

ROUNDS = (
    click.option(
        "--rounds",
        type=click.Choice(["conserving", "gavel"]),
        default="conserving",
        show_default=True,
        help="gavel: time goes in rounds of --lease; GPUs of a job that ended stay idle until its round ends.",
    ),
)
SPEEDS = (
    click.option("--throughputs", type=FILE, metavar="FILE", help="Measured speeds by model and GPU type."),
    click.option(
        "--throughputs-source",
        metavar="NAME",
        help="The source to read in the file of --throughputs; its first unless given.",
    ),
    click.option(
        "--speeds",
        type=click.Choice(["known", "learned", "profiled"]),
        default="known",
        show_default=True,
        help="Speeds on GPU types that policies are told. learned: where a job of the tenant and model has run; "
        "profiled: the profiler gives all jobs turns on the other types too.",
    ),
    click.option(
        "--elastic-exponent",
        type=Part(),
        default=USUAL_EXPONENT,
        show_default=True,
        metavar="E",
        help="Speed of an elastic job where it was not measured: (GPUs / GPUs asked for) to this power.",
    ),
    click.option(
        "--regimes",
        type=FILE,
        metavar="FILE",
        help="A file of the instants at which jobs change their batch size.",
    ),
    click.option(
        "--outages",
        type=FILE,
        metavar="FILE.csv",
        help="A table time_s,node,event; an event is drain, down or up.",
    ),
)
TENANTS = (
    click.option(
        "--weights",
        default="equal",
        show_default=True,
        metavar="equal|demand|requested|FILE",
        help="Weights of the tenants: alike, by the GPU time or by the GPUs that their jobs ask for, or a file's.",
    ),
)
OWED = (
    click.option(
        "--report-share",
        type=click.Choice(["demand", "quota"]),
        default="demand",
        show_default=True,
        help="GPU time that tenants are owed in results: at most what their jobs ask for, or all of their quota.",
    ),
)
END = (
    click.option("--until", type=SECONDS_ABOVE_ZERO, help="End the simulation at this second of the trace."),
)


def in_rounds(rounds: str, leases: LeaseOptions) -> bool:
    """True if rounds are Gavel's; options that make no sense beside them are refused."""
    if rounds != "gavel":
        return False
    if leases.align == "rolling":
        raise InputError("--rounds gavel has aligned leases: leave --align rolling out")
    if leases.interval is not None:
        raise InputError("--rounds gavel looks only where a round ends: leave --interval out")
    return True
