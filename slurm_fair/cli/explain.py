"""`slurm-fair explain JOB`: why it runs, waits or gave way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from slurm_fair.board.board import Board
from slurm_fair.board.health import DaemonState
from slurm_fair.board.recent import finished_row
from slurm_fair.board.row import Row, has_verdict, is_starting, is_waiting, may_be_planned, word
from slurm_fair.cli.base import Site, site_of
from slurm_fair.cli.health import health_of, say_age
from slurm_fair.cli.progress import said_of_progress
from slurm_fair.cli.reasons import OTHER, Reasons
from slurm_fair.cli.status import JSON, board_of, said_of_estimates, said_of_set_aside, two_digits, why_alone
from slurm_fair.cli.story import story
from slurm_fair.cli.table import clean, duration, instant
from slurm_fair.errors import InputError, StoreError
from slurm_fair.model import Blocked, Event, EventKind, Verdict, label, parse_label
from slurm_fair.model.counted import counted, first_of

_AHEAD = 5


@click.command()
@click.argument("job")
@JSON
@click.pass_context
def explain(context: click.Context, job: str, as_json: bool) -> None:
    """Tell why JOB (1234 or 1234_5) runs, waits or was pre-empted, and what would let it start."""
    site = site_of(context)
    key = parse_label(job)
    board = board_of(site, ahead=True)
    state = health_of(site, board)
    name = label(key)
    events = _events(site, key)
    row, reasons = board.find(name), Reasons(board)
    ahead = _ahead(reasons, row) if row else []
    ended = None if row else _ended(board, name, events)
    tasks = [] if row or ended else _tasks(board, name)
    if as_json:
        record = [{"time": e.time, "kind": e.kind, **e.detail} for e in events]
        document = {
            "job": row,
            "ahead": ahead,
            "events": record,
            "ended": ended,
            "estimates": board.estimates,
        }
        more = {"reasons": reasons.full(row) if row else [], "tasks": [task["job"] for task in tasks]}
        click.echo(json.dumps(document | more | {"health": state.document(board.note)}))
        return
    lines = _lines(board, reasons, name, row, ended, tasks, events, state.state is DaemonState.SILENT)
    say_age(state)
    click.echo("\n".join(lines))


def _events(site: Site, key: int) -> Sequence[Event]:
    try:
        with site.reader() as journal:
            return tuple(journal.events(keys=(key,)))
    except StoreError:
        return ()


def _lines(
    board: Board,
    reasons: Reasons,
    name: str,
    row: Row | None,
    ended: Row | None,
    tasks: Sequence[Row],
    events: Sequence[Event],
    silent: bool,
) -> list[str]:
    if row is not None:
        return [*_story(row, board, reasons, silent), *_of_ahead(reasons, row), *_history(board, events)]
    if ended is not None:
        return [*_of_ended(ended, events), *_history(board, events)]
    if tasks:
        return _of_array(name, tasks, reasons)
    return [*_absent(board, name, events), *_history(board, events)]


def _history(board: Board, events: Sequence[Event]) -> list[str]:
    if not events:
        return []
    tenants = {job["job"]: clean(job["tenant"]) for job in (*board.jobs, *board.finished)}
    return ["what happened:", *(f"  {line}" for line in story(events, tenants))]


def _of(job: Row) -> str:
    """Its user and tenant; empty where names are not published."""
    return f" of {clean(job['user'])} ({clean(job['tenant'])})" if job["user"] or job["tenant"] else ""


def _story(row: Row, board: Board, reasons: Reasons, silent: bool) -> list[str]:
    """The job's state, its numbers, and what it waits for."""
    promised = is_starting(row)
    where = f" on {clean(row['nodes'])}" if row["nodes"] and not promised else ""
    gpus = counted(row["gpus"], "GPU")
    first, *more = reasons.full(row)
    had, owed = row["had_gpu_seconds"] / 3600, row["owed_gpu_seconds"] / 3600
    lines = [
        f"job {row['job']}{_of(row)}, {gpus}: {'starting' if promised else row['state']}{where}",
        f"because {first}",
        *(f"        {sentence}" for sentence in more),
        f"had {had:.2f} of {owed:.2f} GPU-hours owed: rho {two_digits(row['rho'])}; "
        f"waited {duration(row['waited_seconds'])}, ran {duration(row['ran_seconds'])}, "
        f"LR {two_digits(row['latency_ratio'])}, restarts {row['restarts']}",
    ]
    if row["lease_end"]:
        ends = "ends" if row["lease_end"] > board.time else "was to end"
        lines.append(f"its lease (number {row['leases']:.0f} of this run) {ends} {instant(row['lease_end'])}")
    if row.get("set_aside"):
        lines.append(said_of_set_aside(row["set_aside"]))
    lines.append(said_of_sizes(row))
    if row.get("no_turn"):
        lines.append(f"it gets no turn of the profiler: {clean(row['no_turn'])}")
    lines += said_of_progress(row)
    if not reasons.is_too_late(row):
        lines.append(what_would_help(row))
    lines += of_node_list(row, board, silent)
    if row["expected_start"]:
        lines.append(said_of_estimates(board))
    return [line for line in lines if line]


