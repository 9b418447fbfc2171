"""The jobs that a period speaks of: those that ended in it, and those that live if it reaches the present."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from slurm_fair.model import Event, EventKind, Standing
from slurm_fair_accounting.source.period import Period
from slurm_fair_accounting.source.source import JournalReader
from slurm_fair_accounting.timelines import Story, stories_of

_FAR_FUTURE = 1e18
KINDS = (
    EventKind.SUBMITTED,
    EventKind.STARTED,
    EventKind.STOPPED,
    EventKind.FINISHED,
    EventKind.GRANTED,
    EventKind.ADOPTED,
    EventKind.RENEWED,
    EventKind.STAYS,
    EventKind.TAKEN_BACK,
)


@dataclass(frozen=True, slots=True)
class Live:
    """A job that lives, as the ledger has it."""

    tenant: str
    gpus: int
    submit: float
    run_start: float  # 0 = it does not run
    active: bool
    restarts: int
    had: float
    owed: float
    waited: float
    ran: float
    run_gpus: int  # GPUs of its run


@dataclass(frozen=True, slots=True)
class JobStories:
    """Stories of a period, and the ledger's accounts of those jobs that live."""

    stories: tuple[Story, ...]
    live: Mapping[int, Live]


def history_of(source: JournalReader, period: Period) -> JobStories:
    """Read it; the ledger first, so that a job that ends meanwhile is told as ended."""
    standing = source.latest()
    if standing is None:
        return JobStories(_of_file(source, period), {})
    live = live_of(standing, period)
    events = list(source.events(period.start, period.end, kinds=KINDS))
    ended = {
        event.key: float(event.detail.get("submit", event.time))
        for event in events
        if event.kind == EventKind.FINISHED
    }
    earlier = _earlier(source, period, {key: job.submit for key, job in live.items()} | ended)
    chosen = _chosen(stories_of([*earlier, *events]), period, live)
    met = {story.key for story in chosen}
    silent = [_from_ledger(key, job) for key, job in live.items() if key not in met]
    return JobStories((*chosen, *silent), live)


def _of_file(source: JournalReader, period: Period) -> tuple[Story, ...]:
    """The stories of a period in an export, whose present is its last line; each is told from its beginning."""
    if period.end >= newest_known(source, None, period.start):
        stories = stories_of(source.events(kinds=KINDS))
        return tuple(_chosen(stories, period, {story.key for story in stories}))
    within = source.events(period.start, period.end, kinds=(EventKind.FINISHED,))
    ended = {event.key for event in within}
    return tuple(_chosen(stories_of(source.events(kinds=KINDS, keys=ended)), period, ()))


def _chosen(stories: Sequence[Story], period: Period, living: Container[int]) -> list[Story]:
    """Stories that ended in the period, and of the keys that live those that go on.

    A key that Slurm used again has its last story only; that the one before has no end means that nobody saw it.
    """
    last = {story.key: story for story in stories}
    return [
        story
        for story in stories
        if _ended_in(story, period)
        or (story.key in living and story is last[story.key] and _goes_on(story, period))
    ]


def _ended_in(story: Story, period: Period) -> bool:
    return story.over_at is not None and period.start <= story.over_at < period.end


def _goes_on(story: Story, period: Period) -> bool:
    return story.over_at is None and (story.submit is None or story.submit < period.end)


def live_of(standing: Standing | None, period: Period) -> dict[int, Live]:
    """Jobs that live now, when the period reaches the instant that the ledger knows."""
    if standing is None or period.end < standing.ledger.time:
        return {}
    jobs, names = standing.ledger.jobs, standing.ledger.tenants.names
    columns = (
        jobs.key, jobs.tenant, jobs.gpus, jobs.submit, jobs.run_start, jobs.active, jobs.restarts,
        jobs.had, jobs.owed, jobs.waited, jobs.ran, jobs.run_gpus,
    )  # fmt: skip
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {key: Live(names[tenant], *rest) for key, tenant, *rest in rows if rest[1] < period.end}


def newest_known(source: JournalReader, standing: Standing | None, start: float) -> float:
    """The last instant that a source knows of: its ledger's, else that of its last line."""
    if standing is not None:
        return standing.ledger.time
    account = source.moment_time(_FAR_FUTURE)
    return max([start if account is None else account, *(event.time for event in source.events(start))])


def known_span(source: JournalReader) -> Period | None:
    """The time that a source tells of; None where it tells of nothing."""
    first = source.began()
    return None if first is None else Period(first, newest_known(source, source.latest(), first))


def _earlier(source: JournalReader, period: Period, submits: Mapping[int, float]) -> Iterable[Event]:
    """The events of these jobs before the period began."""
    early = {key: submit for key, submit in submits.items() if submit < period.start}
    return source.events(min(early.values()), period.start, kinds=KINDS, keys=early) if early else ()


def _from_ledger(key: int, job: Live) -> Story:
    runs: list[tuple[float, float | None]] = [(job.run_start, None)] if job.run_start else []
    return Story(key, job.tenant, job.gpus, submit=job.submit, runs=runs, restarts=job.restarts)
