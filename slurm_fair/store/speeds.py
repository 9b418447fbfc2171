"""Knowledge of speeds, on disk: one row for each class of jobs, and one for each job that reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec
import numpy as np

from slurm_fair.model import Beliefs
from slurm_fair.model.columns import Columns
from slurm_fair.store.rows import Row, plain
from slurm_fair.throughput import Ends, JobClass, Known, Samples
from slurm_fair.throughput.names import places_in, tidied

SPEED_COLUMNS = "tenant, class, body"
BELIEF_COLUMNS = "key, body"
_Table = TypeVar("_Table", bound=Columns)
_Packed = dict[str, Any]
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(dict[str, Any]).decode
# The names of each table that are kept beside its rows, and the column that is an index into them.
_NAMES = {"gpu_types": "gpu_type", "node_names": "node"}


def speed_rows(known: Known) -> list[Row]:
    """A row for each class of which anything is known, in the order of SPEED_COLUMNS."""
    samples, ends = _by_class(known.samples), _by_class(known.ends)
    return [
        (plain(each.tenant), plain(each.key), _pack(_bodies(samples.get(each), ends.get(each))))
        for each in sorted(samples.keys() | ends.keys())
    ]


def _bodies(samples: Samples | None, ends: Ends | None) -> _Packed:
    tables = {"samples": samples, "ends": ends}
    return {name: _packed(tidied_one) for name, tidied_one in tables.items() if tidied_one is not None}


def _by_class(table: Any) -> dict[JobClass, Any]:
    """The rows of each class."""
    order = np.argsort(table.job_class, kind="stable")
    edges = np.searchsorted(table.job_class[order], np.arange(len(table.classes) + 1))
    return {
        name: tidied(table.take(order[edges[at] : edges[at + 1]]))
        for at, name in enumerate(table.classes)
        if edges[at] < edges[at + 1]
    }


def _packed(table: Any) -> _Packed:
    columns = {name: [column.dtype.str, column.tobytes()] for name, column in table._arrays().items()}
    names = {name: list(getattr(table, name)) for name in _NAMES if hasattr(table, name)}
    return {"columns": columns, "names": names}


def known_of(rows: Iterable[Row]) -> Known:
    """The knowledge of these rows; ValueError, TypeError or KeyError for a row that no writer wrote."""
    read = [(JobClass(tenant, key), _unpack(body)) for tenant, key, body in rows]
    return Known(_whole(Samples.none(), read, "samples"), _whole(Ends.none(), read, "ends"))


def _whole(empty: Any, read: list[tuple[JobClass, _Packed]], name: str) -> Any:
    """One table of the parts of all classes."""
    parts = [(job_class, bodies[name]) for job_class, bodies in read if name in bodies]
    if not parts:
        return empty
    classes = tuple(job_class for job_class, _ in parts)
    named = [field for field in _NAMES if hasattr(empty, field)]
    names = {
        field: tuple(dict.fromkeys(word for _, body in parts for word in body["names"][field]))
        for field in named
    }
    columns: dict[str, list[np.ndarray[Any, Any]]] = {column: [] for column in empty._columns}
    for number, (_, body) in enumerate(parts):
        arrays = _arrays(body["columns"], empty)
        for field in named:
            places = places_in(body["names"][field], names[field])
            arrays[_NAMES[field]] = places[arrays[_NAMES[field]]]
        arrays["job_class"] = np.full(len(arrays["job_class"]), number)
        for column, values in arrays.items():
            columns[column].append(values)
    joined = {column: np.concatenate(values) for column, values in columns.items()}
    return tidied(type(empty)(classes=classes, **names, **joined))


def _arrays(packed: Mapping[str, Any], like: Columns) -> dict[str, np.ndarray[Any, Any]]:
    """The columns of one part, each as long as the others and of its own type."""
    arrays = {}
    for name, column in like._arrays().items():
        kind, raw = packed[name]
        arrays[name] = np.frombuffer(raw, dtype=np.dtype(kind)).astype(column.dtype)
    if len({len(values) for values in arrays.values()}) != 1:
        raise ValueError("columns differ in length")
    return arrays


def belief_rows(beliefs: Beliefs) -> list[Row]:
    """A row for each job, in the order of BELIEF_COLUMNS."""
    columns = {name: column.tolist() for name, column in beliefs._arrays().items()}
    keys = columns.pop("key")
    return [
        (key, _pack({name: values[row] for name, values in columns.items()})) for row, key in enumerate(keys)
    ]


def beliefs_of(rows: Iterable[Row]) -> Beliefs:
    """The beliefs of these rows, by key; ValueError, TypeError or KeyError for a row that no writer wrote."""
    read = [{**_unpack(body), "key": key} for key, body in rows]
    empty = Beliefs.none()
    columns: dict[str, Any] = {
        name: np.array([row[name] for row in read], dtype=column.dtype)
        for name, column in empty._arrays().items()
    }
    return Beliefs(**columns)
