"""Lines of many acts go to several scontrol processes, and each act has the answer of its own."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from slurm_fair.model import Action, Verb
from slurm_fair.model.ids import pack
from slurm_fair.slurm.acting.sending import send_lines
from slurm_fair.slurm.command import CommandResult, Commands
from tests.support.slurm_stub import Stub


class Noting(Commands):
    """Answers each process with the first line that it was sent."""

    def __init__(self, together: int = 0) -> None:
        super().__init__()
        self.texts: list[list[str]] = []
        self._meet = threading.Barrier(together, timeout=10.0) if together else None

    def run(
        self, *argv: str, stdin: str | None = None, timeout_seconds: float | None = None
    ) -> CommandResult:
        assert argv == ("scontrol",)
        lines = (stdin or "").split("\n")
        self.texts.append(lines)
        if self._meet:
            self._meet.wait()
        return CommandResult(argv, 0, lines[0], "", 0.0)


def act(number: int) -> Action:
    return Action(Verb.CLOSE, pack(number), number, 100.0, 0)


def lines(count: int, each: int = 1) -> dict[Action, list[str]]:
    return {act(number): [f"{number}.{line}" for line in range(each)] for number in range(1, count + 1)}


def sent(commands: Noting) -> list[list[str]]:
    """The lines of each process, without what ends it; in the order of their first acts."""
    assert all(text[-2:] == ["exit", ""] for text in commands.texts)
    return sorted((text[:-2] for text in commands.texts), key=lambda text: int(text[0].partition(".")[0]))


@pytest.mark.parametrize("count", [1, 2, 16])
def test_a_few_acts_share_one_process_and_its_answer(count: int) -> None:
    commands = Noting()
    answers = send_lines(commands, lines(count))
    assert [len(text) for text in sent(commands)] == [count]
    assert [(action, answer.out) for action, answer in answers.items()] == [
        (action, "1.0") for action in lines(count)
    ]


@pytest.mark.parametrize(
    ("count", "parts"),
    [(17, [16, 1]), (32, [16, 16]), (128, [16] * 8), (129, [17] * 7 + [10]), (1000, [125] * 8)],
)
def test_many_acts_are_shared_out_to_eight_processes_at_most(count: int, parts: list[int]) -> None:
    commands = Noting()
    answers = send_lines(commands, lines(count))
    assert [len(text) for text in sent(commands)] == parts
    assert list(answers) == list(lines(count))
    heads = [text[0] for text, size in zip(sent(commands), parts, strict=True) for _ in range(size)]
    assert [answer.out for answer in answers.values()] == heads


def test_all_lines_of_an_act_stay_together_in_their_order() -> None:
    commands = Noting()
    send_lines(commands, lines(40, each=3))
    assert [line for text in sent(commands) for line in text] == [
        line for each in lines(40, each=3).values() for line in each
    ]
    assert all(len(text) % 3 == 0 for text in sent(commands))


def test_the_processes_run_side_by_side() -> None:
    commands = Noting(together=8)
    send_lines(commands, lines(128))
    assert len(commands.texts) == 8


def test_an_act_without_lines_is_done_and_costs_no_process() -> None:
    commands = Noting()
    (answer,) = send_lines(commands, {act(1): []}).values()
    assert (answer.whole, answer.out, commands.texts) == (True, "", [])


def test_one_with_lines_and_one_without_share_the_answer() -> None:
    commands = Noting()
    answers = send_lines(commands, {act(1): [], act(2): ["2.0"]})
    assert [answer.out for answer in answers.values()] == ["2.0", "2.0"]


def test_no_acts_have_no_answers_and_need_no_process() -> None:
    commands = Noting()
    assert send_lines(commands, {}) == {}
    assert commands.texts == []


def test_one_process_that_fails_fails_its_own_acts_alone(tmp_path: Path) -> None:
    stub = Stub(tmp_path)
    stub.answers("scontrol", (1, "", "Invalid job id specified"), (0, "", ""))
    answers = send_lines(stub.commands(), lines(32))
    whole = [answer.whole for answer in answers.values()]
    assert sorted([whole[:16], whole[16:]]) == [[False] * 16, [True] * 16]
    assert sorted(len(fed) for fed in stub.fed("scontrol")) == [17, 17]


def test_one_process_that_hangs_is_an_answer_too(tmp_path: Path) -> None:
    stub = Stub(tmp_path)
    stub.answers("scontrol", hangs=True)
    (answer,) = send_lines(stub.commands(timeout_seconds=0.3), lines(1)).values()
    assert (answer.timed_out, answer.whole) == (True, False)
