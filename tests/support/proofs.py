"""Figures that the long proofs measured, kept for docs/proofs.md."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_WHERE = "SLURM_FAIR_PROOFS"


def proved(claim: str, goal: str, measured: str, **figures: Any) -> None:
    """Note one proof; without `make prove` it goes to standard output only."""
    print(f"proof: {claim}: {measured} (goal: {goal})")
    _note({"claim": claim, "goal": goal, "measured": measured, "figures": figures})


@contextmanager
def proved_in_part(claim: str, goal: str, measured: str, part: str, parts: int) -> Iterator[dict[str, int]]:
    """Note one of the tests that prove a claim together; what fails in it breaks the claim.

    The test fills in its figures. `measured` is a format: it is given the sums of the figures, and `parts`.
    """
    figures: dict[str, int] = {}
    holds = False
    try:
        yield figures
        holds = True
        print(f"proof: {claim}: {part}: {figures} (goal: {goal})")
    finally:
        note = {"claim": claim, "goal": goal, "measured": measured, "part": part, "parts": parts}
        _note({**note, "figures": figures, "holds": holds})


def _note(line: dict[str, Any]) -> None:
    folder = os.environ.get(_WHERE)
    if folder:
        with (Path(folder) / "figures.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")


def joined(lines: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], set[str]]:
    """The rows that were proved, and the claims that a part broke; a claim that lacks a part has no row."""
    rows = [line for line in lines if "part" not in line]
    claims = dict.fromkeys(line["claim"] for line in lines if "part" in line)
    broken = {line["claim"] for line in lines if "part" in line and not line["holds"]}
    for claim in claims:
        mine = {line["part"]: line for line in lines if "part" in line and line["claim"] == claim}
        one = next(iter(mine.values()))
        if claim in broken or len(mine) < one["parts"]:
            continue
        names = dict.fromkeys(name for line in mine.values() for name in line["figures"])
        sums = {name: sum(line["figures"].get(name, 0) for line in mine.values()) for name in names}
        measured = one["measured"].format(parts=one["parts"], **sums)
        rows.append({"claim": claim, "goal": one["goal"], "measured": measured, "figures": sums})
    return rows, broken
