"""The events of a job as sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from slurm_fair.cli.table import clean, duration, instant
from slurm_fair.model import Event, EventKind
from slurm_fair.reconcile.for_whom import NEEDED_NO_MORE

_MOST = 20
Said = Mapping[str, Any]


def story(events: Sequence[Event], tenants: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """The last events, one line each; `tenants` of the jobs that are known."""
    events = _folded(_as_it_came(events))
    left = f"({len(events) - _MOST} earlier events: see --json)"
    return [*([left] if len(events) > _MOST else []), *(_line(event, tenants) for event in events[-_MOST:])]


def _as_it_came(events: Sequence[Event]) -> list[Event]:
    """Slurm cuts its instants to whole seconds: a job starts behind its gate, and nothing comes after its end."""
    last: dict[int, float] = {}  # when it was let go, by second
    for event in events:
        if event.kind in (EventKind.GRANTED, EventKind.OPENED):
            last[int(event.time)] = event.time

    def when(event: Event) -> float:
        if event.kind == EventKind.FINISHED:
            return int(event.time) + 1.0
        return last.get(int(event.time), event.time) if event.kind == EventKind.STARTED else event.time

    return sorted(events, key=lambda event: (when(event), event.kind == EventKind.STARTED))


def _folded(events: Sequence[Event]) -> list[Event]:
    """Renewals in a row as one event, the last of them, with how many they were."""
    folded: list[Event] = []
    for event in events:
        times = 1
        if event.kind == EventKind.RENEWED and folded and folded[-1].kind == EventKind.RENEWED:
            times += folded.pop().detail.get("times", 1)
        folded.append(event._replace(detail={**event.detail, "times": times}) if times > 1 else event)
    return folded


def _line(event: Event, tenants: Mapping[str, str]) -> str:
    tell = _SENTENCES.get(event.kind)
    said = tell(_named(event.detail, tenants)) if tell else _other(event.kind, event.detail)
    return f"{instant(event.time)} {said}"


def _named(said: Said, tenants: Mapping[str, str]) -> Said:
    """The same, with the tenants of the jobs for which it was."""
    whom = [{**job, "tenant": job["tenant"] or tenants.get(job["job"], "")} for job in for_jobs(said)]
    return {**said, "for": whom} if whom else said


def _submitted(said: Said) -> str:
    return "submitted" + (f" by {clean(said['user'])}" if said.get("user") else "")


def _started(said: Said) -> str:
    run = said.get("restarts") or 0
    return f"started{_on(said)}" + (f" (run {run + 1})" if run else "")


def _adopted(said: Said) -> str:
    if said.get("moved"):
        return (
            f"somebody moved its gate and it started: its account's one such wish{_until(said)}, and charged"
        )
    return f"it ran already and got a lease{_until(said)}"


def _renewed(said: Said) -> str:
    times = said.get("times", 1)
    often = f" {times} times, at last to" if times > 1 else ":"
    number, until = said.get("number", "?"), _until(said)
    return f"its lease was renewed{often} lease {number} of this run{until}{_because(said)}"


def _returned(said: Said) -> str:
    held = said.get("held_seconds")
    return f"it gave its GPUs back{f' after {duration(held)}' if held else ''}{_because(said)}"


def _stays(said: Said) -> str:
    if said.get("why") == NEEDED_NO_MORE:
        return f"the request was withdrawn, nobody needs its GPUs any more: its lease goes on{_until(said)}"
    return f"Slurm did not take it off its GPUs, so it has another lease{_until(said)}{_because(said)}"


def _stopped(said: Said) -> str:
    had = said.get("had")
    return "this run was over" + (f": it had {had / 3600:.2f} GPU-hours" if had is not None else "")


def _finished(said: Said) -> str:
    state = said.get("state")
    had = f": {said['had'] / 3600:.2f} GPU-hours in all" if said.get("had") is not None else ""
    return f"ended{f' ({clean(state)})' if state else ''}{had}"


_SENTENCES: Mapping[str, Any] = {
    EventKind.SUBMITTED: _submitted,
    EventKind.GRANTED: lambda said: f"GPUs{_on(said)} were promised to it{_until(said)}{_because(said)}",
    EventKind.OPENED: lambda said: f"its gate was opened: Slurm may start it{_on(said)}",
    EventKind.STARTED: _started,
    EventKind.ADOPTED: _adopted,
    EventKind.RENEWED: _renewed,
    EventKind.REVOKED: lambda said: f"its lease was not renewed{_because(said)}{_for_whom(said)}",
    EventKind.ASKED: lambda said: f"it was asked to save and to give way{_because(said)}{_for_whom(said)}",
    EventKind.REQUEUED: lambda said: f"it was put back into the queue{_because(said)}{_for_whom(said)}",
    EventKind.RETURNED: _returned,
    EventKind.TAKEN_BACK: lambda said: f"the promise of GPUs{_on(said)} was taken back{_because(said)}",
    EventKind.STAYS: _stays,
    EventKind.STOPPED: _stopped,
    EventKind.FINISHED: _finished,
}


def _other(kind: str, said: Said) -> str:
    """A kind that this version does not know."""
    detail = ", ".join(f"{key} {value}" for key, value in said.items() if value not in ("", None, []))
    return clean(f"{kind}: {detail}" if detail else kind)


def _on(said: Said) -> str:
    nodes = said.get("nodes") or ()
    shown = ",".join(map(str, nodes[:8])) + (f",... ({len(nodes)} nodes)" if len(nodes) > 8 else "")
    return f" on {clean(shown)}" if nodes else ""


def _until(said: Said) -> str:
    return f" until {instant(said['until'])}" if said.get("until") else ""


def _because(said: Said) -> str:
    why = said.get("why")
    return f", because {clean(_IN_WORDS.get(why, why))}" if why else ""


# Short words of the controller that are no sentences.
_IN_WORDS = {"revoked": "its lease was over and others were owed more", "granted": "its turn came"}


def for_jobs(said: Said) -> list[dict[str, Any]]:
    """The jobs for which it was asked to give way, as far as that is kept."""
    whom = said.get("for")
    rows = [job if isinstance(job, dict) else {"job": job} for job in whom] if isinstance(whom, list) else []
    return [{"job": str(row["job"]), "tenant": row.get("tenant") or ""} for row in rows if "job" in row]


def _for_whom(said: Said) -> str:
    jobs = for_jobs(said)
    names = ", ".join(_with_tenant(job) for job in jobs[:6]) + (", ..." if len(jobs) > 6 else "")
    return f"; for {'job' if len(jobs) == 1 else 'jobs'} {names}" if jobs else ""


def _with_tenant(job: Said) -> str:
    return clean(f"{job['job']} ({job['tenant']})" if job["tenant"] else job["job"])
