"""The entry points of the three commands."""

from __future__ import annotations

import sys

import click

from slurm_fair.cli.base import OneLineErrors, ended_in_one_line, our_version
from slurm_fair.cli.stopping import like_ctrl_c

_COMMANDS = {
    "run": "slurm_fair.cli.run:run",
    "demo": "slurm_fair.cli.demo:demo",
    "plan": "slurm_fair.cli.plan:plan",
    "status": "slurm_fair.cli.status:status",
    "queue": "slurm_fair.cli.queue:queue",
    "explain": "slurm_fair.cli.explain:explain",
    "report": "slurm_fair.cli.report:report",
    "pause": "slurm_fair.cli.control:pause",
    "resume": "slurm_fair.cli.control:resume",
    "fail-open": "slurm_fair.cli.control:fail_open",
    "check": "slurm_fair.cli.check:check",
    "simulate": "slurm_fair.cli.simulate.command:simulate",
    "replay": "slurm_fair.cli.replay.command:replay",
    "policies": "slurm_fair.cli.policies:policies",
    "tune-lease": "slurm_fair.cli.tune.command:tune_lease",
    "bench-links": "slurm_fair.cli.bench_links:bench_links",
    "sweep": "slurm_fair.cli.sweep.command:sweep",
    "trace": "slurm_fair.cli.trace:trace",
    "init": "slurm_fair.cli.init:init",
    "replay-tick": "slurm_fair.cli.replay_tick:replay_tick",
    "deadman": "slurm_fair.cli.control:deadman",
}

# Commands that write files, start processes or take long. `run`, `deadman` and `demo` have a way of their own.
_LONG = frozenset({"simulate", "replay", "tune-lease", "sweep", "trace", "policies", "report"})


@click.group(cls=OneLineErrors, lazy=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--config",
    metavar="FILE",
    help="Configuration (default: $SLURM_FAIR_CONFIG, else /etc/slurm/slurm-fair.toml, else built-in).",
)
@click.version_option(our_version(), prog_name="slurm-fair")
@click.pass_context
def cli(context: click.Context, config: str | None) -> None:
    """Share the GPUs of a Slurm cluster fairly among tenants over time, by short leases.

    \b
    New here:    slurm-fair demo
    Set it up:   slurm-fair init, then slurm-fair check, then slurm-fair run --dry-run
    Look:        slurm-fair status, queue, explain JOB, report tenants
    """
    del config  # read from the context by base.site_of
    if context.invoked_subcommand in _LONG:
        context.with_resource(like_ctrl_c())


def main() -> None:
    sys.exit(ended_in_one_line(lambda: cli.main(prog_name="slurm-fair", standalone_mode=False)))


def report_main() -> None:
    """`slurm-fair-acct`: the same as `slurm-fair report`."""
    if sys.argv[1:] == ["--version"]:
        sys.exit(ended_in_one_line(lambda: click.echo(f"slurm-fair-acct, version {our_version()}")))
    args = ["report", *sys.argv[1:]]
    sys.exit(ended_in_one_line(lambda: cli.main(args, prog_name="slurm-fair", standalone_mode=False)))


def fair_sbatch_main() -> None:
    from slurm_fair.cli.fair_sbatch import fair_sbatch

    sys.exit(ended_in_one_line(lambda: fair_sbatch.main(prog_name="fair-sbatch", standalone_mode=False)))
