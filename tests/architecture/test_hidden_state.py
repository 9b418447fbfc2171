"""No module of decisions keeps anything from one call to the next, and no function keeps its results."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.support.trees import named, python

PURE = tuple(
    f"slurm_fair/{name}/" for name in ("model", "ledger", "solve", "policy", "reconcile", "throughput")
)
WRITING = {
    "add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault", "sort",
    "update",
}  # fmt: skip

PRODUCT = ("slurm_fair/", "plugins/", "accounting/", "sbatch_templates/")
# Functions that may keep their results, and why.
KEPT = {
    # A site's placer by name is asked for at each plan. Which are installed is settled when the process begins,
    # as its imports are.
    "slurm_fair/policy/packing/placement.py: placer",
}


def written(source: str) -> list[str]:
    """Names of a module that its functions bind anew, or write into."""
    tree = ast.parse(source)
    own = {name.id for line in tree.body for name in _targets(line)}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return sorted({name for function in functions for name in _changed(function) & own})


def _targets(line: ast.stmt) -> Iterator[ast.Name]:
    if isinstance(line, ast.Assign | ast.AnnAssign):
        yield from (node for node in ast.walk(line) if isinstance(node, ast.Name) and _stored(node))


def _stored(node: ast.Name | ast.Subscript) -> bool:
    return isinstance(node.ctx, ast.Store | ast.Del)


def _changed(function: ast.AST) -> set[str]:
    names, own = set(), set()
    for node in ast.walk(function):
        match node:
            case ast.Global(names=bound):
                names.update(bound)
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                own.add(name)
            case ast.Subscript(value=ast.Name(id=name)) if _stored(node):
                names.add(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute)) if (
                attribute in WRITING
            ):
                names.add(name)
    return names - (own - {n for g in ast.walk(function) if isinstance(g, ast.Global) for n in g.names})


def test_no_module_of_decisions_keeps_state() -> None:
    kept = {
        named(path): names
        for path in python()
        if named(path).startswith((*PURE, "plugins/")) and (names := written(path.read_text()))
    }
    assert kept == {}


def keeping(source: str) -> list[str]:
    """Functions of a module that keep their results for the next call, and other uses of such caches."""
    tree, found = ast.parse(source), []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found += [node.name for each in node.decorator_list if _is_cache(each)]
        elif (
            isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _is_cache(node.value)
        ):
            found += [name.id for name in _targets(node)]
    return found


def _is_cache(node: ast.expr) -> bool:
    while isinstance(node, ast.Call):
        node = node.func
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in ("cache", "lru_cache")


def test_no_function_of_the_product_keeps_its_results_but_those_that_are_named() -> None:
    keep = {
        f"{named(path)}: {name}"
        for path in python()
        if named(path).startswith(PRODUCT)
        for name in keeping(path.read_text())
    }
    assert keep == KEPT


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("@cache\ndef f(): ...\n", ["f"]),
        ("@lru_cache(maxsize=1)\ndef f(): ...\n", ["f"]),
        ("@functools.lru_cache\ndef f(): ...\n", ["f"]),
        ("class A:\n    @functools.cache\n    def f(self): ...\n", ["f"]),
        ("def g(): ...\nf = lru_cache(maxsize=2)(g)\n", ["f"]),
        ("@once\ndef f(): ...\ncache = {1: 2}\nx = cache[1]\n", []),
    ],
)
def test_a_cache_is_found(source: str, names: list[str]) -> None:
    assert keeping(source) == names


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("_last = None\ndef f():\n    global _last\n    _last = 1\n", ["_last"]),
        ("_met: dict = {}\ndef f(key):\n    _met[key] = 1\n", ["_met"]),
        ("_MET = []\ndef f(key):\n    _MET.append(key)\n", ["_MET"]),
        ("_MET = {}\ndef f(key):\n    del _MET[key]\n", ["_MET"]),
        ("_MET = {}\ndef f(key):\n    _MET = {}\n    _MET[key] = 1\n    return _MET\n", []),
        ("_MET = {1: 2}\ndef f(key):\n    return _MET[key]\n", []),
    ],
)
def test_state_of_a_module_is_found(source: str, names: list[str]) -> None:
    assert written(source) == names
