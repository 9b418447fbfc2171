"""A parcel gives back what was packed into it, or says what is wrong with it."""

from __future__ import annotations

import msgspec
import pytest

from slurm_fair.errors import StoreError
from slurm_fair.model import LeaseTerms, Standing
from slurm_fair.store.parcel import Packer, Parcel, unpack
from tests.support import journals


def _taken_apart(data: bytes) -> Parcel:
    return msgspec.msgpack.decode(data, type=Parcel)


def test_a_packer_gives_each_standing_its_own_columns() -> None:
    packer, standings = Packer(), [journals.standing(tick, count=300) for tick in (1, 2, 2, 1)]
    packed = [packer.pack(standing) for standing in standings]
    for data, standing in zip(packed, standings, strict=True):
        assert journals.same(unpack(data, Standing), standing)
        assert data == Packer().pack(standing), "what was packed before changes nothing"
    assert packed[1] == packed[2] != packed[3]


def test_a_packer_keeps_no_column_that_is_used_no_more() -> None:
    packer = Packer()
    packer.pack(journals.standing(1, count=300))
    assert packer._last
    packer.pack(LeaseTerms())
    assert packer._last == {}


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x93", b"text", msgspec.msgpack.encode({"name": "x"})])
def test_what_is_no_parcel_is_refused(data: bytes) -> None:
    with pytest.raises(StoreError, match="the journal is damaged: a Standing cannot be read"):
        unpack(data, Standing)


def test_text_that_is_no_text_is_refused() -> None:
    data = Packer().pack(LeaseTerms())
    name = _taken_apart(data).name.encode()
    with pytest.raises(StoreError, match="a LeaseTerms cannot be read"):
        unpack(data.replace(name, b"\xff" * len(name)), LeaseTerms)


def test_a_parcel_that_is_cut_off_is_refused_wherever_it_ends() -> None:
    data = Packer().pack(journals.standing(1, count=300))
    for end in range(0, len(data), max(len(data) // 50, 1)):
        with pytest.raises(StoreError):
            unpack(data[:end], Standing)


def test_a_column_that_is_missing_is_named() -> None:
    parcel = _taken_apart(Packer().pack(journals.standing(1, count=300)))
    name = sorted(parcel.columns)[0]
    kept = {column: raw for column, raw in parcel.columns.items() if column != name}
    with pytest.raises(StoreError, match=f"a Standing lacks its column {name}"):
        unpack(msgspec.msgpack.encode(Parcel(parcel.name, parcel.tree, kept)), Standing)


def test_a_column_in_the_place_of_another_is_refused() -> None:
    parcel = _taken_apart(Packer().pack(journals.standing(1, count=300)))
    one, other = sorted(parcel.columns)[:2]
    swapped = parcel.columns | {one: parcel.columns[other]}
    with pytest.raises(StoreError, match=f"column {one} of the journal is damaged"):
        unpack(msgspec.msgpack.encode(Parcel(parcel.name, parcel.tree, swapped)), Standing)


def test_a_tree_under_another_name_is_refused() -> None:
    parcel = _taken_apart(Packer().pack(LeaseTerms()))
    with pytest.raises(StoreError):
        unpack(msgspec.msgpack.encode(Parcel("0" * 32, parcel.tree, {})), LeaseTerms)


def test_a_parcel_with_another_noun_in_it_is_refused() -> None:
    with pytest.raises(StoreError):
        unpack(Packer().pack(LeaseTerms()), Standing)
