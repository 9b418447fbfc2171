"""Nodes, partitions and reservations as sinfo and scontrol print them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.errors import SlurmTextError
from slurm_fair.slurm.reading.nodes import (
    RawNode,
    Reservation,
    _reservations,
    read_nodes,
    read_reservations,
)
from tests.support.slurm_samples import VERSIONS, sample, whole
from tests.support.slurm_stub import Stub

ROW = (
    "n1",
    "gpu",
    "up",
    "gpu:a100:8",
    "gpu:a100:2(IDX:0-1)",
    "mixed",
    "4/60/0/64",
    "512000",
    "32000",
    "(null)",
)
RESERVATION = (
    "ReservationName=rr StartTime=1795225541 EndTime=1795229141 Duration=01:00:00 Nodes=n[2-3] NodeCnt=2 "
    "CoreCnt=64 Features=(null) PartitionName=(null) Flags=SPEC_NODES TRES=cpu=64 Users=root State=INACTIVE"
)

KEPT = Reservation("rr", 1795225541.0, 1795229141.0, ("n2", "n3"))


def sinfo(*rows: tuple[str, ...]) -> str:
    """The answer to our format."""
    return "".join("\x1f".join(row) + "\x1e\n" for row in rows)


def changed(**columns: str) -> tuple[str, ...]:
    """The usual row with some columns changed, by position: c0=, c5=..."""
    return tuple(columns.get(f"c{at}", value) for at, value in enumerate(ROW))


@pytest.fixture
def stub(tmp_path: Path) -> Stub:
    """Programs without answers yet."""
    return Stub(tmp_path)


def test_a_capture_of_22_05_reads_as_the_cluster_it_was(stub: Stub) -> None:
    stub.answers("sinfo", sample("22.05", "sinfo.txt"))
    found = read_nodes(stub.commands())
    assert not isinstance(found, str)
    assert found.nodes["n2"] == RawNode("n2", 8, "a100", 6, 64, 5, 512_000, 40_000, "mixed")
    assert (found.partitions, found.up) == ({"gpu": ("n1", "n2", "n3", "n4")}, {"gpu": True})


def test_a_node_of_two_partitions_is_one_node(stub: Stub) -> None:
    stub.answers("sinfo", sinfo(ROW, changed(c1="debug", c2="down"), changed(c0="n2")))
    found = read_nodes(stub.commands())
    assert not isinstance(found, str)
    assert found.partitions == {"gpu": ("n1", "n2"), "debug": ("n1",)}
    assert found.up == {"gpu": True, "debug": False}


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("idle", ""),
        ("mixed+planned", ""),
        ("idle+cloud+powered_down", ""),
        ("idle+dynamic_norm", ""),
        ("idle+drain", "drain"),
        ("down+not_responding", "down,not_responding"),
        ("mixed*", "not responding"),
        ("unknown", "unknown"),
        ("idle+maint+reserved", "maint"),
        ("idle+a_flag_of_tomorrow", "a_flag_of_tomorrow"),
        ("idle+powering_down", "powering_down"),
        ("idle+reboot_requested", "reboot_requested"),
    ],
)
def test_a_node_is_usable_only_when_every_flag_of_it_is_known_to_be_harmless(state: str, why: str) -> None:
    assert RawNode("n1", 8, "", 0, 64, 0, 1, 0, state).why_unusable == why


@pytest.mark.parametrize("version", VERSIONS)
def test_the_states_of_whole_captures_are_known_words(version: str) -> None:
    text = whole(version, "scontrol_show_node.txt")
    states = {word.removeprefix("State=") for word in text.split() if word.startswith("State=")}
    assert states
    assert {RawNode("n1", 8, "", 0, 64, 0, 1, 0, state.lower()).why_unusable for state in states} == {""}


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (
            (1, "", "slurm_load_partitions: Unable to contact slurm controller (connect failure)"),
            "Unable to contact",
        ),
        ((0, sinfo(ROW), "sinfo: error: something"), "something"),
        (sinfo(ROW)[:-20], "cut off"),
        (sinfo(ROW[:-1]), "9 columns instead of 10"),
        (sinfo(changed(c0="")), "is no node name"),
        (sinfo(changed(c0="n1 nice=9")), "is no node name"),
        (sinfo(changed(c6="4/60")), "is no CPU count"),
        (sinfo(changed(c6="4/60/0/1K")), "no whole number"),
        (sinfo(changed(c7="lots")), "no memory size"),
    ],
)
def test_an_answer_that_is_not_whole_is_no_answer(
    stub: Stub, answer: str | tuple[int, str, str], complaint: str
) -> None:
    stub.answers("sinfo", answer)
    found = read_nodes(stub.commands())
    assert isinstance(found, str)
    assert complaint in found


def test_a_row_that_cannot_be_read_costs_its_node(stub: Stub) -> None:
    stub.answers("sinfo", sinfo(ROW, changed(c0="n2", c3="gpu:a100:99999999999999999999"), changed(c0="n3")))
    found = read_nodes(stub.commands())
    assert not isinstance(found, str)
    assert (list(found.nodes), found.partitions) == (["n1", "n3"], {"gpu": ("n1", "n3")})
    assert len(found.unreadable) == 1


@pytest.mark.parametrize("columns", [1, 2, 9, 11])
def test_a_later_row_of_a_node_that_is_known_may_be_cut_off_too(stub: Stub, columns: int) -> None:
    stub.answers("sinfo", sinfo(ROW, (*changed(c1="debug"), "more")[:columns]))
    found = read_nodes(stub.commands())
    assert not isinstance(found, str)
    assert (list(found.nodes), found.partitions, len(found.unreadable)) == (["n1"], {"gpu": ("n1",)}, 1)


def test_reservations_say_who_is_kept_for_whom_and_when(stub: Stub) -> None:
    stub.answers("scontrol", f"{RESERVATION}\n")
    found = read_reservations(stub.commands())
    assert not isinstance(found, str)
    (kept,) = found
    assert (kept.name, kept.start, kept.end, kept.nodes) == ("rr", 1795225541.0, 1795229141.0, ("n2", "n3"))


def test_a_reservations_comment_does_not_overwrite_it() -> None:
    (kept,) = _reservations([f"{RESERVATION} Comment=later StartTime=5 Nodes=n9"], pytest.fail)
    assert (kept.start, kept.nodes) == (1795225541.0, ("n2", "n3"))


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("No reservations in the system\n", ()),
        ("", ()),
        ((1, "", "slurm_load_reservations error: x"), "scontrol: slurm_load_reservations error: x"),
        (f"{RESERVATION}\n{RESERVATION.replace('1795225541', 'soon')}", (KEPT,)),
        (
            RESERVATION.replace("1795225541", "soon"),
            "scontrol show reservation: 'soon' is no time in epoch seconds",
        ),
    ],
)
def test_no_reservations_are_not_the_same_as_no_answer(
    stub: Stub, answer: str | tuple[int, str, str], found: object
) -> None:
    stub.answers("scontrol", answer)
    assert read_reservations(stub.commands()) == found


@given(st.lists(st.one_of(st.text(), st.from_regex(r"ReservationName=\S*( [A-Z]\w+=\S*)*")), max_size=4))
def test_no_line_makes_the_reader_of_reservations_fail_otherwise_than_by_refusing_it(
    lines: list[str],
) -> None:
    with contextlib.suppress(SlurmTextError):
        assert len(list(_reservations(lines, lambda why: None))) <= len(lines)
