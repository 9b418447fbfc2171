"""docs/vocabulary.md is true: each class that it names is there, and is the only one of its name."""

from __future__ import annotations

import ast
import re
from collections import Counter
from enum import Enum
from pathlib import Path
from typing import TypeGuard

from slurm_fair import model
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


def classes() -> Counter[str]:
    """The number of classes of each public name."""
    found: Counter[str] = Counter()
    for path in product():
        body = ast.parse(path.read_text()).body
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


def test_kinds_of_events_are_never_bare_words() -> None:
    """Neither where an event is made nor where its kind is asked for."""
    kinds, bare = set(EventKind), []
    for path in product():
        for node in ast.walk(ast.parse(path.read_text())):
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


# Where members of enums still have private names.
# Codes that columns are compared with at every look of a simulation: looking one up costs as much as comparing.
_STILL_NAMED = {
    "slurm_fair/model/job.py", "slurm_fair/model/lease.py",
    "slurm_fair/model/plan.py", "slurm_fair/policy/reserve.py", "slurm_fair/policy/view.py",
    "slurm_fair/reconcile/follow.py", "slurm_fair/sim/loop/drive.py", "slurm_fair/sim/loop/log.py",
}  # fmt: skip


def test_members_of_enums_have_no_private_names() -> None:
    enums = {name for name, kind in vars(model).items() if isinstance(kind, type) and issubclass(kind, Enum)}
    named_anew = {
        named(path)
        for path in product()
        for line in ast.parse(path.read_text()).body
        if isinstance(line, ast.Assign) and all(_is_member(each, enums) for each in _values(line))
    }
    assert named_anew == _STILL_NAMED


def _values(line: ast.Assign) -> list[ast.expr]:
    """The values that names are given; a tuple that has one name is a value itself."""
    several = isinstance(line.value, ast.Tuple) and isinstance(line.targets[0], ast.Tuple)
    return line.value.elts if several and isinstance(line.value, ast.Tuple) else [line.value]


def _is_member(value: ast.expr, enums: set[str]) -> bool:
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "map":
        return any(ast.unparse(each) in enums for each in value.args)
    if isinstance(value, ast.Call) and ast.unparse(value.func) in ("code", "int") and value.args:
        value = value.args[0]
    return isinstance(value, ast.Attribute) and ast.unparse(value.value) in enums


# Columns of a board's rows, and fields, that hold words of an enum.
_WORDED = re.compile(r"""\['(state|verdict|lease|blocked)'\]$|\bgate$""")


def test_states_verdicts_and_gates_are_never_compared_with_bare_words() -> None:
    """`board_row.py` alone writes and asks for the words of a board's rows. Templates know our enums no more."""
    bare = []
    for path in product():
        if named(path).startswith("sbatch_templates/"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare) and _WORDED.search(ast.unparse(node.left)):
                words = [sub.value for each in node.comparators for sub in ast.walk(each) if _is_word(sub)]
                bare += [f"{named(path)}: {ast.unparse(node)}" for _ in words[:1]]
    assert bare == []


def _is_word(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isalpha()
