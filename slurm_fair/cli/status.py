"""`status`: tenants and health at a glance; and the board that every view reads."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slurm_fair.board import estimates, recent
from slurm_fair.board.board import Board, draw, read_board
from slurm_fair.board.estimates import Estimates
from slurm_fair.board.health import DaemonState
from slurm_fair.board.row import is_waiting, word
from slurm_fair.cli.base import Site, site_of
from slurm_fair.cli.health import State, health_of, say_age
from slurm_fair.cli.table import TextColumn, clean, duration, instant, print_table
from slurm_fair.daemon import plan_tally
from slurm_fair.daemon.plan_tally import PlanTally
from slurm_fair.errors import NotHere, SlurmFairError, StoreError
from slurm_fair.forecast import forecast
from slurm_fair.model import EventKind, JobState, TickRecord
from slurm_fair.model.apiece import apiece
from slurm_fair.model.counted import counted
from slurm_fair.model.spans import DAY_SECONDS
from slurm_fair.policy.registry import load_recorded
from slurm_fair.tick import Rules

if TYPE_CHECKING:
    from slurm_fair.store import Reader

JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
PARSABLE = click.option("-P", "--parsable2", is_flag=True, help="Columns separated by |.")
_MOST_ALONE = 20
_COUNTED = (JobState.RUNNING, JobState.WAITING, JobState.ENDING, JobState.SUSPENDED)


def board_of(site: Site, *, ahead: bool = False) -> Board:
    """The board of the journal; users who may not read that get the one that the daemon publishes.

    `ahead` = with expected starts, which take a moment to work out; a published board has them anyway.
    """
    published = Path(site.config.lease.publish_dir) / "board.json" if site.config.lease.publish_dir else None
    if not os.access(site.places.journal, os.R_OK) and published is not None and os.path.exists(published):
        return read_board(published)
    try:
        with site.reader() as journal:
            standing = journal.latest()
            record = next(iter(journal.ticks(standing.tick, standing.tick)), None) if standing else None
            ended = _ended(journal, record) if ahead and record else ()
    except StoreError as problem:
        hint = "; users read it when the admin sets [lease] publish_dir"
        if published is not None:
            may = os.access(site.places.journal, os.R_OK)
            hint = "" if may else f"; nothing is published in {published.parent}"
        raise type(problem)(f"{problem}{hint}") from None
    if standing is None or record is None:
        raise NotHere("nothing is recorded yet: the daemon has made no tick")
    rules = _rules(site, record) if ahead else None
    board = draw(
        record,
        standing,
        forecast(record, standing, rules) if rules else None,
        estimates=_past(site, record),
        policy=rules.policy if rules else None,
        counts_seconds=site.config.tenants.ledger().counts_seconds,
        plans=_plans(site),
    )
    return replace(board, finished=ended)


def _ended(journal: Reader, record: TickRecord) -> tuple[dict[str, Any], ...]:
    """The jobs that ended in the day before a tick."""
    start = record.time - DAY_SECONDS
    return recent.Recent(journal.events(start, kinds=(EventKind.FINISHED,))).rows(record.time)


def _past(site: Site, record: TickRecord) -> dict[str, Any]:
    """The errors of earlier expected starts, from the daemon's file."""
    return Estimates.read(site.places.directory / estimates.NAME).summary(record.time)


def _plans(site: Site) -> dict[str, Any]:
    """The tally of the daemon's plans since its start, from its file."""
    tally = PlanTally.read(site.places.directory / plan_tally.NAME)
    return tally.document() if tally else {}


def _rules(site: Site, record: TickRecord) -> Rules | None:
    """The policy of that tick; none where this version has no such policy."""
    settings = dict(record.settings)
    try:
        policy = load_recorded(record.policy, settings)
    except SlurmFairError:
        return None
    return Rules(
        record.policy, policy, settings, record.terms, site.config.tenants.ledger(), seed=record.seed
    )


@click.command()
@click.option(
    "--exit-code", is_flag=True, help="Exit with 1 when nothing is done to jobs, 3 when the daemon is silent."
)
@JSON
@click.pass_context
def status(context: click.Context, exit_code: bool, as_json: bool) -> None:
    """Tenants, leases, queue and health at a glance."""
    site = site_of(context)
    board = board_of(site)
    state = health_of(site, board)
    if as_json:
        document = {
            name: value for name, value in board.document().items() if name not in ("jobs", "finished")
        }
        click.echo(json.dumps(document | {"health": state.document(board.note), "jobs": _counts(board)}))
    else:
        say_age(state)
        click.echo(
            f"slurm_fair: {state.text}; tick {board.tick} {state.age:.0f} s ago{_how_often(board, state)}"
        )
        _say_cluster(board)
        print_table(_TENANTS, board.tenants)
        _say_rest(board)
    if exit_code:
        context.exit(state.exit_code)


def _how_often(board: Board, state: State) -> str:
    """The interval of the daemon's looks; nothing for a daemon that is late."""
    if state.late or state.state is DaemonState.SILENT:
        return ""
    return f", looks at least every {board.interval_seconds:.3g} s"


