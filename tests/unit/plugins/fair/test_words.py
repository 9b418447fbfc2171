"""The reason for each decision: the term that decided, with its number."""

from __future__ import annotations

import pytest

from slurm_fair_plugins.fair import Fair
from tests.support.accounts import reasons
from tests.support.fair_plays import (
    CROWD,
    CROWD_DECLARED,
    HOUR,
    four,
    lacking,
    plain,
    short_beside_long,
)
from tests.support.rounds import Play

SAID = {
    "quota": (
        {},
        (17, 9.5, 18),
        "2",
        "its tenant is within its quota (0 of 4 GPUs go before it), and it has 10 h left",
    ),
    "nearly done": ({"price_hours": 12.0}, (17, 9.5, 18), "2", "it is nearly done, with 10 h left"),
    "makespan": (
        {"makespan_weight": 1000.0},
        (18, 1, 1),
        "1",
        "with 18 h left it takes nearly as long as all work that there is (18 h)",
    ),
    "price": (
        {},
        (17, 9.5, 18),
        "3",
        "its gang does not fit what those ahead of it leave: its tenant is beyond its quota (4 of 4 GPUs go "
        "before it), and the 18 h that it has left are above the price of 1 h",
    ),
}


@pytest.mark.parametrize(("settings", "hours", "who", "text"), SAID.values(), ids=SAID)
def test_it_is_said_which_term_decided_with_its_number(
    settings: dict[str, float], hours: tuple[float, float, float], who: str, text: str
) -> None:
    declared = dict(zip("123", (HOUR * each for each in hours), strict=True))
    seen = Play([*four("a", 1, 3), *four("b", 2)], {"n1": 8}, declared=declared).seen()
    assert reasons(seen.snapshot, plain(**settings).plan(seen))[who] == text


@pytest.mark.parametrize(
    ("hours", "text"),
    [
        (3.9, "its tenant is within its quota ({}), and it has 18 h left"),
        (8.2, "its tenant lacks 8 h of its quota ({})"),
        (1000.0, "its tenant lacks 45 days of its quota ({})"),
    ],
)
def test_it_is_said_how_much_of_its_quota_a_tenant_lacks(hours: float, text: str) -> None:
    seen = lacking(short_beside_long(), hours)
    told = reasons(seen.snapshot, plain(repay_leases=0.0).plan(seen))["3"]
    assert told.endswith(text.format("0 of 4 GPUs go before it"))
    told = reasons(seen.snapshot, plain(repay_leases=100.0).plan(seen))["3"]
    more = hours * 4 / 25  # hours of its quota of 4 GPUs, over 25 hours of leases
    assert told.endswith(text.format(f"0 of 4 GPUs and {more:.3g} that pay back what it lacks go before it"))


def test_a_claim_is_told_with_the_time_that_is_left_for_it() -> None:
    seen = Play(CROWD, {"n1": 8}, declared=CROWD_DECLARED, now=900.0 + 3 * HOUR).seen()
    plan = Fair(claim_stretch=1.0, makespan_weight=0.0).plan(seen)
    assert reasons(seen.snapshot, plan)["1"] == "it is 15 min late for its fair finish time"


UNKNOWN = "how long it still takes is not known yet"


@pytest.mark.parametrize(
    ("ran", "text"),
    [
        (0.0, f"{UNKNOWN}: it has not run yet, and counts as having 3 min left"),
        (0.01, f"{UNKNOWN}: it has run for about 30 s, and counts as having 3 min left"),
        (0.25, f"{UNKNOWN}: it has run for about 15 min, and counts as having 30 min left"),
        (9.0, "the 18 h that it counts as having left are above the price of 1 h"),
    ],
)
def test_of_a_job_of_unknown_length_beyond_quota_it_is_said_as_what_it_counts(ran: float, text: str) -> None:
    declared = {"1": 0.1 * HOUR, "3": 18 * HOUR}
    play = Play([*four("a", 1, 2), *four("b", 3)], {"n1": 8}, declared=declared, ran={"2": ran * HOUR})
    seen = play.seen()
    assert reasons(seen.snapshot, plain().plan(seen))["2"].endswith(text)
