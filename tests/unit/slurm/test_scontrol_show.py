"""The text of `scontrol show job` for several jobs, each by itself."""

from __future__ import annotations

import pytest

from slurm_fair.slurm.scontrol_show import show_jobs
from tests.support.slurm_stub import Stub

END = "\nendhere\n"


def test_each_record_has_its_own_line(stub: Stub) -> None:
    stub.answers("scontrol", f"JobId=7 JobName=a{END}JobId=8 JobName=b{END}")
    assert show_jobs(stub.commands(), [7, 8], "-d") == {7: "JobId=7 JobName=a", 8: "JobId=8 JobName=b"}
    (argv,), (asked,) = stub.ran("scontrol"), stub.fed("scontrol")
    assert argv == ["-d", "-o"]
    assert asked == ["show job 7", "show hostnames endhere", "show job 8", "show hostnames endhere", "exit"]


def test_of_an_array_only_the_line_of_the_record_counts(stub: Stub) -> None:
    stub.answers("scontrol", f"JobId=8 ArrayJobId=7\nJobId=7 ArrayJobId=7\nJobId=77 x{END}")
    assert show_jobs(stub.commands(), [7]) == {7: "JobId=7 ArrayJobId=7"}


@pytest.mark.parametrize(
    "text", ["", "JobId=7 a\nJobId=7 b", "slurm_load_jobs error: Invalid job id specified"]
)
def test_what_is_not_one_line_is_none(stub: Stub, text: str) -> None:
    stub.answers("scontrol", f"{text}{END}")
    assert show_jobs(stub.commands(), [7]) == {7: ""}


def test_a_text_that_ends_an_answer_by_itself_costs_all_of_it(stub: Stub) -> None:
    stub.answers("scontrol", f"JobId=7 Comment=x{END}JobId=8{END}JobId=8 y{END}")
    assert show_jobs(stub.commands(), [7, 8]) == {}


def test_without_an_answer_nothing_is_known(stub: Stub) -> None:
    stub.answers("scontrol", f"JobId=7{END}", hangs=True)
    assert show_jobs(stub.commands(timeout_seconds=0.2), [7]) == {}
