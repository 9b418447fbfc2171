"""A module's tests are found by its name: `tests/unit/<package>/test_<module>.py`, or with an aspect behind it.

What several test modules need lies in `tests/support/`, or beside those of a suite in a module without tests.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tests.support.trees import ROOT, named, ours, python

UNIT = "tests/unit/"
# Where modules lie, and the folder of `tests/unit/` in which their tests lie.
HOMES = {
    "slurm_fair/": "",
    "plugins/slurm_fair_plugins/": "plugins/",
    "accounting/slurm_fair_accounting/": "accounting/",
    "sbatch_templates/slurm_fair_templates/": "sbatch_templates/",
    "benchmarks/": "benchmarks/",
    "tests/": "tests/",
}
NOT_OF_A_PACKAGE = ("tests/unit/", "tests/data/", "tests/golden/")


def modules() -> dict[str, set[str]]:
    """The names of modules and packages that lie in each folder of `tests/unit/`, at any depth below a package.

    A program that is no Python, such as a template, counts by what its name says before the first dot.
    """
    found = defaultdict(set)
    for path in map(named, ours()):
        for home, folder in HOMES.items():
            if path.startswith(home) and not path.startswith(NOT_OF_A_PACKAGE):
                *packages, file = (folder + path.removeprefix(home)).split("/")
                names = [*packages, file.partition(".")[0]]
                found[""].add(names[0])
                for depth, package in enumerate(packages):
                    found["/".join([*packages[:depth], package])].update(names[depth + 1 :])
    return found


def of_a_module(path: PurePosixPath, known: dict[str, set[str]]) -> bool:
    """A test file begins with the name of a module of its folder."""
    folder, test = path.parent.as_posix(), path.stem.removeprefix("test_")
    return any(f"{test}_".startswith(f"{name}_") for name in known.get("" if folder == "." else folder, ()))


def test_a_unit_test_begins_with_the_module_that_it_tests() -> None:
    known = modules()
    files = [
        PurePosixPath(path.removeprefix(UNIT))
        for path in map(named, ours())
        if path.startswith(UNIT) and PurePosixPath(path).name.startswith("test_")
    ]
    assert len(files) > 200
    assert [str(path) for path in files if not of_a_module(path, known)] == []


def test_a_story_is_no_module() -> None:
    known = {"": {"tick"}, "sim": {"life", "world"}}
    assert of_a_module(PurePosixPath("test_tick.py"), known)
    assert of_a_module(PurePosixPath("sim/test_life_steps.py"), known)
    assert not of_a_module(PurePosixPath("test_ticket.py"), known)
    assert not of_a_module(PurePosixPath("sim/test_tick.py"), known)
    assert not of_a_module(PurePosixPath("elsewhere/test_tick.py"), known)


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
