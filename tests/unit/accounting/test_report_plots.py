"""The charts of a report, from its rows alone: the largest, the unknown, days that are joined, units."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from slurm_fair_accounting import Period
from slurm_fair_accounting.drawing.page import COLOURS
from slurm_fair_accounting.drawing.report_plots import MOST_BARS, MOST_COLUMNS, MOST_CURVES, PLOTS
from slurm_fair_accounting.table import Report, Row
from tests.support.months import DAY, FEB_1
from tests.support.report_pages import Element, bars, curves, figures

pytestmark = pytest.mark.usefixtures("utc")

FEBRUARY = Period(FEB_1, FEB_1 + 28 * DAY)
BY_DAY = "GPU-hours by day and tenant"


def drawn(
    name: str,
    rows: Sequence[Row],
    asked: Period = FEBRUARY,
    samples: dict[str, list[float]] | None = None,
) -> Element:
    report = Report(name, name, (), tuple(rows), asked, asked, samples=samples or {})
    return ElementTree.fromstring(PLOTS[name](report))


def words(section: Element) -> str:
    return " ".join("".join(section.itertext()).split())


def tenant(name: str = "a", had: float = 3600.0, owed: float = 3600.0, rho: Any = 1.0) -> Row:
    return {"tenant": name, "had_gpu_seconds": had, "owed_gpu_seconds": owed, "rho": rho}


def treated(name: str = "a", jobs: int = 1, **columns: float | None) -> Row:
    quiet = dict.fromkeys(
        ("ltgf_job_loss_fraction", "ltgf_tenant_unfair_fraction", "ftf_static_unfair", "latency_ratio_mean",
         "latency_ratio_max"), 0.0
    )  # fmt: skip
    return {"tenant": name, "jobs": jobs, **quiet, **columns}


def used(day: float, hours: float, name: str = "a") -> Row:
    return {"tenant": name, "day": FEB_1 + day * DAY, "gpu_seconds": hours * 3600}


def waited(name: str = "a", jobs: int = 1, p50: float = 10.0, p95: float | None = 20.0) -> Row:
    return {"tenant": name, "jobs": jobs, "wait_p50_seconds": p50, "wait_p95_seconds": p95}


def ended(name: str = "a", seconds: float | None = 60.0, rho: Any = 1.0) -> Row:
    """A job; None = it lives."""
    return {
        "tenant": name,
        "submit": FEB_1,
        "end": None if seconds is None else FEB_1 + seconds,
        "rho": rho,
    }


def ticks(drawing: Element) -> list[str]:
    """The numbers under the axis."""
    texts = [text.text or "" for text in drawing.iter("text") if text.get("text-anchor") == "middle"]
    return [text for text in texts if re.fullmatch(r"[\d.e+]+", text)]


# -- tenants --------------------------------------------------------------------------------------------------


def test_of_more_tenants_than_bars_the_largest_stay_in_their_own_order() -> None:
    rows = [tenant(f"t{at:02d}", had=1.0 if at % 7 == 3 else 9e4) for at in range(MOST_BARS + 5)]
    section = drawn("tenants", rows)
    shown = [name.split(",")[0] for name in bars(figures(section)["Long-term GPU-time fairness (rho)"])]
    small = [row["tenant"] for row in rows if row["had_gpu_seconds"] == 1.0]
    assert len(shown) == MOST_BARS
    assert shown == sorted(shown)
    assert set(small) - set(shown) == set(small[-5:])
    assert f"Drawn are the {MOST_BARS} of {MOST_BARS + 5} tenants" in words(section)


def test_as_many_tenants_as_bars_are_all_drawn_and_nothing_is_said_of_a_choice() -> None:
    section = drawn("tenants", [tenant(f"t{at}") for at in range(MOST_BARS)])
    assert len(bars(figures(section)["Long-term GPU-time fairness (rho)"])) == MOST_BARS
    assert "Drawn are" not in words(section)


def test_a_tenant_without_rho_has_a_bar_of_no_length_and_a_dash() -> None:
    drawing = figures(drawn("tenants", [tenant(rho=None, owed=0.0, had=0.0)]))
    assert bars(drawing["Long-term GPU-time fairness (rho)"]) == {"a, rho: -": 0.0}
    assert ticks(drawing["GPU time had and owed"])[0] == "0"


@pytest.mark.parametrize("rho", [2.0, 2.5, float("inf")])
def test_rho_above_what_is_shown_is_drawn_at_the_edge_and_written_in_full(rho: float) -> None:
    ((said, length),) = bars(
        figures(drawn("tenants", [tenant(rho=rho)]))["Long-term GPU-time fairness (rho)"]
    ).items()
    assert (said, length) == (f"a, rho: {rho:.3f}", 640 - 130 - 90)


# -- fairness -------------------------------------------------------------------------------------------------


def test_what_is_not_known_of_fairness_is_a_dash_beside_what_is() -> None:
    drawing = figures(drawn("fairness", [treated(ftf_static_unfair=None, latency_ratio_max=4.0)]))
    assert bars(drawing["Unfairly treated"])["a, jobs with unfair FTF, static: -"] == 0
    lengths = bars(drawing["Latency ratio"])
    assert lengths["a, worst: 4.000"] > lengths["a, mean: 0.000"] == 0


def test_without_any_ratio_the_axis_still_has_numbers() -> None:
    drawing = figures(drawn("fairness", [treated(latency_ratio_mean=None, latency_ratio_max=None)]))
    assert len(ticks(drawing["Latency ratio"])) > 1


def test_of_more_tenants_than_bars_those_with_the_most_jobs_stay() -> None:
    rows = [treated(f"t{at:02d}", jobs=at) for at in range(MOST_BARS + 1)]
    shown = {name.split(",")[0] for name in bars(figures(drawn("fairness", rows))["Unfairly treated"])}
    assert shown == {row["tenant"] for row in rows[1:]}


# -- jobs -----------------------------------------------------------------------------------------------------


def test_one_tenant_has_one_curve_and_several_have_one_of_all_before_theirs() -> None:
    caption = "Completion time (JCT)"
    assert list(curves(figures(drawn("jobs", [ended(), ended()]))[caption])) == ["a"]
    several = drawn("jobs", [ended("b"), ended("a"), ended("a")])
    assert list(curves(figures(several)[caption])) == ["all tenants", "a", "b"]


def test_a_tenant_that_is_named_like_the_curve_of_all_is_not_mixed_with_it() -> None:
    rows = [ended("all tenants", 10.0), ended("all tenants", 20.0), ended("b", 30.0)]
    drawing = figures(drawn("jobs", rows))["Completion time (JCT)"]
    paths = [path for path in drawing.iter("path") if "line" in path.get("class", "")]
    points = [len(re.findall("[ML]", path.get("d", ""))) for path in paths]
    assert points == [3, 2, 1]


def test_curves_of_the_tenants_with_the_most_jobs_are_drawn_beside_that_of_all() -> None:
    rows = [ended(f"t{at:02d}") for at in range(MOST_CURVES + 3) for _ in range(at + 1)]
    section = drawn("jobs", rows)
    drawing = figures(section)["Completion time (JCT)"]
    names = list(curves(drawing))
    assert names == ["all tenants", *(f"t{at:02d}" for at in range(MOST_CURVES + 2, 2, -1))]
    looks = {path.get("class") for path in drawing.iter("path") if "line" in path.get("class", "")}
    assert len(looks) == len(names), "each has a look of its own"
    assert f"Drawn are the {MOST_CURVES} of {MOST_CURVES + 3} tenants with the most jobs" in words(section)


def test_a_job_whose_rho_is_not_known_is_in_the_curve_of_its_time_alone() -> None:
    drawing = figures(drawn("jobs", [ended(rho=None), ended(rho=0.5)]))
    assert len(curves(drawing["Completion time (JCT)"])["a"]) == 2
    assert len(curves(drawing["Long-term GPU-time fairness (rho)"])["a"]) == 1


def test_jobs_that_all_live_leave_no_curve() -> None:
    section = drawn("jobs", [ended(seconds=None)])
    assert figures(section) == {}
    assert "No job ended in this period." in words(section)


# -- waits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "unit"),
    [(110.0, "s"), (118.0, "min"), (3600.0, "min"), (8000.0, "h"), (9e5, "d")],
)
def test_percentiles_are_drawn_in_a_unit_that_reads_well(seconds: float, unit: str) -> None:
    drawing = figures(drawn("waits", [waited(p95=seconds)], samples={"a": [seconds]}))
    of_two = drawing["Median and 95th percentile of the waits"]
    assert f"waited, {unit}" in [text.text for text in of_two.iter("text")]
    lengths = bars(of_two)
    median, late = (lengths[name] for name in lengths)
    assert median == pytest.approx(late * 10 / seconds, abs=0.02)


def test_a_percentile_that_is_not_known_is_a_dash() -> None:
    drawing = figures(drawn("waits", [waited(p95=None)], samples={"a": [1.0]}))
    assert bars(drawing["Median and 95th percentile of the waits"])["a, p95: -"] == 0


def test_jobs_that_never_waited_are_counted_at_the_left_end() -> None:
    drawing = figures(drawn("waits", [waited()], samples={"a": [0.0, 0.0, 100.0]}))
    (first, second, third) = curves(drawing["Time waited"])["a"]
    assert first[0] == second[0] == 58
    assert third[0] > 58


# -- usage ----------------------------------------------------------------------------------------------------


def columns(section: Element, caption: str = BY_DAY) -> list[str]:
    return [bar.findtext("title") or "" for bar in figures(section)[caption].iter("rect")]


def test_users_of_one_tenant_share_a_column_of_a_day() -> None:
    section = drawn("usage", [used(0, 1.5), used(0, 2.5), used(3, 1)])
    assert columns(section) == ["a, 2026-02-01: 4", "a, 2026-02-04: 1"]


@pytest.mark.parametrize(("count", "others"), [(COLOURS, False), (COLOURS + 1, True)])
def test_tenants_without_a_colour_of_their_own_are_drawn_together(count: int, others: bool) -> None:
    section = drawn("usage", [used(0, count - at, f"t{at:02d}") for at in range(count)])
    names = [said.split(",")[0] for said in columns(section)]
    assert len(names) == COLOURS
    assert [name for name in names if "others" in name] == ["2 others"] * others
    hours = sum(float(said.split(": ")[1]) for said in columns(section))
    assert hours == count * (count + 1) / 2


@pytest.mark.parametrize(
    ("days", "each"), [(MOST_COLUMNS, 1), (MOST_COLUMNS + 1, 2), (2 * MOST_COLUMNS + 1, 3)]
)
def test_days_are_joined_where_there_are_more_than_columns(days: int, each: int) -> None:
    asked = Period(FEB_1, FEB_1 + days * DAY)
    section = drawn("usage", [used(at, 1) for at in range(days)], asked)
    caption = BY_DAY if each == 1 else f"GPU-hours by {each} days and tenant"
    heights = [float(said.split(": ")[1]) for said in columns(section, caption)]
    assert len(heights) <= MOST_COLUMNS
    assert heights[0] == each
    assert sum(heights) == days


@pytest.mark.parametrize("days", [1, 2, 28, 300])
def test_dates_under_the_columns_leave_each_other_room(days: int) -> None:
    asked = Period(FEB_1, FEB_1 + days * DAY)
    drawing = figures(drawn("usage", [used(0, 1)], asked))[BY_DAY]
    dates = [text for text in drawing.iter("text") if re.fullmatch(r"\d{4}-\d\d-\d\d", text.text or "")]
    places = [float(text.get("x", "nan")) for text in dates]
    assert 1 <= len(dates) <= 6
    assert dates[0].text == "2026-02-01"
    assert np.diff(places).min(initial=99.0) >= (640 - 58 - 34) / 6 - 0.2


def test_a_day_that_is_cut_by_the_period_is_as_narrow_as_it_was_long() -> None:
    asked = Period(FEB_1 + DAY / 2, FEB_1 + 2 * DAY)
    rows = [{**used(0, 1), "day": asked.start}, used(1, 1)]
    half, whole = bars(figures(drawn("usage", rows, asked))[BY_DAY]).values()
    assert half == pytest.approx(whole / 2, abs=0.02)


# -- leases ---------------------------------------------------------------------------------------------------


def lease(ended_by: str, start: float | None = 0.0, end: float | None = 60.0) -> Row:
    times = {"start": None if start is None else FEB_1 + start, "end": None if end is None else FEB_1 + end}
    rest = {"tenant": "a", "job": "7", "lease": 1, "gpus": 1, "nodes": "n1", "granted": FEB_1}
    return {**rest, **times, "ended_by": ended_by}


def test_ends_of_leases_are_counted_the_most_usual_first() -> None:
    rows = [lease("renewed"), lease("revoked"), lease("revoked"), lease("", end=None)]
    drawing = figures(drawn("leases", rows))
    assert list(bars(drawing["Ends of leases"])) == [
        "revoked, leases: 2",
        "renewed, leases: 1",
        "not ended, leases: 1",
    ]
    assert len(curves(drawing["Time that leases were held"])["a"]) == 3


def test_without_a_lease_that_was_held_there_is_no_curve_of_it() -> None:
    drawing = figures(drawn("leases", [lease("takenback", start=None), lease("", end=None)]))
    assert set(drawing) == {"Ends of leases", "Leases of each job"}
