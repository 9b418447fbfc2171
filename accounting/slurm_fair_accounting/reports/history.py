"""The jobs that a period speaks of: those that ended in it, and those that live if it reaches the present."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    live = live_of(standing, period)
    events = list(source.events(period.start, period.end, kinds=KINDS))
    ended = {
        event.key: float(event.detail.get("submit", event.time))
        for event in events
        if event.kind == EventKind.FINISHED
    }
    earlier = _earlier(source, period, {key: job.submit for key, job in live.items()} | ended)
    stories = stories_of([*earlier, *events])
    chosen = [story for story in stories if story.finished or (standing is None or story.key in live)]
    living = {story.key for story in chosen if not story.finished}
    silent = [_from_ledger(key, job) for key, job in live.items() if key not in living | ended.keys()]
    return JobStories((*chosen, *silent), live)


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
