"""Facts that the doctor gathers."""

from __future__ import annotations

import pytest

from slurm_fair.doctor.facts import _ahead


@pytest.mark.parametrize(
    ("as_of", "took", "answered", "ahead"),
    [
        (100.0, 0.1, 100.9, 0.0),  # within the second
        (100.0, 0.1, 101.05, 0.0),  # said just before the second turned
        (105.0, 0.1, 100.9, pytest.approx(4.1)),
        (95.0, 0.1, 100.9, pytest.approx(-4.8)),
        (95.0, 9.0, 100.9, 0.0),  # a slow answer proves nothing
    ],
)
def test_the_clocks_are_compared_no_finer_than_the_answer_allows(
    as_of: float, took: float, answered: float, ahead: float
) -> None:
    assert _ahead(as_of, took, answered) == ahead
