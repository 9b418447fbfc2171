"""Our frozen values as plain JSON trees, with long columns kept aside as blobs, and back.

A tree holds JSON's own types; everything else is a mapping that begins with a `$` key: `$is` a noun of ours,
`$enum`, `$tuple`, `$map` (its keys are no words), `$float` (inf, nan), `$array`, `$blob`, `$words`.
"""

from __future__ import annotations

import base64
import json
import math
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar

import numpy as np

from slurm_fair import model
from slurm_fair.errors import StoreError
from slurm_fair.model import Explanation, LeasePhase, Retries
from slurm_fair.model.counted import one_of
from slurm_fair.store.blobs import Fetch, name_of, squeeze, unpacked

VERSION = 2
INLINE_BYTES = 64
_KINDS = "biuf"  # bool, int, unsigned, float: never objects
_Value = TypeVar("_Value")
# Columns that journals of older versions lack, and what was true of each row then.
_ADDED: dict[str, dict[str, Callable[[dict[str, Any]], Any]]] = {
    "JobTable": {
        "most_nodes": lambda of: np.zeros(len(of["key"]), dtype=np.int64),  # nothing was asked for
        "restartable": lambda of: np.zeros(len(of["key"]), dtype=bool),
        "gpu_weight": lambda of: np.ones(len(of["key"])),  # each GPU counted 1
        "usual_gpus": lambda of: of["gpus"].copy(),  # nobody was elastic
    },
    "Told": {
        "mode": lambda of: np.zeros(len(of["model"]), dtype=np.int8),  # nobody said
        "left_spread": lambda of: np.full(len(of["model"]), np.nan),
        "must_fit_seconds": lambda of: np.full(len(of["model"]), np.nan),  # the whole limit was
    },
    "JobAccounts": {
        "waits": lambda of: of["active"].copy(),  # who claimed no share waited for nothing
        "gpu_weight": lambda of: np.ones(len(of["key"])),
        "run_gpus": lambda of: np.where(of["run_start"] > 0, of["gpus"], 0),
    },
    "ClosedRuns": {"gpu_weight": lambda of: np.ones(len(of["key"]))},
}


def _with_explanation(of: dict[str, Any]) -> dict[str, Any]:
    """A plan was one table with why it decides."""
    why = Explanation(*(of.pop(name) for name in ("reason", "rank", "score", "reasons")))
    return {**of, "why": why}


def _with_promises(of: dict[str, Any]) -> dict[str, Any]:
    """Leases said where all of them lie, by row."""
    places = of.pop("places")
    places = places.take(of["phase"][places.row] == LeasePhase.GRANTED)
    return {**of, "promises": places.with_columns(row=of["key"][places.row])}


def _with_retries(of: dict[str, Any]) -> dict[str, Any]:
    """A standing held retries as bare maps."""
    maps = {name: due for name, due in of.items() if name in ("backoff", "unmoved", "unshut")}
    return of | {name: Retries(due) for name, due in maps.items() if isinstance(due, Mapping)}


# Nouns as journals of older versions hold them, by a field that they no longer have, or have in another form.
_CHANGED: dict[tuple[str, str], Callable[[dict[str, Any]], dict[str, Any]]] = {
    ("Plan", "reason"): _with_explanation,
    ("Plan", "rests"): lambda of: {name: of[name] for name in of if name not in ("rests", "again")},
    ("Leases", "places"): _with_promises,
    ("Standing", "backoff"): _with_retries,
    ("Retries", "rests"): lambda of: {"due": of["rests"]},
    ("Outcome", "answered"): lambda of: {name: of[name] for name in of if name != "answered"},
}


def _nouns() -> dict[str, type]:
    """Our nouns and enums by name: those that the model exports, and all that they are made of."""
    found: dict[str, type] = {}
    ahead = [getattr(model, name) for name in model.__all__]
    while ahead:
        kind = ahead.pop()
        if isinstance(kind, type) and (_has_fields(kind) or issubclass(kind, Enum)):
            if found.setdefault(kind.__name__, kind) is not kind:
                raise TypeError(f"two nouns are called {kind.__name__}")
            if _has_fields(kind):
                parts = _parts(typing.get_type_hints(kind).values())
                ahead += [part for part in parts if found.get(getattr(part, "__name__", "")) is not part]
    return found


