"""The numbers that policies are told of jobs, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.knowing.telling import Learned, told_of, with_place_speeds, with_speeds
from slurm_fair.model import Beliefs, JobState, Mode, Sizes, Snapshot, Speeds, Told
from slurm_fair.model.columns import Floats
from slurm_fair.model.ids import pack
from slurm_fair.throughput.history import RunTimes
from tests.support.builders import job, node, snapshot
from tests.support.reporting import reports

NAN, INF = float("nan"), float("inf")
RUNNING = JobState.RUNNING


def seen(count: int = 1, gpus: int = 1, said: dict[int, Any] | None = None) -> Snapshot:
    """So many jobs that run, some of which have reported."""
    jobs = [job(number, gpus=gpus, state=RUNNING, on={"n1": gpus}) for number in range(1, count + 1)]
    shown = snapshot(nodes={"n1": 64}, jobs=jobs)
    return replace(shown, reported=reports(shown, said)) if said else shown


def beliefs(number: int = 1, **columns: float) -> Beliefs:
    """One job that reported."""
    quiet = dict.fromkeys(Beliefs.none()._columns, 0.0) | {
        "done": 40.0, "total": 100.0, "pace": 2.0, "speed": 1.0, "sampled": NAN,
    } | columns  # fmt: skip
    kinds = {name: getattr(Beliefs.none(), name).dtype for name in quiet}
    table: dict[str, Any] = {name: np.array([value], dtype=kinds[name]) for name, value in quiet.items()}
    return Beliefs(**(table | {"key": np.array([pack(number)])}))


def learned(
    of: Beliefs | None = None,
    ran: float = 0.0,
    seconds: float = NAN,
    deviation: float = NAN,
    count: float = 0.0,
) -> Learned:
    """The same known of one job: its class's run times, and for how long it ran."""
    times = RunTimes(np.array([seconds]), np.array([deviation]), np.array([count]))
    return Learned(Beliefs.none() if of is None else of, times, np.array([ran]))


def told(known: Learned, shown: Snapshot | None = None) -> Told:
    return told_of(Told.nothing(1, 1), shown or seen(), known)


def of(column: Floats) -> float:
    return float(column.item())


# -- run times of jobs that are alike -------------------------------------------------------------------------


@pytest.mark.parametrize(("ran", "left"), [(0.0, 500.0), (200.0, 300.0), (499.5, 1.0), (9e9, 1.0)])
def test_a_silent_job_has_left_what_jobs_of_its_class_took_less_what_it_ran(ran: float, left: float) -> None:
    found = told(learned(ran=ran, seconds=500.0, deviation=0.4))
    assert (of(found.left_seconds), of(found.left_spread)) == (left, 0.4)


@pytest.mark.parametrize("said", ["left_seconds", "declared_seconds"])
def test_a_job_of_which_somebody_said_its_time_is_left_with_that(said: str) -> None:
    before = Told.nothing(1, 1).with_columns(**{said: np.array([70.0])})
    found = told_of(before, seen(), learned(seconds=500.0, deviation=0.4))
    assert of(getattr(found, said)) == 70.0
    assert np.isnan(found.left_spread).all()


def test_a_class_of_which_no_job_ended_tells_nothing() -> None:
    assert np.isnan(told(learned()).left_seconds).all()
    assert not learned().says_anything
    assert learned(seconds=1.0).says_anything


# -- progress -------------------------------------------------------------------------------------------------


def test_progress_is_told_in_seconds_on_the_reference_type() -> None:
    """40 of 100 steps at 2 a second, where the job runs half as fast as it would there."""
    found = told(learned(beliefs(speed=0.5)))
    assert (of(found.done_seconds), of(found.left_seconds)) == (10.0, 15.0)
    assert of(found.steps_per_second) == 4.0


def test_what_a_job_says_of_its_end_comes_before_its_class() -> None:
    found = told(learned(beliefs(), seconds=500.0, deviation=0.4))
    assert of(found.left_seconds) == 30.0
    assert np.isnan(found.left_spread).all()


def test_a_job_that_counts_epochs_has_no_steps_per_second() -> None:
    found = told(learned(beliefs(counts_epochs=1.0)))
    assert np.isnan(found.steps_per_second).all()
    assert of(found.done_seconds) == 20.0


