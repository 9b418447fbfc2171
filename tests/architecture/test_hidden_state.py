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


# Modules that answer for names that they do not define, and why.
ANSWERING = {
    "accounting/slurm_fair_accounting/__init__.py",  # loads a part of the package when its name is asked for
}


def answers_any_name(source: str) -> bool:
    """True if attributes come of a function that is given their names."""
    return any(
        isinstance(node, ast.FunctionDef) and node.name in ("__getattr__", "__getattribute__")
        for node in ast.walk(ast.parse(source))
    )


def test_every_attribute_of_the_product_is_defined_where_a_reader_looks_for_it() -> None:
    product = [path for path in python() if named(path).startswith(PRODUCT)]
    assert {named(path) for path in product if answers_any_name(path.read_text())} == ANSWERING
    assert answers_any_name("class A:\n    def __getattr__(self, name): ...\n")


# Modules of decisions that write beside the fields of a value, and why.
BESIDE_FIELDS = {
    "slurm_fair/model/once.py",  # the one home of values that are worked out when somebody asks
    "slurm_fair/model/columns.py",  # makes tables field by field
    "slurm_fair/model/placement.py",  # its maker may have counted its GPUs already
    "slurm_fair/model/sizes.py",  # fills in fields that it was not given
}


def writes_beside_fields(source: str) -> bool:
    """True if something is kept in a value where its fields do not show it."""
    return any(
        isinstance(node, ast.Attribute) and node.attr in ("__dict__", "__setattr__")
        for node in ast.walk(ast.parse(source))
    )


def fields_filled_later(source: str) -> list[str]:
    """Fields of frozen values that begin as an empty container: what is put in there later is no value."""
    classes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]
    return [
        ast.unparse(field.target)
        for frozen in classes
        if any("frozen=True" in ast.unparse(line) for line in frozen.decorator_list)
        for field in frozen.body
        if isinstance(field, ast.AnnAssign) and field.value is not None and _is_container(field)
    ]


def _is_container(field: ast.AnnAssign) -> bool:
    kind = field.annotation.value if isinstance(field.annotation, ast.Subscript) else field.annotation
    return ast.unparse(kind) in ("dict", "list", "set", "bytearray", "defaultdict", "Counter", "deque")


def test_no_value_of_decisions_keeps_more_than_its_fields() -> None:
    decisions = [path for path in python() if named(path).startswith((*PURE, "plugins/"))]
    beside = {named(path) for path in decisions if writes_beside_fields(path.read_text())}
    assert beside == BESIDE_FIELDS
    assert {
        named(path): found for path in decisions if (found := fields_filled_later(path.read_text()))
    } == {}


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("met: dict[int, str] = field(default_factory=dict)", ["met"]),
        ("met: list = field(default_factory=list)", ["met"]),
        ("met: Mapping[int, str] = field(default_factory=dict)", []),
        ("met: dict[int, str]", []),
    ],
)
def test_a_field_that_is_filled_later_is_found(line: str, fields: list[str]) -> None:
    assert fields_filled_later(f"@dataclass(frozen=True)\nclass A:\n    {line}\n") == fields
    assert fields_filled_later(f"@dataclass\nclass A:\n    {line}\n") == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('def f(table):\n    table.__dict__["kept"] = 1\n', True),
        ('def f(table):\n    object.__setattr__(table, "kept", 1)\n', True),
        ("def f(table):\n    return table.kept\n", False),
    ],
)
def test_what_is_kept_beside_fields_is_found(source: str, found: bool) -> None:
    assert writes_beside_fields(source) is found


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
