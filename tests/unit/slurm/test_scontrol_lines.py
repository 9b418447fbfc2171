"""Lines for scontrol hold one act on one job, and nothing that a text could smuggle in."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.errors import SlurmTextError
from slurm_fair.model import Action, Verb
from slurm_fair.model.ids import pack
from slurm_fair.slurm.acting import scontrol_lines as lines
from slurm_fair.slurm.acting.scontrol_lines import ScontrolLines

HOSTILE = (
    "7 8", "7\nrelease 9", "7\n", " 7", "", "0", "07", "-7", "+7", "7_", "7_[]", "7_[1-3", "7_x", "7,8",
    "7;8", "٣", "12345678901", "7_12345678", "all", "7\x00",
)  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_no_job_id_gets_into_no_line(text: str) -> None:
    for write in (
        lambda: lines.update(text, start="now"),
        lambda: lines.resize(text, ("numtasks=1",)),
        lambda: lines.requeue_lines(text),
        lambda: lines.close_lines(text, 1795009500.0, None, False),
        lambda: lines.free_lines(text, None, False, True, False),
    ):
        with pytest.raises(SlurmTextError, match="is no job id"):
            write()


@given(st.text(max_size=30), st.text(max_size=12), st.text(max_size=12), st.none() | st.text(max_size=20))
def test_no_text_makes_two_lines_or_a_word_that_is_not_ours(
    job: str, start: str, eligible: str, nodes: str | None
) -> None:
    try:
        line = lines.update(job, start=start, eligible=eligible, nodes=nodes)
    except SlurmTextError:
        return
    words = line.split(" ")
    assert words[:2] == ["update", f"jobid={job}"]
    assert all(re.fullmatch(r"(reqnodelist|starttime|eligibletime)=[A-Za-z0-9_.,+-]*", w) for w in words[2:])


def test_an_id_is_the_one_that_the_user_knows() -> None:
    assert (lines.job_id(pack(7)), lines.job_id(pack(7, 0)), lines.job_id(pack(7, 4_000_000))) == (
        "7",
        "7_0",
        "7_4000000",
    )
    assert lines.ids(Action(Verb.ASK, pack(7, 2), 9, 0.0, 0)) == ("7_2", "9")
    with pytest.raises(SlurmTextError, match="'0' is no job id"):
        lines.job_id(pack(0))


def test_waiting_tasks_of_an_array_are_named_one_by_one_up_to_the_end_of_a_line() -> None:
    assert lines.tasks_id(pack(7), "1,3-4") == "7_[1,3-4]"
    most = "1" * lines.MOST_TASK_TEXT
    assert lines.tasks_id(pack(7), most) == f"7_[{most}]"
    for text in (most + "1", "", "1]", "1 2", "1%2", "1-3:2"):
        with pytest.raises(SlurmTextError, match="is no job id"):
            lines.tasks_id(pack(7), text)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        (None, ""),
        ("", " reqnodelist="),
        ("n[09-10],m", " reqnodelist=n09,n10,m"),
        ("(null)", " reqnodelist="),
    ],
)
def test_a_list_is_set_taken_away_or_left_alone(nodes: str | None, words: str) -> None:
    assert lines.update("7", nodes=nodes) == f"update jobid=7{words}"
    assert lines.update("7", start="now", nodes=nodes) == f"update jobid=7{words} starttime=now"


@pytest.mark.parametrize("nodes", ["n1 starttime=now", "n1\nexit", "n1;n2", "-n1", "n1,", "n\u0661", "n1=2"])
def test_what_is_no_node_gets_into_no_line(nodes: str) -> None:
    with pytest.raises(SlurmTextError):
        lines.update("7", nodes=nodes)
    with pytest.raises(SlurmTextError):
        lines.open_lines("7", (nodes,), False, False)


@pytest.mark.parametrize(
    "when", ["now+0", "now+100", "now+", "now\n", "uts12345678", "uts123456789012", "uts-5", "NOW", "uts1e10"]
)
def test_what_is_no_time_gets_into_no_line(when: str) -> None:
    for name in ("start", "eligible"):
        with pytest.raises(SlurmTextError, match=f"is no time for {name}time"):
            lines.update("7", **{name: when})


def test_an_instant_is_cut_to_its_second() -> None:
    assert lines.uts(1795009500.99) == "uts1795009500"
    for never in (math.inf, -math.inf, math.nan):
        with pytest.raises(SlurmTextError, match="is no instant"):
            lines.uts(never)


@pytest.mark.parametrize(
    "word",
    [
        "trespernode=gres:gpu:2",
        "tresperjob=gres/gpu:a100-40g:16",
        "numnodes=12-12",
        "numtasks=99999999",
        "numcpus=1",
    ],
)
def test_a_size_is_sent_as_it_is_said(word: str) -> None:
    assert lines.resize("7", (word, "numcpus=8")) == (f"update jobid=7 {word} numcpus=8",)


@pytest.mark.parametrize(
    "word",
    [
        "numnodes=2-3", "numnodes=2", "numnodes=1-12", "numnodes=0-0", "numtasks=0", "numcpus=100000000",
        "trespernode=gres:gpu:0", "tresperjob=gres:gpu:100000", "tresperjob=license:2", "tresperjob=gres:gpu",
        "trespernode=gres:gpu:2 account=x", "trespernode=gres:gpu:1a:2", "numcpus=4\n", "", "partition=all",
    ],
)  # fmt: skip
def test_what_is_no_size_is_refused(word: str) -> None:
    with pytest.raises(SlurmTextError, match="is no size of a job"):
        lines.resize("7", ("numtasks=1", word))


def test_no_words_change_no_size() -> None:
    assert lines.resize("7", ()) == ()


@pytest.mark.parametrize(
    ("clear", "held", "then"),
    [
        (None, False, ("update jobid=7 starttime=uts1795009500",)),
        ("", False, ("update jobid=7 reqnodelist= starttime=uts1795009500",)),
        ("n2", True, ("update jobid=7 reqnodelist=n2 starttime=uts1795009500", "release 7")),
    ],
)
def test_a_begin_time_stands_before_a_hold_is_lifted(
    clear: str | None, held: bool, then: tuple[str, ...]
) -> None:
    assert lines.close_lines("7", 1795009500.5, clear, held) == ScontrolLines(then=then)


@pytest.mark.parametrize(
    ("next_second", "held", "then"),
    [
        (False, False, ("update jobid=7 starttime=now",)),
        (True, False, ("update jobid=7 starttime=now+1",)),
        (False, True, ("update jobid=7 eligibletime=now+1", "release 7")),
        (True, True, ("update jobid=7 eligibletime=now+1", "release 7")),
    ],
)
def test_a_job_has_its_nodes_before_it_may_start(
    next_second: bool, held: bool, then: tuple[str, ...]
) -> None:
    pin = ("update jobid=7 reqnodelist=n2,n1",)
    assert lines.open_lines("7", ("n2", "n1"), next_second, held) == ScontrolLines(pin, then)


@pytest.mark.parametrize(
    ("clear", "gated", "held", "next_second", "then"),
    [
        (None, False, False, True, ()),
        (None, True, False, False, ("update jobid=7 starttime=now",)),
        (None, True, False, True, ("update jobid=7 starttime=now+1",)),
        (None, False, True, True, ("release 7",)),
        ("", False, False, False, ("update jobid=7 reqnodelist=",)),
        ("n4", False, True, True, ("update jobid=7 reqnodelist=n4", "release 7")),
        ("", True, True, False, ("update jobid=7 reqnodelist= starttime=now", "release 7")),
    ],
)
def test_freeing_says_what_is_ours_and_no_more(
    clear: str | None, gated: bool, held: bool, next_second: bool, then: tuple[str, ...]
) -> None:
    assert lines.free_lines("7", clear, gated, held, next_second) == ScontrolLines(then=then)


@pytest.mark.parametrize("next_second", [False, True])
def test_freeing_gives_a_begin_time_of_its_users_own_back_where_ours_stands(next_second: bool) -> None:
    for gated, then in ((True, ("update jobid=7 starttime=uts1795009000",)), (False, ())):
        freed = lines.free_lines("7", None, gated, False, next_second, 1795009000.0)
        assert freed == ScontrolLines(then=then)


def test_a_job_that_ended_is_not_put_back() -> None:
    assert lines.requeue_lines("7_2") == ScontrolLines(then=("requeue incomplete 7_2",))
