"""`slurm-fair queue`: the managed queue."""

from __future__ import annotations

import getpass
import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from slurm_fair.board.board import Board
from slurm_fair.board.row import is_starting, is_waiting
from slurm_fair.cli.base import Site, site_of
from slurm_fair.cli.health import health_of, say_age
from slurm_fair.cli.reasons import Reasons
from slurm_fair.cli.status import (
    JSON,
    PARSABLE,
    board_of,
    left_alone_lines,
    said_of_estimates,
    said_of_set_aside,
    two_digits,
)
from slurm_fair.cli.table import TextColumn, clean, instant, print_table
from slurm_fair.daemon.parts import commands_of
from slurm_fair.errors import InputError, SlurmFairError
from slurm_fair_accounting.forms import one_form
from slurm_fair_accounting.source.known_names import refuse_name

_FINISHED = 5
_NAMED = 8  # jobs in one line
_HIDDEN = "What is published names nobody (Slurm's PrivateData): ask for a job by its id, with `explain`."


@click.command()
@click.option("--tenant", help="Only this tenant.")
@click.option("--user", help="Only this user's jobs.")
@click.option("--me", is_flag=True, help="Only my jobs.")
@JSON
@PARSABLE
@click.pass_context
def queue(
    context: click.Context, tenant: str | None, user: str | None, me: bool, as_json: bool, parsable2: bool
) -> None:
    """The managed queue: jobs about to start, running jobs, then the waiting ones as they deserve it.

    rho is what a job has had of what it was owed (GPU time; below 1 it is owed more). LR is its waiting time
    divided by its declared run time. The expected start is an estimate.
    """
    one_form({"--json": as_json, "-P": parsable2})
    _refuse_empty({"--tenant": tenant, "--user": user})
    site = site_of(context)
    board = board_of(site, ahead=True)
    if tenant:
        refuse_name("tenant", tenant, {row["tenant"] for row in board.tenants})
    state = health_of(site, board)
    mine = _own_ids(site) if me and _nameless(board) else None
    name = _myself() if me else user
    reasons = Reasons(board)
    rows = [{**job, "reason": reasons.short(job)} for job in board.jobs if _wanted(job, tenant, name, mine)]
    finished = [job for job in board.finished if _wanted(job, tenant, name)]
    if as_json:
        document = {"time": board.time, "tick": board.tick, "jobs": rows, "left_alone": board.left_alone}
        more = {"finished": finished, "estimates": board.estimates, "health": state.document(board.note)}
        click.echo(json.dumps(document | more))
        return
    say_age(state)
    print_table(_QUEUE, [_shown(row) for row in rows], parsable=parsable2)
    if not parsable2:
        _say_rest(board, rows, finished if name else [], alone=not (tenant or name), known=mine is not None)


def _refuse_empty(given: Mapping[str, str | None]) -> None:
    """Refuse a name without a letter, which would choose everybody."""
    for option, name in given.items():
        if name == "":
            raise InputError(f"{option} is empty: give a value, or leave it out")


def _myself() -> str:
    """The user who asks; the environment alone may say nothing, or something else."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def _nameless(board: Board) -> bool:
    return bool(board.jobs) and not any(job["user"] for job in board.jobs)


def _own_ids(site: Site) -> frozenset[str] | None:
    """The jobs of who asks, as Slurm itself lists them; None where Slurm does not say."""
    try:
        answer = commands_of(site.config, site.places).run("squeue", "--me", "-a", "-h", "-r", "-o", "%i")
        why = "" if answer.whole else answer.complaint
    except SlurmFairError as problem:
        why = str(problem)
    if why:
        click.echo(f"slurm-fair: Slurm does not say which jobs are yours: {why}", err=True)
        return None
    return frozenset(answer.out.split())


def _wanted(
    job: Mapping[str, Any], tenant: str | None, user: str | None, ids: frozenset[str] | None = None
) -> bool:
    """True for a job of this tenant and user. Where names are hidden, the ids decide."""
    if ids is not None:
        return job["job"] in ids and (not tenant or job["tenant"] == tenant)
    return (not tenant or job["tenant"] == tenant) and (not user or job["user"] == user)


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with words for a person."""
    promised = is_starting(row)
    nodes = row["promised_nodes"] if promised else row["nodes"]
    state = "starting" if promised else f"{row['state']}, blocked" if row["blocked"] else row["state"]
    return {**row, "state": state, "nodes": nodes, "expected": expected(row)}


def expected(row: Mapping[str, Any]) -> str:
    """The expected start, or the instant before which it does not start."""
    if row["expected_start"]:
        return instant(row["expected_start"])
    return f"not before {instant(row['not_before'])}" if row.get("not_before") else "-"


def _say_rest(
    board: Board,
    rows: Sequence[Mapping[str, Any]],
    finished: Sequence[Mapping[str, Any]],
    *,
    alone: bool,
    known: bool,
) -> None:
    if not rows:
        hidden = any(not job["user"] for job in board.jobs)
        click.echo(_HIDDEN if hidden and not alone and not known else "No such managed job is there.")
    for job in rows:
        if job.get("set_aside"):
            click.echo(f"job {job['job']}: {said_of_set_aside(job['set_aside'])}")
    for line in () if alone else _of_no_turn(rows):
        click.echo(line)
    for job in finished[:_FINISHED]:
        click.echo(f"job {job['job']} ended {instant(job['end'])}: see `slurm-fair explain {job['job']}`")
    if alone:
        for line in left_alone_lines(board):
            click.echo(line)
    past = said_of_estimates(board)
    if past and any(row["expected_start"] for row in rows):
        click.echo(past)


def _of_no_turn(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line for each reason why waiting jobs that ask for turns of the profiler get none."""
    jobs: dict[str, list[str]] = {}
    for job in rows:
        if is_waiting(job) and job.get("no_turn"):
            jobs.setdefault(clean(job["no_turn"]), []).append(job["job"])
    return [f"no turn of the profiler: {why}: {_named(names)}" for why, names in jobs.items()]


def _named(jobs: Sequence[str]) -> str:
    more = f" and {len(jobs) - _NAMED} more" if len(jobs) > _NAMED else ""
    return f"{'job' if len(jobs) == 1 else 'jobs'} {', '.join(jobs[:_NAMED])}{more}"


_QUEUE: Sequence[TextColumn] = (
    TextColumn("JobID", "job", is_name=True),
    TextColumn("Tenant", "tenant", is_name=True),
    TextColumn("User", "user", is_name=True),
    TextColumn("GPUs", "gpus", str),
    TextColumn("State", "state"),
    TextColumn("rho", "rho", two_digits),
    TextColumn("LR", "latency_ratio", two_digits),
    TextColumn("Lease end", "lease_end", instant),
    TextColumn("Expected start", "expected"),
    TextColumn("Nodes", "nodes"),
    TextColumn("Why", "reason"),
)
