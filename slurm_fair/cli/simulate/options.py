"""Options that several of the commands that simulate take: `simulate`, `replay` and `tune-lease`."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from slurm_fair.cli.durations import typed_seconds
from slurm_fair.cli.simulate.plain_parts import in_one_way
from slurm_fair.cli.written import Written
from slurm_fair.config.lease import A_TERM, AUTO, LEAST_SECONDS
from slurm_fair.model.gpu_weight import fault_in
from slurm_fair.policy.registry import DEFAULT_POLICY
from slurm_fair.sim.run import USUAL_INTERVAL
from slurm_fair.sim.truthfulness import MOST_ERROR
from slurm_fair.suggest import nearest
from slurm_fair.trace.cells import CENTURY

FILE = click.Path(path_type=Path)
_Command = TypeVar("_Command", bound=Callable[..., Any])
_NEVER = "never"
_WHEN = "as sreport takes it: YYYY-MM-DD[THH:MM[:SS]], MMDD[YY], now-2weeks, today"


def _seconds(text: str) -> float:
    """Seconds of 0 or more, up to a century."""
    seconds = typed_seconds(text)
    if not math.isfinite(seconds) or seconds < 0:
        raise click.BadParameter(f"{text!r} is no number of seconds of 0 or more")
    if seconds > CENTURY:
        raise click.BadParameter(f"{text!r} is more than a hundred years ({CENTURY:.0f} s)")
    return seconds


def seconds_above_zero(text: str) -> float:
    """Seconds from a millisecond on, for what cannot take no time."""
    seconds = typed_seconds(text)
    if not math.isfinite(seconds) or seconds <= 0:
        raise click.BadParameter(f"{text!r} is no number of seconds above 0")
    if seconds < LEAST_SECONDS:
        raise click.BadParameter(f"{text!r} is shorter than a millisecond ({LEAST_SECONDS:g})")
    return _seconds(text)


def _or_word(text: str, *words: str) -> float | str:
    """One of some words, or seconds."""
    if text.lower() in words:
        return text.lower()
    if meant := nearest(text, words):
        raise click.BadParameter(f"{text!r} is no number of seconds above 0; did you mean {meant!r}?")
    return seconds_above_zero(text)


def _seconds_or_never(text: str) -> float:
    """Seconds, or inf for the word."""
    if text.lower() == _NEVER:
        return math.inf
    if nearest(text, (_NEVER,)):
        raise click.BadParameter(f"{text!r} is no number of seconds; did you mean {_NEVER!r}?")
    return _seconds(text)


def _half_life(text: str) -> float:
    """0 = never, else from a millisecond on."""
    seconds = _seconds(text)
    return seconds_above_zero(text) if seconds else seconds


def _error_factor(text: str) -> float:
    """A factor of 1 or more, by which something may be off both ways."""
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not 1.0 <= factor <= MOST_ERROR:
        raise click.BadParameter(f"{text!r} is no factor from 1 to {MOST_ERROR:g}")
    return factor


def _type_weights(text: str) -> dict[str, float]:
    """The weight of each GPU type, as `a100=1,v100=0.5`, in the order in which they were written."""
    found: dict[str, float] = {}
    for part_ in text.split(","):
        kind, equals, number = (piece.strip() for piece in part_.partition("="))
        if not equals or kind in found:
            why = "is there twice" if kind in found else "is no weight"
            raise click.BadParameter(f"{part_!r} {why}: write such as a100=1,v100=0.5")
        try:
            found[kind] = float(number)
        except ValueError:
            raise click.BadParameter(f"{part_!r} is no weight: write such as a100=1,v100=0.5") from None
    if wrong := fault_in(found):
        raise click.BadParameter(wrong)
    return found


SECONDS = Written("S", _seconds)
SECONDS_ABOVE_ZERO = Written("S", seconds_above_zero)
HALF_LIFE = Written("S", _half_life)
SECONDS_OR_NEVER = Written("S|never", _seconds_or_never)
RENEWAL: Written[float | str] = Written("S|auto|term", lambda text: _or_word(text, AUTO, A_TERM))
INTERVAL: Written[float | str] = Written("S", lambda text: _or_word(text, AUTO))


class Part(click.FloatRange):
    """A number from 0 to 1; not nan, which no comparison refuses."""

    def __init__(self) -> None:
        super().__init__(0.0, 1.0)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number in the text of an option."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not in the range {self._describe_range()}.", param, ctx)
        return number


PERIOD = (
    click.option("--start", "-S", help=f"Start of the period, {_WHEN}; the last full month unless given."),
    click.option("--end", "-E", help="End of the period; now if only --start is given."),
)
MACHINES = (
    click.option(
        "--gpus", type=click.IntRange(min=1), metavar="N", help="The number of GPUs; all are alike."
    ),
    click.option(
        "--gpus-per-node",
        type=click.IntRange(min=1),
        metavar="N",
        help="GPUs on each node of --gpus; 8 unless given.",
    ),
    click.option(
        "--cluster", type=FILE, metavar="FILE.toml", help="A file of nodes with GPU types, racks and speeds."
    ),
)
POLICIES = (
    click.option(
        "--policy",
        "policies",
        default=DEFAULT_POLICY,
        show_default=True,
        metavar="A[,B...]",
        help="The policies to compare, separated by commas.",
    ),
)
TERM = (
    click.option(
        "--lease",
        type=SECONDS_ABOVE_ZERO,
        help="Length of a lease, in seconds; the policy's own, else 900.",
    ),
)
COSTS = (
    click.option(
        "--checkpoint-cost", type=SECONDS, help="Seconds that a job takes to save once it is asked."
    ),
    click.option("--start-cost", type=SECONDS, help="Seconds from any start until the job makes progress."),
    click.option(
        "--restart-cost",
        type=SECONDS,
        help="Seconds more from a resumed start until the job makes progress.",
    ),
    click.option(
        "--requeue-delay",
        type=SECONDS,
        help="Seconds before Slurm starts a requeued job again; 0 unless given.",
    ),
)
LEASES = (
    click.option(
        "--interval",
        type=INTERVAL,
        metavar="S|auto",
        help=f"Seconds between two looks, {USUAL_INTERVAL:g} unless given; auto: a look when something changes.",
    ),
    click.option(
        "--pace",
        type=click.Choice(["events", "daemon"]),
        default="events",
        show_default=True,
        help="events: looks when something could change; daemon: as the daemon has them, more of them while jobs "
        "change places, and with --interval auto when it hears of a change.",
    ),
    click.option(
        "--look-cost",
        type=SECONDS,
        help="Seconds that each look takes, with --pace daemon; 0 unless given.",
    ),
    click.option(
        "--align",
        type=click.Choice(["rolling", "aligned"]),
        show_default="rolling",
        help="rolling: each lease ends at a time of its own; aligned: all end together.",
    ),
    click.option(
        "--reserve-after",
        type=SECONDS_OR_NEVER,
        help="Rolling leases: how long a gang that stands first and fits nowhere waits at most until nodes are "
        "set aside for it, and one that has run a lease more; the length of a lease unless given.",
    ),
    click.option(
        "--renewal",
        type=RENEWAL,
        help="Rolling leases: how long a renewed lease lasts; auto (the usual): a quarter of a lease; term: as "
        "long as a new one. Shorter leases are renewed together, a sixteenth of that apart, 15 s at most.",
    ),
    click.option(
        "--half-life",
        type=HALF_LIFE,
        help="When tenants are compared, GPU time that they had and were owed so long ago counts half; 0 = it "
        "always counts whole. Unless given: 0, and for the site's own past the site's own.",
    ),
)
JOBS = (
    click.option(
        "--failed",
        type=click.Choice(["keep", "drop"]),
        default="keep",
        show_default=True,
        help="keep: jobs that failed, were cancelled or timed out are simulated too; drop: they are left out.",
    ),
    click.option(
        "--too-large",
        type=click.Choice(["refuse", "drop"]),
        default="refuse",
        show_default=True,
        help="refuse: jobs that the cluster could never run end the command; drop: they are left out.",
    ),
    click.option(
        "--undeclared",
        type=click.Choice(["actual", "unknown"]),
        default="actual",
        show_default=True,
        help="Run time that policies are told of jobs without a declared one or a time limit.",
    ),
    click.option("--skip-bad", is_flag=True, help="Leave bad rows out, count and list them."),
    click.option(
        "--progress",
        type=click.Choice(["reported", "silent"]),
        default="reported",
        show_default=True,
        help="silent: jobs have a declared run time and never report how far they are.",
    ),
    click.option(
        "--declared-error",
        type=Written("FACTOR", _error_factor),
        default=1.0,
        show_default=True,
        metavar="FACTOR",
        help="Declared run times are off by factors drawn from a lognormal distribution: its logarithm has the "
        "standard deviation ln FACTOR.",
    ),
    click.option(
        "--plain",
        type=Written("PART[,TENANT=PART...]", in_one_way),
        metavar="PART[,TENANT=PART...]",
        help="Part of each tenant's jobs (0 to 1), or of the jobs of one tenant, that cannot save. Such a job "
        "starts only within its tenant's own share, and is never asked to stop. Which jobs they are follows from "
        "--seed; all runs of --repeat and of a sweep have the same ones.",
    ),
)
MOST_REPEATS = 10_000  # a spread is known long before, and all results are kept until the last one
SETTINGS = (
    click.option(
        "--set", "settings", multiple=True, metavar="POLICY.KEY=VALUE", help="Set one setting of one policy."
    ),
)
RUN = (
    *SETTINGS,
    click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Seed of what policies, --declared-error and --plain draw; the same seed gives the same results.",
    ),
    click.option(
        "--repeat",
        type=click.IntRange(1, MOST_REPEATS),
        default=1,
        show_default=True,
        help="Runs of each simulation, to see how far results differ by chance: each has its looks at other "
        "instants and other delays of submissions. Means and their spread are printed.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Simulations that run at the same time.",
    ),
    click.option(
        "--html", type=FILE, metavar="FILE.html", help="Write one page with tables and plots to this file."
    ),
)
FILES = (
    click.option(
        "--jobs-out",
        type=FILE,
        metavar="FILE.csv[.gz]",
        help="Write one row for each job: what became of it.",
    ),
    click.option(
        "--events-out",
        type=FILE,
        metavar="FILE.jsonl",
        help="Write the simulated events, for `report --from`.",
    ),
)
_SHARE_WORDS = "max-min: of a tenant's share, what small jobs cannot use is owed to its other jobs."
_SHARES = click.Choice(["proportional", "max-min"])
JOB_SHARE = (
    click.option("--job-share", type=_SHARES, default="proportional", show_default=True, help=_SHARE_WORDS),
)
PAST_JOB_SHARE = (
    click.option(
        "--job-share",
        type=_SHARES,
        show_default="the site's own for its past, else proportional",
        help=_SHARE_WORDS,
    ),
)
_COUNTED_WORDS = "Tenants that count in quotas: each from its first job on, or all from the beginning."
_COUNTED = click.Choice(["seen", "all"])
COUNTED = (click.option("--counted", type=_COUNTED, default="seen", show_default=True, help=_COUNTED_WORDS),)
PAST_COUNTED = (
    click.option(
        "--counted",
        type=_COUNTED,
        show_default="the site's own for its past, else seen",
        help=_COUNTED_WORDS,
    ),
)
WEIGHTS = (
    click.option(
        "--weights",
        metavar="shares|equal|demand|requested|FILE",
        help="Weights of the tenants; Slurm's shares for the site's own past, else equal.",
    ),
)


GPU_WEIGHTS = (
    click.option(
        "--gpu-weights",
        type=Written("TYPE=W[,TYPE=W...]", _type_weights),
        help="Weight of a GPU of each type in charges and quotas, such as a100=1,v100=0.5; 1 for a type not "
        "named (for the site's own past, the site's own).",
    ),
)


def with_options(*groups: tuple[Callable[[_Command], _Command], ...]) -> Callable[[_Command], _Command]:
    """All of them on one command, in this order."""

    def decorate(command: _Command) -> _Command:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return decorate
