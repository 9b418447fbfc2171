"""`slurm-fair explain JOB`: why it runs, waits or gave way."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from slurm_fair.board import Board
from slurm_fair.cli.base import Site, site_of
from slurm_fair.cli.show import JSON, board_of, number
from slurm_fair.cli.table import clean, duration, instant
from slurm_fair.errors import InputError, StoreError
from slurm_fair.model import Event, label, parse_label

_AHEAD = 5


@click.command()
@click.argument("job")
@JSON
@click.pass_context
def explain(context: click.Context, job: str, as_json: bool) -> None:
    """Why JOB (1234 or 1234_5) runs, waits or was pre-empted, and what would let it start."""
    site = site_of(context)
    key = parse_label(job)
    board = board_of(site)
    name = label(key)
    row = board.find(name)
    events = _events(site, key)
    ahead = _ahead(board, row) if row else []
    if as_json:
        record = [{"time": e.time, "kind": e.kind, **e.detail} for e in events]
        click.echo(json.dumps({"job": row, "ahead": ahead, "events": record}))
        return
    if row is None:
        _say_absent(board, name, events)
    else:
        click.echo("\n".join(_story(row, board)))
        _say_ahead(row, ahead)
    _say_events(events)


def _events(site: Site, key: int) -> Sequence[Event]:
    try:
        with site.reader() as journal:
            return tuple(journal.events(keys=(key,)))
    except StoreError:
        return ()


def _story(row: Mapping[str, Any], board: Board) -> list[str]:
    """The job's state, its numbers, and what it waits for."""
    where = f" on {row['nodes']}" if row["nodes"] else ""
    whose = f"{clean(row['user'])} ({clean(row['tenant'])})"
    head = f"job {row['job']} of {whose}, {row['gpus']} GPUs: {row['state']}{where}"
    had, owed = row["had_gpu_seconds"] / 3600, row["owed_gpu_seconds"] / 3600
    lines = [
        head,
        f"because {clean(row['why'])}",
        f"had {had:.2f} of {owed:.2f} GPU-hours owed: rho {number(row['rho'])}; "
        f"waited {duration(row['waited_seconds'])}, ran {duration(row['ran_seconds'])}, "
        f"LR {number(row['latency_ratio'])}, restarts {row['restarts']}",
    ]
    if row["lease_end"]:
        lines.append(f"its lease (number {row['leases']:.0f} of this run) ends {instant(row['lease_end'])}")
    lines.append(what_would_help(row, board))
    return [line for line in lines if line]


_CURES = {
    "user_hold": "its owner holds it: `scontrol release {job}` lets it take part",
    "admin_hold": "an admin holds it: only an admin can release it",
    "slurm_hold": "Slurm holds it ({slurm_reason}): its owner or an admin must look at it and release it",
    "dependency": "it waits for another job (see `scontrol show job {job}`)",
    "own_begin": "its own --begin lies ahead",
    "array_limit": "its array's own %limit is reached",
    "partition": "its partition is down",
    "impossible": "it asks for more GPUs than the cluster has: submit it smaller",
    "backoff": "Slurm did not start it when its gate was open ({slurm_reason}); it is tried again soon",
    "unsettled": "the outcome of the last act on it is not known yet: looking again",
    "limit": "a limit of its account or QOS is reached",
    "shape": "its shape cannot be planned exactly",
}


def what_would_help(row: Mapping[str, Any], board: Board) -> str:
    """What would let it start, or nothing for a job that runs."""
    if row["blocked"]:
        cure = _CURES.get(row["blocked"], str(row["blocked"]))
        return cure.format(job=row["job"], slurm_reason=clean(row["slurm_reason"]))
    if row["state"] != "waiting" or row["verdict"] in ("grant", "keep"):
        return ""
    if row["expected_start"]:
        return f"expected to start about {instant(row['expected_start'])}, if those ahead of it take whole leases"
    return "it starts when the jobs ahead of it have had their leases"


def _ahead(board: Board, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Who comes before it."""
    if row["state"] != "waiting" or row["rank"] < 0:
        return []
    before = [job for job in board.jobs if 0 <= job["rank"] < row["rank"] and job["job"] != row["job"]]
    before.sort(key=lambda job: job["rank"])
    return [{k: job[k] for k in ("job", "tenant", "gpus", "rho", "verdict", "why")} for job in before]


def _say_ahead(row: Mapping[str, Any], ahead: Sequence[Mapping[str, Any]]) -> None:
    if not ahead:
        return
    gpus = sum(job["gpus"] for job in ahead)
    click.echo(f"ahead of it: {len(ahead)} jobs that want {gpus} GPUs, first of them")
    for job in ahead[:_AHEAD]:
        tenant = clean(job["tenant"])
        click.echo(
            f"  job {job['job']} ({tenant}), {job['gpus']} GPUs, rho {number(job['rho'])}: {clean(job['why'])}"
        )


def _say_absent(board: Board, name: str, events: Sequence[Event]) -> None:
    alone = next((a for a in board.left_alone if a["job"] == name), None)
    if alone is not None:
        click.echo(f"job {name} is left alone: it {clean(alone['reason'])}; plain Slurm schedules it")
    elif events:
        click.echo(f"job {name} is over")
    else:
        raise InputError(
            f"job {name} is not known: not in a managed partition, or submitted since the last tick"
        )


def _say_events(events: Sequence[Event]) -> None:
    for event in events[-20:]:
        detail = ", ".join(f"{k} {_plain(k, v)}" for k, v in event.detail.items() if v not in ("", None, []))
        click.echo(f"  {instant(event.time)} {event.kind}" + (f": {clean(detail)}" if detail else ""))


def _plain(name: str, value: Any) -> str:
    if name in ("until", "end", "start", "submit"):
        return instant(value)
    if isinstance(value, float):
        return f"{value:.1f}"
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
