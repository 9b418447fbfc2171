"""Values go through a pipe as plain data: a length, then what the fields hold."""

from __future__ import annotations

import os
import pickle
from typing import Any

import numpy as np
import pytest

from slurm_fair.model import Explanation, Placement, Verdict
from slurm_fair.planner.frames import HEAD, framed, plain_data, unframed
from slurm_fair.policy import View
from tests.support.planning import shown


class Command:
    """A pickle that runs something when it is read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("true",)


def body(message: Any) -> bytes:
    """The bytes behind the length, which must be right."""
    frame = framed(message)
    assert HEAD.unpack_from(frame)[0] == len(frame) - HEAD.size
    return frame[HEAD.size :]


def test_a_message_comes_out_as_it_went_in() -> None:
    said = ("plan", 7, {"verdict": np.array([1, 2], dtype=np.int8), "memory": {"a": [1.5, None]}})
    for read in (unframed, plain_data):
        word, number, parts = read(body(said))
        assert (word, number, parts["memory"]) == ("plan", 7, {"a": [1.5, None]})
        assert parts["verdict"].tolist() == [1, 2]
        assert parts["verdict"].dtype == np.int8


def test_what_a_value_worked_out_and_kept_does_not_travel() -> None:
    seen = shown()
    fresh = len(body(seen))
    assert seen.waiting.any()
    assert len(body(seen)) == fresh
    read = unframed(body(seen))
    assert isinstance(read, View)
    assert read.waiting.tolist() == seen.waiting.tolist()


def test_our_nouns_are_plain_data_and_nothing_else_is() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    nouns = (Verdict.GRANT, Placement.none(), Explanation(nothing, nothing, np.zeros(0), ()))
    assert plain_data(body(nouns))[0] is Verdict.GRANT
    for odd in (Command(), shown(), print, os.path.join):
        with pytest.raises(pickle.UnpicklingError, match="a plan is plain data"):
            plain_data(body(odd))