def test_a_job_that_never_said_how_much_it_has_to_do_keeps_the_time_of_its_class() -> None:
    found = told(learned(beliefs(total=NAN), seconds=500.0, deviation=0.4))
    assert (of(found.done_seconds), of(found.left_seconds), of(found.left_spread)) == (20.0, 500.0, 0.4)


@pytest.mark.parametrize("total", [40.0, 40.0001, 7.0, 0.0])
def test_a_job_that_should_be_over_has_a_second_left(total: float) -> None:
    assert of(told(learned(beliefs(total=total))).left_seconds) == 1.0


def test_a_job_without_end_never_ends() -> None:
    assert of(told(learned(beliefs(total=INF))).left_seconds) == INF


@pytest.mark.parametrize("unknown", [{"pace": 0.0}, {"pace": NAN}, {"done": NAN}])
def test_without_progress_or_pace_nothing_is_told_of_it(unknown: dict[str, Any]) -> None:
    found = told(learned(beliefs(**unknown)))
    assert np.isnan([found.done_seconds, found.left_seconds, found.steps_per_second]).all()


@pytest.mark.parametrize(("silent", "left"), [(0.0, 30.0), (60.0, 30.0), (660.0, 60.0), (1260.0, 120.0)])
def test_a_pace_that_is_not_renewed_halves_in_ten_minutes_after_the_first(silent: float, left: float) -> None:
    shown = seen(said={1: {"step": 40.0, "silent_seconds": silent}})
    found = told(learned(beliefs()), shown)
    assert of(found.left_seconds) == pytest.approx(left)
    assert of(found.done_seconds) == 20.0


@pytest.mark.parametrize(("count", "left"), [(2.4, 30.0), (2.5, 1000 * np.exp(-0.4) - 50)])
def test_enough_ended_jobs_bound_how_soon_one_may_say_that_it_ends(count: float, left: float) -> None:
    """Two deviations of 0.2 below a median of 1000 s; 50 s have run."""
    found = told(learned(beliefs(), ran=50.0, seconds=1000.0, deviation=0.2, count=count))
    assert of(found.left_seconds) == pytest.approx(left)


def test_that_bound_makes_no_claim_shorter() -> None:
    found = told(learned(beliefs(total=1e5), seconds=1000.0, deviation=0.2, count=9.0))
    assert of(found.left_seconds) == (1e5 - 40) / 2


# -- words of jobs --------------------------------------------------------------------------------------------


def test_words_of_a_job_are_told_of_that_job_alone() -> None:
    shown = seen(
        2, said={2: {"step": 40.0, "epochs": 9.0, "batch_size": 64.0, "mode": Mode.GNS, "model": "m=1"}}
    )
    none = np.full(2, NAN)
    known = Learned(beliefs(2), RunTimes(none, none, np.zeros(2)), np.zeros(2))
    found = told_of(Told.nothing(2, 1), shown, known)
    assert found.batch_size.tolist() == [0, 64]
    assert found.mode.tolist() == [Mode.STATIC, Mode.GNS]
    assert (found.model.tolist(), found.models) == ([-1, 0], ("m=1",))
    assert found.epochs.tolist() == pytest.approx([NAN, 9.0], nan_ok=True)


@pytest.mark.parametrize(
    ("step", "epoch", "told_epoch"),
    [
        (40.0, 3.0, 3.0),
        (80.0, 3.0, 1.5),
        (20.0, 3.0, 3.0),
        (NAN, 3.0, 3.0),
        (0.0, 3.0, 3.0),
        (40.0, NAN, NAN),
    ],
)
def test_epochs_are_believed_no_further_than_steps_are(step: float, epoch: float, told_epoch: float) -> None:
    shown = seen(said={1: {"step": step, "epoch": epoch}})
    assert of(told(learned(beliefs()), shown).epoch) == pytest.approx(told_epoch, nan_ok=True)


def test_epochs_of_a_job_that_counts_them_are_those_that_are_believed() -> None:
    shown = seen(said={1: {"epoch": 90.0}})
    assert of(told(learned(beliefs(counts_epochs=1.0)), shown).epoch) == 40.0


def test_a_batch_size_that_nobody_said_is_none() -> None:
    assert told(learned(beliefs()), seen(said={1: {"step": 40.0}})).batch_size.tolist() == [0]


# -- speeds ---------------------------------------------------------------------------------------------------


