"""Numbers of things in words."""

from __future__ import annotations

from slurm_fair.model.counted import counted


def test_one_thing_is_single_and_any_other_number_is_many() -> None:
    assert [counted(number, "job") for number in (0, 1, 2)] == ["0 jobs", "1 job", "2 jobs"]
