"""`status` and `queue`: what stands now."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from slurm_fair.board import Board, draw, read_board
from slurm_fair.cli.base import Site, site_of
from slurm_fair.cli.table import Column, duration, instant, print_table
from slurm_fair.errors import InputError, StoreError
from slurm_fair.places import last_beat

JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
PARSABLE = click.option("-P", "--parsable2", is_flag=True, help="Columns separated by |.")


def board_of(site: Site) -> Board:
    """From the journal, or for users who may not read that, from what the daemon publishes."""
    published = Path(site.config.lease.publish_dir) / "board.json" if site.config.lease.publish_dir else None
    if not os.access(site.places.journal, os.R_OK) and published is not None and published.exists():
        return read_board(published)
    try:
        with site.reader() as journal:
            standing = journal.latest()
            record = next(iter(journal.ticks(standing.tick, standing.tick)), None) if standing else None
    except StoreError as problem:
        hint = "" if published else "; users read it when the admin sets [lease] publish_dir"
        raise StoreError(f"{problem}{hint}") from None
    if standing is None or record is None:
        raise InputError("nothing is recorded yet: the daemon has made no tick")
    return draw(record, standing)


def health(site: Site, board: Board, now: float) -> dict[str, Any]:
    """Whether the daemon lives, acts and sees."""
    seen = os.access(site.places.directory, os.X_OK)  # users see the published board only
    beat = last_beat(site.places) if seen else None
    paused = seen and site.places.paused.exists()
    age = now - board.time
    word = "acting"
    if board.dry_run:
        word = "shadow mode: acts on nothing"
    if paused:
        word = "paused"
    elif not board.dry_run and seen and (beat is None or now - beat.time > beat.limit_seconds):
        word = "silent: the daemon is not running"
    elif age > max(2 * board.term_seconds, 60):
        word = "silent or blind: no tick for long"
    return {"state": word, "tick_age_seconds": age, "pid": beat.pid if beat else None, "note": board.note}


@click.command()
@JSON
@click.pass_context
def status(context: click.Context, as_json: bool) -> None:
    """Tenants, leases, queue and health at a glance."""
    site = site_of(context)
    board = board_of(site)
    now = time.time()
    state = health(site, board, now)
    if as_json:
        document = {name: value for name, value in board.document().items() if name != "jobs"}
        click.echo(json.dumps(document | {"health": state, "jobs": _counts(board)}))
        return
    click.echo(f"slurm_fair: {state['state']}; tick {board.tick} {state['tick_age_seconds']:.0f} s ago")
    if board.note:
        click.echo(f"note: {board.note}")
    counts = ", ".join(f"{count} {word}" for word, count in _counts(board).items() if count)
    used = sum(job["gpus"] for job in board.jobs if job["state"] != "waiting")
    click.echo(
        f"policy {board.policy}, lease {duration(board.term_seconds)}, GPUs {used} of {board.total_gpus} in use"
    )
    click.echo(f"jobs: {counts or 'none'}; left alone: {len(board.left_alone)}\n")
    print_table(_TENANTS, board.tenants)
    for node in board.nodes_out:
        click.echo(f"node {node['node']} takes no work: {node['why']}")


_TENANTS = (
    Column("Tenant", "tenant"),
    Column("Weight", "weight", lambda v: f"{v:g}"),
    Column("Quota GPUs", "quota_gpus", lambda v: f"{v:.1f}"),
    Column("GPUs now", "gpus", str),
    Column("Wants GPUs", "demand_gpus", str),
    Column("Running", "running", str),
    Column("Waiting", "waiting", str),
    Column("Had GPU-h", "had_gpu_seconds", lambda v: f"{v / 3600:.2f}"),
    Column("Owed GPU-h", "owed_gpu_seconds", lambda v: f"{v / 3600:.2f}"),
    Column("rho", "rho", lambda v: f"{v:.2f}"),
)


def _counts(board: Board) -> dict[str, int]:
    counts = {"running": 0, "waiting": 0, "ending": 0, "suspended": 0, "blocked": 0}
    for job in board.jobs:
        counts["blocked" if job["blocked"] else job["state"]] += 1
    return counts


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
    """The managed queue: running jobs first, then the waiting ones in the order of deservingness.

    rho is what a job has had of what it was owed (GPU time; below 1 it is owed more), LR its waiting time by its
    declared run time. The expected start is an estimate.
    """
    board = board_of(site_of(context))
    name = (os.environ.get("USER") or "") if me else user
    rows = [job for job in board.jobs if _wanted(job, tenant, name)]
    if as_json:
        click.echo(
            json.dumps({"time": board.time, "tick": board.tick, "jobs": rows, "left_alone": board.left_alone})
        )
        return
    print_table(_QUEUE, rows, parsable=parsable2)
    if not parsable2 and not (tenant or name):
        _say_left_alone(board)


def _wanted(job: Mapping[str, Any], tenant: str | None, user: str | None) -> bool:
    return (not tenant or job["tenant"] == tenant) and (not user or job["user"] == user)


def _say_left_alone(board: Board) -> None:
    for alone in board.left_alone[:20]:
        click.echo(f"job {alone['job']} is left alone: it {alone['reason']}")
    if len(board.left_alone) > 20:
        click.echo(f"... and {len(board.left_alone) - 20} more are left alone (see --json)")


def number(value: float | None) -> str:
    """Two digits, or a dash where there is nothing to say."""
    return "-" if value is None or math.isnan(value) else f"{value:.2f}"


_QUEUE: Sequence[Column] = (
    Column("JobID", "job"),
    Column("Tenant", "tenant"),
    Column("User", "user"),
    Column("GPUs", "gpus", str),
    Column("State", "state"),
    Column("rho", "rho", number),
    Column("LR", "latency_ratio", number),
    Column("Lease end", "lease_end", instant),
    Column("Expected start", "expected_start", instant),
    Column("Nodes", "nodes"),
    Column("Why", "why"),
)
