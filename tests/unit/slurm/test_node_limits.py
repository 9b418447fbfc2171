"""The most nodes of a job are asked for each run and again after a while, and no user's words change them."""

from __future__ import annotations

import pytest

from slurm_fair.slurm.reading.node_limits import NodeLimits, most_nodes
from tests.support.slurm_stub import Stub

END = "endhere\n"


def _line(job: int, nodes: str = "2-4", name: str = "train") -> str:
    return f"JobId={job} JobName={name} NumNodes={nodes} NumCPUs=8 NumTasks=2\n"


@pytest.mark.parametrize(
    ("said", "most"),
    [
        (_line(7, "1"), 0),
        (_line(7, "1-1"), 1),
        (_line(7, "2-16"), 16),
        (_line(7, "1-999999999"), 999_999_999),
        (_line(7, "1-1000000000"), 1),
        (_line(7, "12345678901"), 1),
        (_line(7, "٣-٣"), 1),
        (_line(7, "1-4", "x NumNodes=1-99 NumCPUs=9"), 1),
        (_line(7, "1-4", "x NumNodes=1 NumCPUs=9"), 1),
        (_line(7, "1-4", "NumNodes=1-99"), 4),
        ("JobId=7 NumNodes=1-4\n", 1),
        ("", 1),
    ],
)
def test_a_number_counts_only_where_it_is_slurms_own(said: str, most: int) -> None:
    assert most_nodes(said) == most


def test_a_job_is_asked_for_once_in_each_run_and_forgotten_when_it_is_gone(stub: Stub) -> None:
    stub.answers(
        "scontrol",
        _line(7) + END + _line(8, "1") + END,
        _line(7, "1-9") + END,
        _line(8, "1-5") + END,
    )
    limits = NodeLimits(stub.commands())
    assert limits.of(7, 0) == 1
    for _ in range(2):
        limits.learn([(8, 0), (7, 0)])
    assert (limits.of(7, 0), limits.of(8, 0), limits.of(9, 0)) == (4, 0, 1)
    limits.learn(iter([(7, 1)]))
    assert (limits.of(7, 1), limits.of(7, 0), limits.of(8, 0)) == (9, 1, 1)
    limits.learn([(7, 1), (8, 0)])
    assert (limits.of(7, 1), limits.of(8, 0)) == (9, 5)
    asked = [[line for line in fed if line.startswith("show job")] for fed in stub.fed("scontrol")]
    assert asked == [["show job 7", "show job 8"], ["show job 7"], ["show job 8"]]


def test_a_job_of_which_slurm_did_not_tell_is_asked_for_again(stub: Stub) -> None:
    stub.answers("scontrol", (1, "", "no controller"), _line(7) + END)
    limits = NodeLimits(stub.commands())
    limits.learn([(7, 0)])
    assert limits.of(7, 0) == 1
    limits.learn([(7, 0)])
    assert limits.of(7, 0) == 4


def test_a_job_that_spoils_its_line_has_one_node_and_the_next_one_its_own(stub: Stub) -> None:
    odd = f"JobId=7 JobName=x\nJobId=7 NumNodes=1-99 NumCPUs=1\nJobId=8 NumNodes=1-99 NumCPUs=1\n{END}"
    stub.answers("scontrol", odd + _line(8, "1-3") + END)
    limits = NodeLimits(stub.commands())
    limits.learn([(7, 0), (8, 0)])
    assert (limits.of(7, 0), limits.of(8, 0)) == (1, 3)


def test_of_many_new_jobs_the_first_five_hundred_are_asked_for_at_once(stub: Stub) -> None:
    first = "".join(_line(job) + END for job in range(1, 501))
    stub.answers("scontrol", first, _line(501) + END)
    limits, everybody = NodeLimits(stub.commands()), [(job, 0) for job in range(501, 0, -1)]
    limits.learn(everybody)
    assert (limits.of(1, 0), limits.of(500, 0), limits.of(501, 0)) == (4, 4, 1)
    limits.learn(everybody)
    assert (limits.of(1, 0), limits.of(501, 0)) == (4, 4)


def test_a_number_that_its_owner_changed_is_seen_after_a_while(stub: Stub) -> None:
    stub.answers("scontrol", _line(7) + END + _line(8) + END, (1, "", "no controller"), _line(7, "1-9") + END)
    limits = NodeLimits(stub.commands())
    limits.learn([(7, 0), (8, 0)], 100.0)
    limits.learn([(7, 0)], 159.0)
    assert len(stub.ran("scontrol")) == 1
    for instant, most in ((160.0, 4), (161.0, 9), (200.0, 9)):
        limits.learn([(7, 0)], instant)
        assert limits.of(7, 0) == most
    assert len(stub.ran("scontrol")) == 3


def test_of_many_old_numbers_the_oldest_hundred_are_asked_for_at_once(stub: Stub) -> None:
    some, more = [(job, 0) for job in range(1, 121)], [(job, 0) for job in range(121, 131)]
    stub.answers("scontrol", "")
    limits = NodeLimits(stub.commands())
    for instant, jobs in ((0.0, more), (1.0, some)):
        asked = "".join(_line(job) + END for job, _ in jobs)
        stub.answers("scontrol", *[asked] * 3)
        limits.learn(jobs + (more if jobs is some else []), instant)
    limits.learn(some + more, 100.0)
    asked_again = [line for line in stub.fed("scontrol")[-1] if line.startswith("show job")]
    assert asked_again[:10] == [f"show job {job}" for job, _ in more]
    assert len(asked_again) == 100


def test_several_runs_of_one_record_cost_one_question(stub: Stub) -> None:
    stub.answers("scontrol", _line(7) + END)
    limits = NodeLimits(stub.commands())
    limits.learn([(7, 0), (7, 1)])
    assert (limits.of(7, 0), limits.of(7, 1)) == (4, 4)


def test_nobody_new_costs_no_question(stub: Stub) -> None:
    NodeLimits(stub.commands()).learn([])
    assert stub.ran("scontrol") == []
