"""Weights of tenants that a simulation reads beside a trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_fair.errors import InputError
from slurm_fair.trace import read_weights
from tests.support.trace_samples import DATA, changed


def test_weights_are_by_name() -> None:
    assert read_weights(DATA / "weights.csv") == {"phys": 3.0, "chem": 0.5}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("chem,0.5", "chem,0", ":3: share: '0' must be above 0"),
        ("chem,0.5", "chem,1e-300", ":3: share: '1e-300' is too small: give a number from 1e-12 to 1e+12"),
        ("chem,0.5", "chem,", ":3: share: is empty"),
        ("chem,0.5", ",2", ":3: name: is empty"),
        ("chem,0.5", "phys,2", ":3: name: 'phys' is there twice"),
        ("chem,0.5", "chem", ":3: row: has 1 cells"),
        ("share", "part", "no column share"),
        ("phys,3\nchem,0.5\n", "", "no row below its header"),
    ],
)
def test_bad_weights_are_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        read_weights(changed(tmp_path, "weights.csv", old, new))
    assert words in str(refused.value)
