"""Files that one can read in one go, functions that one can see at once."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from tests.architecture.trees import named, python

FILE_LINES, FUNCTION_LINES = 400, 40
# Longer on purpose, and why.
LONGER_FILES = {
    "slurm_fair/lease.py": "one file, so that it can be copied to a compute node",
}


@cache
def functions() -> tuple[tuple[str, int], ...]:
    """Each one by name, and its lines."""
    return tuple(
        (f"{named(path)} {node.name}", (node.end_lineno or node.lineno) - node.lineno + 1)
        for path in python()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )


def test_no_file_is_longer_than_can_be_read_at_once() -> None:
    long = {named(path) for path in python() if len(path.read_text().splitlines()) > FILE_LINES}
    assert long == set(LONGER_FILES)


def test_no_function_is_longer_than_can_be_seen_at_once() -> None:
    assert [name for name, lines in functions() if lines > FUNCTION_LINES] == []


@pytest.mark.parametrize("package", ["slurm_fair", "plugins", "accounting", "sbatch_templates"])
def test_most_functions_of_the_product_are_short(package: str) -> None:
    lengths = sorted(lines for name, lines in functions() if name.startswith(package + "/"))
    assert lengths[len(lengths) // 2] <= 10


def test_every_file_says_in_one_line_what_it_is() -> None:
    silent = []
    for path in python():
        said = ast.get_docstring(ast.parse(path.read_text()))
        if path.read_text().strip() and not (said or "").partition("\n")[0].strip():
            silent.append(named(path))
    assert silent == []
