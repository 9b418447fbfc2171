"""Docstrings are sentences that say something."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.support.trees import named, python

# A docstring that begins so is half of a question, or hangs on a noun that the reader must guess.
QUESTIONS = {
    "Who", "Whom", "Whose", "Whoever", "What", "Whatever", "Which", "Whether", "How", "Why", "Where", "When", "By",
    "Of", "As", "That", "Those", "With", "Without", "Until", "Since",
}  # fmt: skip
FEWEST_WORDS = 4


def docstrings() -> Iterator[tuple[str, ast.AST, str]]:
    """The file, the node and the docstring of all that has one: product, benchmarks and tests."""
    for path in python():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (
                doc := ast.get_docstring(node)
            ):
                yield named(path), node, doc


def test_a_docstring_begins_with_what_it_tells_of() -> None:
    asking = [f"{where}: {doc}" for where, _, doc in docstrings() if doc.split()[0].rstrip(",:") in QUESTIONS]
    assert asking == [], "say what is returned or done: subject, verb, object"


def test_a_docstring_that_says_nothing_is_left_out() -> None:
    short = [
        f"{where}: {doc}"
        for where, node, doc in docstrings()
        if len(doc.split()) < FEWEST_WORDS and not isinstance(node, ast.Module)
    ]
    assert short == []
