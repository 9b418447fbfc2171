"""How long an arrival waits for the next look that may grant it something."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.simulations import jobs_of, only, written


@pytest.mark.parametrize(("align", "intervals"), [("rolling", 1), ("aligned", 2)])
def test_an_arrival_waits_up_to_one_interval_and_up_to_two_before_leases_end_together(
    tmp_path: Path, align: str, intervals: int
) -> None:
    trace = written(tmp_path, *(f"j{at},x,{300 * at + 7 * at % 300},1,100" for at in range(100)))
    out = tmp_path / "jobs.csv"
    options = ("--policy", "fifo", "--interval", "30", "--lease", "300", "--align", align)
    only(trace, *options, "--jobs-out", str(out))
    longest = max(float(row["wait_s"]) for row in jobs_of(out))
    assert 30 * (intervals - 1) < longest <= 30 * intervals
