"""Bytes of columns on disk: named by their content, squeezed, and proved on the way back."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable

import numpy as np

from slurm_fair.errors import StoreError

Fetch = Callable[[str], bytes]

_PLAIN, _WORDS = b"\x00", b"\x08"
_WORD_BYTES = 8
_LEVEL = 1  # a tick must not wait for the last per cent


def name_of(raw: bytes) -> str:
    """The name of these bytes: equal content has one name, so an unchanged column costs nothing."""
    return hashlib.blake2b(raw, digest_size=16).hexdigest()


def squeeze(raw: bytes) -> bytes:
    """Compressed; 8-byte words are laid out byte by byte first, because their upper bytes repeat."""
    if len(raw) % _WORD_BYTES:
        return _PLAIN + zlib.compress(raw, _LEVEL)
    words = np.frombuffer(raw, dtype=np.uint8).reshape(-1, _WORD_BYTES)
    return _WORDS + zlib.compress(words.T.tobytes(), _LEVEL)


def unpacked(data: bytes, name: str) -> bytes:
    """The bytes again, or StoreError when they are not what was named."""
    try:
        raw = zlib.decompress(data[1:])
    except zlib.error as error:
        raise StoreError(f"column {name} of the journal is damaged ({error})") from error
    if data[:1] == _WORDS and len(raw) % _WORD_BYTES == 0:
        raw = np.frombuffer(raw, dtype=np.uint8).reshape(_WORD_BYTES, -1).T.tobytes()
    if name_of(raw) != name:
        raise StoreError(f"column {name} of the journal is damaged: its content is another one")
    return raw
