"""Whoever is asked to give GPUs back is asked for somebody, and goes on where nobody needs them any more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slurm_fair.model import JobState, LeasePhase, LeaseTerms, Standing, Verb
from slurm_fair.model.ids import pack
from slurm_fair.reconcile import actions_for
from slurm_fair.reconcile.for_whom import requests
from slurm_fair.store.codec import Encoder, decode
from slurm_fair.tick import TickDone
from tests.support.builders import JobSpec, lease, leases, snapshot
from tests.support.turns import BEGAN, Turn, gated, running

RUNNING = JobState.RUNNING
SHORT = LeaseTerms(term=20.0, interval=2.0, grace=8.0, start_timeout=10.0)
LONG_GRACE = 120.0


def asked_turn(terms: LeaseTerms = SHORT, **columns: Any) -> tuple[Turn, JobSpec, TickDone]:
    """Job 1 has run its lease to the end and was asked to make room for job 2, of another tenant."""
    turn = Turn(terms=terms)
    first = running(1, BEGAN + 2, gpus=8, **columns)
    see(turn, gated(1, gpus=8), after=2)
    see(turn, first, after=2)
    done = see(turn, first, gated(2, gpus=8, tenant="b"), after=until_over(turn))
    assert turn.acts() == ["ask 1"]
    return turn, first, done


def see(turn: Turn, *jobs: JobSpec, after: float = 2.0) -> TickDone:
    """A look at these jobs, which all ask for a long grace."""
    turn.clock.advance(after)
    shown = snapshot(time=turn.clock.now(), nodes={"n1": 8}, jobs=jobs)
    runs = [job.key for job in jobs if job.state is RUNNING]
    return turn.look(replace(shown, graces=dict.fromkeys(runs, LONG_GRACE)))


def until_over(turn: Turn) -> float:
    """Seconds to the end of the first lease."""
    return float(turn.standing.leases.end.min()) - turn.clock.now()


def events(done: TickDone, kind: str) -> list[tuple[int, dict[str, Any]]]:
    """Of one tick."""
    assert done.record is not None
    return [(event.key, dict(event.detail)) for event in done.record.events if event.kind == kind]


def test_the_request_says_for_whom_it_is() -> None:
    turn, _, done = asked_turn()
    assert turn.standing.asked_for == {pack(1): (pack(2),)}
    ((key, detail),) = events(done, "asked")
    assert (key, detail["for"]) == (pack(1), ["2"])


def test_the_request_as_others_are_told_of_it() -> None:
    turn, _, done = asked_turn()
    assert done.record is not None
    assert requests(turn.standing, done.record.snapshot) == {
        pack(1): {
            "time": turn.clock.now(),
            "why": "its lease is over",
            "for": [{"job": "2", "tenant": "b"}],
        }
    }


def test_for_whom_outlives_a_restart() -> None:
    turn, _, _ = asked_turn()
    encoder = Encoder()
    tree = encoder.tree(turn.standing)
    again = decode(tree, encoder.blobs.__getitem__)
    assert isinstance(again, Standing)
    assert dict(again.asked_for) == {pack(1): (pack(2),)}


def test_the_promise_lasts_as_long_as_the_grace_of_those_who_are_to_leave() -> None:
    turn, first, _ = asked_turn()
    second = gated(2, gpus=8, tenant="b")
    for _ in range(59):
        see(turn, first, second)
        assert turn.acts() == []
    see(turn, first, second)
    assert turn.acts() == ["requeue 1"]
    see(turn, gated(1, gpus=8, restarts=1), second)
    assert turn.acts() == ["open 2"]


def test_a_request_for_a_job_that_has_gone_is_withdrawn() -> None:
    turn, first, _ = asked_turn()
    done = see(turn, first)
    ((key, detail),) = events(done, "stays")
    assert (key, detail["why"]) == (pack(1), "nobody needs its GPUs any more: it goes on")
    assert turn.standing.asked_for == {}
    for _ in range(100):
        see(turn, first)
        assert turn.acts() == [], "it is not requeued for nobody"


def test_who_stays_is_asked_anew_when_somebody_needs_its_gpus() -> None:
    turn, first, _ = asked_turn()
    see(turn, first)
    done = see(turn, first, gated(3, gpus=8, tenant="b"), after=until_over(turn))
    assert turn.acts() == ["ask 1"]
    assert events(done, "asked")[0][1]["for"] == ["3"]
    for _ in range(59):
        see(turn, first, gated(3, gpus=8, tenant="b"))
        assert turn.acts() == [], "its grace begins anew"


def test_only_as_many_stay_as_find_room() -> None:
    turn = Turn(terms=SHORT)
    pair = [running(base, BEGAN + 2, gpus=4) for base in (1, 2)]
    see(turn, gated(1), gated(2), after=2)
    see(turn, *pair, after=2)
    wide = gated(3, gpus=6, tenant="b")
    see(turn, *pair, wide, after=until_over(turn))
    assert turn.acts() == ["ask 1", "ask 2"]
    see(turn, *pair, wide)
    assert sorted(turn.standing.asked_for) == [pack(1), pack(2)], "both are needed"
    see(turn, *pair)
    assert turn.standing.asked_for == {}


@pytest.mark.parametrize("scarce", [{"cpus": 30}, {"memory_mb": 250_000}], ids=str)
def test_a_gate_opens_only_when_the_cpus_and_memory_of_those_who_leave_are_free_too(
    scarce: dict[str, int],
) -> None:
    """Else the job would have its time to start while they save, and never its turn."""
    turn = Turn(terms=SHORT)
    pair = [running(base, BEGAN + 2, gpus=2, **scarce) for base in (1, 2)]
    again = [gated(base, gpus=2, restarts=1, **scarce) for base in (1, 2)]
    see(turn, gated(1, **scarce), gated(2, **scarce), after=2)
    see(turn, *pair, after=2)
    wide = gated(3, gpus=2, tenant="b", **{name: 2 * value for name, value in scarce.items()})
    see(turn, *pair, wide, after=until_over(turn))
    assert turn.acts() == ["ask 1", "ask 2"]
    for _ in range(59):
        see(turn, *pair, wide)
        assert turn.acts() == []
    see(turn, *pair, wide)
    assert turn.acts() == ["requeue 1", "requeue 2"]
    see(turn, pair[0], again[1], wide)
    assert "open 3" not in turn.acts()
    see(turn, *again, wide)
    assert turn.acts() == ["open 3"]


def test_a_job_that_was_promised_no_memory_starts_beside_one_that_has_more_than_its_node() -> None:
    beside = running(1, BEGAN + 2, gpus=2, memory_mb=600_000)
    shown = snapshot(time=BEGAN + 4, jobs=[beside, gated(2, gpus=2, memory_mb=0)])
    promised = leases(lease(1, {"n1": 2}, end=BEGAN + 900), lease(2, {"n1": 2}, phase=LeasePhase.GRANTED))
    acts = actions_for(promised, shown, SHORT, {}, BEGAN + 4)
    assert [(act.verb, act.key) for act in acts] == [(Verb.OPEN, pack(2))]


def test_a_request_is_kept_while_what_became_of_the_requeue_is_not_known() -> None:
    turn, first, _ = asked_turn()
    turn.standing = turn.standing._replace(unsettled={pack(1): turn.clock.now()})
    done = see(turn, first)
    assert events(done, "stays") == []