def _say_cluster(board: Board) -> None:
    if board.note:
        click.echo(f"note: {clean(board.note)}")
    counts = ", ".join(f"{count} {state}" for state, count in _counts(board).items() if count)
    ends = [job["lease_end"] for job in board.jobs if job["lease_end"]]
    end = f", next lease end {instant(min(ends))}" if ends else ""
    click.echo(f"policy {clean(board.policy)}, lease {duration(board.term_seconds)}{end}")
    click.echo(_gpus_in_words(board))
    if board.gpu_weights:
        weights = ", ".join(f"{clean(name)} {weight:g}" for name, weight in board.gpu_weights.items())
        click.echo(f"a GPU counts by its type: {weights}; quotas and GPU-hours of tenants are by weight")
    waiting = sum(job["gpus"] for job in board.jobs if is_waiting(job) and not job["blocked"])
    wants = f"; waiting jobs want {counted(waiting, 'GPU')}" if waiting else ""
    unread = sum(bool(alone.get("unreadable")) for alone in board.left_alone)
    alone = f"left alone: {len(board.left_alone)}" + (f" ({unread} unreadable)" if unread else "")
    click.echo(f"jobs: {counts or 'none'}; {alone}{wants}\n")


def _gpus_in_words(board: Board) -> str:
    gpus = board.gpus
    used = sum(job["gpus"] for job in board.jobs if not is_waiting(job))
    if not gpus:  # of an older daemon
        return f"GPUs {used} of {board.total_gpus} in use"
    others = f", {gpus['others']} by jobs left alone" if gpus["others"] else ""
    out = f", {gpus['out']} on nodes that take no work" if gpus["out"] else ""
    outside = f", {used - gpus['used']} elsewhere" if used > gpus["used"] else ""
    return f"GPUs: {gpus['used']} of {sum(gpus.values())} in use{others}{outside}, {gpus['free']} free{out}"


def _say_rest(board: Board) -> None:
    for said in (said_of_plans(board), said_of_estimates(board)):
        if said:
            click.echo(said)
    for node in board.nodes_out:
        click.echo(f"node {clean(node['node'])} takes no work: {clean(node['why'])}")
    for line in left_alone_lines(board):
        click.echo(line)


def said_of_plans(board: Board) -> str:
    """One line about plans that were late, were killed or could not be; empty where there were none."""
    try:
        tally = PlanTally.of(board.plans)
    except (KeyError, ValueError, TypeError, OverflowError):
        return ""
    if not tally.failed:
        return ""
    when = f", the last at {instant(tally.failed_at)}: {clean(tally.last_line)}" if tally.why else ""
    return f"{tally.failed} of {counted(tally.made, 'plan')} since {instant(tally.since)} failed{when}"


def said_of_estimates(board: Board) -> str:
    """One line about the errors of the last day's expected starts."""
    said = board.estimates
    if not said.get("n"):
        return ""
    return (
        f"Expected starts of the last day were off by {said['median_seconds'] / 60:.1f} min (median), "
        f"{said['p90_seconds'] / 60:.1f} min (9 of 10), n={said['n']}."
    )


def said_of_set_aside(kept: Mapping[str, Any]) -> str:
    """One line about the nodes that are set aside for a gang."""
    nodes = ", ".join(map(clean, kept["nodes"]))
    return (
        f"set aside for it since {instant(kept['since'])}: {nodes}, expected free {instant(kept['expected'])}"
    )


def why_alone(alone: Mapping[str, Any]) -> str:
    """The reason why a job is never touched, as a sentence."""
    reason = clean(alone["reason"])
    return f"Slurm's row of it cannot be read: {reason}" if alone.get("unreadable") else f"it {reason}"


def left_alone_lines(board: Board) -> list[str]:
    """The jobs that are never touched, and why."""
    lines = []
    for alone in apiece(board.left_alone, lambda alone: str(alone.get("user")), _MOST_ALONE):
        whose = f" of {clean(alone['user'])}" if alone.get("user") else ""
        lines.append(f"job {clean(alone['job'])}{whose} is left alone: {why_alone(alone)}")
    if len(board.left_alone) > _MOST_ALONE:
        lines.append(f"... and {len(board.left_alone) - _MOST_ALONE} more are left alone (see --json)")
    return lines


def _counts(board: Board) -> dict[str, int]:
    counts = dict.fromkeys([*map(word, _COUNTED), "blocked"], 0)
    for job in board.jobs:
        state = "blocked" if job["blocked"] else job["state"]
        counts[state] = counts.get(state, 0) + 1
    return counts


def two_digits(value: float | None) -> str:
    """Two digits, or a dash where there is nothing to say."""
    return "-" if value is None or math.isnan(value) else f"{value:.2f}"


_TENANTS: Sequence[TextColumn] = (
    TextColumn("Tenant", "tenant"),
    TextColumn("Weight", "weight", lambda v: f"{v:g}"),
    TextColumn("Quota", "quota_gpus", lambda v: f"{v:.1f}"),
    TextColumn("GPUs", "gpus", str),
    TextColumn("Wants", "demand_gpus", str),
    TextColumn("Runs", "running", str),
    TextColumn("Waits", "waiting", str),
    TextColumn("Had(h)", "had_gpu_seconds", lambda v: f"{v / 3600:.2f}"),
    TextColumn("Owed(h)", "owed_gpu_seconds", lambda v: f"{v / 3600:.2f}"),
    TextColumn("rho", "rho", two_digits),
)
