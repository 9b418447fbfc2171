"""Gandiva-fair: GPU time by tickets, whatever the gangs."""

from __future__ import annotations

import pytest

from slurm_fair_plugins.gandiva_fair import GandivaFair
from tests.support.builders import JobSpec, job
from tests.support.rounds import Play


def shares(play: Play) -> dict[str, float]:
    """Each tenant's part of the GPU time so far."""
    had: dict[str, float] = {}
    for spec in play.jobs:
        had[spec.tenant] = had.get(spec.tenant, 0.0) + spec.gpus * play.ran.get(str(spec.base), 0.0)
    return {tenant: of / sum(had.values()) for tenant, of in had.items()}


def of_b(count: int, gpus: int = 1) -> list[JobSpec]:
    """Jobs of tenant b."""
    return [job(base, gpus=gpus, tenant="b") for base in range(10, 10 + count)]


CASES: list[tuple[str, list[JobSpec], dict[str, float], float]] = [
    ("1:1, one gang of 4 against four of 1", [job(1, gpus=4, tenant="a"), *of_b(4)], {}, 0.5),
    ("1:1, one gang of 4 against eight of 1", [job(1, gpus=4, tenant="a"), *of_b(8)], {}, 0.5),
    ("3:1, gangs of 4", [job(1, gpus=4, tenant="a"), *of_b(1, 4)], {"a": 3.0, "b": 1.0}, 0.75),
]


@pytest.mark.parametrize(("jobs", "weights", "part"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_gpu_time_goes_by_tickets(jobs: list[JobSpec], weights: dict[str, float], part: float) -> None:
    """Within one gang's lease of the exact share, in every prefix: stride's bound."""
    play = Play(jobs, {"n1": 4}, weights=weights)
    for number in range(1, 41):
        play.round(GandivaFair())
        assert abs(shares(play).get("a", 0.0) - part) * number <= 1.0 + 1e-9


def test_a_tenants_tickets_do_not_grow_with_its_jobs() -> None:
    play = Play([job(1, tenant="a"), job(2, tenant="a"), job(3, tenant="a"), *of_b(1)], {"n1": 1})
    play.play(GandivaFair(), 24)
    assert shares(play) == {"a": 0.5, "b": 0.5}


def test_a_job_that_comes_late_joins_at_the_lowest_pass() -> None:
    """Its absence earns it nothing: from then on it gets its half and no more."""
    play = Play([job(1, tenant="a"), job(2, tenant="b", submit=20_000)], {"n1": 1})
    play.play(GandivaFair(), 21)
    alone = play.ran["1"]
    play.jobs = [job(1, tenant="a"), job(2, tenant="b", submit=1)]
    play.play(GandivaFair(), 20)
    assert abs(play.ran["2"] - (play.ran["1"] - alone)) <= 2 * play.term


def test_equal_split_gives_every_job_the_same_time_whatever_its_gang() -> None:
    """Four jobs of one GPU and one of four: Shockwave's reading owes each the same part of time."""
    play = Play([job(1, gpus=4, tenant="a"), *of_b(4)], {"n1": 4})
    play.play(GandivaFair(split="equal"), 20)
    times = list(play.ran.values())
    assert max(times) - min(times) <= play.term


def test_equal_split_puts_newcomers_last_until_shares_are_computed_anew() -> None:
    """3 comes at the first change, which counts at once; 4 comes while the shares are still young."""
    play = Play([job(1), job(2), job(3, submit=950), job(4, submit=1850)], {"n1": 1})
    policy = GandivaFair(split="equal", reset_seconds=2000.0)
    assert play.play(policy, 7) == [{"1"}, {"2"}, {"3"}, {"1"}, {"2"}, {"3"}, {"4"}]
