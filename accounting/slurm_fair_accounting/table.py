"""A report: named columns with units, rows of plain values, and the period that they speak of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from slurm_fair.ledger.settings import ReportShare
from slurm_fair_accounting.source.period import Period

Row = Mapping[str, Any]


class Kind(Enum):
    """The form in which a value is written; in JSON all are plain numbers or texts in base units."""

    TEXT = "text"
    COUNT = "count"
    GPU_HOURS = "GPU-seconds, shown as GPU-hours"
    SECONDS = "seconds, shown as D-HH:MM:SS"
    INSTANT = "epoch seconds, shown in local time"
    DAY = "epoch seconds of a day's beginning, shown as its date"
    RATIO = "a ratio"
    PART = "a part of 1, shown in %"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its key in JSON, its title in a table."""

    key: str
    title: str
    kind: Kind
    wide: bool = False  # left out of the table of a terminal, which would be too wide


@dataclass(frozen=True, slots=True)
class Report:
    """A table with its title and notes, as every renderer takes it."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    asked: Period
    covered: Period  # differs where accounts are known only near the ends of the period
    note: str = ""
    total: Row | None = None  # of all rows together, where that is more than a sum
    samples: Mapping[str, Sequence[float]] = field(default_factory=dict)  # by tenant, for curves of them

    @property
    def lines(self) -> tuple[Row, ...]:
        """The rows, and the total behind them."""
        return self.rows if self.total is None else (*self.rows, self.total)


@dataclass(frozen=True, slots=True)
class Choice:
    """The tenants and users whose rows are wanted."""

    tenant: str | None = None
    user: str | None = None
    share: ReportShare = "demand"  # what tenants are owed

    def takes(self, tenant: str, user: str | None) -> bool:
        """True if a row of this tenant and user is; user None = the row speaks of no single user."""
        return self.tenant in (None, tenant) and (user is None or self.user in (None, user))
