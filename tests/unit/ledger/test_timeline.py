"""A timeline cuts a window at each instant at which somebody's demand, weights or quota change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.ledger import LedgerSettings
from slurm_fair.ledger.charging.timeline import (
    ActiveSpans,
    ClusterInWindow,
    Timeline,
    constant,
    timeline,
    totals,
)
from slurm_fair.model.columns import Ints

NEVER, ALWAYS = (np.inf, -np.inf), (-np.inf, np.inf)
SINCE, UNTIL = 10.0, 20.0
FORGETS_AT_ONCE = LedgerSettings(tenant_memory_seconds=0.0)


class Claim(NamedTuple):
    """One job of the window."""

    tenant: int
    gpus: int
    span: tuple[float, float]
    weight: float = 1.0

    def active(self, at: float) -> bool:
        return self.span[0] <= at < self.span[1]


def spans(claims: Sequence[Claim]) -> ActiveSpans:
    return ActiveSpans(
        tenant=np.array([each.tenant for each in claims], dtype=np.int64),
        gpus=np.array([each.gpus for each in claims], dtype=np.int64),
        weight=np.array([each.weight for each in claims], dtype=np.float64),
        since=np.array([each.span[0] for each in claims], dtype=np.float64),
        until=np.array([each.span[1] for each in claims], dtype=np.float64),
    )


def lined(
    claims: Sequence[Claim],
    weights: Sequence[float] = (1.0,),
    last: Sequence[float] = (),
    settings: LedgerSettings = FORGETS_AT_ONCE,
    until: float = UNTIL,
    changing: Ints | None = None,
) -> Timeline:
    """The timeline of 12 GPUs in these ten seconds."""
    last_job = np.array(last or [-np.inf] * len(weights))
    cluster = ClusterInWindow(12.0, np.array(weights), last_job)
    return timeline(spans(claims), cluster, settings, SINCE, until, changing)


def segments(line: Timeline, tenant: int, *columns: str) -> list[tuple[Any, ...]]:
    """The segments of one tenant that are longer than nothing."""
    part = slice(int(line.first[tenant]), int(line.first[tenant + 1]))
    assert line.tenant[part].tolist() == [tenant] * (part.stop - part.start)
    rows = zip(*(getattr(line, name)[part].tolist() for name in ("seconds", *columns)), strict=True)
    return [row for row in rows if row[0] > 0]


def test_where_nothing_changes_each_tenant_has_one_segment() -> None:
    line = lined([Claim(1, 3, ALWAYS, 2.0), Claim(1, 4, (SINCE, UNTIL)), Claim(0, 5, ALWAYS)], (1.0, 3.0))
    assert line.uncut
    assert segments(line, 0, "demand", "weight_sum", "quota") == [(10.0, 5.0, 1.0, 3.0)]
    assert segments(line, 1, "demand", "weight_sum", "quota") == [(10.0, 7.0, 3.0, 9.0)]
    assert (line.first.tolist(), line.odd.tolist()) == ([0, 1, 2], [])


def test_demand_and_weights_follow_who_comes_and_who_goes_in_any_order_of_rows() -> None:
    claims = [
        Claim(0, 2, (16.0, 18.0), 5.0), Claim(0, 1, ALWAYS), Claim(0, 4, (-np.inf, 13.0), 2.0),
        Claim(0, 8, (13.0, np.inf), 3.0), Claim(0, 99, NEVER, 9.0), Claim(0, 99, (3.0, 10.0)),
        Claim(0, 99, (20.0, 30.0)),
    ]  # fmt: skip
    line = lined(claims)
    assert not line.uncut
    assert segments(line, 0, "demand", "weight_sum") == [
        (3.0, 5.0, 3.0), (3.0, 9.0, 4.0), (2.0, 11.0, 9.0), (2.0, 9.0, 4.0),
    ]  # fmt: skip
    assert sorted(line.odd.tolist()) == [0, 2, 3, 4, 5, 6]
    lasted = {
        int(row): line.seconds[low:high].sum()
        for row, low, high in zip(line.odd, line.odd_from, line.odd_to, strict=True)
    }
    assert lasted == {0: 2.0, 2: 3.0, 3: 7.0, 4: 0.0, 5: 0.0, 6: 0.0}


def test_a_tenant_that_comes_takes_from_the_quotas_of_others_from_then_on_until_it_is_forgotten() -> None:
    claims = [Claim(0, 9, ALWAYS), Claim(1, 9, (12.0, 14.0), 1.0)]
    line = lined(claims, (1.0, 3.0, 7.0), settings=LedgerSettings(tenant_memory_seconds=2.5))
    assert segments(line, 0, "quota") == [(2.0, 12.0), (4.5, 3.0), (3.5, 12.0)]
    assert segments(line, 1, "quota", "demand") == [
        (2.0, 0.0, 0.0), (2.0, 9.0, 9.0), (2.5, 9.0, 0.0), (3.5, 0.0, 0.0),
    ]  # fmt: skip
    assert {quota for _, quota in segments(line, 2, "quota")} == {0.0}


def test_a_tenant_is_remembered_from_before_the_window() -> None:
    seconds = LedgerSettings(tenant_memory_seconds=5.0)
    for last, quotas in ((8.0, [(3.0, 6.0), (7.0, 12.0)]), (5.0, [(10.0, 12.0)]), (15.0, [(10.0, 6.0)])):
        line = lined([Claim(0, 1, ALWAYS)], (1.0, 1.0), (-np.inf, last), seconds)
        merged: list[tuple[float, float]] = []
        for length, quota in segments(line, 0, "quota"):
            same = merged and merged[-1][1] == quota
            merged = [*merged[:-1], (merged[-1][0] + length, quota)] if same else [*merged, (length, quota)]
        assert merged == quotas


def test_spans_of_one_tenant_that_overlap_make_it_count_once() -> None:
    claims = [
        Claim(0, 1, ALWAYS),
        Claim(1, 1, (12.0, 16.0)),
        Claim(1, 1, (14.0, 18.0)),
        Claim(1, 1, (18.0, 19.0)),
    ]
    line = lined(claims, (1.0, 1.0))
    assert sum(length for length, quota in segments(line, 0, "quota") if quota == 6.0) == 7.0
    assert sum(length for length, quota in segments(line, 0, "quota") if quota == 12.0) == 3.0


def test_where_everyone_counts_no_tenant_comes_or_goes() -> None:
    settings = LedgerSettings(tenant_memory_seconds=0.0, everyone_counts=True)
    line = lined([Claim(0, 5, (12.0, 13.0))], (1.0, 2.0), settings=settings)
    assert {quota for _, quota in segments(line, 0, "quota")} == {4.0}
    assert segments(line, 1, "quota", "demand") == [(10.0, 8.0, 0.0)]


def test_nobody_is_owed_anything_where_there_is_nobody() -> None:
    line = lined([], (1.0, 2.0))
    assert [segments(line, at, "quota", "demand", "weight_sum") for at in (0, 1)] == [
        [(10.0, 0.0, 0.0, 0.0)]
    ] * 2
    empty = timeline(
        spans([]), ClusterInWindow(12.0, np.zeros(0), np.zeros(0)), FORGETS_AT_ONCE, SINCE, UNTIL, None
    )
    assert (empty.seconds.tolist(), empty.first.tolist()) == ([], [0])


def test_a_window_of_no_length_knows_the_shares_at_its_instant() -> None:
    claims = [Claim(0, 1, ALWAYS), Claim(0, 2, (SINCE, np.inf)), Claim(0, 4, (SINCE + 1, np.inf))]
    line = lined(claims, settings=LedgerSettings(), until=SINCE)
    assert line.seconds.sum() == 0.0
    assert line.quota[line.first[0]] == 12.0


def test_of_the_claims_that_may_change_those_that_do_not_are_as_others() -> None:
    claims = [Claim(0, 1, ALWAYS), Claim(0, 2, ALWAYS), Claim(0, 4, (12.0, np.inf)), Claim(0, 8, ALWAYS)]
    told, found = (lined(claims, changing=changing) for changing in (np.array([1, 2]), None))
    assert told.odd.tolist() == found.odd.tolist() == [2]
    assert segments(told, 0, "demand") == segments(found, 0, "demand") == [(2.0, 11.0), (8.0, 15.0)]
    assert lined(claims[:2], changing=np.array([0])).uncut


def test_values_of_a_group_are_summed_and_a_group_without_any_has_nothing() -> None:
    assert totals(np.array([2, 0, 2]), np.array([1, 5, 3]), 4).tolist() == [5.0, 0.0, 4.0, 0.0]
    assert totals(np.zeros(0, dtype=np.int64), np.zeros(0), 2).tolist() == [0.0, 0.0]
    assert totals(np.array([0]), np.array([3]), 1).dtype == np.float64
    assert constant(3, 2.5).tolist() == [2.5, 2.5, 2.5]
    assert constant(0, 1.0).size == 0


instants = st.integers(6, 24).map(float)
lengths = st.integers(1, 12).map(float)
some_spans = st.one_of(
    st.just(NEVER),
    st.just(ALWAYS),
    st.builds(lambda at: (-np.inf, at), instants),
    st.builds(lambda at, length: (at, at + length), instants, lengths),
    st.builds(lambda at: (at, np.inf), instants),
)
some_claims = st.builds(
    Claim, st.integers(0, 2), st.integers(1, 8), some_spans, st.sampled_from([0.0, 1.0, 2.0])
)


@given(
    claims=st.lists(some_claims, max_size=7),
    last=st.lists(st.sampled_from([-np.inf, 3.0, 8.0, 10.0]), min_size=3, max_size=3),
    weights=st.lists(st.sampled_from([0.0, 1.0, 3.0]), min_size=3, max_size=3),
    memory=st.integers(0, 8).map(float),
)
def test_at_any_instant_the_segments_say_what_is_so(
    claims: list[Claim], last: list[float], weights: list[float], memory: float
) -> None:
    """Instants between whole seconds, at which nothing ever changes."""
    line = lined(claims, weights, last, LedgerSettings(tenant_memory_seconds=memory))
    odd = dict(zip(line.odd.tolist(), zip(line.odd_from, line.odd_to, strict=True), strict=True))
    for tenant in range(3):
        part = line.seconds[line.first[tenant] : line.first[tenant + 1]]
        assert part.sum() == pytest.approx(UNTIL - SINCE)
        assert (part >= 0).all()
    for instant in np.arange(SINCE + 0.5, UNTIL):
        counts = [
            last[tenant] + memory > instant
            or any(
                each.tenant == tenant and each.span[0] <= instant < each.span[1] + memory for each in claims
            )
            for tenant in range(3)
        ]
        whole = sum(weight for weight, here in zip(weights, counts, strict=True) if here)
        for tenant in range(3):
            first, last_row = line.first[tenant], line.first[tenant + 1]
            begins = SINCE + np.cumsum(line.seconds[first:last_row]) - line.seconds[first:last_row]
            at = int(first + np.flatnonzero(begins <= instant)[-1])
            mine = [(row, each) for row, each in enumerate(claims) if each.tenant == tenant]
            active = [(row, each) for row, each in mine if each.active(instant)]
            assert line.demand[at] == sum(each.gpus for _, each in active)
            assert line.weight_sum[at] == pytest.approx(sum(each.weight for _, each in active))
            owed = 12.0 * weights[tenant] / whole if counts[tenant] and whole else 0.0
            assert line.quota[at] == pytest.approx(owed)
            for row, each in mine:
                low, high = odd.get(row, (first, last_row))
                assert (low <= at < high) == each.active(instant)
