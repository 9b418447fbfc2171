"""Knowledge of jobs: of reporters, of others of their class, of those that ended; and what a liar gains."""

from __future__ import annotations

import math

import numpy as np
import pytest

from slurm_fair.model import Event, EventKind, Sizes, Snapshot
from slurm_fair.model.ids import pack
from slurm_fair.throughput import Alike, Links
from tests.support.reporting import Looks, MemoryShelf, row_of, running, waiting


def told(seen: Snapshot, column: str, number: int) -> float:
    """A number that a look tells of a job."""
    assert seen.told is not None
    return float(getattr(seen.told, column)[row_of(seen, number)])


def known_rate(seen: Snapshot, number: int, gpu_type: str, gpus: int) -> float:
    """The known speed of a job with so many GPUs of a type; nan if nothing is known."""
    if seen.speeds is None:
        return math.nan
    kind = seen.gpu_types.index(gpu_type)
    row, types, sizes = (np.array([value]) for value in (row_of(seen, number), kind, gpus))
    return float(seen.speeds.rates(row, types, sizes, np.array([False])).item())


def test_a_look_at_jobs_that_say_nothing_stays_as_it_was() -> None:
    looks = Looks()
    seen = looks.look(100, [running(1), waiting(2)])
    assert (seen.told, seen.speeds, seen.reported) == (None, None, None)


def test_a_reporter_is_told_by_its_progress() -> None:
    seen = Looks().trains([running(1, gpus=2)], 5.0, 300)
    assert told(seen, "steps_per_second", 1) == pytest.approx(5.0)
    assert told(seen, "done_seconds", 1) == pytest.approx(300)
    assert told(seen, "left_seconds", 1) == pytest.approx(1e5 / 5 - 300)
    assert seen.reported is not None
    assert (seen.reported.believed.tolist(), seen.reported.clamped.tolist()) == ([1500.0], [False])


def test_what_it_says_of_its_speed_counts_until_its_progress_tells() -> None:
    looks, jobs = Looks(), [running(1)]
    seen = looks.look(10, jobs, {1: {"step": 10, "steps": 1000, "steps_per_second": 4.0}})
    assert told(seen, "steps_per_second", 1) == pytest.approx(4.0)
    seen = looks.look(40, jobs, {1: {"step": 70, "steps": 1000, "steps_per_second": 4.0}})
    assert told(seen, "steps_per_second", 1) == pytest.approx(2.0)


def test_words_of_a_report_reach_policies() -> None:
    said = {"step": 10, "steps": 100, "epoch": 1, "epochs": 10, "batch_size": 128, "mode": 2, "model": "bert"}
    seen = Looks().look(30, [running(1)], {1: said})
    assert seen.told is not None
    assert (told(seen, "epoch", 1), told(seen, "epochs", 1)) == (1, 10)
    assert (told(seen, "batch_size", 1), told(seen, "mode", 1)) == (128, 2)
    assert seen.told.models[int(told(seen, "model", 1))] == "bert"


def test_a_second_job_of_the_class_is_known_from_its_first_look_on() -> None:
    looks = Looks()
    first = running(1, gpus=2, name="train-2026-11-01")
    looks.trains([first], 5.0, 120)
    seen = looks.look(150, [first, waiting(2, gpus=4, name="train-2026-11-02"), waiting(3, name="other")])
    assert known_rate(seen, 2, "a100", 2) == pytest.approx(5.0, rel=0.05)
    assert 5.0 < known_rate(seen, 2, "a100", 4) < 11.0, "worked out for another size"
    assert known_rate(seen, 2, "v100", 2) > 0
    assert math.isnan(known_rate(seen, 3, "a100", 2)), "another class"


def test_jobs_of_another_tenant_are_never_of_the_class() -> None:
    looks = Looks()
    looks.trains([running(1, tenant="a")], 5.0, 120)
    seen = looks.look(150, [running(1, tenant="a"), waiting(2, tenant="b")])
    assert math.isnan(known_rate(seen, 2, "a100", 1))


