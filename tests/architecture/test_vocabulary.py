"""docs/vocabulary.md is true: each class that it names is there, and is the only one of its name."""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TypeGuard

from slurm_fair.model import EventKind
from tests.support.trees import ROOT, named, python

PAGE = ROOT / "docs" / "vocabulary.md"
_ROW = re.compile(
    r"^\| (?P<word>[a-z ]+) \| (?P<what>.+?\.) \| (?P<where>.+?) \| (?P<what_not>.+?) \|$", re.MULTILINE
)
_CLASS = re.compile(r"`(\w+)` in `([\w./]+)`")
PRODUCT = ("slurm_fair/", "plugins/", "accounting/", "sbatch_templates/")


def product() -> list[Path]:
    """Python files that are installed."""
    return [path for path in python() if named(path).startswith(PRODUCT)]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def classes() -> Counter[str]:
    """The number of classes of each public name."""
    found: Counter[str] = Counter()
    for path in product():
        body = parsed(path).body
        found.update(node.name for node in body if isinstance(node, ast.ClassDef) and node.name[0] != "_")
    return found


def test_every_word_names_one_class_that_is_where_the_page_says() -> None:
    text = PAGE.read_text()
    rows = [match.groupdict() for match in _ROW.finditer(text)]
    heads = text.count("| word | what it is | where | what it is not |")
    assert len(rows) == sum(line.startswith("| ") for line in text.splitlines()) - 2 * heads >= 30
    words = [row["word"] for row in rows]
    assert len(set(words)) == len(words)
    known = classes()
    for row in rows:
        for name, place in _CLASS.findall(row["where"]):
            assert known[name] == 1, f"{row['word']}: {known[name]} classes are called {name}"
            assert re.search(rf"^class {name}\b", (ROOT / place).read_text(), re.MULTILINE), row


def test_no_class_name_is_given_twice() -> None:
    assert {name for name, times in classes().items() if times > 1} == set()


# Names that many modules share, because whoever calls them picks the module.
_PROTOCOLS = {
    "main",  # of programs
    "findings",  # of the parts of `slurm-fair doctor`
    "items",  # of the kinds of foreign traces
}


def test_no_public_function_name_is_given_twice() -> None:
    """Commands are called as the user calls them, and are not asked for by name elsewhere."""
    modules: dict[str, set[str]] = {}
    for path in product():
        for node in parsed(path).body:
            if isinstance(node, ast.FunctionDef) and node.name[0] != "_" and not _is_command(node):
                modules.setdefault(node.name, set()).add(named(path))
    twice = {name: places for name, places in modules.items() if len(places) > 1}
    assert twice.keys() == _PROTOCOLS, {name: twice[name] for name in twice.keys() - _PROTOCOLS}


def _is_command(node: ast.FunctionDef) -> bool:
    return any("command" in ast.unparse(each) for each in node.decorator_list)


def test_kinds_of_events_are_never_bare_words() -> None:
    """Neither where an event is made nor where its kind is asked for."""
    kinds, bare = set(EventKind), []
    for path in product():
        for node in ast.walk(parsed(path)):
            parts: list[ast.expr] = []
            if isinstance(node, ast.Compare) and "kind" in ast.unparse(node.left):
                parts = node.comparators
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Event"):
                parts = node.args[1:2]
            elif isinstance(node, ast.Call):
                parts = [word.value for word in node.keywords if word.arg == "kinds"]
            texts = [sub.value for part in parts for sub in ast.walk(part) if isinstance(sub, ast.Constant)]
            bare += [f"{named(path)}: {ast.unparse(node)}" for text in texts if text in kinds]
    assert bare == []


_ENUMS = {"Enum", "IntEnum", "StrEnum", "Code"}


def test_members_of_enums_have_no_private_names() -> None:
    bodies = [parsed(path).body for path in product()]
    classes = [node for body in bodies for node in body if isinstance(node, ast.ClassDef)]
    enums = {node.name for node in classes if _ENUMS.intersection(map(ast.unparse, node.bases))}
    assert len(enums) >= 20
    named_anew = {
        named(path)
        for path in product()
        for line in parsed(path).body
        if isinstance(line, ast.Assign) and all(_is_member(each, enums) for each in _values(line))
    }
    assert named_anew == set()


def _values(line: ast.Assign) -> list[ast.expr]:
    """The values that names are given; a tuple that has one name is a value itself."""
    several = isinstance(line.value, ast.Tuple) and isinstance(line.targets[0], ast.Tuple)
    return line.value.elts if several and isinstance(line.value, ast.Tuple) else [line.value]


def _is_member(value: ast.expr, enums: set[str]) -> bool:
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "map":
        return any(ast.unparse(each) in enums for each in value.args)
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "int" and value.args:
        value = value.args[0]
    if isinstance(value, ast.Attribute) and value.attr in ("code", "value"):
        value = value.value
    return isinstance(value, ast.Attribute) and ast.unparse(value.value) in enums


