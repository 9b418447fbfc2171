"""The words of `lease.py` in shell scripts: what it does not take is said."""

from __future__ import annotations

import pytest

from slurm_fair import lease


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "the following arguments are required: verb\n"),
        (["ack", "5"], "ack takes no '5': write --step N\n"),
        (["wait", "step=5"], "wait takes no 'step=5'\n"),
    ],
)
def test_a_word_that_is_missing_or_too_many_is_named(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        lease.main(words)
    assert caught.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: {said}")


def test_numbers_of_a_report_are_taken() -> None:
    assert lease.main(["report", "step=5"]) == 0
