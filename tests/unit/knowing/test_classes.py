"""Classes of jobs, by the words of their users."""

from __future__ import annotations

from slurm_fair.throughput import Alike
from tests.support.reporting import Looks, running, waiting


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
