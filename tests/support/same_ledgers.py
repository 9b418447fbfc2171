"""Two ledgers, and what they tell, are the same but for rounding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slurm_fair.ledger.outcomes.event_columns import Heard
from slurm_fair.ledger.outcomes.outcomes import outcomes_heard
from slurm_fair.model import Event, Ledger


def same_ledgers(one: Ledger, other: Ledger) -> None:
    """But for rounding; closed runs are in the order in which they were folded."""
    assert (one.time, one.began, one.total_gpus) == (other.time, other.began, other.total_gpus)
    assert one.tenants.names == other.tenants.names
    assert one.closed.since == other.closed.since
    for kind in ("tenants", "jobs", "closed"):
        tables = (getattr(one, kind), getattr(other, kind))
        if kind == "closed":
            tables = tuple(table.take(np.lexsort((table.start, table.submit, table.key))) for table in tables)
        for name in tables[0]._columns:
            found, expected = (getattr(table, name) for table in tables)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-6, err_msg=f"{kind}.{name}")


def same_events(some: Sequence[Event], others: Sequence[Event]) -> None:
    """In the same order, and all alike but for rounding of what was had and owed."""
    assert [_exact(event) for event in some] == [_exact(event) for event in others]
    for one, other in zip(some, others, strict=True):
        found, expected = (np.array([each.detail.get(name, 0.0) for name in _SUMS]) for each in (one, other))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-6)


def same_outcomes(by_column: Heard, events: Sequence[Event]) -> None:
    """Outcomes taken by the column equal those taken event by event."""
    assert by_column.last == max((event.time for event in events), default=0.0)
    for found, expected in zip(outcomes_heard(by_column), outcomes_heard(Heard.of(events)), strict=True):
        for name in found._names:
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


_SUMS = ("had", "owed", "waited", "ran")


def _exact(event: Event) -> Event:
    detail = {name: value for name, value in event.detail.items() if name not in (*_SUMS, "rho")}
    return event._replace(detail=detail)
