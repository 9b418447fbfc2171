"""Values in a script are the words that they were, whatever they hold."""

from __future__ import annotations

import subprocess

import pytest

from slurm_fair.errors import TemplateError
from slurm_fair_templates.quoting import Ready, directive, shell, shell_lines, shell_words
from tests.support.job_runs import BASH

WORDS = (
    "", "a", "a b", "-n", "~", "*", "$HOME", "$(id)", "`id`", "'", "''", '"', "\\", "\\n", "a'b\"c", "#x", "!!",
    "a;b", "a&b", "{a,b}", "=x", "é\u2028\x85", "a\nb", "\n", "a\tb", "\r", "\x01\x7f\x1b[31m", "'\n\\'", "\\\n",
    "\x001"[1:], "\x0212", "7\x0712",
)  # fmt: skip


def _read_back(text: str) -> list[str]:
    """The words that bash makes of a text."""
    script = f"printf '%s\\0' _ {text}"
    said = subprocess.run([BASH, "-c", script], capture_output=True, timeout=20, check=True).stdout
    return said.decode().split("\0")[1:-1]


def test_bash_reads_words_back_in_their_order() -> None:
    assert _read_back(shell_words(WORDS)) == list(WORDS)
    assert shell_words([]) == ""


@pytest.mark.parametrize("word", WORDS)
def test_a_word_is_one_line_and_one_word(word: str) -> None:
    quoted = shell(word)
    assert "\n" not in quoted
    assert "\r" not in quoted
    assert quoted
    assert shell(quoted) is quoted, "it is quoted once"


@pytest.mark.parametrize(
    ("value", "text"), [(True, "yes"), (False, "no"), (0, "0"), (1.5, "1.5"), (None, "None"), (-3, "-3")]
)
def test_a_value_that_is_no_text_is_said_in_words(value: object, text: str) -> None:
    assert _read_back(shell(value)) == [text]


@pytest.mark.parametrize("word", [word for word in WORDS if "\r" not in word])
def test_text_that_keeps_its_lines_is_one_word_too(word: str) -> None:
    assert _read_back(shell_lines(word)) == [word]
    assert shell_lines(word).count("\n") == word.count("\n")


def test_a_zero_byte_is_refused_in_one_line() -> None:
    for write in (shell, directive):
        with pytest.raises(TemplateError, match="zero byte") as problem:
            write("a\0\nb")
        assert "\n" not in str(problem.value)
        assert "\0" not in str(problem.value)


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("gpu:4", "gpu:4"),
        ("", ""),
        (16, "16"),
        ("a b c", '"a b c"'),
        (" a", '" a"'),
        ("a#b", "a\\#b"),
        ('a"b', 'a\\"b'),
        ("a\\b", "a\\\\b"),
        ("a 'b", 'a" "\\\'b'),
        ("a\tb", 'a"\t"b'),
        ("é", "\\é"),
        ("$x;y", "\\$x\\;y"),
        ("n[1-3],m%j", "n[1-3],m%j"),
        ("a\x0bb", 'a"\x0b"b'),
    ],
)
def test_the_value_of_a_directive_is_written_as_sbatch_reads_it(value: object, line: str) -> None:
    assert directive(value) == line
    assert isinstance(directive(value), Ready)


@pytest.mark.parametrize("value", ["a\n", "\ra", "a\r\nb", "\0"])
def test_a_directive_has_one_line(value: str) -> None:
    with pytest.raises(TemplateError, match="has no line end and no zero byte"):
        directive(value)
