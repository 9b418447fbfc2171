"""No text makes a parser fail otherwise than by its own error, or hang: samples, changed at random.

A second each in the suite, a minute each with --prove, then with other dice each time. What hangs is told by the
time that the parser computes, so that a busy machine makes none look so.
"""

from __future__ import annotations

import random
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import pytest

from slurm_fair.errors import SlurmFairError
from tests.fuzz.parsers import PARSERS
from tests.support.mutation import mutations, with_long_words
from tests.support.proofs import proved_in_part

SECONDS, LONG_SECONDS, HANG_SECONDS = 0.7, 60.0, 5.0
LEAST = 10  # texts: a heartbeat that cannot be read is read again a little later


class Hangs(BaseException):
    """No parser may catch it."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Ends what computes for longer; what only waits is ended by the time limit of the test."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise Hangs(f"no answer within {seconds:g} s of computing")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def fuzz(name: str, seed: int, seconds: float) -> int:
    """Ask a parser until time is up; how often it was asked."""
    parser, dice = PARSERS[name], random.Random(seed)
    until, asked = time.monotonic() + seconds, 0
    for text in mutations(parser.samples, dice):
        if time.monotonic() > until and asked > max(2 * len(parser.samples), LEAST):
            break
        asked += 1
        ask(name, text, seed)
    return asked


def ask(name: str, text: str, seed: int) -> None:
    """The parser answers, with a value or by its own error, in time."""
    try:
        with at_most(HANG_SECONDS), suppress(SlurmFairError):
            PARSERS[name].ask(text)
    except (Exception, Hangs) as problem:
        shown = text if len(text) < 2000 else f"{text[:1000]} ... {text[-1000:]}"
        where = traceback.extract_tb(problem.__traceback__)[-1]
        pytest.fail(
            f"{name}, seed {seed}: {problem!a} at {where.filename}:{where.lineno}\non {shown!a}",
            pytrace=False,
        )


@pytest.mark.parametrize("name", PARSERS)
def test_a_parser_answers_with_a_value_or_its_own_error(name: str) -> None:
    assert fuzz(name, 1, SECONDS) > LEAST


@pytest.mark.parametrize("name", PARSERS)
def test_a_parser_reads_long_words_in_time(name: str) -> None:
    for text in with_long_words(PARSERS[name].samples, random.Random(1)):
        ask(name, text, 1)


@pytest.mark.prove
@pytest.mark.parametrize("name", PARSERS)
def test_a_parser_answers_with_a_value_or_its_own_error_for_a_long_time(name: str) -> None:
    seed = random.SystemRandom().randrange(10**9)
    with proved_in_part(
        "texts that are nearly right make no parser fail or hang",
        "no exception but the parser's own error, no answer that takes more than 5 s of computing",
        "{texts:,} texts for {parts} parsers, each with dice of its own, 0 failed",
        part=name,
        parts=len(PARSERS),
    ) as figures:
        for text in with_long_words(PARSERS[name].samples, random.Random(seed)):
            ask(name, text, seed)
        figures["texts"] = fuzz(name, seed, LONG_SECONDS)
