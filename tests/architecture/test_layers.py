"""Contracts of setup.cfg on who may import whom, and what they cannot say."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import slurm_fair.policy
from tests.support.trees import ROOT, named, python

# One function in each of these runs outside commands; nobody else does.
RUNS_COMMANDS = re.compile(r"shell\s*=\s*True|os\.system\(|os\.popen\(")


def imports(path: Path) -> set[str]:
    """The top-level packages that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
    return found


def test_the_contracts_between_the_layers_are_kept() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr


def test_the_jobs_side_needs_the_standard_library_only() -> None:
    assert imports(ROOT / "slurm_fair" / "lease.py") <= sys.stdlib_module_names | {"__future__"}


@pytest.mark.parametrize("package", ["slurm_fair", "plugins", "accounting", "sbatch_templates"])
def test_the_product_never_imports_its_tests(package: str) -> None:
    mine = [path for path in python() if named(path).startswith(package + "/")]
    assert mine
    assert [named(path) for path in mine if imports(path) & {"tests", "pytest", "hypothesis"}] == []


def test_no_outside_command_goes_through_a_shell() -> None:
    mine = [path for path in python() if named(path).partition("/")[0] not in ("tests",)]
    assert [named(path) for path in mine if RUNS_COMMANDS.search(path.read_text())] == []


def test_a_module_is_a_noun_or_a_verb_of_the_domain() -> None:
    empty = re.compile(r"(utils?|helpers?|managers?|misc|common)")
    assert [named(path) for path in python() if empty.fullmatch(path.stem)] == []


def inner_names() -> dict[str, set[str]]:
    """Our plugins by the names that they import from modules within `slurm_fair.policy`."""
    found: dict[str, set[str]] = {}
    for path in python():
        if not named(path).startswith("plugins/slurm_fair_plugins/"):
            continue
        plugin = path.relative_to(ROOT / "plugins" / "slurm_fair_plugins").parts[0]
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("slurm_fair.policy."):
                for name in node.names:
                    found.setdefault(name.name, set()).add(plugin)
    return found


def test_what_several_plugins_need_comes_through_the_door_for_everybody() -> None:
    inner = inner_names()
    assert inner
    assert set(inner) & set(slurm_fair.policy.__all__) == set(), "import it from slurm_fair.policy"
    shared = {name for name, plugins in inner.items() if len(plugins) > 1}
    assert shared == set(), "export it from slurm_fair.policy"
