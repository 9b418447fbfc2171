"""Values that go through a pipe between two processes of ours: a length, then a pickle.

Only the fields of a value travel. What it worked out and kept beside them is worked out anew on the other side.
"""

from __future__ import annotations

import io
import pickle
import struct
from dataclasses import fields, is_dataclass
from typing import Any

HEAD = struct.Struct("<Q")
MOST_BYTES = 1 << 28  # of an answer: no plan of ours comes near it
_OF_NUMPY = {"_reconstruct", "_frombuffer", "ndarray", "dtype", "scalar"}


class _Packer(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Our tables without what is kept in them."""
        if hasattr(value, "__dict__") and is_dataclass(value) and not isinstance(value, type):
            given = vars(value)
            return _bare, (
                type(value),
                {each.name: given[each.name] for each in fields(value) if each.name in given},
            )
        return NotImplemented


def _bare(kind: type, given: dict[str, Any]) -> Any:
    value: Any = object.__new__(kind)
    value.__dict__.update(given)
    return value


class _PlainData(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Columns and our own nouns, nothing else: an answer is data."""
        if module.partition(".")[0] == "numpy" and name in _OF_NUMPY:
            return super().find_class(module, name)
        if (module, name) == (__name__, _bare.__name__):
            return _bare
        if module.startswith("slurm_fair.model."):
            found = super().find_class(module, name)
            if isinstance(found, type):
                return found
        raise pickle.UnpicklingError(f"it holds a {module}.{name}, and a plan is plain data")


def framed(message: Any) -> bytes:
    """A message with its length before it."""
    into = io.BytesIO()
    into.write(HEAD.pack(0))
    _Packer(into, protocol=5).dump(message)
    HEAD.pack_into(into.getbuffer(), 0, into.tell() - HEAD.size)
    return into.getvalue()


def unframed(data: bytes | bytearray) -> Any:
    """A message of whoever is believed: the parent of the process."""
    return pickle.loads(data)


def plain_data(data: bytes | bytearray) -> Any:
    """A message of whoever is not: any error may come of it."""
    return _PlainData(io.BytesIO(data)).load()
