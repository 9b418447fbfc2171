"""Text of users, asked for apart."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.slurm.command import CommandResult, Commands
from slurm_fair.slurm.reading.user_text import ask_text


class _Slurm(Commands):
    """squeue -o for a few jobs with comments."""

    def __init__(self, comments: dict[int, str]) -> None:
        super().__init__()
        self.comments = comments
        self.said: list[CommandResult] = []

    def run(
        self, *argv: str, stdin: str | None = None, timeout_seconds: float | None = None
    ) -> CommandResult:
        """The rows of the ids asked for, or all."""
        self.calls += 1
        listed = argv[argv.index("-j") + 1].split(",") if "-j" in argv else self.comments
        ids = [int(text) for text in listed]
        layout = re.fullmatch("%A(.*)%k(.*)", argv[-1], re.DOTALL)
        assert layout is not None
        between, end = layout.groups()
        rows = [f"{n}{between}{self.comments[n]}{end}\n" for n in ids if n in self.comments]
        self.said.append(CommandResult(argv, 0, "".join(rows), "", 0.0))
        return self.said[-1]


def test_plain_comments_cost_one_call() -> None:
    slurm = _Slurm({n: f"comment {n}" for n in range(1, 400)})
    found = ask_text(slurm, range(1, 401), "k")
    assert not isinstance(found, str)
    assert (found[7], 400 in found, slurm.calls) == (["comment 7"], False, 1)


def test_the_comments_of_a_whole_queue_cost_one_call_too_and_those_of_other_jobs_are_left_out() -> None:
    slurm = _Slurm({n: f"comment {n}" for n in range(1, 7001)})
    found = ask_text(slurm, range(1, 6001), "k")
    assert found == {n: [f"comment {n}"] for n in range(1, 6001)}
    assert slurm.calls == 1


def test_above_two_hundred_records_one_listing_of_all_serves() -> None:
    for asked, listed in ((200, 200), (201, 7000)):
        slurm = _Slurm(dict.fromkeys(range(1, 7001), "a"))
        assert len(ask_text(slurm, range(1, asked + 1), "k")) == asked
        assert [answer.out.count("\n") for answer in slurm.said] == [listed]


def test_nobodys_text_costs_no_call() -> None:
    slurm = _Slurm({1: "a"})
    assert (ask_text(slurm, [], "k"), slurm.calls) == ({}, 0)


def test_a_few_jobs_are_asked_for_by_their_ids_alone() -> None:
    slurm = _Slurm(dict.fromkeys(range(1, 7001), "a" * 1000))
    assert ask_text(slurm, [5, 6], "k") == {5: ["a" * 1000], 6: ["a" * 1000]}
    assert [len(answer.out) < 3000 for answer in slurm.said] == [True]


def test_a_comment_with_separators_of_columns_is_just_a_comment() -> None:
    found = ask_text(_Slurm({1: "a\x1fb\nc"}), [1], "k")
    assert found == {1: ["a\x1fb\nc"]}


@given(
    st.dictionaries(
        st.integers(1, 40),
        st.one_of(st.text(max_size=20), st.from_regex(r"(\x1e\n?[0-9]{1,2}\x1f[a-z]*)+")),
        min_size=1,
    ),
    st.integers(1, 40),
)
def test_no_comment_changes_what_is_read_of_another_job(comments: dict[int, str], honest: int) -> None:
    comments[honest] = "mine"
    found = ask_text(_Slurm(comments), sorted(comments), "k")
    assert not isinstance(found, str)
    assert found == {job: [text] for job, text in comments.items()}


def test_two_hundred_hostile_comments_cost_no_call_more() -> None:
    slurm = _Slurm({n: f"\x1e\n{n + 1}\x1fslurm_fair:v1\x1e\n" for n in range(1, 201)})
    found = ask_text(slurm, range(1, 201), "k")
    assert not isinstance(found, str)
    assert (len(found), slurm.calls) == (200, 1)
