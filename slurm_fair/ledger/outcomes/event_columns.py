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
from slurm_fair.model.columns import Bools, Columns, Floats, Ints

SUBMITTED, REVOKED, STAYS, STOPPED, STARTED, _STOPPED_AT_ONCE, FINISHED = range(7)
_CODES: dict[str, int] = {
    EventKind.SUBMITTED: SUBMITTED,
    EventKind.REVOKED: REVOKED,
    EventKind.STAYS: STAYS,
    EventKind.STOPPED: STOPPED,
    EventKind.STARTED: STARTED,
    EventKind.FINISHED: FINISHED,
}
_AT_EDGES = (SUBMITTED, FINISHED)
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
    + [(name, "<i4") for name in ("gpus", "tenant", "state", "code")]
)
_EDGES = np.dtype([(name, "<f8") for name in SAID] + [(name, "<i4") for name in NAMES])


@dataclass(frozen=True)
class EventTable(Columns):
    """The events that count, sorted by (key, time)."""

    event: Ints  # its place among those that count, as they came
    key: Ints
    time: Floats
    code: Ints
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
        begins = self.code == SUBMITTED
        begins[1:] |= self.key[1:] != self.key[:-1]
        begins[:1] = True
        return np.cumsum(begins) - 1

    def said_by(self, rows: Bools) -> NDArray[Any]:
        """The details of these submissions or ends, in order."""
        is_edge = np.zeros(len(self), dtype=bool)
        is_edge[self.event] = (self.code == SUBMITTED) | (self.code == FINISHED)
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
        time, kind, key, of_tenant, gpus, detail = event
        if time > self.last:
            self.last = time
        code = _CODES.get(kind)
        if code is None:
            return
        words, start, restarts = self._words, math.nan, math.nan
        if code in _AT_EDGES:
            self._take_edge(code, detail)
        elif code != REVOKED:
            restarts = _number(detail.get("restarts"))
            if code == STOPPED:
                start = _number(detail.get("start"))
        weight = 1.0 if code == FINISHED else float(detail.get(GPU_WEIGHT, 1.0))
        tenant = words.setdefault(of_tenant, len(words))
        state = detail.get("state")
        how = words.setdefault(str(state), len(words)) if state else 0
        self._lines += _LINE.pack(key, time, start, restarts, weight, gpus, tenant, how, code)

    def _take_edge(self, code: int, detail: Mapping[str, Any]) -> None:
        words = self._words
        names = [
            words.setdefault(str(text), len(words)) if (text := detail.get(name)) else 0 for name in NAMES
        ]
        over = code == FINISHED
        try:
            said = map(detail.get, SAID if over else _SAID_AT_FIRST, repeat(math.nan))
            self._edges += _EDGE.pack(*(() if over else _NOTHING_OF_ACCOUNT), *said, *names)
        except struct.error:  # something is said to be nothing
            numbers = [_number(detail.get(name)) for name in (SAID if over else _SAID_AT_FIRST)]
            self._edges += _EDGE.pack(*(() if over else _NOTHING_OF_ACCOUNT), *numbers, *names)

    def take_columns(self, some: Became) -> None:
        """Keep events of one kind."""
        self.last = max((self.last, *some.time))
        said, code = some.said, _CODES[some.kind]
        if code in _AT_EDGES:
            names = [self._numbered(said.get(name)) for name in NAMES]
            self._edges += b"".join(map(_EDGE.pack, *(_numbers(said.get(name)) for name in SAID), *names))
            of_run = _UNKNOWN, _UNKNOWN
        else:
            of_run = _numbers(said.get("start")), _numbers(said.get("restarts"))
        names = [self._numbered(some.tenant), self._numbered(said.get("state"))]
        weights = [1.0 if one is None else one for one in said.get(GPU_WEIGHT, ())] or repeat(1.0)
        lines = map(_LINE.pack, some.key, some.time, *of_run, weights, some.gpus, *names, repeat(code))
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
        columns = {name: came[name].astype(np.int64) for name in ("gpus", "tenant", "state", "code")}
        key, time, start, code = came["key"], came["time"], came["start"], columns["code"]
        # Of two events at one instant the one that must have come first; a run of no length stops after its start.
        rank = np.where((code == STOPPED) & (start >= time), _STOPPED_AT_ONCE, code)
        # Slurm cuts its instants to whole seconds, so that a stop may seem to lie before the revocation.
        when = np.where(code == REVOKED, np.floor(time), time)
        lines = EventTable(
            event=np.arange(len(came)),
            key=key,
            time=time,
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
