"""The stamp in a job's comment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.slurm.reading.stamp import SIGNALS, Stamp, read_stamp


@pytest.mark.parametrize(
    ("comment", "stamp"),
    [
        ("slurm_fair:v1", Stamp(1)),
        ("slurm_fair:v0,gate=hold", Stamp(0, gate="hold")),
        ("mine slurm_fair:v1,signal=USR1,grace=90,gate=+600 too", Stamp(1, "USR1", 90.0, "+600")),
        ("slurm_fair:v9,gate=uts1795221357", Stamp(1, gate="uts1795221357")),
        ("text\nslurm_fair:v1\nmore", Stamp(1)),
        ("slurm_fair:v1,unknown=key", Stamp(1)),
        ("slurm_fair:v1,profile=1", Stamp(1, profile=True)),
        ("slurm_fair:v1,profile=yes", Stamp(1)),
        ("slurm_fair:v1,begin=uts1795221357", Stamp(1, begin="uts1795221357")),
        ("slurm_fair:v1,begin=tomorrow", Stamp(1)),
        ("slurm_fair:v0,begin=uts1795221357", None),  # the hook's note on a job that is nobody's to gate
        ("slurm_fair:v0,gate=hold,begin=uts1", Stamp(0, gate="hold", begin="uts1")),
        ("xslurm_fair:v1", None),
        ("slurm_fair:v1;gate=hold", None),
        ("slurm_fair:v1,signal=KILL", None),
        ("slurm_fair:v1,grace=-5", None),
        ("slurm_fair:v1,grace=9999999", None),
        ("slurm_fair:v1,gate=utsnow", None),
        ("slurm_fair:v1,gate=+1e3", None),
        ("", None),
        ("(null)", None),
    ],
)
def test_a_comment_says_what_it_says(comment: str, stamp: Stamp | None) -> None:
    assert read_stamp(comment) == stamp


@pytest.mark.parametrize(
    ("gate", "eligible", "submit", "ours"),
    [
        ("+600", 1600, 1000, True),
        ("+600", 1597, 1000, True),  # sbatch computed it before Slurm noted the submission
        ("+600", 1602, 1000, False),
        ("+600", 1590, 1000, False),
        ("uts1600", 1600, 1, True),
        ("uts1600", 1603, 1, False),
        ("hold", 1600, 1000, False),
        ("", 1600, 1000, False),
    ],
)
def test_a_begin_time_is_the_gate_or_a_wish_of_the_owner(
    gate: str, eligible: float, submit: float, ours: bool
) -> None:
    assert Stamp(1, gate=gate).is_gate(eligible, submit) is ours


@given(st.one_of(st.text(), st.from_regex(r"slurm_fair:v[0-9](,[a-z]+=[A-Za-z0-9+]+)*", fullmatch=True)))
def test_no_comment_breaks_the_reader_or_yields_a_signal_of_its_own(comment: str) -> None:
    stamp = read_stamp(comment)
    if stamp is not None:
        assert stamp.signal in SIGNALS
        assert stamp.is_gate(1e9, 1e9) in (True, False)