def said_of_sizes(row: Row) -> str:
    """The sizes with which it can run, or why it keeps one although it names several; empty for all others."""
    if row.get("rigid"):
        keeps = counted(row["usual_gpus"], "GPU")
        return f"it names sizes, and keeps {keeps} all the same: {clean(row['rigid'])}"
    if not row.get("sizes"):
        return ""
    listed = ", ".join(map(str, row["sizes"]))
    return f"it can run with {listed} GPUs, as its policy grants them; its usual size is {row['usual_gpus']}"


def of_node_list(row: Row, board: Board, silent: bool) -> list[str]:
    """Names a node list that is ours, or may be, and the command that takes it away."""
    base = row["job"].partition("_")[0]
    cure = f"scontrol update JobId={row['job']} ReqNodeList="
    doubt = next((each for each in board.in_doubt if each["job"] in (row["job"], base)), None)
    if doubt is not None:
        nodes = f" ({clean(doubt['nodes'])})" if doubt["nodes"] else ""
        return [
            f"it may start only on the nodes of its list{nodes}. Whether its user asked for them or an earlier "
            f"daemon set them is not known, since the journal began later; if nobody asked for them: {cure}"
        ]
    if silent and row["pinned"]:
        return [
            "the last look found a node list of slurm_fair on it, and no daemon takes it away: "
            f"if the job waits (it was requeued), it waits for these nodes; to let it go elsewhere: {cure}"
        ]
    return []


_CURES = {
    word(why): cure
    for why, cure in {
        Blocked.USER_HOLD: "its owner holds it: `scontrol release {job}` lets it take part",
        Blocked.ADMIN_HOLD: "an admin holds it: only an admin can release it",
        Blocked.SLURM_HOLD: (
            "Slurm holds it ({slurm_reason}): its owner or an admin must look at it and release it"
        ),
        Blocked.DEPENDENCY: "it waits for another job (see `scontrol show job {job}`)",
        Blocked.OWN_BEGIN: "its own --begin lies ahead",
        Blocked.ARRAY_LIMIT: "it takes part as soon as another task of its array has ended",
        Blocked.PARTITION: "its partition is down",
        Blocked.IMPOSSIBLE: "it asks for more GPUs than the cluster has: submit it smaller",
        Blocked.BACKOFF: "Slurm did not start it when its gate was open ({slurm_reason}); it is tried again soon",
        Blocked.UNSETTLED: "the outcome of the last act on it is not known yet: looking again",
        Blocked.LIMIT: "a limit of its account or QOS is reached",
        Blocked.SHAPE: "Slurm's row of it cannot be read now",
        Blocked.NODES: "it takes part as soon as enough of the nodes that it may use take work again",
        Blocked.KEPT: "it takes part as soon as enough of the jobs that keep its GPUs have ended",
        Blocked.REQUEUED: "Slurm starts it no earlier than some time after its requeue",
    }.items()
}


def what_would_help(row: Row) -> str:
    """The condition on which it starts; empty for a job that runs."""
    if not may_be_planned(row):
        cure = _CURES.get(row["blocked"], clean(row["blocked"]))
        when = f"; expected to start about {instant(row['expected_start'])}" if row["expected_start"] else ""
        return cure.format(job=row["job"], slurm_reason=clean(row["slurm_reason"])) + when
    if not is_waiting(row) or has_verdict(row, Verdict.GRANT, Verdict.KEEP):
        return ""
    if row["expected_start"]:
        start = instant(row["expected_start"])
        return f"expected to start about {start}, if nobody who is owed more comes and no job ends early"
    if row.get("not_before"):
        if row["latest_start"] is not None and row["not_before"] >= row["latest_start"]:
            last = instant(row["latest_start"])
            return f"it is not expected to start by {last}, as its deadline wants: Slurm ends it then"
        return (
            f"it is not expected to start before {instant(row['not_before'])}: nothing later was worked out"
        )
    return "when it starts cannot be told"


