"""Single leases on a line of time: one lane for each job, one bar for each lease."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from slurm_fair_accounting import Period
from slurm_fair_accounting.drawing.lease_lanes import MOST_JOBS, MOST_LEASES, lanes_of
from slurm_fair_accounting.table import Report, Row
from tests.support.months import FEB_1

pytestmark = pytest.mark.usefixtures("utc")

ASKED = Period(FEB_1, FEB_1 + 3600.0)
PER_SECOND = (1160 - 170 - 24) / 3600.0


def lease(job: str = "7", start: float | None = 0.0, end: float | None = 3600.0, **columns: Any) -> Row:
    """A lease of that job; its times count from the beginning of the period."""
    quiet = {"tenant": "a", "lease": 1, "gpus": 2, "nodes": "n1", "ended_by": "renewed", "granted": FEB_1}
    times = {"start": None if start is None else FEB_1 + start, "end": None if end is None else FEB_1 + end}
    return {**quiet, **times, "job": job, **columns}


def lanes(*rows: Row) -> str:
    return lanes_of(Report("leases", "Leases", (), rows, ASKED, ASKED))


def drawing(*rows: Row) -> ElementTree.Element:
    return ElementTree.fromstring(f"<div>{lanes(*rows)}</div>")


def bars(*rows: Row) -> list[tuple[float, float, int]]:
    """Seconds from the left edge, seconds of length, and lane of each."""
    return [
        (
            round((float(bar.get("x", "nan")) - 170) / PER_SECOND, -1),
            round(float(bar.get("width", "nan")) / PER_SECOND, -1),
            int(float(bar.get("y", "nan")) // 18),
        )
        for bar in drawing(*rows).iter("rect")
    ]


def names(*rows: Row) -> list[str]:
    """The lanes from top to bottom."""
    texts = [text.text or "" for text in drawing(*rows).iter("text") if text.get("x") == "4.0"]
    return texts[-len({(row["tenant"], row["job"]) for row in rows}) :]


def test_the_leases_of_one_job_share_a_lane() -> None:
    assert bars(lease(end=1800.0), lease(start=1800.0), lease("8")) == [
        (0, 1800, 0),
        (1800, 1800, 0),
        (0, 3600, 1),
    ]


def test_the_lanes_of_one_tenant_lie_beside_each_other_in_the_order_of_the_report() -> None:
    rows = (lease("9", tenant="b"), lease("3", tenant="a"), lease("5", tenant="b"), lease("4", tenant="a"))
    assert names(*rows) == ["3 a", "4 a", "9 b", "5 b"]


def test_one_number_under_two_tenants_is_two_lanes() -> None:
    assert names(lease("7", tenant="a"), lease("7", tenant="b")) == ["7 a", "7 b"]


def test_a_lease_that_never_started_is_drawn_from_its_grant() -> None:
    assert bars(lease(start=None, granted=FEB_1 + 600), lease("8")) == [(600, 3000, 0), (0, 3600, 1)]


def test_a_lease_that_has_not_ended_reaches_to_the_end_of_the_period_and_the_note_says_so() -> None:
    assert bars(lease(end=None, start=1200.0), lease("8")) == [(1200, 2400, 0), (0, 3600, 1)]
    note = "has not ended reaches to the end of the period"
    assert note in lanes(lease(end=None))
    assert note not in lanes(lease())


def test_a_lease_that_began_behind_the_period_and_has_not_ended_has_no_length() -> None:
    assert "(00:00:00), not ended" in lanes(lease(start=7200.0, end=None, ended_by=""), lease("8"))


@pytest.mark.parametrize("said", ["", "a word of a later version", "=1+1"])
def test_an_end_that_is_none_of_ours_counts_as_not_ended(said: str) -> None:
    drawn = drawing(lease(ended_by=said))
    assert [item.text or "".join(item.itertext()) for item in drawn.iter("li")] == ["not ended"]


def test_the_legend_names_each_way_that_is_drawn_once_in_its_colour() -> None:
    drawn = drawing(lease(), lease("8", ended_by="revoked"), lease("9", ended_by="revoked"))
    keys = {"".join(item.itertext()): item for item in drawn.iter("li")}
    assert list(keys) == ["renewed", "revoked"]
    looks = {name: key.find(".//path") for name, key in keys.items()}
    colours = {(bar.get("class") or "")[-1] for bar in drawn.iter("rect")}
    assert colours == {(path.get("class") or "")[6] for path in looks.values() if path is not None}


def test_the_words_of_a_bar_say_whose_what_where_and_how_long() -> None:
    (title,) = (title.text for title in drawing(lease(lease=3, nodes="n1,n2")).iter("title"))
    assert title == (
        "7, a, lease 3, 2 GPUs on n1,n2, 2026-02-01T00:00:00 to 2026-02-01T01:00:00 (01:00:00), renewed"
    )


def test_a_moment_of_a_lease_can_be_drawn() -> None:
    text = lanes(lease(end=0.0))
    assert re.findall("nan|inf", text) == []
    assert "time since 2026-02-01T00:00:00" in text
    assert re.findall(r">[\d.]+e-\d+<", text) == [], "an axis of no length has marks that nobody can read"


def test_long_and_hostile_names_are_cut_and_shown_as_text() -> None:
    (name,) = names(lease(tenant="<b>" + "x" * 500))
    assert (len(name), name[:6], name[-1]) == (24, "7 <b>x", "…")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            [lease(str(job)) for job in range(MOST_JOBS + 1)],
            f"{MOST_JOBS + 1} jobs with {MOST_JOBS + 1} leases",
        ),
        ([lease()] * (MOST_LEASES + 1), f"1 jobs with {MOST_LEASES + 1} leases"),
    ],
    ids=["jobs", "leases"],
)
def test_too_many_are_counted_and_the_reader_is_told_how_to_choose(rows: list[Row], words: str) -> None:
    text = lanes(*rows)
    assert "<svg" not in text
    assert words in text
    assert "Choose by --tenant or --user, or a shorter period" in text
    assert "<svg" in lanes(*rows[:-1])