def test_types_are_compared_with_the_first_one() -> None:
    looks = Looks()
    fast, slow = running(1, on={"a1": 1}), running(2, on={"v1": 1})
    for time in range(30, 301, 30):
        said = {1: {"step": 6.0 * time, "steps": 1e5}, 2: {"step": 2.0 * time, "steps": 1e5}}
        seen = looks.look(time, [fast, slow, waiting(3)], said)
    assert seen.told is not None
    assert seen.gpu_types == ("a100", "v100")
    assert seen.told.rate[row_of(seen, 3)].tolist() == pytest.approx([1.0, 1 / 3], rel=0.05)
    assert told(seen, "steps_per_second", 2) == pytest.approx(6.0, rel=0.05), "on the reference type"
    assert told(seen, "done_seconds", 2) == pytest.approx(100, rel=0.05)


def test_given_links_tell_how_fast_a_job_is_on_a_type_and_across_nodes_that_it_never_ran_on() -> None:
    slow_net = {"a100": {"link": 100.0, "net": 1.0}, "v100": {"link": 100.0, "net": 1.0, "speed": 0.25}}
    fast_net = {name: {**rates, "net": 99.0} for name, rates in slow_net.items()}
    found = []
    for links in ({}, slow_net, fast_net):
        looks, first = Looks(links=Links.given(links)), running(1, gpus=4)
        looks.trains([first], 5.0, 300)
        seen = looks.look(400, [first, waiting(2, gpus=4)])
        assert seen.told is not None
        row = row_of(seen, 2)
        found.append((seen.told.rate[row, 1], seen.told.spread_rate[row, 0]))
    unknown, slow, fast = found
    assert (unknown[0], slow[0], fast[0]) == pytest.approx((1.0, 0.25, 0.25), rel=0.1)
    assert slow[1] < fast[1], "across nodes it is slower where the net is slow"


def test_an_elastic_job_is_told_by_its_usual_size() -> None:
    looks = Looks()
    looks.sizes = Sizes(np.array([0, 0]), np.array([2, 4]), np.array([False, True]))
    seen = looks.trains([running(1, gpus=2)], 5.0, 300)
    assert seen.speeds is not None
    row, kind, near = np.array([0]), np.array([0]), np.array([False])
    two, four = (seen.speeds.rates(row, kind, np.array([size]), near).item() for size in (2, 4))
    assert told(seen, "steps_per_second", 1) == pytest.approx(5.0 * four / two)
    assert told(seen, "done_seconds", 1) == pytest.approx(300 * two / four)


def test_a_report_that_is_not_renewed_fades() -> None:
    looks, jobs = Looks(), [running(1)]
    left = told(looks.trains(jobs, 5.0, 120), "left_seconds", 1)
    said = {"step": 600, "steps": 1e5, "read": 120.0}
    same = looks.look(180, jobs, {1: {**said, "silent_seconds": 60.0}})
    later = looks.look(780, jobs, {1: {**said, "silent_seconds": 660.0}})
    assert told(same, "left_seconds", 1) == pytest.approx(left)
    assert told(later, "left_seconds", 1) == pytest.approx(2 * left), "half of its pace is left"
    assert told(later, "done_seconds", 1) == pytest.approx(120)


def test_a_job_that_was_requeued_keeps_what_is_believed_of_it_and_may_resume_earlier() -> None:
    looks = Looks()
    looks.trains([running(1)], 5.0, 120)
    seen = looks.look(150, [waiting(1, restarts=1, submit=140)])
    assert told(seen, "done_seconds", 1) == pytest.approx(120)
    again = [running(1, start=200, restarts=1)]
    seen = looks.look(230, again, {1: {"step": 550, "steps": 1e5}})
    assert seen.reported is not None
    assert (seen.reported.believed.tolist(), seen.reported.clamped.tolist()) == ([550.0], [False])
    seen = looks.look(260, again, {1: {"step": 500, "steps": 1e5}})
    assert seen.reported is not None
    assert seen.reported.believed.tolist() == [550.0], "within a run progress does not go back"


def test_the_next_bearer_of_an_id_begins_at_nothing() -> None:
    looks = Looks()
    looks.trains([running(1)], 5.0, 120)
    assert math.isnan(told(looks.look(500, [waiting(1, submit=400)]), "done_seconds", 1))


