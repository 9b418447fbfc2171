"""A module's tests are found by its name: `tests/unit/<package>/test_<module>.py`, or with an aspect behind it."""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePosixPath

from tests.architecture.trees import named, ours

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
