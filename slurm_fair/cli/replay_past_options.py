"""Options that `replay` and `tune-lease` share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from slurm_fair.cli.simulate import Seconds

FILE = click.Path(path_type=Path)
_Command = TypeVar("_Command", bound=Callable[..., Any])
_Part = TypeVar("_Part")
_WHEN = "as sreport takes it: YYYY-MM-DD[THH:MM[:SS]], MMDD[YY], now-2weeks, today"

PERIOD = (
    click.option("--start", "-S", help=f"Start of the period, {_WHEN}; the last full month unless given."),
    click.option("--end", "-E", help="End of the period; now if only --start is given."),
)
MACHINES = (
    click.option("--gpus", type=click.IntRange(min=1), metavar="N", help="So many GPUs, all alike."),
    click.option(
        "--gpus-per-node", type=click.IntRange(min=1), metavar="N", help="Of --gpus; 8 unless given."
    ),
    click.option("--cluster", type=FILE, metavar="FILE.toml", help="Nodes with types, racks and speeds."),
)
COSTS = (
    click.option("--checkpoint-cost", type=Seconds(), help="From the request until it is saved."),
    click.option("--restart-cost", type=Seconds(), help="From a resumed start until progress."),
    click.option("--requeue-delay", type=Seconds(), help="Before Slurm starts a job again; 0 unless given."),
)
LEASES = (
    click.option(
        "--interval",
        type=Seconds(above_zero=True),
        default=10.0,
        show_default=True,
        help="Between two looks.",
    ),
    click.option(
        "--align",
        type=click.Choice(["rolling", "aligned"]),
        default="aligned",
        show_default=True,
        help="Leases end on their own, or together.",
    ),
)
JOBS = (
    click.option(
        "--failed",
        type=click.Choice(["keep", "drop"]),
        default="keep",
        show_default=True,
        help="Jobs that failed, were cancelled or timed out.",
    ),
    click.option(
        "--too-large",
        type=click.Choice(["refuse", "drop"]),
        default="refuse",
        show_default=True,
        help="Jobs that the cluster could never run.",
    ),
    click.option(
        "--undeclared",
        type=click.Choice(["actual", "unknown"]),
        default="actual",
        show_default=True,
        help="What policies are told of the run time of jobs without a declared one or a time limit.",
    ),
    click.option("--skip-bad", is_flag=True, help="Leave bad rows out, count and list them."),
)
RUN = (
    click.option("--set", "settings", multiple=True, metavar="POLICY.KEY=VALUE", help="A policy's setting."),
    click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the policies."),
    click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Processes."),
    click.option("--html", type=FILE, metavar="FILE.html", help="One page with tables and plots."),
)
WEIGHTS = (
    click.option(
        "--weights",
        metavar="shares|equal|demand|FILE",
        help="Of the tenants; Slurm's shares on the site itself, else equal.",
    ),
)


def with_options(*groups: tuple[Callable[[_Command], _Command], ...]) -> Callable[[_Command], _Command]:
    """All of them on one command, in this order."""

    def decorate(command: _Command) -> _Command:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return decorate


def part(kind: type[_Part], options: Mapping[str, Any]) -> _Part:
    """The options that a dataclass has fields for, as one of it."""
    names = inspect.signature(kind).parameters
    return kind(**{name: options[name] for name in names})
