"""Keys of jobs that a policy never stops, in its memory; whatever else stands there names nobody."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slurm_fair.policy import never_stopped, with_never_stopped


def test_the_keys_are_read_as_they_were_noted_beside_what_else_is_kept() -> None:
    memory = with_never_stopped({"mine": 1}, np.array([3, 5]))
    assert memory == {"mine": 1, "guaranteed": [3, 5]}
    assert never_stopped(memory).tolist() == [3, 5]
    assert never_stopped(with_never_stopped(memory, np.array([7]))).tolist() == [7]


@pytest.mark.parametrize("kept", [None, 3, "35", {"3": 5}, ["3", None, 2.5]], ids=str)
def test_another_word_of_a_policy_names_nobody(kept: Any) -> None:
    assert never_stopped({}).size == never_stopped({"guaranteed": kept}).size == 0