def test_no_names_are_numbered_in_place_of_an_enum() -> None:
    """Constants that are there to be told apart are an enum, wherever they are numbered one after another."""
    numbered = []
    for path in product():
        numbers = [number for line in parsed(path).body for number in _numbers(line)]
        series = [0 <= one <= 9 and after == one + 1 for one, after in pairwise(numbers)]
        numbered += [named(path)] if any(series) else []
    assert numbered == []


def _numbers(line: ast.stmt) -> list[float]:
    """The numbers that constants of a module are given by this line; nan = something else stands there."""
    if not isinstance(line, ast.Assign) or not isinstance(line.targets[0], ast.Name | ast.Tuple):
        return [math.nan]
    if isinstance(line.targets[0], ast.Tuple) and ast.unparse(line.value).startswith("range("):
        return [0, 1]
    values = line.value.elts if isinstance(line.value, ast.Tuple) else [line.value]
    if isinstance(line.targets[0], ast.Name) and len(values) > 1:
        return [math.nan]
    return [
        each.value if isinstance(each, ast.Constant) and type(each.value) is int else math.nan
        for each in values
    ]


# A word of several meanings is a name only where it has the one that it keeps.
_HOMES = {
    "settle": ("slurm_fair/ledger/charging/", "slurm_fair/daemon/", "slurm_fair/sim/loop/"),
    "spread": (
        "slurm_fair/model/speeds.py", "slurm_fair/model/told.py", "slurm_fair/config/sections.py",
        "slurm_fair/policy/packing/", "slurm_fair/policy/orders/walk.py", "slurm_fair/policy/speed.py",
        "slurm_fair/sim/world/", "slurm_fair/trace/throughputs.py", "slurm_fair/knowing/telling.py",
        "plugins/slurm_fair_plugins/configurations.py",
        "slurm_fair/ledger/outcomes/outcomes.py",  # `spread_seconds`, as journals call it
    ),
    "people": (),
    "rho": (
        "slurm_fair/ledger/formulas.py", "slurm_fair/ledger/metrics/summary.py",
        "slurm_fair/ledger/outcomes/outcomes.py", "slurm_fair/policy/orders/two_phase.py",
        "slurm_fair/board/", "slurm_fair/sim/past.py", "slurm_fair/cli/simulate/", "slurm_fair/demo/",
        "accounting/slurm_fair_accounting/drawing/report_plots.py",
        "accounting/slurm_fair_accounting/reports/", "plugins/slurm_fair_plugins/astraea/",
    ),
    "set_aside": ("slurm_fair/policy/reserve.py", "slurm_fair/board/", "slurm_fair/cli/"),
}  # fmt: skip
_WORDS = {name: re.compile(rf"(^|_){name}(s|d)?(_|$)", re.IGNORECASE) for name in _HOMES}


def test_words_are_names_only_where_they_mean_one_thing() -> None:
    elsewhere = [
        f"{named(path)}: {name}"
        for path in product()
        for name, _ in _given_names(parsed(path))
        for word, homes in _HOMES.items()
        if _WORDS[word].search(name) and not named(path).startswith(homes)
    ]
    assert elsewhere == []


def test_told_is_only_what_users_and_jobs_say() -> None:
    """A name with the word has the type, or comes from what was told."""
    otherwise = [
        f"{named(path)}: {name} {source}"
        for path in product()
        for name, source in _given_names(parsed(path))
        if re.search(r"(^|_)told(_|$)", name, re.IGNORECASE)
        and not re.search(r"\bTold\b|told|said|reports", source)
    ]
    assert otherwise == []


def _given_names(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Every name that a module gives, and its type or its value as far as the line says it."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name, returns=returns):
                yield name, ast.unparse(returns) if returns else ""
            case ast.ClassDef(name=name):
                yield name, name
            case ast.arg(arg=name, annotation=kind):
                yield name, ast.unparse(kind) if kind else ""
            case ast.AnnAssign(target=target, annotation=kind):
                yield ast.unparse(target), ast.unparse(kind)
            case ast.Assign(targets=targets, value=value):
                stored = [sub for each in targets for sub in ast.walk(each) if _is_stored(sub)]
                yield from ((ast.unparse(each).rpartition(".")[2], ast.unparse(value)) for each in stored)
            case ast.For(target=target, iter=values) | ast.comprehension(target=target, iter=values):
                stored = [sub for sub in ast.walk(target) if _is_stored(sub)]
                yield from ((ast.unparse(each), ast.unparse(values)) for each in stored)
            case ast.NamedExpr(target=target, value=value):
                yield target.id, ast.unparse(value)


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store)


# Columns of a board's rows, and fields, that hold words of an enum.
_WORDED = re.compile(r"""\['(state|verdict|lease|blocked)'\]$|\bgate$""")


def test_states_verdicts_and_gates_are_never_compared_with_bare_words() -> None:
    """`board/row.py` alone writes and asks for the words of a board's rows. Templates know our enums no more."""
    bare = []
    for path in product():
        if named(path).startswith("sbatch_templates/"):
            continue
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Compare) and _WORDED.search(ast.unparse(node.left)):
                words = [sub.value for each in node.comparators for sub in ast.walk(each) if _is_word(sub)]
                bare += [f"{named(path)}: {ast.unparse(node)}" for _ in words[:1]]
    assert bare == []


def _is_word(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isalpha()
