"""Failing open frees what can be freed, names the rest, and does nothing where it cannot see."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace

import pytest

from slurm_fair.errors import SlurmUnreachable
from slurm_fair.model import Action, Outcome, Result, Verb
from slurm_fair.model.ids import pack
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.fail_open import Liberated, NoIntents, liberate, liberate_patiently, pins_left
from slurm_fair.slurm.reading.queue import BETWEEN, ROW_END
from tests.support.slurm_stub import QUIET, Stub, row

SUBMIT, GATE = float(QUIET["SubmitTime"]), float(QUIET["EligibleTime"])
NOW = 1795001000.0
FREE = {"EligibleTime": str(int(NOW))}


def _mark(job: int) -> Mark:
    return Mark(pack(job), job, False, SUBMIT, 0, GATE, False, 1.0)


def _texts(*comments: tuple[int, str]) -> str:
    """The answer to the question for comments and what else users wrote."""
    cells = ((str(job), "(null)", "", "/home", comment, "train") for job, comment in comments)
    return "".join(f"{BETWEEN.join(cell)}{ROW_END}\n" for cell in cells)


def _free(stub: Stub, *marks: Mark, lost: bool = False) -> Liberated:
    return liberate(stub.commands(), marks, lambda: NOW, lost)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (
            [(1, "", "slurm_load_jobs error: no")],
            "the queue cannot be read, so nothing was freed: squeue: slurm",
        ),
        ([row()[:-5]], "the queue cannot be read, so nothing was freed: squeue: the last row is cut off"),
        ([row(), (1, "", "no")], "the jobs' stamps cannot be read, so nothing was freed: squeue: no"),
        ([row(), "7"], "the jobs' stamps cannot be read, so nothing was freed: squeue: the last row"),
    ],
)
def test_where_slurm_does_not_answer_nothing_is_done(
    stub: Stub, answers: list[str | tuple[int, str, str]], said: str
) -> None:
    stub.answers("squeue", *answers)
    with pytest.raises(SlurmUnreachable) as problem:
        _free(stub, _mark(7))
    assert str(problem.value).startswith(said)
    assert stub.ran("scontrol") == []


def test_jobs_that_are_freed_are_counted_and_the_others_named(stub: Stub) -> None:
    rows, after = (
        row(JobID=7) + row(JobID=8) + row(JobID=9),
        row(JobID=7, **FREE) + row(JobID=8) + row(JobID=9),
    )
    stub.answers("squeue", rows, _texts((7, ""), (8, ""), (9, "")), rows, after)
    stub.answers("scontrol", (1, "", "Access/permission denied for job 8\n"))
    freed = _free(stub, _mark(7), _mark(8))
    assert freed == Liberated(1, ("job 8: Access/permission denied for job 8",))
    assert [line for fed in stub.fed("scontrol") for line in fed if "jobid" in line] == [
        "update jobid=7 starttime=now",
        "update jobid=8 starttime=now",
    ]


def test_a_job_that_the_controller_never_saw_is_known_by_its_stamp(stub: Stub) -> None:
    stamp = f"mine slurm_fair:v1,gate=uts{int(GATE)} too"
    stub.answers("squeue", row(), _texts((7, stamp)), row(), row(**FREE))
    assert _free(stub) == Liberated(1, ())
    assert stub.fed("scontrol")[0][0] == "update jobid=7 starttime=now"


@pytest.mark.parametrize("stamp", [f"gate=uts{int(GATE)}", "gate=hold"])
def test_a_mark_of_an_earlier_bearer_of_its_id_hides_no_stamp(stub: Stub, stamp: str) -> None:
    now, tried = row(), []
    if stamp == "gate=hold":
        now = row(PriorityLong=0, Reason="JobHeldUser", EligibleTime="N/A")
        tried = [f"7{BETWEEN}{int(SUBMIT)}{BETWEEN}\n"]
    stub.answers("squeue", now, _texts((7, f"slurm_fair:v1,{stamp}")), *tried, now, row(**FREE))
    old = replace(_mark(7), submit=SUBMIT - 5000, gate_until=GATE - 4000)
    assert _free(stub, old) == Liberated(1, ())


@pytest.mark.parametrize(("lost", "freed"), [(False, 0), (True, 1)])
def test_a_gate_that_was_moved_since_is_ours_only_where_the_journal_is_lost(
    stub: Stub, lost: bool, freed: int
) -> None:
    now = row(RestartCnt=1)
    stub.answers("squeue", now, _texts((7, "slurm_fair:v1,gate=+600")), now, row(RestartCnt=1, **FREE))
    assert _free(stub, lost=lost).freed == freed


def test_a_requeued_job_that_waits_for_no_gate_any_more_is_not_counted_by_its_stamp(stub: Stub) -> None:
    stub.answers("squeue", row(RestartCnt=1, **FREE), _texts((7, "slurm_fair:v1,gate=+600")))
    assert _free(stub, lost=True) == Liberated(0, ())
    assert stub.ran("scontrol") == []


def test_a_hold_of_a_run_that_was_clear_is_let_alone_and_so_is_one_of_a_task_that_was_split_off_it(
    stub: Stub,
) -> None:
    before = Liberated(1, ("job 7_1: no",), unfreed=(9,), clear=frozenset({(7, SUBMIT, 0), (6, SUBMIT, 0)}))
    held = {"PriorityLong": 0, "Reason": "JobHeldUser", "EligibleTime": "N/A"}
    split, stuck = ({"JobID": job, "ArrayJobID": 7, "ArrayTaskID": task} for job, task in ((8, 3), (9, 1)))
    requeued = {"JobID": 6, "ArrayJobID": 6, "RestartCnt": 1}
    rows = "".join(row(**job, **held) for job in ({}, split, stuck, requeued))
    after = "".join(row(**job, **FREE) for job in (stuck, requeued))
    stub.answers("squeue", rows, _texts((9, ""), (6, "")), rows, after)
    marks = [replace(mark, gate_until=math.inf) for mark in (_mark(7), _mark(6))]
    marks = [marks[0], replace(marks[0], whole_record=True), replace(marks[1], restarts=1)]
    freed = liberate(stub.commands(), marks, lambda: NOW, before=before)
    assert (freed.freed, freed.left) == (2, ())
    assert [line for fed in stub.fed("scontrol") for line in fed if line != "exit"] == [
        "release 7_1",
        "release 6",
    ]
    assert freed.clear == before.clear | {(9, SUBMIT, 0), (6, SUBMIT, 1)}


@pytest.mark.parametrize(("lost", "freed"), [(False, 1), (True, 0)])
def test_a_gate_of_ours_that_comes_late_is_taken_away_where_its_mark_names_it(
    stub: Stub, lost: bool, freed: int
) -> None:
    before = Liberated(1, ("job 9: no",), clear=frozenset({(7, SUBMIT, 0)}))
    stub.answers("squeue", row(), *([] if lost else [_texts((7, "")), row(), row(**FREE)]))
    found = liberate(stub.commands(), [_mark(7)], lambda: NOW, lost, before=before)
    assert (found.freed, found.left) == (freed, ())


@pytest.mark.parametrize("version", [0, 1])
def test_a_begin_time_of_its_owners_own_stays_though_the_journal_is_lost(stub: Stub, version: int) -> None:
    now = row(RestartCnt=1)
    stub.answers("squeue", now, _texts((7, f"slurm_fair:v{version},begin=uts{int(GATE)}")), now, now)
    assert _free(stub, lost=True) == Liberated(0, ())


NO_GPUS = {"tres_alloc": "cpu=1,mem=1G,node=1", "tres_per_job": "N/A"}


ALONE = {"OverSubscribe": "NO"}  # it takes whole nodes


@pytest.mark.parametrize(
    ("marked", "wants"),
    [(True, NO_GPUS), (True, NO_GPUS | ALONE), (False, NO_GPUS | ALONE), (False, NO_GPUS)],
)
def test_a_job_is_freed_though_it_asks_for_no_gpu(stub: Stub, marked: bool, wants: dict[str, str]) -> None:
    """It takes whole nodes, or a template gated it, or its user has asked for no GPU since we marked it."""
    stamp = "" if marked else f"slurm_fair:v1,gate=uts{int(GATE)}"
    now = row(ReqNodes="n1" if marked else "", **wants)
    stub.answers("squeue", now, _texts((7, stamp)), now, row(**FREE, **wants))
    pinned = Mark(pack(7), 7, False, SUBMIT, 0, GATE, True, 1.0, pin="n1")
    assert _free(stub, *[pinned] * marked) == Liberated(1, ())
    undone = "reqnodelist= " if marked else ""
    assert stub.fed("scontrol")[0][0] == f"update jobid=7 {undone}starttime=now"


def test_a_hold_of_a_submission_is_lifted_from_a_job_that_takes_whole_nodes(stub: Stub) -> None:
    held = {"PriorityLong": 0, "Reason": "JobHeldUser", "EligibleTime": "N/A", **NO_GPUS, **ALONE}
    tried = f"7{BETWEEN}{int(SUBMIT)}{BETWEEN}\n"
    free = row(**FREE, **NO_GPUS, **ALONE)
    stub.answers("squeue", row(**held), _texts((7, "slurm_fair:v1,gate=hold")), tried, row(**held), free)
    assert _free(stub) == Liberated(1, ())
    assert "release 7" in stub.fed("scontrol")[0]


def test_nobody_of_ours_costs_no_act(stub: Stub) -> None:
    stub.answers("squeue", row() + row(JobID=8, State="RUNNING", NodeList="n1"), _texts((7, "my words")))
    assert _free(stub) == Liberated(0, ())
    assert stub.ran("scontrol") == []


@pytest.mark.parametrize(("state", "named"), [("RUNNING", 1), ("SUSPENDED", 1), ("COMPLETED", 0)])
def test_a_list_of_ours_stays_on_what_has_its_gpus(stub: Stub, state: str, named: int) -> None:
    pinned = Mark(pack(7), 7, False, SUBMIT, 0, 0.0, True, 1.0, pin="n1")
    stub.answers("squeue", row(State=state, NodeList="n1", ReqNodes="n1"))
    found = _free(stub, pinned).pinned
    assert found == ({(pack(7), False): "job 7: n1"} if named else {})


@pytest.mark.parametrize(("count", "end"), [(1, "job 1: n1)"), (20, "job 20: n1)"), (23, "; and 3 more)")])
def test_running_jobs_with_a_list_of_ours_are_named_up_to_twenty(count: int, end: str) -> None:
    pinned = {(pack(job), False): f"job {job}: n1" for job in range(1, count + 1)}
    (line,) = pins_left(Liberated(0, (), pinned))
    assert line.count("job ") == min(count, 20)
    assert f"({'; '.join(list(pinned.values())[:20])}" in line
    assert end in line
    assert pins_left(Liberated(5, ("job 9: no",))) == []


def _one_after_another(*rounds: Liberated) -> tuple[list[Liberated], Iterable[Liberated]]:
    made: list[Liberated] = []

    def each() -> Iterable[Liberated]:
        for one in rounds:
            made.append(one)
            yield one

    return made, each()


@pytest.mark.parametrize(
    ("tries", "rounds", "freed", "left"),
    [
        (3, [Liberated(2, ())], 2, ()),
        (3, [Liberated(2, ("a",)), Liberated(1, ())], 3, ()),
        (2, [Liberated(2, ("a", "b")), Liberated(1, ("b",)), Liberated(4, ("b",))], 7, ("b",)),
        (2, [Liberated(0, ("a",)), Liberated(0, ("a",)), Liberated(1, ())], 1, ()),
        (0, [Liberated(1, ("a",))], 1, ("a",)),
    ],
)
def test_what_is_left_is_tried_again_and_all_that_was_freed_is_counted(
    tries: int, rounds: list[Liberated], freed: int, left: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("slurm_fair.slurm.fail_open.time", SimpleNamespace(sleep=pauses.append))
    pinned = {(pack(5), False): "job 5: n1"}
    last = Liberated(rounds[-1].freed, rounds[-1].left, pinned)
    made, each = _one_after_another(*rounds[:-1], last)
    again = iter(each)
    assert liberate_patiently(lambda before: next(again), tries) == Liberated(freed, left, pinned)
    assert (len(made), len(pauses)) == (len(rounds), len(rounds) - 1)


def test_a_log_that_keeps_nothing_numbers_acts_all_the_same() -> None:
    acts = [Action(Verb.FREE, pack(job), job, 0.0, 0) for job in (1, 2)]
    log = NoIntents()
    assert list(log.intend(acts, NOW)) == [0, 1]
    log.conclude([0], [Outcome(acts[0], Result.DONE)], NOW)
