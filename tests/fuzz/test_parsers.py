"""No text makes a parser fail otherwise than by its own error, or hang: samples, changed at random.

A second each in the suite, a minute each with --prove, then with other dice each time.
"""

from __future__ import annotations

import random
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from slurm_fair.errors import SlurmFairError
from tests.fuzz.mutation import mutations
from tests.fuzz.parsers import PARSERS
from tests.proofs import proved

SECONDS, LONG_SECONDS, HANG_SECONDS = 0.7, 60.0, 5.0


class Hangs(BaseException):
    """No parser may catch it."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Ends what takes longer."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise Hangs(f"no answer within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def fuzz(name: str, seed: int, seconds: float) -> int:
    """Ask a parser until time is up; how often it was asked."""
    parser, dice = PARSERS[name], random.Random(seed)
    until, asked = time.monotonic() + seconds, 0
    for text in mutations(parser.samples, dice):
        if time.monotonic() > until and asked > 2 * len(parser.samples):
            break
        asked += 1
        try:
            with at_most(HANG_SECONDS):
                parser.ask(text)
        except SlurmFairError:
            continue
        except (Exception, Hangs) as problem:
            shown = text if len(text) < 2000 else f"{text[:1000]} ... {text[-1000:]}"
            where = traceback.extract_tb(problem.__traceback__)[-1]
            pytest.fail(
                f"{name}: {problem!a} at {where.filename}:{where.lineno}\non {shown!a}",
                pytrace=False,
            )
    return asked


@pytest.mark.parametrize("name", PARSERS)
def test_a_parser_answers_with_a_value_or_its_own_error(name: str) -> None:
    assert fuzz(name, 1, SECONDS) > 10  # a heartbeat that cannot be read is read again a little later


@pytest.mark.prove
@pytest.mark.timeout(3600)
def test_parsers_answer_with_a_value_or_their_own_error_for_a_long_time() -> None:
    seed = random.SystemRandom().randrange(10**9)
    asked = {name: fuzz(name, seed, LONG_SECONDS) for name in PARSERS}
    proved(
        "texts that are nearly right make no parser fail or hang",
        "no exception but the parser's own error, no answer later than 5 s",
        f"{sum(asked.values()):,} texts for {len(asked)} parsers, 0 failed (seed {seed})",
        **asked,
    )
