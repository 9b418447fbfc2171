"""A lease term that is recommended."""

from __future__ import annotations

import pytest

from slurm_fair.errors import InputError
from slurm_fair.sim.tune import Tolerances


def test_no_number_is_no_tolerance() -> None:
    with pytest.raises(InputError, match="from 0 to 1"):
        Tolerances(jct=float("nan"))
