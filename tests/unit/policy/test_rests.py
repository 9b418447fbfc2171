"""The words by which a policy says when a simulation need not ask it."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, nan
from typing import Any

from slurm_fair.model import Snapshot
from slurm_fair.policy.rests import again, only_renews, rests, with_again
from tests.support.builders import job, snapshot


class Renewing:
    rests = only_renews


class OneJob:
    def rests(self, shown: Snapshot, memory: Mapping[str, Any]) -> bool:
        return len(shown.jobs) == 1 and memory == {"asked": 1}


def test_a_policy_rests_where_it_says_so_itself() -> None:
    shown = snapshot(jobs=[job(1)])
    assert rests(Renewing(), shown, {})
    assert rests(OneJob(), shown, {"asked": 1})
    assert not rests(OneJob(), shown, {})
    assert not rests(OneJob(), snapshot(), {"asked": 1})
    assert not rests(object(), shown, {})


def test_an_instant_is_kept_beside_the_rest_of_the_memory() -> None:
    kept = with_again({"debt": 1}, 50.0)
    assert (again(kept), kept["debt"]) == (50.0, 1)
    assert again(with_again(kept, 60.0)) == 60.0


def test_never_leaves_no_instant() -> None:
    memory = {"debt": 1}
    for never in (inf, nan):
        assert with_again(with_again(memory, 50.0), never) == memory
        assert with_again(memory, never) is memory
    assert again(memory) == inf
