"""A job that is asked to give GPUs back is asked for somebody, and goes on where nobody needs them any more."""

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
from tests.support.tick_bench import BEGAN, TickBench, gated, running

RUNNING = JobState.RUNNING
SHORT = LeaseTerms(term=20.0, interval=2.0, grace=8.0, start_timeout=10.0)
LONG_GRACE = 120.0


def asked_bench(terms: LeaseTerms = SHORT, **columns: Any) -> tuple[TickBench, JobSpec, TickDone]:
    """Job 1 has run its lease to the end and was asked to make room for job 2, of another tenant."""
    bench = TickBench(terms=terms)
    first = running(1, BEGAN + 2, gpus=8, **columns)
    see(bench, gated(1, gpus=8), after=2)
    see(bench, first, after=2)
    done = see(bench, first, gated(2, gpus=8, tenant="b"), after=until_over(bench))
    assert bench.acts() == ["ask 1"]
    return bench, first, done


def see(bench: TickBench, *jobs: JobSpec, after: float = 2.0) -> TickDone:
    """A look at these jobs, which all ask for a long grace."""
    bench.clock.advance(after)
    shown = snapshot(time=bench.clock.now(), nodes={"n1": 8}, jobs=jobs)
    runs = [job.key for job in jobs if job.state is RUNNING]
    return bench.look(replace(shown, graces=dict.fromkeys(runs, LONG_GRACE)))


def until_over(bench: TickBench) -> float:
    """Seconds to the end of the first lease."""
    return float(bench.standing.leases.end.min()) - bench.clock.now()


def events(done: TickDone, kind: str) -> list[tuple[int, dict[str, Any]]]:
    """The events of one tick."""
    assert done.record is not None
    return [(event.key, dict(event.detail)) for event in done.record.events if event.kind == kind]


def test_the_request_says_for_whom_it_is() -> None:
    bench, _, done = asked_bench()
    assert bench.standing.asked_for == {pack(1): (pack(2),)}
    ((key, detail),) = events(done, "asked")
    assert (key, detail["for"]) == (pack(1), ["2"])


def test_the_request_as_others_are_told_of_it() -> None:
    bench, _, done = asked_bench()
    assert done.record is not None
    assert requests(bench.standing, done.record.snapshot) == {
        pack(1): {
            "time": bench.clock.now(),
            "why": "its lease is over",
            "for": [{"job": "2", "tenant": "b"}],
        }
    }


def test_for_whom_outlives_a_restart() -> None:
    bench, _, _ = asked_bench()
    encoder = Encoder()
    tree = encoder.tree(bench.standing)
    again = decode(tree, encoder.blobs.__getitem__)
    assert isinstance(again, Standing)
    assert dict(again.asked_for) == {pack(1): (pack(2),)}


def test_the_promise_lasts_as_long_as_the_grace_of_those_who_are_to_leave() -> None:
    bench, first, _ = asked_bench()
    second = gated(2, gpus=8, tenant="b")
    for _ in range(59):
        see(bench, first, second)
        assert bench.acts() == []
    see(bench, first, second)
    assert bench.acts() == ["requeue 1"]
    see(bench, gated(1, gpus=8, restarts=1), second)
    assert bench.acts() == ["open 2"]


def test_a_request_for_a_job_that_has_gone_is_withdrawn() -> None:
    bench, first, _ = asked_bench()
    done = see(bench, first)
    ((key, detail),) = events(done, "stays")
    assert (key, detail["why"]) == (pack(1), "nobody needs its GPUs any more: it goes on")
    assert bench.standing.asked_for == {}
    for _ in range(100):
        see(bench, first)
        assert bench.acts() == [], "it is not requeued for nobody"


def test_who_stays_is_asked_anew_when_somebody_needs_its_gpus() -> None:
    bench, first, _ = asked_bench()
    see(bench, first)
    done = see(bench, first, gated(3, gpus=8, tenant="b"), after=until_over(bench))
    assert bench.acts() == ["ask 1"]
    assert events(done, "asked")[0][1]["for"] == ["3"]
    for _ in range(59):
        see(bench, first, gated(3, gpus=8, tenant="b"))
        assert bench.acts() == [], "its grace begins anew"


def test_only_as_many_stay_as_find_room() -> None:
    bench = TickBench(terms=SHORT)
    pair = [running(base, BEGAN + 2, gpus=4) for base in (1, 2)]
    see(bench, gated(1), gated(2), after=2)
    see(bench, *pair, after=2)
    wide = gated(3, gpus=6, tenant="b")
    see(bench, *pair, wide, after=until_over(bench))
    assert bench.acts() == ["ask 1", "ask 2"]
    see(bench, *pair, wide)
    assert sorted(bench.standing.asked_for) == [pack(1), pack(2)], "both are needed"
    see(bench, *pair)
    assert bench.standing.asked_for == {}


@pytest.mark.parametrize("scarce", [{"cpus": 30}, {"memory_mb": 250_000}], ids=str)
def test_a_gate_opens_only_when_the_cpus_and_memory_of_those_who_leave_are_free_too(
    scarce: dict[str, int],
) -> None:
    """Else the job would have its time to start while they save, and never go first."""
    bench = TickBench(terms=SHORT)
    pair = [running(base, BEGAN + 2, gpus=2, **scarce) for base in (1, 2)]
    again = [gated(base, gpus=2, restarts=1, **scarce) for base in (1, 2)]
    see(bench, gated(1, **scarce), gated(2, **scarce), after=2)
    see(bench, *pair, after=2)
    wide = gated(3, gpus=2, tenant="b", **{name: 2 * value for name, value in scarce.items()})
    see(bench, *pair, wide, after=until_over(bench))
    assert bench.acts() == ["ask 1", "ask 2"]
    for _ in range(59):
        see(bench, *pair, wide)
        assert bench.acts() == []
    see(bench, *pair, wide)
    assert bench.acts() == ["requeue 1", "requeue 2"]
    see(bench, pair[0], again[1], wide)
    assert "open 3" not in bench.acts()
    see(bench, *again, wide)
    assert bench.acts() == ["open 3"]


def test_a_job_that_was_promised_no_memory_starts_beside_one_that_has_more_than_its_node() -> None:
    beside = running(1, BEGAN + 2, gpus=2, memory_mb=600_000)
    shown = snapshot(time=BEGAN + 4, jobs=[beside, gated(2, gpus=2, memory_mb=0)])
    promised = leases(lease(1, {"n1": 2}, end=BEGAN + 900), lease(2, {"n1": 2}, phase=LeasePhase.GRANTED))
    acts = actions_for(promised, shown, SHORT, {}, BEGAN + 4)
    assert [(act.verb, act.key) for act in acts] == [(Verb.OPEN, pack(2))]


def test_a_request_is_kept_while_what_became_of_the_requeue_is_not_known() -> None:
    bench, first, _ = asked_bench()
    bench.standing = bench.standing._replace(unsettled={pack(1): bench.clock.now()})
    done = see(bench, first)
    assert events(done, "stays") == []
