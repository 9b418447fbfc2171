"""`make tests-of FILE=slurm_fair/ledger/formulas.py`: the unit tests of a module, those of its name first.

The others use names that the module defines, or call its command; those that use the most names come first.
Where there are none, the module is tested through the modules that call it: their tests are printed.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

from slurm_fair.cli.main import _COMMANDS
from tests.support.trees import ROOT, named, ours

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
PRODUCT = tuple(home for home in HOMES if "slurm_fair" in home)
NOT_OF_A_PACKAGE = ("tests/unit/", "tests/data/", "tests/golden/")


def main() -> int:
    """Print the test files; pytest runs them where that is asked for."""
    options = argparse.ArgumentParser(prog="python -m tests.tests_of", description=__doc__)
    options.add_argument("file", help="a module, by its path from the project's root")
    options.add_argument("--run", action="store_true", help="run them")
    given = options.parse_args()
    if given.file not in product():
        print(
            f"{given.file!r} is no module; give one as FILE=slurm_fair/planner/isolated.py", file=sys.stderr
        )
        return 2
    found = tests_of(given.file)
    if not found:
        print(f"no unit test touches {given.file}", file=sys.stderr)
        return 0
    print(*found, sep="\n")
    return subprocess.call([sys.executable, "-m", "pytest", *found], cwd=ROOT) if given.run else 0


def tests_of(file: str) -> list[str]:
    """The tests that touch a module, else those that touch the modules which use it, and so on."""
    found, asked, seen = touching(file), [file], {file}
    while not found and asked:
        asked = [other for other in product() if other not in seen and used_by(other).keys() & set(asked)]
        seen.update(asked)
        found = list(dict.fromkeys(test for other in asked for test in touching(other)))
    return found


def touching(file: str) -> list[str]:
    """First the test files of the module's name, then those that use its names, most names first."""
    first = of_its_name(file)
    uses = {test: len(used_by(test)[file]) for test in unit_tests() if test not in first}
    return first + sorted((test for test in uses if uses[test]), key=lambda test: -uses[test])


@cache
def product() -> tuple[str, ...]:
    """The modules that are installed, by their paths."""
    return tuple(path for path in map(named, ours()) if path.startswith(PRODUCT) and path.endswith(".py"))


@cache
def unit_tests() -> tuple[str, ...]:
    paths = (path for path in map(named, ours()) if path.startswith(UNIT) and path.endswith(".py"))
    return tuple(path for path in paths if path.rpartition("/")[2].startswith("test_"))


# --- by the name of a file


def of_its_name(file: str) -> list[str]:
    folders, name = home_of(file)
    return [
        test
        for test in unit_tests()
        if test.removeprefix(UNIT).rpartition("/")[0] in folders and owner(test) == name
    ]


def home_of(file: str) -> tuple[list[str], str]:
    """The folders of `tests/unit/` in which a module's tests may lie, and the module's name there."""
    home = next(home for home in HOMES if file.startswith(home))
    *packages, name = (HOMES[home] + file.removeprefix(home)).partition(".")[0].split("/")
    if name == "__init__" and packages:
        name = packages.pop()
    return ["/".join(packages[: depth + 1]) for depth in range(len(packages))] or [""], name


def owner(test: str) -> str | None:
    """The longest name of a module or package of its folder with which a test file begins."""
    folder, _, stem = test.removeprefix(UNIT).removesuffix(".py").rpartition("/")
    words = stem.removeprefix("test_") + "_"
    begun = [name for name in names_by_folder()[folder] if words.startswith(f"{name}_")]
    return max(begun, key=len, default=None)


@cache
def names_by_folder() -> dict[str, set[str]]:
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


# --- by the names that a test uses


@cache
def used_by(path: str) -> dict[str, set[str]]:
    """The names that a file uses, by the files of the modules which define them."""
    tree, used = parsed(path), defaultdict(set)
    bound = dict(imports(tree))
    words = {*bound.values(), *(dotted(node, bound) for node in ast.walk(tree))}
    if "tests.support.command_line.call" in words:
        words.update(commands()[word] for word in words & commands().keys())
    for word in words:
        file, name = defined(word)
        used[file].add(name)
    return used


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Every name that an import binds, and what it stands for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((each.asname or each.name, f"{node.module}.{each.name}") for each in node.names)
        elif isinstance(node, ast.Import):
            yield from ((each.asname, each.name) for each in node.names if each.asname)


def dotted(node: ast.AST, bound: dict[str, str]) -> str:
    """The full name of an attribute of something imported; `monkeypatch.setattr` is told it as a text."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    first, dot, rest = ast.unparse(node).partition(".") if isinstance(node, ast.Attribute) else ("", "", "")
    return bound.get(first, first) + dot + rest


def defined(word: str) -> tuple[str, str]:
    """The file that defines what a dotted word begins with, and its name there; nothing where it is not ours."""
    module, *rest = word.rpartition(".")[::2]
    while module and module not in modules():
        module, _, last = module.rpartition(".")
        rest.insert(0, last)
    if not module:
        return "", ""
    file, (name, *more) = modules()[module], rest
    if name in definitions(file):
        return file, name
    passed_on = dict(imports(parsed(file))).get(name)
    if passed_on in (None, f"{module}.{name}"):  # a package may import its own modules
        return "", ""
    return defined(".".join([passed_on, *more]))


@cache
def modules() -> dict[str, str]:
    """The files of the product by the names under which Python imports them."""
    below = {path: path[path.index("slurm_fair") :] for path in product()}
    words = {path: name.removesuffix(".py").removesuffix("/__init__") for path, name in below.items()}
    return {name.replace("/", "."): path for path, name in words.items()}


@cache
def definitions(file: str) -> frozenset[str]:
    """The names of the functions, classes and constants of a module."""
    found = set()
    for line in parsed(file).body:
        if isinstance(line, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(line.name)
        elif isinstance(line, ast.Assign | ast.AnnAssign):
            names = ast.walk(line)
            found.update(
                each.id for each in names if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
            )
    return frozenset(found)


@cache
def commands() -> dict[str, str]:
    """The function behind each command of `slurm-fair`."""
    return {command: where.replace(":", ".") for command, where in _COMMANDS.items()}


@cache
def parsed(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text())


if __name__ == "__main__":
    sys.exit(main())