def _has_fields(kind: type) -> bool:
    """True if it is a dataclass or a tuple of named fields."""
    return is_dataclass(kind) or (issubclass(kind, tuple) and hasattr(kind, "_fields"))


def _fields_of(kind: type) -> dict[str, bool]:
    """Its fields by name, and whether one must be given."""
    if is_dataclass(kind):
        return {f.name: f.default is MISSING and f.default_factory is MISSING for f in fields(kind)}
    return {name: name not in kind._field_defaults for name in kind._fields}  # type: ignore[attr-defined]


def _parts(hints: Iterable[Any]) -> Iterator[Any]:
    for hint in hints:
        yield hint
        yield from _parts(typing.get_args(hint))


def _runtime(hint: Any) -> tuple[type, ...]:
    """The types that a value with this annotation may have."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(kind for part in typing.get_args(hint) for kind in _runtime(part))
    kind = typing.get_origin(hint) or hint
    if kind is float:
        return (float, int)
    return (kind,) if isinstance(kind, type) else (object,)


_NOUNS = _nouns()
_FIELDS = {kind: _fields_of(kind) for kind in _NOUNS.values() if _has_fields(kind)}
_TYPES = {
    kind: {name: _runtime(hint) for name, hint in typing.get_type_hints(kind).items()} for kind in _FIELDS
}


class Encoder:
    """Makes trees and collects the blobs that they refer to."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def tree(self, value: object) -> Any:
        """The tree of one value; StoreError for what is not plain data."""
        if value is None or isinstance(value, (bool, str)) or type(value) is int:
            return value
        noun = next((kind for kind in type(value).__mro__ if kind in _FIELDS), None)
        if noun is not None:
            content = {name: self.tree(getattr(value, name)) for name in _FIELDS[noun]}
            return {"$is": noun.__name__, "of": content}
        for kind, make in self._makers:
            if isinstance(value, kind):
                return make(self, value)
        raise StoreError(f"the journal keeps plain data only, not {one_of(type(value).__name__)}")

    def _enum(self, value: Enum) -> Any:
        return {"$enum": type(value).__name__, "value": value.value}

    def _float(self, value: float) -> Any:
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}

    def _int(self, value: Any) -> Any:
        return int(value)

    def _bool(self, value: Any) -> Any:
        return bool(value)

    def _list(self, value: list[Any]) -> Any:
        return [self.tree(item) for item in value]

    def _tuple(self, value: tuple[Any, ...]) -> Any:
        if all(type(item) is str for item in value):
            raw = json.dumps(value, separators=(",", ":")).encode("ascii")
            if len(raw) >= INLINE_BYTES:
                return {"$words": self._aside(raw), "n": len(value)}
        return {"$tuple": [self.tree(item) for item in value]}

    def _map(self, value: Mapping[Any, Any]) -> Any:
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: self.tree(item) for key, item in value.items()}
        return {"$map": [[self.tree(key), self.tree(item)] for key, item in value.items()]}

    def _array(self, value: np.ndarray[Any, Any]) -> Any:
        if value.dtype.kind not in _KINDS:
            raise StoreError(f"the journal keeps numbers only in columns, not {value.dtype}")
        little = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
        head = {"dtype": little.dtype.str, "n": list(value.shape)}
        raw = little.tobytes()
        if len(raw) < INLINE_BYTES:
            return {"$array": base64.b64encode(raw).decode("ascii"), **head}
        return {"$blob": self._aside(raw), **head}

    def _aside(self, raw: bytes) -> str:
        name = name_of(raw)
        self.blobs[name] = raw
        return name

    # Ordered: an IntEnum is an int and a numpy float is a float.
    _makers: tuple[tuple[Any, Callable[..., Any]], ...] = (
        (Enum, _enum), (np.ndarray, _array), (float, _float), (np.floating, _float), (int, _int),
        (np.integer, _int), (np.bool_, _bool), (tuple, _tuple), (list, _list), (Mapping, _map),
    )  # fmt: skip