def test_jobs_that_count_epochs_alone_are_known_too() -> None:
    looks = Looks()
    job = running(1)
    for time in (30, 60, 90, 120):
        seen = looks.look(time, [job, waiting(2)], {1: {"epoch": time / 60, "epochs": 20}})
    assert told(seen, "left_seconds", 1) == pytest.approx(20 * 60 - 120)
    assert (told(seen, "epoch", 1), told(seen, "epochs", 1)) == (2, 20)
    assert math.isnan(told(seen, "steps_per_second", 1))
    assert known_rate(seen, 2, "a100", 1) == pytest.approx(1 / 60, rel=0.05)


# -- what ended -------------------------------------------------------------------------------------------


def ended(number: int, seconds: float, time: float, state: str = "COMPLETED") -> Event:
    """The end of a job that ran for so long."""
    return Event(time, EventKind.FINISHED, pack(number), "a", 1, {"ran": seconds, "state": state})


def test_run_times_of_ended_jobs_tell_what_is_left_of_the_next_ones() -> None:
    looks = Looks()
    looks.look(10, [running(number) for number in (1, 2, 3, 4)])
    events = [ended(1, 3000, 20), ended(2, 3600, 20), ended(3, 4000, 20), ended(4, 5, 20, "CANCELLED")]
    looks.knowing.hear(events, looks.standing(20), 20)
    seen = looks.look(1020, [waiting(5), running(6, start=20)])
    assert told(seen, "left_seconds", 5) == pytest.approx(3600)
    assert told(seen, "left_seconds", 6) == pytest.approx(2600)
    assert 0.05 < told(seen, "left_spread", 5) < 0.5
    assert math.isnan(told(seen, "declared_seconds", 5)), "nobody declared anything"


def test_what_a_job_reports_goes_before_what_others_took() -> None:
    looks = Looks()
    looks.look(10, [running(1)])
    looks.knowing.hear([ended(1, 3600, 20)], looks.standing(20), 20)
    seen = looks.trains([running(2, start=20)], 5.0, 120, since=20)
    assert told(seen, "left_seconds", 2) == pytest.approx(1e5 / 5 - 120)
    assert math.isnan(told(seen, "left_spread", 2))


# -- liars ------------------------------------------------------------------------------------------------


def with_liar(lie: float, said: str, seconds: float) -> tuple[Snapshot, Snapshot]:
    """The looks before and after one of a class of six has said so many times the truth."""
    looks = Looks()
    others = [running(number, tenant="a") for number in range(1, 6)] + [running(9, tenant="b")]
    looks.trains(others, 5.0, 600)
    more = [waiting(20, tenant="a"), waiting(21, tenant="b")]
    liar = running(7, tenant="a", start=600.0)
    before = after = looks.look(600, [*others, *more])
    for time in np.arange(630.0, 601.0 + seconds, 30.0).tolist():
        truth = {number: {"step": 5.0 * time, "steps": 1e5} for number in (1, 2, 3, 4, 5, 9)}
        claims = {
            "progress": {"step": 5.0 * lie * (time - 600), "steps": 1e5},
            "speed": {"steps_per_second": 5.0 * lie},
        }[said]
        after = looks.look(time, [*others, liar, *more], {**truth, 7: claims})
    return before, after