def speeds(rate: Any, job_class: int = 0, sizes: tuple[int, ...] = (1, 2)) -> Speeds:
    """Rates of one class by GPU type, size and spread."""
    table = np.array(rate, dtype=np.float64)[None]
    return Speeds(np.array([job_class]), np.array(sizes), table, np.zeros_like(table))


KINDS = {"a1": node(4, gpu_type="a100"), "v1": node(4, gpu_type="v100")}
MEASURED = [[[10.0, 10.0], [18.0, 9.0]], [[5.0, 5.0], [6.0, 4.5]]]  # [type][size][together, apart]


def of_two(**columns: Any) -> Snapshot:
    """One job on two GPUs of the first type."""
    quiet: dict[str, Any] = {"gpus": 2, "state": RUNNING, "on": {"a1": 2}}
    return snapshot(nodes=KINDS, jobs=[job(1, **(quiet | columns))])


def test_rates_count_against_the_first_type_and_spread_against_lying_together() -> None:
    found = with_speeds(Told.nothing(1, 2), of_two(), speeds(MEASURED))
    assert found.rate.tolist() == [[1.0, pytest.approx(6 / 18)]]
    assert found.spread_rate.tolist() == [[0.5, 0.75]]
    assert found.scaling.tolist() == [1.8]


def test_what_was_not_measured_stays_as_it_was_told() -> None:
    unknown = [[[NAN, NAN], [18.0, NAN]], [[NAN, NAN], [NAN, NAN]]]
    before = Told.nothing(1, 2).with_columns(
        rate=np.array([[7.0, 0.25]]), spread_rate=np.array([[0.5, 0.75]]), scaling=np.array([3.0])
    )
    found = with_speeds(before, of_two(), speeds(unknown))
    assert found.rate.tolist() == [[1.0, 0.25]]
    assert found.spread_rate.tolist() == [[0.5, 0.75]]
    assert found.scaling.tolist() == [3.0]


@pytest.mark.parametrize(("rate", "ratio"), [(1e9, 100.0), (1e-9, 0.01), (0.0, 0.01)])
def test_one_type_is_no_more_than_a_hundred_times_as_fast_as_another(rate: float, ratio: float) -> None:
    found = with_speeds(Told.nothing(1, 2), of_two(), speeds([[[1.0] * 2] * 2, [[rate] * 2] * 2]))
    assert found.rate[0, 1] == ratio


def test_a_reference_of_no_speed_tells_no_ratio() -> None:
    found = with_speeds(Told.nothing(1, 2), of_two(), speeds([[[0.0] * 2] * 2, [[5.0] * 2] * 2]))
    assert found.rate.tolist() == [[1.0, 1.0]]


def test_of_a_job_without_a_class_nothing_is_told_anew() -> None:
    before = Told.nothing(1, 2)
    assert with_speeds(before, of_two(), speeds(MEASURED, job_class=-1)) is before


@pytest.mark.parametrize(
    ("on", "speed"),
    [({"a1": 2}, 1.0), ({"v1": 2}, 0.5), ({"a1": 1, "v1": 1}, 0.5)],
)
def test_the_slowest_gpu_of_a_job_sets_its_pace(on: dict[str, int], speed: float) -> None:
    found = with_place_speeds(beliefs(speed=9.0), of_two(on=on), np.array([[1.0, 0.5]]), speeds(MEASURED))
    assert found.speed.tolist() == [speed]


def test_a_job_that_waits_keeps_the_speed_of_its_last_place() -> None:
    shown = of_two(state=JobState.WAITING, on={})
    assert with_place_speeds(beliefs(speed=9.0), shown, np.ones((1, 2)), speeds(MEASURED)).speed == [9.0]


@pytest.mark.parametrize(("known", "speed"), [(MEASURED, 10 / 18), ([[[NAN] * 2] * 2] * 2, 0.5)])
def test_a_job_in_another_size_is_as_fast_as_measured_else_as_its_gpus(known: Any, speed: float) -> None:
    elastic = Sizes(np.array([0, 0]), np.array([1, 2]), np.array([False, True]))
    shown = replace(of_two(gpus=1, on={"a1": 1}), sizes=elastic)
    found = with_place_speeds(beliefs(), shown, np.ones((1, 2)), speeds(known))
    assert found.speed.tolist() == [speed]
