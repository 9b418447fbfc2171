"""`report --html`: one page that stands alone, whose table and drawings say what --json says."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slurm_fair.model import Event
from slurm_fair_accounting import REPORTS, Choice, EventFile, Period
from slurm_fair_accounting.drawing.lease_lanes import MOST_JOBS
from slurm_fair_accounting.drawing.report_page import MOST_ROWS
from slurm_fair_accounting.drawing.report_plots import MOST_BARS, MOST_COLUMNS, PLOTS
from tests.support import months
from tests.support.months import DAY, FEB_1, MAR_1, NOW, T
from tests.support.report_pages import WHOLE, Element, bars, called, curves, ended, figures, page, rows, run

HOSTILE = '<b>"x" & \x1b]0;</b>'
SAFE = '<b>"x" & ?]0;</b>'
_PLACES = ("d", "x", "y", "width", "height", "viewBox")


pytestmark = pytest.mark.usefixtures("utc")


# What it says


def test_every_report_has_plots() -> None:
    assert PLOTS.keys() == REPORTS.keys()


@pytest.mark.parametrize("name", REPORTS)
def test_a_page_stands_alone_in_light_and_dark(name: str, tmp_path: Path) -> None:
    whole = page(tmp_path, name)
    text = (tmp_path / "page.html").read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert re.findall(r"https?:|//|url\(|@import", text) == []
    assert {part.tag for part in whole.iter()} & {"script", "link", "img", "iframe", "object", "use"} == set()
    attributes = {key for part in whole.iter() for key in part.attrib}
    assert [key for key in attributes if key in ("src", "href", "style") or key.startswith("on")] == []
    assert "prefers-color-scheme: dark" in text
    assert whole.findtext("head/title") == whole.findtext("body/h1")
    assert "2026-02-01T00:00:00 to 2026-03-10T12:00:00" in (whole.findtext("body/p") or "")
    drawn = figures(whole)
    assert len(drawn) >= 2
    style = whole.findtext("head/style") or ""
    for drawing in drawn.values():
        looks = {look for part in drawing.iter() for look in part.get("class", "").split()} - {"d0"}
        assert [look for look in looks if f".{look} {{" not in style] == []


@pytest.mark.parametrize("name", REPORTS)
def test_its_table_holds_the_numbers_of_the_json(name: str, tmp_path: Path) -> None:
    table = next(page(tmp_path, name).iter("table"))
    titles, *_ = run(name, *WHOLE, "-P").stdout.splitlines()
    assert [head.text for head in table.iter("th")] == titles.split("|")
    lines = [[cell.text or "" for cell in line.iter("td")] for line in table.iter("tr")][1:]
    told = rows(name)
    assert len(lines) == len(told) > 0
    for line, row in zip(lines, told, strict=True):
        for text, (key, value) in zip(line, row.items(), strict=True):
            assert read(text, key, value) == value


_PARTS = ("_fraction", "_unfair")


def read(text: str, key: str, value: Any) -> Any:
    """The value of a cell, in the units of the JSON; numbers to as many places as are written."""
    if text == "-" or (text == "inf" and key == "rho"):
        return "" if value == "" else None
    if isinstance(value, str):
        return value if text == safe_words(value) else text
    if re.fullmatch(r"[\d-]+T[\d:]+|\d{4}-\d\d-\d\d", text):
        said = np.datetime64(text, "s").astype(float)
        return value if said == int(value) else said
    if match := re.fullmatch(r"(?:(\d+)-)?(\d\d):(\d\d):(\d\d)", text):
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        said = days * DAY + hours * 3600 + minutes * 60 + seconds
        return value if abs(said - value) <= 0.5 else said
    said = float(text) * (3600 if key.endswith("gpu_seconds") else 0.01 if key.endswith(_PARTS) else 1)
    return value if abs(said - value) <= (18.0 if key.endswith("gpu_seconds") else 0.0005) else said


def safe_words(words: str) -> str:
    """Words of the JSON as a page shows them."""
    return "".join(char if char.isprintable() else "?" for char in words)


def test_tenants_are_drawn_as_long_as_their_numbers(tmp_path: Path) -> None:
    february = ("-S", "2026-02-01", "-E", "2026-03-01")
    drawn, told = figures(page(tmp_path, "tenants", *february)), rows("tenants", *february)
    assert {row["tenant"]: row["rho"] for row in told} == {"chem": 0.5, "phys": 1.0}
    fair = drawn["Long-term GPU-time fairness (rho)"]
    lengths = bars(fair)
    assert lengths["phys, rho: 1.000"] == pytest.approx(2 * lengths["chem, rho: 0.500"])
    (mark,) = (path.get("d", "") for path in fair.iter("path") if path.get("class") == "limit")
    left = float(next(bar.get("x", "") for bar in fair.iter("rect")))
    assert float(mark[1:].split()[0]) == pytest.approx(left + lengths["phys, rho: 1.000"], abs=0.1)
    hours = bars(drawn["GPU time had and owed"])
    wanted = {
        f"{row['tenant']}, {name}: {row[f'{name}_gpu_seconds'] / 3600:.2f}": row[f"{name}_gpu_seconds"]
        for row in told
        for name in ("had", "owed")
    }
    assert hours.keys() == wanted.keys()
    for measured, values in (
        (hours, {words: wanted[words] / 3600 for words in wanted}),
        (lengths, {"phys, rho: 1.000": 1.0, "chem, rho: 0.500": 0.5}),
    ):
        drawing = fair if measured is lengths else drawn["GPU time had and owed"]
        (low, left), *_, (high, right) = marks(drawing)
        assert low == 0
        for words, value in values.items():
            assert measured[words] == pytest.approx(value / high * (right - left), abs=0.1)


def marks(drawing: Element) -> list[tuple[float, float]]:
    """The numbers under an axis and where they stand."""
    texts = [text for text in drawing.iter("text") if text.get("text-anchor") == "middle"]
    numbers = [text for text in texts if re.fullmatch(r"[\d.e+]+", text.text or "")]
    return [(float(text.text or ""), float(text.get("x", ""))) for text in numbers]


def test_a_rho_beyond_the_drawing_ends_with_it_and_says_how_much(tmp_path: Path) -> None:
    events = [
        months.event(T, "finished", str(job), user=user, had=had, owed=owed, waited=0.0, ran=1.0)
        for job, user, had, owed in ((1, "bob", 9.0, 0.0), (2, "ann", 4.0, 2.0))
    ]
    drawn = figures(page(tmp_path, "tenants", source=EventFile(events, [])))
    lengths = bars(drawn["Long-term GPU-time fairness (rho)"])
    assert lengths["chem, rho: inf"] == lengths["phys, rho: 2.000"] > 0


def test_jobs_are_drawn_as_the_parts_that_had_at_most_so_much(tmp_path: Path) -> None:
    source = ended(200, tenants=2)
    drawn = figures(page(tmp_path, "jobs", source=source))
    told = rows("jobs", source=source)
    for caption, values in (
        ("Completion time (JCT)", np.log([row["end"] - row["submit"] for row in told])),
        ("Long-term GPU-time fairness (rho)", np.array([row["rho"] for row in told])),
    ):
        lines = curves(drawn[caption])
        assert {name: len(points) for name, points in lines.items()} == {
            "all tenants": 200,
            "t000": 100,
            "t001": 100,
        }
        x, y = np.array(lines["all tenants"]).T
        assert np.corrcoef(x, np.sort(values))[0, 1] > 0.99999
        assert np.ptp(np.diff(y)) <= 0.2 + 1e-9  # every job is one step; a tenth is what a path can say


def test_jobs_that_live_are_in_the_table_and_not_in_the_curves(tmp_path: Path) -> None:
    whole = page(tmp_path, "jobs")
    assert [row["state"] for row in rows("jobs")].count("RUNNING") == 1
    assert "the part of the 2 ended jobs with no more than it" in "".join(whole.itertext())
    assert len(curves(figures(whole)["Completion time (JCT)"])["all tenants"]) == 2


def test_usage_is_drawn_as_columns_of_days(tmp_path: Path) -> None:
    drawn = figures(page(tmp_path, "usage"))
    told: dict[tuple[str, str], float] = defaultdict(float)
    for row in rows("usage"):
        told[row["tenant"], time.strftime("%Y-%m-%d", time.gmtime(row["day"]))] += row["gpu_seconds"] / 3600
    by_day = drawn["GPU-hours by day and tenant"]
    heights = {bar.findtext("title") or "": float(bar.get("height", "nan")) for bar in by_day.iter("rect")}
    assert len(heights) == len(told) > 10
    assert heights.keys() == {f"{tenant}, {day}: {hours:.6g}" for (tenant, day), hours in told.items()}
    scale = sum(heights.values()) / sum(told.values())
    for words, height in heights.items():
        assert height == pytest.approx(scale * float(words.split(": ")[1]), abs=0.02)
    places = [(float(bar.get("x", "")), float(bar.get("width", ""))) for bar in by_day.iter("rect")]
    assert max(width for _, width in places) == pytest.approx(548 * DAY / (NOW - FEB_1), abs=0.02)
    assert max(x + width for x, width in places) == pytest.approx(606, abs=0.02)
    totals = bars(drawn["GPU-hours in the period"])
    chem = sum(hours for (tenant, _), hours in told.items() if tenant == "chem")
    assert f"chem, used: {chem:.2f}" in totals


def test_many_days_and_many_tenants_are_joined_and_nothing_is_lost(tmp_path: Path) -> None:
    years = ("-S", "2024-01-01", "-E", "2026-03-01")
    source = ended(60, tenants=15)
    drawn = figures(page(tmp_path, "usage", *years, source=source))
    (columns,) = (drawing for caption, drawing in drawn.items() if "by 3 days" in caption)
    words = [bar.findtext("title") or "" for bar in columns.iter("rect")]
    assert len({text.split(",")[0] for text in words}) == 10
    assert any(text.startswith("6 others, 2026-02-") for text in words)
    assert sum(float(text.split(": ")[1]) for text in words) == pytest.approx(1.0, rel=1e-4)
    assert MOST_COLUMNS == 366


def test_waits_are_drawn_from_every_job(tmp_path: Path) -> None:
    source = ended(101)
    drawn = figures(page(tmp_path, "waits", source=source))
    (row,) = rows("waits", source=source)
    ((name, points),) = curves(drawn["Time waited"]).items()
    assert (name, len(points)) == ("t000", row["jobs"])
    x, _ = np.array(points).T
    assert np.corrcoef(x, np.log(np.arange(1, 102)))[0, 1] > 0.99999
    assert bars(drawn["Median and 95th percentile of the waits"]).keys() == {
        "t000, median: 00:00:51",
        "t000, p95: 00:01:36",
    }
    assert (row["wait_p50_seconds"], row["wait_p95_seconds"]) == (51.0, 96.0)


def test_leases_are_drawn_where_and_as_long_as_they_were(tmp_path: Path) -> None:
    drawn, told = figures(page(tmp_path, "leases")), rows("leases")
    lanes = drawn["Leases of each job"]
    boxes = list(lanes.iter("rect"))
    assert len(boxes) == len(told) == 6
    names = [text.text for text in lanes.iter("text")][-3:]
    assert names == ["6_5 chem", "40 chem", "17 phys"]
    first = min(row["start"] or row["granted"] for row in told)
    per_second = (1160 - 170 - 24) / (30 * DAY)  # 27.6 days end at the mark after them
    for box, row in zip(boxes, told, strict=True):
        start, end = row["start"] or row["granted"], row["end"] or NOW
        x, width, y = (float(box.get(key, "nan")) for key in ("x", "width", "y"))
        assert x == pytest.approx(170 + (start - first) * per_second, abs=0.06)
        assert width == pytest.approx(max((end - start) * per_second, 0.2), abs=0.06)
        assert names[int(y // 18)] == f"{row['job']} {row['tenant']}"
        assert (box.findtext("title") or "").endswith(row["ended_by"] or "not ended")
    counts = {words.split(": ")[0]: words.split(": ")[1] for words in bars(drawn["Ends of leases"])}
    ways = [row["ended_by"] or "not ended" for row in told]
    assert counts == {f"{way}, leases": str(ways.count(way)) for way in ways}
    lengths = curves(drawn["Time that leases were held"])["all tenants"]
    assert len(lengths) == len([row for row in told if row["start"] and row["end"]])


# How much of it


def test_leases_of_many_jobs_are_counted_and_not_drawn_one_by_one(tmp_path: Path) -> None:
    whole = page(tmp_path, "leases", source=ended(MOST_JOBS + 1))
    assert set(figures(whole)) == {"Ends of leases", "Time that leases were held"}
    assert f"the report has {MOST_JOBS + 1} jobs with {MOST_JOBS + 1} leases" in "".join(whole.itertext())
    assert "Leases of each job" in figures(page(tmp_path, "leases", source=ended(MOST_JOBS)))


@pytest.mark.parametrize("name", ["tenants", "usage", "waits"])
def test_of_many_tenants_the_largest_are_drawn_and_the_page_says_so(name: str, tmp_path: Path) -> None:
    whole = page(tmp_path, name, source=ended(120, tenants=60))
    for drawing in figures(whole).values():
        assert len({words.split(",")[0] for words in bars(drawing)}) <= MOST_BARS
        assert len(curves(drawing)) <= 10
    assert re.search(r"Drawn are the \d+ of 60 tenants", "".join(whole.itertext()))


def test_a_long_table_is_cut_and_says_where_the_rest_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurm_fair_accounting.drawing.report_page.MOST_ROWS", 10)
    whole = page(tmp_path, "jobs", source=ended(30))
    assert len(list(whole.iter("tr"))) == 11
    assert "The first 10 of 30 rows" in "".join(whole.itertext())
    assert len(curves(figures(whole)["Completion time (JCT)"])["t000"]) == 30
    assert MOST_ROWS >= 1000


@pytest.mark.parametrize("name", REPORTS)
def test_an_empty_report_is_a_page_that_says_so(name: str, tmp_path: Path) -> None:
    whole = page(tmp_path, name, source=EventFile([], []))
    assert figures(whole) == {}
    assert re.search(r"(No|Nothing) .* in this period\.", "".join(whole.itertext()))
    assert "0 rows" in "".join(whole.itertext())


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("events", [months.lives(), months.hostile()], ids=["lives", "never ran"])
def test_a_page_of_one_job_can_be_drawn(name: str, events: list[Event], tmp_path: Path) -> None:
    whole = page(tmp_path, name, source=EventFile(events, []))
    assert figures(whole) or "in this period" in "".join(whole.itertext())
    places = [value for part in whole.iter() for key, value in part.items() if key in _PLACES]
    assert [value for value in places if "nan" in value or "inf" in value] == []


@pytest.mark.parametrize("name", REPORTS)
def test_foreign_names_reach_a_page_only_as_text(name: str, tmp_path: Path) -> None:
    whole = page(tmp_path, name, source=called(HOSTILE))
    text = (tmp_path / "page.html").read_text()
    assert "<b>" not in text
    assert [char for char in text if not char.isprintable() and char != "\n"] == []
    cells = [cell.text or "" for cell in whole.iter("td")]
    assert f"{SAFE}phys" in cells
    titles = [title.text or "" for title in whole.iter("title")]
    assert any(f"{SAFE}phys" in title for title in titles)


def test_a_report_keeps_the_waits_that_its_curves_are_of() -> None:
    report = REPORTS["waits"](ended(5, tenants=2), Period(FEB_1, MAR_1), Choice())
    assert {tenant: list(waits) for tenant, waits in report.samples.items()} == {
        "t000": [2.0, 4.0],
        "t001": [1.0, 3.0, 5.0],
    }