@pytest.mark.parametrize("lie", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("said", ["progress", "speed"])
def test_a_liar_moves_no_other_tenants_class(said: str, lie: float) -> None:
    before, after = with_liar(lie, said, 600)
    assert known_rate(after, 21, "a100", 1) == pytest.approx(known_rate(before, 21, "a100", 1))
    assert told(after, "steps_per_second", 9) == pytest.approx(told(before, "steps_per_second", 9))


@pytest.mark.parametrize("lie", [10.0, 1000.0])
@pytest.mark.parametrize("said", ["progress", "speed"])
def test_a_liar_moves_its_own_class_by_little(said: str, lie: float) -> None:
    before, after = with_liar(lie, said, 600)
    moved = known_rate(after, 20, "a100", 1) / known_rate(before, 20, "a100", 1)
    assert 0.95 < moved < 1.05
    for number in (1, 2, 3, 4, 5):
        assert told(after, "steps_per_second", number) == pytest.approx(5.0)


@pytest.mark.parametrize("lie", [10.0, 1000.0])
def test_false_progress_is_believed_no_faster_than_the_class_has_been_seen_to_be(lie: float) -> None:
    _, after = with_liar(lie, "progress", 600)
    reported = after.reported
    assert reported is not None
    at = reported.row.tolist().index(row_of(after, 7))
    assert reported.clamped[at]
    assert 3000 <= reported.believed[at] <= 3000 * math.exp(2 * 0.1) + 1
    assert told(after, "steps_per_second", 7) <= 5.0 * math.exp(2 * 0.1) + 1e-9
    assert told(after, "left_seconds", 7) > 0.8 * (1e5 - 3700) / 5
    assert not any(
        reported.clamped[reported.row.tolist().index(row_of(after, n))] for n in (1, 2, 3, 4, 5, 9)
    )


def test_a_liar_about_its_end_is_held_to_what_such_jobs_took() -> None:
    looks = Looks()
    looks.look(10, [running(number) for number in (1, 2, 3)])
    looks.knowing.hear([ended(n, 3600 + 10 * n, 20) for n in (1, 2, 3)], looks.standing(20), 20)
    seen = looks.look(50, [running(4, start=20)], {4: {"step": 99, "steps": 100, "steps_per_second": 3.3}})
    assert told(seen, "left_seconds", 4) > 3300


def test_a_job_that_steps_on_its_own_speed_is_held_to_what_it_said_before() -> None:
    looks, jobs = Looks(), [running(1)]
    looks.trains(jobs, 5.0, 600)
    seen = looks.look(630, jobs, {1: {"step": 90_000, "steps": 1e5}})
    assert seen.reported is not None
    assert seen.reported.believed.item() < 4000


# -- the settings and the shelf ---------------------------------------------------------------------------


def test_without_learning_a_job_is_told_by_its_own_reports_alone() -> None:
    looks = Looks(learns=False)
    seen = looks.trains([running(1)], 5.0, 120)
    assert told(seen, "steps_per_second", 1) == pytest.approx(5.0)
    assert looks.look(150, [running(1), waiting(2)]).speeds is None


def test_classes_by_model_are_those_that_jobs_report() -> None:
    looks = Looks(alike=Alike.MODEL)
    jobs = [running(1, name="x"), running(2, name="y")]
    for time in (30, 60, 90):
        said = {n: {"step": 5.0 * time, "steps": 1e5, "model": "bert"} for n in (1, 2)}
        seen = looks.look(time, jobs, said)
    assert seen.speeds is not None
    assert seen.speeds.classes == ("a: model=bert",)


def test_classes_by_script_are_told_by_the_stamp_whatever_jobs_are_called() -> None:
    looks, later = Looks(alike=Alike.SCRIPT), [running(1, name="x"), waiting(2, name="y")]
    looks.script = "0123456789abcdef"
    looks.trains([running(1, name="x")], 5.0, 120)
    seen = looks.look(150, later)
    assert seen.speeds is not None
    assert seen.speeds.job_class.tolist() == [0, 0]
    looks.script = ""
    seen = looks.look(180, [*later, waiting(3, name="x")])
    assert seen.speeds is not None
    assert seen.speeds.job_class.tolist() == [0, 0, -1], (
        "it does not say its script, and none of its name is known"
    )


def test_a_job_that_was_requeued_is_of_the_class_of_the_model_that_it_named() -> None:
    looks = Looks(alike=Alike.MODEL)
    looks.look(30, [running(1)], {1: {"step": 150, "steps": 1e5, "steps_per_second": 5.0, "model": "bert"}})
    seen = looks.look(60, [waiting(1, restarts=1, submit=50), waiting(2)])
    assert seen.speeds is not None
    assert seen.speeds.job_class.tolist() == [0, -1]


def test_a_clock_that_was_set_back_keeps_no_report_from_being_weighed() -> None:
    looks, jobs = Looks(), [running(1)]
    looks.trains(jobs, 5.0, 300)
    seen = looks.look(200, jobs, {1: {"step": 1600, "steps": 1e5}})
    assert seen.reported is not None
    assert seen.reported.believed.tolist() == pytest.approx([1600], abs=500)
    assert looks.knowing._beliefs.read.tolist() == [200]


def test_what_is_known_outlives_the_daemon() -> None:
    shelf = MemoryShelf()
    looks, job = Looks(shelf), running(1, start=10)
    looks.trains([job], 5.0, 120, since=10)
    looks.knowing.write(130)
    again = Looks(shelf)
    seen = again.look(160, [job, waiting(2)], {1: {"step": 90_000, "steps": 1e5}})
    assert known_rate(seen, 2, "a100", 1) == pytest.approx(5.0, rel=0.05)
    assert seen.reported is not None
    assert seen.reported.believed.item() < 1000, "progress is believed from where it stood"


def test_it_is_written_down_once_a_minute_and_only_where_something_is_known() -> None:
    looks = Looks()
    for time in range(0, 300, 10):
        looks.look(time, [running(1)])
        looks.knowing.hear([], looks.standing(time), time)
    assert looks.shelf.writings == 0
    for time in range(300, 600, 10):
        looks.look(time, [running(1)], {1: {"step": time, "steps": 1000}})
        looks.knowing.hear([], looks.standing(time), time)
    assert 4 <= looks.shelf.writings <= 6


def test_what_goes_wrong_costs_no_look(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looks = Looks()
    looks.profiled = True
    monkeypatch.setattr("slurm_fair.knowing.cluster.with_speeds", lambda *_: 1 / 0)
    seen = looks.look(10, [running(1)])
    assert (seen.told, seen.profiles) == (None, None)
    assert "this look goes without it" in caplog.text


def profiles(seen: Snapshot) -> tuple[list[int], list[float], list[list[bool]]]:
    """Class, steps and known GPU types of each job that asks to be profiled."""
    assert seen.profiles is not None
    each = seen.profiles
    return each.job_class.tolist(), each.steps.tolist(), each.measured.tolist()


def test_of_jobs_to_be_profiled_it_is_told_where_their_class_was_measured_and_what_they_reported() -> None:
    looks = Looks()
    looks.profiled = True
    jobs = [running(1, on={"a1": 1}), waiting(2), waiting(3, name="other")]
    assert profiles(looks.look(10, jobs)) == ([0, 0, 1], [0, 0, 0], [[False] * 2] * 3)
    for time in (20, 50):
        seen = looks.look(time, jobs, {1: {"step": 5.0 * time, "steps": 1e5}})
    assert profiles(seen) == ([0, 0, 1], [250, 0, 0], [[True, False], [True, False], [False, False]])
    looks = Looks(learns=False)
    looks.profiled = True
    nothing = profiles(looks.look(10, jobs))[2]
    assert nothing == [[True] * 2] * 3, "where nothing is learned there is nothing to measure"


def test_no_sample_is_taken_of_the_pace_of_another_run() -> None:
    looks = Looks()
    looks.profiled = True
    for time in (10, 20, 40):
        looks.look(time, [running(1, on={"a1": 1})], {1: {"step": 5.0 * time, "steps": 1e5}})
    again = [running(1, on={"v1": 1}, start=100.0, restarts=1)]
    seen = looks.look(110, again, {1: {"step": 220, "steps": 1e5}})
    assert profiles(seen)[2] == [[True, False]], "its pace is still that of its run on the other type"
    assert told(seen, "steps_per_second", 1) > 0
    seen = looks.look(135, again, {1: {"step": 270, "steps": 1e5}})
    assert profiles(seen)[1:] == ([70.0], [[True, True]])
    assert known_rate(seen, 1, "v100", 1) == pytest.approx(2.0)


def test_a_server_on_which_a_class_is_slower_is_told() -> None:
    looks = Looks()
    usual = [running(number, on={"a1": 1}) for number in (1, 2, 3)]
    looks.trains(usual, 10.0, 300.0)
    assert looks.look(301.0, usual).speeds is not None
    slow = [running(4, on={"a2": 1}, start=310.0)]
    seen = looks.trains(slow, 5.0, 600.0, since=310.0)
    assert seen.nodes.names == ("a1", "a2", "v1")
    assert seen.speeds is not None
    on_a1, on_a2, on_v1 = seen.speeds.on_nodes(np.array([0]), 3)[:, 0].tolist()
    assert on_a2 / on_a1 == pytest.approx(0.5, rel=0.15)
    assert on_v1 == 1.0, "of another type nothing is known"
