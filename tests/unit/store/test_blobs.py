"""Bytes of columns come back as they were, or are refused."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.errors import StoreError
from slurm_fair.store.blobs import name_of, squeeze, unpacked


@given(st.binary(max_size=200))
def test_any_bytes_come_back(raw: bytes) -> None:
    assert unpacked(squeeze(raw), name_of(raw)) == raw


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 16, 4096, 4097])
def test_bytes_of_any_length_come_back(length: int) -> None:
    raw = bytes(number * 7 % 251 for number in range(length))
    assert unpacked(squeeze(raw), name_of(raw)) == raw


def test_a_column_of_numbers_takes_less_than_plain_compression() -> None:
    raw = np.random.default_rng(1).integers(0, 1 << 20, 5000).astype(np.int64).tobytes()
    assert len(squeeze(raw)) < 0.8 * len(zlib.compress(raw, 1))


def test_equal_bytes_have_one_name_and_others_another() -> None:
    names = [name_of(raw) for raw in (b"", b"\0", b"\0\0", b"ab", b"ba")]
    assert len(set(names)) == len(names)
    assert name_of(bytes(bytearray(b"ab"))) == names[3]
    assert {len(name) for name in names} == {32}


def _read(data: bytes, name: str) -> bytes | None:
    """The content of a column; None of one that is refused."""
    try:
        return unpacked(data, name)
    except StoreError:
        return None


def test_every_changed_bit_is_noticed() -> None:
    raw = bytes(range(64))
    data, name = squeeze(raw), name_of(raw)
    for at in range(8, len(data) * 8):
        spoilt = bytearray(data)
        spoilt[at // 8] ^= 1 << at % 8
        assert _read(bytes(spoilt), name) in (raw, None)


@pytest.mark.parametrize("data", [b"", b"\x08", b"\x00", b"\x00text", squeeze(b"12345678")[:-3]])
def test_what_is_no_column_is_refused(data: bytes) -> None:
    with pytest.raises(StoreError, match="is damaged"):
        unpacked(data, name_of(b"12345678"))


def test_a_column_is_known_by_its_name_alone() -> None:
    raw = bytes(range(16))
    with pytest.raises(StoreError, match="its content is another one"):
        unpacked(squeeze(raw), name_of(raw[::-1]))
    for marker in (b"\x00", b"\x07"):
        with pytest.raises(StoreError, match="its content is another one"):
            unpacked(marker + squeeze(raw)[1:], name_of(raw))


def test_words_of_a_length_that_is_none_are_not_laid_out_anew() -> None:
    raw = b"123456789"
    assert unpacked(b"\x08" + zlib.compress(raw), name_of(raw)) == raw
