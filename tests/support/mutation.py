"""Texts that are nearly what a parser expects: samples, changed at random."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

# What has broken parsers: separators, huge and odd numbers, words of other kinds, nesting, escapes.
TOKENS = (
    "\x1e", "\x1f", "\n", "\r", "\0", "|", ",", "=", ":", "[", "]", "(", ")", "{", "}", '"', "'", "\\", " ", "\t",
    "-", "+", "%", "#", "-1", "0", "1e400", "-1e400", "nan", "NaN", "inf", "Infinity", "²", "٣", "0x9", "1_0",
    "9" * 19, "9" * 40, "9" * 4301, "9223372036854775808", "-9223372036854775809", "7766279631452241820",
    "999999999999999999", "4294967294", "1.5", "1e9", "true", "null", "[" * 40, "{" * 5, "[" * 100_000, "[]", "{}",
    "(null)", "N/A", "None", "UNLIMITED", "Unknown", "n[1-9]", "n[1-200000]", "n[1-99999999]", "n[9-1]", "n[",
    "gpu:1", "gpu:-1", "gres/gpu=9", "\x1b[2J", "\ud800", "\U0001f4a3", "é", "\u202e", "=cmd()", "JobId=1 ",
    " Nodes=n1 CPU_IDs= Mem=0 GRES=gpu:9", "0-3999999", "1-2:0", "uts9", "now-1days", "2026-13-45T99:99:99",
)  # fmt: skip

LETTERS = 100_000
# As long as a user may write: a pattern that looks at the rest of its text at each letter takes minutes.
LONG = tuple(
    (word * (LETTERS // len(word) + 1))[:LETTERS]
    for word in (
        "a", "9", ",", "(", ")", "(,", "[", "]", " ", "=", "a=", "1,", "0-9,", ":", "-", "_", '"', "\\", "\n",
        "a,", "gpu:1,", "gpu:1(S:0),", "n1,", "[1]", "[1-2]", "[1-2],", "7_1,", " Nodes=n1 CPU_IDs=",
        "slurm_fair:v1 ", "é",
    )
)  # fmt: skip
_MARKS = ("\x1f", "|", ",", " ", "=", ":", "\n", '"')


def with_long_words(samples: Sequence[str], dice: random.Random) -> Iterator[str]:
    """Each long word alone, in the middle of a sample, and in the place of one of its cells."""
    for word in LONG:
        text = dice.choice(samples)
        at = dice.randint(0, len(text))
        yield word
        yield text[:at] + word + text[at:]
        marks = [mark for mark in _MARKS if mark in text]
        if marks:
            yield _one_piece(text, dice, dice.choice(marks), word)


def mutations(samples: Sequence[str], dice: random.Random) -> Iterator[str]:
    """The samples themselves, every one cut short, then changes of them for ever."""
    yield from samples
    yield from (sample[: len(sample) // 2] for sample in samples)
    yield ""
    while True:
        text = dice.choice(samples)
        for _ in range(dice.choice((1, 1, 1, 2, 3, 8))):
            text = _changed(text, dice)
        yield text


def _changed(text: str, dice: random.Random) -> str:
    at, end = sorted((dice.randint(0, len(text)), dice.randint(0, len(text))))
    near = min(end, at + 8)
    how = dice.randrange(7)
    if how == 0:
        return text[:at] + dice.choice(TOKENS) + text[at:]
    if how == 1:
        return text[:at] + dice.choice(TOKENS) + text[near:]
    if how == 2:
        return text[:at] + text[near:]
    if how == 3:
        return text[:at] + text[at:end] * 2 + text[end:]
    if how == 4:
        return text[:at] + chr(dice.randrange(1, 256)) + text[near:]
    return _any_piece(text, dice)


def _any_piece(text: str, dice: random.Random) -> str:
    """One cell, word or number of the text replaced as a whole."""
    marks = [mark for mark in _MARKS if mark in text]
    token = dice.choice(TOKENS)
    return _one_piece(text, dice, dice.choice(marks), token) if marks else token


def _one_piece(text: str, dice: random.Random, mark: str, token: str) -> str:
    """The text with the piece between two marks replaced."""
    pieces = text.split(mark)
    pieces[dice.randrange(len(pieces))] = token
    return mark.join(pieces)
