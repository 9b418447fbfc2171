"""A value packed in one piece with its columns, so that a standing needs no other row of the journal."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from slurm_fair.errors import StoreError
from slurm_fair.store.blobs import squeeze, unpacked
from slurm_fair.store.codec import Encoder, decode_as, read, write

_Value = TypeVar("_Value")


class Parcel(msgspec.Struct, array_like=True):
    """The name, the tree and the columns of a packed value."""

    name: str
    tree: bytes
    columns: dict[str, bytes]


class Packer:
    """Packs one standing after the other; columns that did not change are not squeezed again."""

    def __init__(self) -> None:
        self._last: dict[str, bytes] = {}

    def pack(self, value: object) -> bytes:
        """The value in one piece."""
        encoder = Encoder()
        tree, name = write(encoder.tree(value))
        columns = {column: self._last.get(column) or squeeze(raw) for column, raw in encoder.blobs.items()}
        self._last = columns
        return msgspec.msgpack.encode(Parcel(name, tree, columns))


_PARCEL = msgspec.msgpack.Decoder(Parcel)


def unpack(data: bytes, kind: type[_Value]) -> _Value:
    try:
        parcel = _PARCEL.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StoreError(f"the journal is damaged: a {kind.__name__} cannot be read ({error})") from error

    def fetch(column: str) -> bytes:
        if column not in parcel.columns:
            raise StoreError(f"the journal is damaged: a {kind.__name__} lacks its column {column}")
        return unpacked(parcel.columns[column], column)

    return decode_as(kind, read(parcel.tree, parcel.name), fetch)