def decode(tree: Any, fetch: Fetch) -> Any:
    """The value of a tree; StoreError for anything that no encoder wrote."""
    try:
        return _decode(tree, fetch)
    except StoreError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise StoreError(f"the journal holds something that is no value of ours ({error})") from error


def _decode(tree: Any, fetch: Fetch) -> Any:
    if isinstance(tree, list):
        return [_decode(item, fetch) for item in tree]
    if not isinstance(tree, dict):
        return tree
    mark = next(iter(tree), "")
    if not mark.startswith("$"):
        return {key: _decode(item, fetch) for key, item in tree.items()}
    if mark not in _READERS:
        raise StoreError(f"the journal holds an unknown kind of value ({mark!r})")
    return _READERS[mark](tree, fetch)


def _noun(tree: dict[str, Any], fetch: Fetch) -> Any:
    cls = _NOUNS[tree["$is"]]
    known, values = _FIELDS[cls], {name: _decode(item, fetch) for name, item in tree["of"].items()}
    for (kind, gone), made in _CHANGED.items():
        if kind == cls.__name__ and gone in values:
            values = made(values)
    strange = values.keys() - known.keys()
    if strange:
        raise StoreError(f"{cls.__name__} in the journal has unknown fields: {', '.join(sorted(strange))}")
    for name, add in _ADDED.get(cls.__name__, {}).items():
        if name not in values:
            values[name] = add(values)
    for name, needed in known.items():
        if name not in values and needed:
            raise StoreError(f"{cls.__name__} in the journal lacks its {name}")
        if name in values and not isinstance(values[name], _TYPES[cls][name]):
            raise StoreError(f"{cls.__name__}.{name} in the journal is a {type(values[name]).__name__}")
    return cls(**values)


def _word(tree: dict[str, Any], fetch: Fetch) -> Any:
    words = json.loads(fetch(tree["$words"]))
    if not isinstance(words, list) or len(words) != tree["n"]:
        raise StoreError(f"names {tree['$words']} in the journal are not {tree['n']} names")
    return tuple(words)


def _numbers(tree: dict[str, Any], raw: bytes) -> np.ndarray[Any, Any]:
    dtype, shape = np.dtype(tree["dtype"]), tuple(tree["n"])
    if dtype.kind not in _KINDS or math.prod(shape) * dtype.itemsize != len(raw):
        raise StoreError(f"a column of the journal is not {shape} of {dtype}")
    # A copy, because a column read back must be as writable as one just made.
    return np.frombuffer(raw, dtype=dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=True)


_READERS: dict[str, Callable[[dict[str, Any], Fetch], Any]] = {
    "$is": _noun,
    "$enum": lambda tree, fetch: _NOUNS[tree["$enum"]](tree["value"]),
    "$float": lambda tree, fetch: float(tree["$float"]),
    "$tuple": lambda tree, fetch: tuple(_decode(item, fetch) for item in tree["$tuple"]),
    "$map": lambda tree, fetch: {_decode(key, fetch): _decode(item, fetch) for key, item in tree["$map"]},
    "$words": _word,
    "$blob": lambda tree, fetch: _numbers(tree, fetch(tree["$blob"])),
    "$array": lambda tree, fetch: _numbers(tree, base64.b64decode(tree["$array"], validate=True)),
}


def write(tree: Any) -> tuple[bytes, str]:
    """A tree as squeezed bytes, with the version of this codec, and the name that proves them."""
    raw = json.dumps({"v": VERSION, "tree": tree}, separators=(",", ":"), allow_nan=False).encode("ascii")
    return squeeze(raw), name_of(raw)


def read(data: bytes, name: str) -> Any:
    """The tree in bytes that `write` made."""
    try:
        document = json.loads(unpacked(data, name))
        version, tree = document["v"], document["tree"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(f"the journal holds something that is no document of ours ({error})") from error
    if not isinstance(version, int) or version > VERSION:
        raise StoreError(f"the journal was written by a newer slurm-fair (codec {version}): install that one")
    return tree


def decode_as(kind: type[_Value], tree: Any, fetch: Fetch) -> _Value:
    """The value of a tree, which must be one of these."""
    value = decode(tree, fetch)
    if not isinstance(value, kind):
        raise StoreError(f"the journal holds a {type(value).__name__} where a {kind.__name__} belongs")
    return value
