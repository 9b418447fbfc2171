"""A module's tests are found by its name: `tests/unit/<package>/test_<module>.py`, or with an aspect behind it.

What several test modules need lies in `tests/support/`, or beside those of a suite in a module without tests.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.trees import ROOT, named, python
from tests.tests_of import owner, unit_tests


def test_a_unit_test_begins_with_the_module_that_it_tests() -> None:
    assert len(unit_tests()) > 200
    assert [test for test in unit_tests() if owner(test) is None] == []


def suites() -> set[str]:
    """The folders of `tests/` that hold tests."""
    paths = (named(path).split("/") for path in python())
    return {path[1] for path in paths if path[0] == "tests" and path[-1].startswith("test_")}


def test_each_suite_has_a_promise() -> None:
    promised = re.findall(r"(?m)^\| .+ \| `(\w+)/` \| ", (ROOT / "tests" / "README.md").read_text())
    assert sorted(promised) == sorted(suites())


def imported(path: Path) -> Iterator[list[str]]:
    """The modules of `tests` that a file imports, as words."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ([*node.module.split("."), name.name] for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name.split(".") for name in node.names)


def test_no_test_is_imported_and_no_suite_imports_another() -> None:
    """A suite is a folder of `tests/`; what lies beside the suites is for all of them."""
    wrong, others = [], suites()
    for path in python():
        home = named(path).split("/")[1]
        for words in imported(path):
            if words[0] != "tests":
                continue
            if any(word.startswith("test_") for word in words) or (words[1] in others and words[1] != home):
                wrong.append(f"{named(path)}: {'.'.join(words)}")
    assert wrong == []
