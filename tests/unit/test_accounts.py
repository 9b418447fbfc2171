"""Tenants' weights out of Slurm's shares."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.slurm.accounts import read_weights, weights_from
from tests.slurm_samples import sample
from tests.slurm_stub import Stub


def test_a_capture_of_22_05_gives_each_account_its_part() -> None:
    weights = weights_from(sample("22.05", "sshare.txt").splitlines())
    assert weights == {"nlp": 0.25, "speech": 0.5, "vision": 0.25}


@pytest.mark.parametrize(
    ("lines", "weights"),
    [
        (["root||", " a||30", " b||10"], {"a": 0.75, "b": 0.25}),
        (
            ["root||", " dept||3", "  x||1", "   x|u|1", "  y||2", " other||1"],
            {"dept": 0.75, "x": 0.25, "y": 0.5, "other": 0.25},
        ),
        (["root||", " a||0", " b||0"], {"a": 1.0, "b": 1.0}),
        (["root||", " a||parent", " b||1"], {"a": 0.5, "b": 0.5}),
        (["root||", " root|root|1"], {}),
        ([], {}),
    ],
)
def test_shares_multiply_down_the_tree(lines: list[str], weights: dict[str, float]) -> None:
    assert weights_from(lines) == pytest.approx(weights)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ((1, "", "sshare: error: x"), "sshare: sshare: error: x"),
        ("root||\n a||1\n", {"a": 1.0}),
        ("", {}),
    ],
)
def test_accounting_that_does_not_answer_gives_a_reason(
    tmp_path: Path, answer: str | tuple[int, str, str], found: object
) -> None:
    stub = Stub(tmp_path)
    stub.answers("sshare", answer)
    assert read_weights(stub.commands()) == found


@given(
    st.lists(
        st.one_of(
            st.text(), st.from_regex(r" {0,4}[a-z]*\|[a-z]*\|(\d+|parent|nan|inf|1e400)", fullmatch=True)
        )
    )
)
def test_no_line_makes_a_weight_that_is_no_number(lines: list[str]) -> None:
    assert all(0 <= weight < float("inf") for weight in weights_from(lines).values())
