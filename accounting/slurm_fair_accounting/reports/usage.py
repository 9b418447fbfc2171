"""The report on usage: GPU-hours by day, tenant and user, from the runs themselves."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator

from slurm_fair.model import EventKind
from slurm_fair_accounting.reports.history import live_of, newest_known
from slurm_fair_accounting.source.period import Period, days
from slurm_fair_accounting.source.source import JournalReader
from slurm_fair_accounting.table import Choice, Column, Kind, Report
from slurm_fair_accounting.timelines import Story, stories_of

COLUMNS = (
    Column("day", "Day", Kind.DAY),
    Column("tenant", "Tenant", Kind.TEXT),
    Column("user", "User", Kind.TEXT),
    Column("jobs", "Jobs", Kind.COUNT),
    Column("gpu_seconds", "Used(GPUh)", Kind.GPU_HOURS),
)
_KINDS = (EventKind.SUBMITTED, EventKind.STARTED, EventKind.STOPPED, EventKind.FINISHED)


def usage(source: JournalReader, period: Period, choice: Choice) -> Report:
    """GPU time and jobs by calendar day of the period; time until the newest thing known."""
    used: dict[tuple[float, str, str], float] = defaultdict(float)
    jobs: dict[tuple[float, str, str], set[int]] = defaultdict(set)
    calendar = days(period.start, period.end)
    mornings = [day.start for day in calendar]
    for story, start, end in _runs(source, period, choice):
        for day in calendar[max(bisect_right(mornings, start) - 1, 0) : bisect_left(mornings, end)]:
            seconds = min(end, day.end) - max(start, day.start)
            if seconds > 0:
                used[day.start, story.tenant, story.user] += seconds * story.gpus
                jobs[day.start, story.tenant, story.user].add(story.key)
    rows = [
        {
            "day": day,
            "tenant": tenant,
            "user": user,
            "jobs": len(jobs[day, tenant, user]),
            "gpu_seconds": gpus,
        }
        for (day, tenant, user), gpus in sorted(used.items())
    ]
    return Report("usage", "Usage by day", COLUMNS, tuple(rows), period, period)


def _runs(source: JournalReader, period: Period, choice: Choice) -> Iterator[tuple[Story, float, float]]:
    """Runs that overlap the period; one that is still going reaches to the newest thing known."""
    standing = source.latest()
    live = live_of(standing, Period(period.start, float("inf")))
    # A run that spans the whole period shows itself only by its end, so events after it are read too.
    events = list(source.events(period.start, kinds=_KINDS, tenant=choice.tenant))
    begun = {event.key for event in events if event.kind in (EventKind.STOPPED, EventKind.FINISHED)}
    earlier = source.events(end=period.start, kinds=(EventKind.SUBMITTED, EventKind.STARTED), keys=begun)
    newest = newest_known(source, standing, period.start)
    last_starts = {(event.key, event.kind): event for event in earlier}.values()
    stories = stories_of(sorted([*last_starts, *events], key=lambda event: event.time))
    seen = {event.key for event in events}
    silent = [
        Story(key, job.tenant, job.gpus, runs=[(job.run_start, None)])
        for key, job in live.items()
        if job.run_start and key not in seen
    ]
    for story in (*stories, *silent):
        if choice.takes(story.tenant, story.user):
            for start, end in story.runs:
                yield story, start, newest if end is None else end
