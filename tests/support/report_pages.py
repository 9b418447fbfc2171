"""Pages of reports and what stands in them, for tests of `report --html`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from click.testing import CliRunner, Result

from slurm_fair.model import Event
from slurm_fair.model.ids import parse_label
from slurm_fair_accounting import EventFile, JournalReader, build_report_group
from tests.support import months
from tests.support.months import NOW, T

WHOLE = ("--start", "2026-02-01", "--end", "now")
Element = ElementTree.Element


def run(*args: str, source: JournalReader | None = None) -> Result:
    """A report at the end of the small month, of it or of another source."""
    group = build_report_group(lambda context: source or months.Month(), lambda: NOW)
    return CliRunner().invoke(group, args, catch_exceptions=False)


def page(folder: Path, name: str, *args: str, source: JournalReader | None = None) -> Element:
    """The page of a report, read as XML."""
    path = folder / "page.html"
    result = run(name, *(args or WHOLE), "--html", str(path), source=source)
    assert result.exit_code == 0
    assert re.fullmatch(r"(note: nothing in this period; .*\n)?", result.stderr)
    return ElementTree.fromstring(path.read_text(encoding="utf-8"))


def rows(name: str, *args: str, source: JournalReader | None = None) -> list[dict[str, Any]]:
    """The rows of --json of the same, its total last."""
    document = json.loads(run(name, *(args or WHOLE), "--json", source=source).stdout)
    return [*document["rows"], *([document["total"]] if "total" in document else [])]


def figures(whole: Element) -> dict[str, Element]:
    """The drawings by their captions."""
    found = {}
    for figure in whole.iter("figure"):
        (drawing,) = (svg for svg in figure.iter("svg") if svg.get("role") == "img")
        caption = figure.findtext("figcaption") or ""
        assert drawing.get("aria-label") == caption
        found[caption] = drawing
    return found


def bars(drawing: Element) -> dict[str, float]:
    """The lengths of bars by their words."""
    return {bar.findtext("title") or "": float(bar.get("width", "nan")) for bar in drawing.iter("rect")}


def curves(drawing: Element) -> dict[str, list[tuple[float, float]]]:
    """The points of curves by their names."""
    return {
        path.findtext("title") or "": [
            (float(x), float(y)) for x, y in re.findall(r"[ML](\S+?) ([\d.]+)", path.get("d", ""))
        ]
        for path in drawing.iter("path")
        if "line" in path.get("class", "")
    }


def ended(count: int, tenants: int = 1, first: float = T) -> EventFile:
    """Jobs that waited as many seconds as their number says, ran a minute and ended."""
    jobs = range(1, count + 1)
    return EventFile(
        [
            line
            for job in jobs
            for key in [parse_label(str(job))]
            for tenant in [f"t{job % tenants:03d}"]
            for line in (
                Event(first, "submitted", key, tenant, 1, {"user": "u"}),
                Event(first + job, "granted", key, tenant, 1, {"nodes": ["n1"], "number": 1}),
                Event(first + job, "started", key, tenant, 1, {"nodes": ["n1"]}),
                Event(first + job + 60, "finished", key, tenant, 1,
                      {"had": 60.0, "owed": 60.0 + job, "waited": float(job), "ran": 60.0, "submit": first}),
            )
        ],
        [],
    )  # fmt: skip


def called(name: str) -> EventFile:
    """A small month whose tenants and users bear this name."""
    events = [
        Event(e.time, e.kind, e.key, f"{name}{e.tenant}", e.gpus, {**e.detail, "user": name, "nodes": [name]})
        for e in months.events()
    ]
    return EventFile(events, [])
