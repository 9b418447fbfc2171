"""The marks in force: a copy in memory of what the store keeps, joined to squeue's rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model.columns import Floats, Ints, find
from slurm_fair.model.ids import TASK_BITS, is_same_job, pack
from slurm_fair.model.mark import Mark

_ROW = np.dtype(
    [
        ("gate_until", "f8"),
        ("gate_before", "f8"),
        ("pinned", "?"),
        ("set_at", "f8"),
        ("blameless", "?"),
        ("known", "?"),
        ("submit", "f8"),
        ("has_pin", "?"),
        ("restarts", "i8"),
        ("user_begin", "f8"),
    ]
)
_NONE = np.zeros(1, _ROW)


def is_of(mark: Mark, submit: float, restarts: int) -> bool:
    """True if a mark was set on this job."""
    return is_same_job(mark.submit, submit, restarts)


class MarkSink(Protocol):
    """A store for marks that outlives the daemon."""

    def marks(self) -> Sequence[Mark]:
        """All marks in force."""
        ...

    def set_marks(self, marks: Iterable[Mark]) -> None: ...

    def drop_marks(self, keys: Iterable[tuple[int, bool]]) -> None:
        """Take away, by (key, whole record)."""
        ...


class MarksInHand:
    """Marks kept in memory, for a dry run, or for a dead-man that only takes marks away."""

    def __init__(self, marks: Sequence[Mark] = ()) -> None:
        self._marks = tuple(marks)

    def marks(self) -> Sequence[Mark]:
        return self._marks

    def set_marks(self, marks: Iterable[Mark]) -> None: ...

    def drop_marks(self, keys: Iterable[tuple[int, bool]]) -> None: ...


class Marks:
    """Marks by job key, or by record for unsplit arrays."""

    def __init__(self, sink: MarkSink) -> None:
        self._sink = sink
        self._marks = {(mark.key, mark.whole_record): mark for mark in sink.marks()}
        self._tables: dict[bool, tuple[Ints, NDArray[np.void]]] = {}

    def get(self, key: int, whole_record: bool) -> Mark | None:
        """The mark of one job or unsplit array."""
        return self._marks.get((key, whole_record))

    def on(self, key: int, whole_record: bool, submit: float, restarts: int) -> tuple[Mark, ...]:
        """The marks of a job: its own, and then its array's."""
        array = None if whole_record else self.get(pack(key >> TASK_BITS), True)
        either = (self.get(key, whole_record), array)
        return tuple([mark for mark in either if mark and is_of(mark, submit, restarts)])

    def covering(self, key: int, whole_record: bool, submit: float, restarts: int) -> Mark | None:
        """The mark that speaks for a job: its own, or for an array task without one its array's."""
        return next(iter(self.on(key, whole_record, submit, restarts)), None)

    def all(self) -> list[Mark]:
        """Every mark in force."""
        return list(self._marks.values())

    def set(self, marks: Iterable[Mark]) -> None:
        """Durable first, then in memory."""
        marks = list(marks)
        if not marks:
            return
        self._sink.set_marks(marks)
        self._marks.update({(mark.key, mark.whole_record): mark for mark in marks})
        self._tables.clear()

    def drop(self, marks: Iterable[Mark]) -> None:
        """Forget marks whose effect is gone."""
        marks = list(marks)
        if not marks:
            return
        self._sink.drop_marks((mark.key, mark.whole_record) for mark in marks)
        for mark in marks:
            self._marks.pop((mark.key, mark.whole_record), None)
        self._tables.clear()

    def join(self, keys: Ints, whole_record: bool, submit: Floats, restarts: Ints) -> NDArray[np.void]:
        """The mark of each key as a row; zeros where there is none, or one of another job under the id."""
        sorted_keys, table = self._table(whole_record)
        at = find(sorted_keys, keys)
        joined: NDArray[np.void] = np.concatenate([table, _NONE])[at]
        joined[~is_same_job(joined["submit"], submit, restarts)] = _NONE[0]
        return joined

    def _table(self, whole_record: bool) -> tuple[Ints, NDArray[np.void]]:
        if whole_record not in self._tables:
            marks = sorted(
                (m for m in self._marks.values() if m.whole_record == whole_record), key=lambda m: m.key
            )
            keys = np.array([mark.key for mark in marks], dtype=np.int64)
            rows = np.array(
                [
                    (
                        m.gate_until,
                        m.gate_before,
                        m.pinned,
                        m.set_at,
                        m.blameless,
                        True,
                        m.submit,
                        bool(m.pin),
                        m.restarts,
                        m.user_begin,
                    )
                    for m in marks
                ],
                dtype=_ROW,
            )
            self._tables[whole_record] = keys, rows
        return self._tables[whole_record]
