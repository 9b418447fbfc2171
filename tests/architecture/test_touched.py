"""A change of a module has unit tests that see it: some name the module, the others what calls it."""

from __future__ import annotations

import ast

from tests import tests_of
from tests.tests_of import parsed, product, touching

Function = ast.FunctionDef | ast.AsyncFunctionDef
NAMED = 0.9  # of the modules that do something: at least so many are named by a unit test


def does_something(file: str) -> bool:
    """Some function of it has a body; other modules hold values and words, or pass names on."""
    functions = [node for node in ast.walk(parsed(file)) if isinstance(node, Function)]
    return any(not is_empty(line) for function in functions for line in function.body)


def is_empty(line: ast.stmt) -> bool:
    """A docstring, or the `...` of a protocol."""
    return isinstance(line, ast.Pass) or (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))


def test_every_module_that_does_something_is_touched_by_a_unit_test() -> None:
    assert [file for file in product() if does_something(file) and not tests_of.tests_of(file)] == []


def test_most_modules_are_named_by_a_unit_test() -> None:
    able = [file for file in product() if does_something(file)]
    assert len(able) > 400
    unnamed = [file for file in able if not touching(file)]
    assert len(unnamed) <= (1 - NAMED) * len(able), "\n".join(unnamed)