def _ahead(reasons: Reasons, row: Row) -> list[dict[str, Any]]:
    """The jobs that come before it."""
    if not is_waiting(row) or row["rank"] < 0:
        return []
    return [
        {k: job[k] for k in ("job", "tenant", "gpus", "rho", "verdict", "why")} for job in reasons.before(row)
    ]


def _of_ahead(reasons: Reasons, row: Row) -> list[str]:
    ahead = _ahead(reasons, row)[:_AHEAD]
    if not ahead:
        return []
    return [
        "first of those that go before it:",
        *(
            f"  job {job['job']} ({clean(job['tenant'] or OTHER)}), {counted(job['gpus'], 'GPU')},"
            f" rho {two_digits(job['rho'])}"
            for job in ahead
        ),
    ]


def _ended(board: Board, name: str, events: Sequence[Event]) -> dict[str, Any] | None:
    """The row of a job that is over; None for others."""
    last = next((event for event in reversed(events) if event.kind == EventKind.FINISHED), None)
    if last is not None:
        return finished_row(last)
    return next((dict(job) for job in board.finished if job["job"] == name), None)


def _of_ended(job: Row, events: Sequence[Event]) -> list[str]:
    gpus = counted(job["gpus"], "GPU")
    how = f" ({clean(job['slurm_state'])})" if job["slurm_state"] else ""
    leases = sum(event.kind in (EventKind.GRANTED, EventKind.ADOPTED, EventKind.RENEWED) for event in events)
    times = job["restarts"]
    gave = f"it was requeued {counted(times, 'time')}" if times else "it never gave way"
    had, owed = job["had_gpu_seconds"] / 3600, job["owed_gpu_seconds"] / 3600
    return [
        f"job {job['job']}{_of(job)}, {gpus}: ended {instant(job['end'])}{how}",
        f"it waited {duration(job['waited_seconds'])} and ran {duration(job['ran_seconds'])}"
        + (f" in {counted(leases, 'lease')}" if leases else "")
        + f"; {gave}",
        f"it had {had:.2f} of {owed:.2f} GPU-hours owed: rho {two_digits(job['rho'])}",
    ]


def _tasks(board: Board, name: str) -> list[Row]:
    """The tasks of an array, where a base id was asked for."""
    return [job for job in board.jobs if job["job"].startswith(f"{name}_")]


def _of_array(name: str, tasks: Sequence[Row], reasons: Reasons) -> list[str]:
    states: dict[str, list[Row]] = {}
    for task in tasks:
        states.setdefault("blocked" if task["blocked"] else task["state"], []).append(task)
    counts = ", ".join(f"{len(some)} {state}" for state, some in states.items())
    lines = [f"job {name} is an array{_of(tasks[0])}: {counts}"]
    for state, some in states.items():
        first = some[0]
        starts = [task["expected_start"] for task in some if task["expected_start"]]
        when = f"; the first is expected to start about {instant(min(starts))}" if starts else ""
        lines.append(f"  {state}: {_task_names(some)}{when}")
        lines.append(f"    {first['job']}: {reasons.short(first)}")
    return [*lines, f"see one of them: `slurm-fair explain {tasks[0]['job']}`"]


def _task_names(tasks: Sequence[Row]) -> str:
    return first_of([str(task["job"]) for task in tasks], 8)


def _absent(board: Board, name: str, events: Sequence[Event]) -> list[str]:
    alone = next((a for a in board.left_alone if a["job"] in (name, name.partition("_")[0])), None)
    if alone is not None:
        whose = f" of {clean(alone['user'])}" if alone.get("user") else ""
        flows = "" if alone["reason"].endswith("never runs") else "; plain Slurm schedules it"
        return [f"job {name}{whose} is left alone: {why_alone(alone)}{flows}"]
    if events:
        return [f"job {name} is over"]
    base, task, _ = name.partition("_")
    if task and board.find(base) is not None:
        raise InputError(
            f"job {base} is no array, so it has no task {name}: ask for `slurm-fair explain {base}`"
        )
    raise InputError(
        f"job {name} is not known: it is in no managed partition, was submitted since the last look, or has been "
        "over for more than a day"
    )
