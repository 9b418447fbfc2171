"""A record that bears another job than at the look before is noticed."""

from __future__ import annotations

from slurm_fair.slurm.reading.bearers import Bearers


def test_another_submission_of_a_run_is_another_job_and_a_new_run_is_no_news() -> None:
    bearers = Bearers()
    assert not bearers.changed({(1, 0): 5.0, (2, 0): 5.0})
    assert not bearers.changed({(1, 0): 5.0, (2, 0): 5.0})
    assert set(bearers.changed({(1, 0): 9.0, (2, 0): 5.0, (2, 1): 9.0, (3, 0): 9.0})) == {(1, 0)}
    assert not bearers.changed({(1, 0): 9.0})
