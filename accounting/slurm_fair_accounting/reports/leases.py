"""The report on leases: each grant and renewal of the period, and how it ended."""

from __future__ import annotations

from slurm_fair.model import Event, EventKind, label
from slurm_fair_accounting.source.period import Period
from slurm_fair_accounting.source.source import JournalReader
from slurm_fair_accounting.table import Choice, Column, Kind, Report, Row
from slurm_fair_accounting.timelines import LeaseStory, Story, stories_of

COLUMNS = (
    Column("job", "JobID", Kind.TEXT),
    Column("tenant", "Tenant", Kind.TEXT),
    Column("user", "User", Kind.TEXT),
    Column("lease", "Lease#", Kind.COUNT),
    Column("gpus", "GPUs", Kind.COUNT),
    Column("nodes", "Nodes", Kind.TEXT),
    Column("granted", "Granted", Kind.INSTANT),
    Column("start", "Start", Kind.INSTANT),
    Column("end", "End", Kind.INSTANT),
    Column("ended_by", "EndedBy", Kind.TEXT),
    Column("start_delay_seconds", "StartDelay", Kind.SECONDS),
    Column("why", "Why", Kind.TEXT, wide=True),
    Column("why_ended", "WhyEnded", Kind.TEXT, wide=True),
)
_ENDS = (EventKind.STOPPED, EventKind.FINISHED, EventKind.RETURNED, EventKind.TAKEN_BACK)
_BEFORE = (EventKind.SUBMITTED, EventKind.STARTED, EventKind.GRANTED)
_KINDS = (
    *_BEFORE,
    EventKind.ADOPTED,
    EventKind.RENEWED,
    EventKind.REVOKED,
    EventKind.STAYS,
    *_ENDS,
)


def leases(source: JournalReader, period: Period, choice: Choice) -> Report:
    """Leases granted or renewed in the period, in the order of their grants."""
    within = list(source.events(period.start, period.end, kinds=_KINDS, tenant=choice.tenant))
    first: dict[int, Event] = {}
    for event in within:
        first.setdefault(event.key, event)
    last = {event.key: event.kind for event in within}
    # The nodes of a lease renewed in the period stand in its grant, which may lie before it, and its user in the
    # job's submission.
    begun = [key for key, event in first.items() if event.kind != EventKind.SUBMITTED]
    earlier = {
        (event.key, event.kind == EventKind.SUBMITTED): event
        for event in source.events(end=period.start, kinds=_BEFORE, keys=begun)
    }
    after = source.events(period.end, kinds=_KINDS, keys=[key for key in last if last[key] not in _ENDS])
    before = sorted(earlier.values(), key=lambda event: event.time)
    rows = [
        _row(story, lease)
        for story in stories_of([*before, *within, *after])
        if choice.takes(story.tenant, story.user)
        for lease in story.leases
        if period.start <= lease.granted < period.end
    ]
    rows.sort(key=lambda row: (row["granted"], row["job"]))
    return Report("leases", "Leases", COLUMNS, tuple(rows), period, period)


def _row(story: Story, lease: LeaseStory) -> Row:
    return {
        "job": label(story.key),
        "tenant": story.tenant,
        "user": story.user,
        "lease": lease.number,
        "gpus": lease.gpus,
        "nodes": ",".join(lease.nodes),
        "granted": lease.granted,
        "start": lease.start,
        "end": lease.end,
        "ended_by": lease.ended_by if lease.end is not None else "",
        "start_delay_seconds": None if lease.start is None else max(lease.start - lease.granted, 0.0),
        "why": lease.why,
        "why_ended": lease.why_ended,
    }
