"""Sizes by percentile: most files and functions are short, a few may be as long as their subject needs."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from tests.support.trees import named, python

PRODUCT = ("slurm_fair/", "plugins/", "accounting/", "sbatch_templates/")
MOST_FILE_LINES, MOST_FUNCTION_LINES, MOST_PARAMETERS = 500, 60, 9
# Longer on purpose, and why.
LONGER_FILES = {
    "slurm_fair/lease.py": "one file, so that it can be copied to a compute node",
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def functions() -> tuple[tuple[str, Function], ...]:
    """Each one by file and name."""
    return tuple(
        (f"{named(path)} {node.name}", node)
        for path in python()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def lines(function: Function) -> int:
    """From its `def` to its end."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def parameters(function: Function) -> int:
    """All that a caller may give; the object of a method is not given."""
    given = function.args
    names = [arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def at(part: float, values: list[int]) -> int:
    """The value below which this part of all lies."""
    return sorted(values)[int(len(values) * part)]


def test_files_are_short_and_none_has_more_than_one_subject() -> None:
    sizes = {named(path): len(path.read_text().splitlines()) for path in python()}
    product = [size for name, size in sizes.items() if name.startswith(PRODUCT)]
    assert at(0.5, product) <= 130
    assert at(0.9, product) <= 280
    assert {name for name, size in sizes.items() if size > MOST_FILE_LINES} == set(LONGER_FILES)


@pytest.mark.parametrize("package", PRODUCT)
def test_most_functions_of_the_product_are_short(package: str) -> None:
    sizes = [lines(function) for name, function in functions() if name.startswith(package)]
    assert at(0.5, sizes) <= 10
    assert at(0.9, sizes) <= 24
    assert at(0.99, sizes) <= 42


def test_no_function_is_longer_than_can_be_seen_at_once() -> None:
    assert [name for name, function in functions() if lines(function) > MOST_FUNCTION_LINES] == []


def test_functions_take_few_parameters() -> None:
    """A function that would take more is given a value of its own: options, a case, a turn."""
    counts = {name: parameters(function) for name, function in functions() if name.startswith(PRODUCT)}
    assert at(0.9, list(counts.values())) <= 4
    assert [name for name, count in counts.items() if count > MOST_PARAMETERS] == []


def test_every_file_says_in_one_line_what_it_is() -> None:
    silent = []
    for path in python():
        said = ast.get_docstring(ast.parse(path.read_text()))
        if path.read_text().strip() and not (said or "").partition("\n")[0].strip():
            silent.append(named(path))
    assert silent == []
