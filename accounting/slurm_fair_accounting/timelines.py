"""Events of many jobs, sorted into the story of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from slurm_fair.model import Event, EventKind
from slurm_fair.model.end_words import NODE_FAIL


@dataclass(slots=True)
class LeaseStory:
    """One lease of a job as its events tell it."""

    number: int
    gpus: int  # of the run in it; before its job starts those that the job asks for
    nodes: tuple[str, ...]
    granted: float
    start: float | None = None
    end: float | None = None
    ended_by: str = ""
    why: str = ""  # the reason of the plan that granted or renewed it
    why_ended: str = ""  # the reason of the plan that did not renew it


_SAME_START_SECONDS = 1.0


@dataclass(slots=True)
class Story:
    """One life of a job: from its submission to its end; a key that Slurm uses again begins another one."""

    key: int
    tenant: str
    gpus: int
    user: str = ""
    submit: float | None = None
    runs: list[tuple[float, float | None]] = field(default_factory=list)
    leases: list[LeaseStory] = field(default_factory=list)
    nodes: tuple[str, ...] = ()  # of its last run
    run_gpus: int = 0  # the same
    restarts: int = 0
    finished: Mapping[str, Any] | None = None
    over_at: float | None = None  # instant of the event of its end

    def add(self, event: Event) -> None:
        """The next thing that happened to it."""
        self.tenant = event.tenant or self.tenant
        self.gpus = event.gpus or self.gpus
        self.user = str(event.detail.get("user") or self.user)
        tell = _TELLERS.get(event.kind)
        if tell is not None:
            tell(self, event)

    def _submitted(self, event: Event) -> None:
        self.submit = event.time

    def _started(self, event: Event) -> None:
        self.runs.append((event.time, None))
        self.nodes, self.run_gpus = _nodes(event), self.gpus
        self.restarts = int(event.detail.get("restarts", self.restarts))
        lease = self._open_lease()
        if lease and lease.start is None:
            lease.start, lease.gpus = event.time, self.run_gpus
            lease.nodes = lease.nodes or self.nodes

    def _stopped(self, event: Event) -> None:
        self._end_run(event.time, event.detail.get("start"))
        lease = self._open_lease()
        if lease and event.detail.get("state") == NODE_FAIL:
            lease.ended_by = lease.why_ended = ""  # what had been revoked was lost before we took it
        self._end_lease(event.time, EventKind.STOPPED)

    def _finished(self, event: Event) -> None:
        if self.runs:
            self._end_run(event.time, None)
        self._end_lease(event.time, EventKind.FINISHED)
        self.submit = float(event.detail.get("submit", self.submit or event.time))
        self.restarts = int(event.detail.get("restarts", self.restarts))
        self.finished = {"end": event.time, **event.detail}
        self.over_at = event.time

    def _granted(self, event: Event) -> None:
        lease = LeaseStory(_number(event, 1), self.gpus, _nodes(event), event.time, why=_why(event))
        if self.runs and event.time - self.runs[-1][0] <= _SAME_START_SECONDS:
            # Slurm's whole second may lie before the grant.
            lease.start, lease.gpus = self.runs[-1][0], self.run_gpus
        self.leases.append(lease)

    def _adopted(self, event: Event) -> None:
        start = float(event.detail.get("start", event.time))
        nodes = _nodes(event) or self.nodes
        self.leases.append(LeaseStory(_number(event, 1), self.gpus, nodes, event.time, start))

    def _renewed(self, event: Event) -> None:
        before = self.leases[-1] if self.leases else None
        self._end_lease(event.time, EventKind.RENEWED)
        number, nodes = (before.number, before.nodes) if before else (0, self.nodes)
        number = _number(event, number + 1)
        self.leases.append(LeaseStory(number, self.gpus, nodes, event.time, event.time, why=_why(event)))

    def _revoked(self, event: Event) -> None:
        if lease := self._open_lease():
            lease.ended_by = EventKind.REVOKED  # its end comes when the GPUs do
            lease.why_ended = _why(event)

    def _stays(self, event: Event) -> None:
        """Slurm would not stop it: what was revoked goes on as if it had been renewed."""
        if lease := self._open_lease():
            lease.ended_by = lease.why_ended = ""
        self._renewed(event)

    def _lost(self, event: Event) -> None:
        self._end_lease(event.time, event.kind)

    def _open_lease(self) -> LeaseStory | None:
        return self.leases[-1] if self.leases and self.leases[-1].end is None else None

    def _end_lease(self, time: float, by: str) -> None:
        if lease := self._open_lease():
            lease.end = time
            # A job that finishes before it is asked was not stopped by us.
            if by == EventKind.FINISHED or not lease.ended_by:
                lease.ended_by, lease.why_ended = by, ""

    def _end_run(self, time: float, start: float | None) -> None:
        if self.runs and self.runs[-1][1] is None:
            self.runs[-1] = (self.runs[-1][0], time)
        elif start is not None and (not self.runs or self.runs[-1][0] < start):
            self.runs.append((float(start), time))


_TELLERS: dict[str, Callable[[Story, Event], None]] = {
    EventKind.SUBMITTED: Story._submitted,
    EventKind.STARTED: Story._started,
    EventKind.STOPPED: Story._stopped,
    EventKind.FINISHED: Story._finished,
    EventKind.GRANTED: Story._granted,
    EventKind.ADOPTED: Story._adopted,
    EventKind.RENEWED: Story._renewed,
    EventKind.REVOKED: Story._revoked,
    EventKind.STAYS: Story._stays,
    EventKind.RETURNED: Story._lost,
    EventKind.TAKEN_BACK: Story._lost,
}


def stories_of(events: Iterable[Event]) -> list[Story]:
    """The stories in events that come in the order of time."""
    stories: list[Story] = []
    current: dict[int, Story] = {}
    for event in events:
        story = current.get(event.key)
        # What trails behind an end (the lease's return) still belongs to the life that ended.
        if story is None or event.kind == EventKind.SUBMITTED:
            story = Story(event.key, event.tenant, event.gpus)
            stories.append(story)
            current[event.key] = story
        story.add(event)
    return stories


def _nodes(event: Event) -> tuple[str, ...]:
    return tuple(map(str, event.detail.get("nodes", ())))


def _number(event: Event, otherwise: int) -> int:
    return int(event.detail.get("number", otherwise))


def _why(event: Event) -> str:
    return str(event.detail.get("why") or "")
