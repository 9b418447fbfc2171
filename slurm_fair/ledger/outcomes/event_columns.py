"""The events that outcomes are made of, kept as columns: months have hundreds of thousands of them."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from slurm_fair.ledger.charging.window_events import GPU_WEIGHT, Became
from slurm_fair.model import Event, EventKind
from slurm_fair.model.columns import Bools, Code, Codes, Columns, Floats, Ints


class Counted(Code):
    """The kinds of events that count, as they follow each other where they fall on one instant."""

    SUBMITTED = 0
    REVOKED = 1
    STAYS = 2
    STOPPED = 3
    STARTED = 4
    STOPPED_AT_ONCE = 5  # a stop of a run of no length, which follows its start
    FINISHED = 6


_COUNTED: dict[str, Counted] = {
    EventKind.SUBMITTED: Counted.SUBMITTED,
    EventKind.REVOKED: Counted.REVOKED,
    EventKind.STAYS: Counted.STAYS,
    EventKind.STOPPED: Counted.STOPPED,
    EventKind.STARTED: Counted.STARTED,
    EventKind.FINISHED: Counted.FINISHED,
}
AT_EDGES = (Counted.SUBMITTED, Counted.FINISHED)
# What an ended job's own account says, and what a simulation or an accounting import may add to either event.
ACCOUNT = ("submit", "ran", "waited", "had", "owed", "restarts")
FURTHER = ("exclusive_seconds", "declared_seconds", "expected_seconds", "spread_seconds")
LIMIT = "limit_seconds"
NAMES = ("user", "name", "app")
SAID = (*ACCOUNT, *FURTHER, LIMIT)
_SAID_AT_FIRST = (*FURTHER, LIMIT)
_UNKNOWN: Iterable[float] = repeat(math.nan)
_NOTHING_OF_ACCOUNT = (math.nan,) * len(ACCOUNT)

_LINE, _EDGE = struct.Struct("<qddddiiii"), struct.Struct(f"<{len(SAID)}d{len(NAMES)}i")
_LINES = np.dtype(
    [(name, "<i8" if name == "key" else "<f8") for name in ("key", "time", "start", "restarts", "gpu_weight")]
    + [(name, "<i4") for name in ("gpus", "tenant", "state", "kind")]
)
_EDGES = np.dtype([(name, "<f8") for name in SAID] + [(name, "<i4") for name in NAMES])


@dataclass(frozen=True)
class EventTable(Columns):
    """The events that count, sorted by (key, time)."""

    event: Ints  # its place among those that count, as they came
    key: Ints
    time: Floats
    kind: Codes  # Counted
    gpus: Ints
    start: Floats  # of the run that stopped, nan = not said
    restarts: Floats  # of the run that started or stopped, nan = not said
    gpu_weight: Floats  # what each GPU counts, of a job that came, or a run that started or stopped
    tenant: Ints  # index into `words`
    state: Ints  # index into `words`, 0 = not said
    words: tuple[str, ...]  # the first is empty
    edges: NDArray[Any]  # what submissions and ends say, as they came; names are indices into `words`

    @property
    def life(self) -> Ints:
        """The life of each event. A life begins with the first event of its key, and whenever it is submitted."""
        begins = self.of_kind(Counted.SUBMITTED)
        begins[1:] |= self.key[1:] != self.key[:-1]
        begins[:1] = True
        return np.cumsum(begins) - 1

    def of_kind(self, *kinds: Counted) -> Bools:
        """Events of one of these kinds."""
        return np.isin(self.kind, kinds)

    def said_by(self, rows: Bools) -> NDArray[Any]:
        """The details of these submissions or ends, in order."""
        is_edge = np.zeros(len(self), dtype=bool)
        is_edge[self.event] = self.of_kind(*AT_EDGES)
        said: NDArray[Any] = self.edges[(np.cumsum(is_edge) - 1)[self.event[rows]]]
        return said


class Heard:
    """Takes events as they come."""

    def __init__(self) -> None:
        self.last = 0.0  # instant of any event
        self._lines, self._edges = bytearray(), bytearray()
        self._words = {"": 0}

    @classmethod
    def of(cls, events: Iterable[Event]) -> Self:
        heard = cls()
        for event in events:
            heard.take(event)
        return heard

    def take(self, event: Event) -> None:
        """Keep the part of an event that outcomes need."""
        time, word, key, of_tenant, gpus, detail = event
        if time > self.last:
            self.last = time
        kind = _COUNTED.get(word)
        if kind is None:
            return
        words, start, restarts = self._words, math.nan, math.nan
        if kind in AT_EDGES:
            self._take_edge(kind, detail)
        elif kind is not Counted.REVOKED:
            restarts = _number(detail.get("restarts"))
            if kind is Counted.STOPPED:
                start = _number(detail.get("start"))
        weight = 1.0 if kind is Counted.FINISHED else float(detail.get(GPU_WEIGHT, 1.0))
        tenant = words.setdefault(of_tenant, len(words))
        state = detail.get("state")
        how = words.setdefault(str(state), len(words)) if state else 0
        self._lines += _LINE.pack(key, time, start, restarts, weight, gpus, tenant, how, kind)

    def _take_edge(self, kind: Counted, detail: Mapping[str, Any]) -> None:
        words = self._words
        names = [
            words.setdefault(str(text), len(words)) if (text := detail.get(name)) else 0 for name in NAMES
        ]
        over = kind is Counted.FINISHED
        try:
            said = map(detail.get, SAID if over else _SAID_AT_FIRST, repeat(math.nan))
            self._edges += _EDGE.pack(*(() if over else _NOTHING_OF_ACCOUNT), *said, *names)
        except struct.error:  # something is said to be nothing
            numbers = [_number(detail.get(name)) for name in (SAID if over else _SAID_AT_FIRST)]
            self._edges += _EDGE.pack(*(() if over else _NOTHING_OF_ACCOUNT), *numbers, *names)

    def take_columns(self, some: Became) -> None:
        """Keep events of one kind."""
        self.last = max((self.last, *some.time))
        said, kind = some.said, _COUNTED[some.kind]
        if kind in AT_EDGES:
            names = [self._numbered(said.get(name)) for name in NAMES]
            self._edges += b"".join(map(_EDGE.pack, *(_numbers(said.get(name)) for name in SAID), *names))
            of_run = _UNKNOWN, _UNKNOWN
        else:
            of_run = _numbers(said.get("start")), _numbers(said.get("restarts"))
        names = [self._numbered(some.tenant), self._numbered(said.get("state"))]
        weights = [1.0 if one is None else one for one in said.get(GPU_WEIGHT, ())] or repeat(1.0)
        lines = map(_LINE.pack, some.key, some.time, *of_run, weights, some.gpus, *names, repeat(kind))
        self._lines += b"".join(lines)

    def _numbered(self, texts: Sequence[str | None] | None) -> Iterable[int]:
        """The place of each word among all."""
        words = self._words
        if texts is None:
            return repeat(0)
        return [words.setdefault(text, len(words)) if text else 0 for text in texts]

    def lines(self) -> EventTable:
        """All of them, in order of (key, time)."""
        came = np.frombuffer(self._lines, _LINES)
        columns = {name: came[name].astype(np.int64) for name in ("gpus", "tenant", "state")}
        key, time, start, kind = came["key"], came["time"], came["start"], came["kind"].astype(np.int8)
        # Of two events at one instant the one that must have come first; a run of no length stops after its start.
        rank = np.where((kind == Counted.STOPPED) & (start >= time), Counted.STOPPED_AT_ONCE, kind)
        # Slurm cuts its instants to whole seconds, so that a stop may seem to lie before the revocation.
        when = np.where(kind == Counted.REVOKED, np.floor(time), time)
        lines = EventTable(
            event=np.arange(len(came)),
            key=key,
            time=time,
            kind=kind,
            start=start,
            restarts=came["restarts"],
            gpu_weight=came["gpu_weight"],
            words=tuple(self._words),
            edges=np.frombuffer(bytes(self._edges), _EDGES),
            **columns,
        )
        return lines.take(np.lexsort((rank, when, key)))


def _numbers(said: Sequence[float | None] | None) -> Iterable[float]:
    return _UNKNOWN if said is None else [math.nan if one is None else one for one in said]


def _number(said: Any) -> float:
    return math.nan if said is None else float(said)
