"""Every Python that we start imports from nowhere but its installation."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support.trees import ROOT

STARTS = [
    path
    for folder in ("slurm_fair", "accounting", "plugins", "sbatch_templates")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "sys.executable" in path.read_text()
]


def is_executable(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.executable"


@pytest.mark.parametrize("path", STARTS, ids=lambda path: path.name)
def test_our_own_python_is_started_isolated(path: Path) -> None:
    """The first word after the interpreter is -I: neither the working folder nor PYTHONPATH is searched."""
    tree = ast.parse(path.read_text())
    uses = sum(is_executable(node) for node in ast.walk(tree))
    isolated = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.List | ast.Tuple) and node.elts and is_executable(node.elts[0]):
            assert ast.unparse(node.elts[1]) == "'-I'", f"{path}:{node.lineno}"
            isolated += 1
        elif isinstance(node, ast.JoinedStr) and "sys.executable" in ast.unparse(node):
            assert " -I " in ast.unparse(node), f"{path}:{node.lineno}"
            isolated += 1
    named = sum(
        isinstance(node, ast.Call)
        and any(is_executable(arg) for arg in node.args)
        and ast.unparse(node.func) in ("Path", "shlex.quote", "os.path.dirname")
        for node in ast.walk(tree)
    )
    assert isolated + named >= uses, f"{path}: sys.executable is used in a way that this test does not know"


def test_we_start_processes_of_our_own() -> None:
    assert {path.name for path in STARTS} >= {"own_python.py", "lab.py", "site_files.py"}
