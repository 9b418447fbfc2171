"""One self-contained page: headings, tables and drawings, light or dark, without scripts or anything fetched.

It is HTML and well-formed XML at once, so that any program can read its tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from slurm_fair_accounting.render import safe

COLOURS = 10  # that can be told apart; further series get dashes
_LIGHT = (
    "#1f6feb", "#d1242f", "#1a7f37", "#b35900", "#8250df", "#0a7d91", "#bf3989", "#6e5c00", "#57606a", "#0b3d91",
)  # fmt: skip
_DARK = (
    "#58a6ff", "#ff7b72", "#56d364", "#ffa657", "#bc8cff", "#39c5cf", "#ff9bce", "#e3c341", "#b1bac4", "#9ecbff",
)  # fmt: skip
_BEST = ' class="best"'
_PAPER = {"paper": "#ffffff", "ink": "#1f2328", "faint": "#59636e", "rule": "#d1d9e0", "best": "#dafbe1"}
_DRAWING = """
svg text { fill: var(--ink); font: 12px system-ui, sans-serif }
.frame { fill: none; stroke: var(--faint) } .grid { stroke: var(--rule) }
.mark { stroke: var(--faint); stroke-dasharray: 2 3 } .limit { stroke: var(--ink); stroke-dasharray: 4 3 }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round } .bar { stroke: var(--paper); stroke-width: .3 }
.d1 { stroke-dasharray: 7 3 } .d2 { stroke-dasharray: 2 3 }
""".strip()
_STYLE = """
:root { color-scheme: light dark; PAPER
  LIGHT }
@media screen and (prefers-color-scheme: dark) {
:root { --paper: #0d1117; --ink: #e6edf3; --faint: #9198a1; --rule: #3d444d;
  --best: #12361f; DARK } }
body { margin: 2rem auto; padding: 0 1rem; max-width: 76rem; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin-bottom: .2rem } h2 { font-size: 1.15rem; margin: 2rem 0 .3rem }
h3 { font-size: 1rem; margin: .6rem 0 .2rem } p { margin: .3rem 0; color: var(--faint) }
.wide { overflow-x: auto } .side { display: flex; flex-wrap: wrap; gap: 0 2rem } .side > figure { flex: 1 1 30rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums } caption { text-align: left }
th, td { padding: .15rem .7rem; border-bottom: 1px solid var(--rule); text-align: right; white-space: nowrap }
th:first-child, td:first-child, th.left, td.left { text-align: left }
td.best { background: var(--best); font-weight: 600 }
tr.group th { padding-top: .8rem; color: var(--faint) }
figure { margin: .5rem 0; min-width: 0 } figcaption { font-weight: 600 }
svg { display: block; width: 100%; height: auto }
DRAWING
ul.legend { display: flex; flex-wrap: wrap; gap: .1rem 1.1rem; list-style: none; margin: .2rem 0; padding: 0 }
ul.legend svg { display: inline; width: 28px; height: 10px; margin-right: .35rem; vertical-align: middle }
SERIES
@media print {
@page { size: A4 landscape; margin: 12mm }
body { margin: 0; padding: 0; max-width: none; font-size: 10px } .wide { overflow: visible }
th, td { padding: .1rem .3rem; font-size: 8px; white-space: normal; overflow-wrap: break-word }
thead { display: table-header-group } tr, figure, ul.legend { break-inside: avoid }
h1, h2, h3, h2 + p, figcaption { break-after: avoid } }
"""


def style() -> str:
    """The page's style sheet; colours are named once for light and once for dark."""
    parts = {
        "PAPER": _root(_PAPER),
        "LIGHT": _named(_LIGHT),
        "DARK": _named(_DARK),
        "DRAWING": _DRAWING,
        "SERIES": _series(),
    }
    sheet = _STYLE
    for name, part in parts.items():
        sheet = sheet.replace(name, part)
    return sheet.strip()


def drawing_style() -> str:
    """The rules of drawings alone, in light colours by value: for a drawing that other programs read too."""
    colours = _PAPER | {f"c{number}": colour for number, colour in enumerate(_LIGHT)}
    sheet = f"{_DRAWING}\n{_series()}"
    for name, colour in colours.items():
        sheet = sheet.replace(f"var(--{name})", colour)
    return sheet.replace("system-ui, ", "")


def _series() -> str:
    return "\n".join(
        f".c{number} {{ stroke: var(--c{number}) }} .f{number} {{ fill: var(--c{number}) }}"
        for number in range(COLOURS)
    )


def _root(colours: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


def _named(colours: Sequence[str]) -> str:
    return " ".join(f"--c{number}: {colour};" for number, colour in enumerate(colours))


def text(words: object) -> str:
    """Foreign words as they may stand in a page."""
    return escape(safe(words))


@dataclass(frozen=True, slots=True)
class Cell:
    """A value of a table, and whether it is the best of its row."""

    words: str
    best: bool = False


def grouped_table(
    heads: Sequence[str], groups: Iterable[tuple[str, Iterable[tuple[str, Sequence[Cell]]]]]
) -> str:
    """Rows in groups, each group under its name."""
    lines = ['<div class="wide"><table><thead><tr>']
    lines += [f'<th scope="col">{text(head)}</th>' for head in heads]
    lines.append("</tr></thead><tbody>")
    for name, rows in groups:
        lines.append(f'<tr class="group"><th colspan="{len(heads)}" scope="colgroup">{text(name)}</th></tr>')
        for title, cells in rows:
            values = "".join(f"<td{_BEST if c.best else ''}>{text(c.words)}</td>" for c in cells)
            lines.append(f"<tr><td>{text(title)}</td>{values}</tr>")
    return "\n".join([*lines, "</tbody></table></div>"])


def plain_table(heads: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[bool]) -> str:
    """Rows under their heads; which columns hold words, to be read from the left."""
    sides = [' class="left"' if words else "" for words in left]
    lines = ['<div class="wide"><table><thead><tr>']
    lines += [f'<th scope="col"{side}>{text(head)}</th>' for head, side in zip(heads, sides, strict=True)]
    lines.append("</tr></thead><tbody>")
    for row in rows:
        cells = "".join(f"<td{side}>{text(words)}</td>" for words, side in zip(row, sides, strict=True))
        lines.append(f"<tr>{cells}</tr>")
    return "\n".join([*lines, "</tbody></table></div>"])


def section(title: str, note: str, *parts: str) -> str:
    """A heading, what there is to know, and what it is about."""
    body = "\n".join(parts)
    return f"<section><h2>{text(title)}</h2>\n<p>{text(note)}</p>\n{body}\n</section>"


def side_by_side(*figures: str) -> str:
    """Figures beside each other where the page is wide enough."""
    return f'<div class="side">{"".join(figures)}</div>'


def page(title: str, lead: Iterable[str], sections: Iterable[str]) -> str:
    paragraphs = "\n".join(f"<p>{text(line)}</p>" for line in lead)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        f"<title>{text(title)}</title>\n<style>\n{style()}\n</style></head>\n"
        f"<body><h1>{text(title)}</h1>\n{paragraphs}\n" + "\n".join(sections) + "\n</body></html>\n"
    )
