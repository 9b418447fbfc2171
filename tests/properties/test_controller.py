"""The whole controller on a fake Slurm, with users, admins, failures, outages and crashes at random.

Every seed is one history and replays exactly: `live(N)`.
"""

from __future__ import annotations

import pytest

from tests.support.controller_history import MORE_STEPS, live
from tests.support.proofs import proved


def test_a_users_list_that_is_like_one_of_ours_that_was_taken_away_stays() -> None:
    """A history in which its user takes our list away, and gives the job the same one a while later."""
    live(1477, MORE_STEPS)


@pytest.mark.parametrize("first", range(0, 200, 10))
def test_what_must_hold_holds_in_every_history(first: int) -> None:
    for seed in range(first, first + 10):
        live(seed)


@pytest.mark.prove
@pytest.mark.timeout(3600)
def test_what_must_hold_holds_in_a_thousand_histories() -> None:
    for seed in range(1000, 2000):
        live(seed, MORE_STEPS)
    proved(
        "random acts, failures and crashes over a fake Slurm",
        "no invariant broken",
        "0 broken in 1000 histories",
    )


def test_a_seed_is_one_history() -> None:
    first, second = live(7), live(7)
    assert first.site.commands.said == second.site.commands.said
    assert [s.time for s in first.site.world.starts] == [s.time for s in second.site.world.starts]
