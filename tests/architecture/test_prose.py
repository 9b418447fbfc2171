"""Docstrings are sentences that say something."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.trees import named, python

PRODUCT = ("slurm_fair/", "plugins/", "accounting/", "sbatch_templates/")
QUESTIONS = {"Who", "Whom", "Whose", "What", "Which", "Whether", "How", "Why", "Where", "When", "By"}
MOST_QUESTIONS = 190  # docstrings of functions and classes that begin so: only ever fewer
FEWEST_WORDS = 4
# Short, and yet they tell a unit, an order or a kind that the name does not.
SHORT = {
    "Ascending, each once.", "Epoch seconds.", "Epochs done.", "Epochs in all.", "Every level multiplied.",
    "For select.", "GPUs by server.", "A finite number.", "Owner and mode.", "Rows that went.",
    "The SQLite journal.", "The daemon's journal.", "The greediest first.", "Time, level, message.",
}  # fmt: skip


def docstrings() -> Iterator[tuple[str, ast.AST, str]]:
    """The file, the node and the docstring of all that has one in the product."""
    for path in python():
        if not named(path).startswith(PRODUCT):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (
                doc := ast.get_docstring(node)
            ):
                yield named(path), node, doc


def test_the_docstring_of_a_module_is_no_question() -> None:
    assert [
        where
        for where, node, doc in docstrings()
        if isinstance(node, ast.Module) and doc.split()[0] in QUESTIONS
    ] == []


def test_ever_fewer_docstrings_are_questions() -> None:
    asking = [f"{where}: {doc}" for where, node, doc in docstrings() if doc.split()[0] in QUESTIONS]
    assert len(asking) <= MOST_QUESTIONS, "say what is returned or done: subject, verb, object"


def test_a_docstring_that_says_nothing_is_left_out() -> None:
    short = [
        f"{where}: {doc}"
        for where, node, doc in docstrings()
        if len(doc.split()) < FEWEST_WORDS and doc not in SHORT and not isinstance(node, ast.Module)
    ]
    assert short == []
