"""The file of a sweep: one SQLite database, usable at any time, from which a stopped sweep goes on."""

from __future__ import annotations

import json
import math
import os
import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlite_utils import Database

from slurm_fair.cli.sweep.grid import SweepRun
from slurm_fair.cli.sweep.task import Row
from slurm_fair.cli.sweep.variants import base_of
from slurm_fair.errors import InputError, SlurmFairError
from slurm_fair.policy.registry import in_full, load_recorded
from slurm_fair.store.connection import transaction, wrapped
from slurm_fair.store.rows import plain
from slurm_fair_accounting.drawing.page_file import refuse_no_file, refuse_what_is_read

APPLICATION = 0x53465357  # says that a database is the file of a sweep
FORMAT = 1
BUSY_SECONDS = 60.0
DONE, FAILED = "done", "failed"
_TEXTS = ("run", "policy", "state", "problem", "version")
_BASE = dict.fromkeys(_TEXTS, str) | {"lease_s": float, "load": float, "seed": int}
_ORDER = ("run", "policy", "lease_s", "load", "seed", "state", "problem", "version")
_ACCOUNT = ("tenant", "had_gpu_seconds", "owed_gpu_seconds", "rho")
_NOT_OURS = "is not the file of a sweep: name another one"


@dataclass(frozen=True, slots=True)
class About:
    """The trace and the options of a sweep: the same in each of its runs."""

    trace: Mapping[str, Any]  # the trace as `simulate --json` tells it, and its sha256
    cluster: Mapping[str, Any]
    options: Mapping[str, Any]  # those that are not as they are unless given, by their names


class ResultsFile:
    """The rows of a sweep. Each is written in one transaction, so that a file holds whole rows at any time."""

    def __init__(self, path: Path, db: Database) -> None:
        self.path, self._db = path, db

    @classmethod
    def to_write(cls, path: Path, read_too: Collection[Path] = ()) -> AbstractContextManager[ResultsFile]:
        """The file, made where there is none; it is none of those that are read."""
        refuse_no_file(path)
        refuse_what_is_read(path, read_too)
        return cls._opened(path, path, cls._prepare)

    @classmethod
    def to_read(cls, path: Path) -> AbstractContextManager[ResultsFile]:
        """The file of a sweep that was begun."""
        if not os.path.exists(path):
            raise InputError(f"{path}: there is no such file: slurm-fair sweep TRACE --out {path} makes it")
        if os.path.isdir(path):
            raise InputError(f"{path}: is a folder: name the file of a sweep")
        return cls._opened(path, f"file:{quote(str(path.absolute()))}?mode=ro", cls._check)

    @classmethod
    @contextmanager
    def _opened(
        cls, path: Path, address: Path | str, begin: Callable[[ResultsFile], None]
    ) -> Iterator[ResultsFile]:
        """The file at a path or a URI, once it is fit for use; closed afterwards."""
        with _in_words(path):
            by_uri = isinstance(address, str)
            conn = sqlite3.connect(address, uri=by_uri, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            file = cls(path, wrapped(conn))
            with _in_words(path):
                begin(file)
            yield file
        finally:
            conn.close()

    # -- what the file is ------------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction, which begins when no other command writes."""
        with _in_words(self.path), transaction(self._db):
            yield

    def _prepare(self) -> None:
        with self._writing():
            (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if tables:
                self._check()
                return
            self._db.execute(f"PRAGMA application_id = {APPLICATION}")
            self._db.execute(f"PRAGMA user_version = {FORMAT}")
            self._db.table("about").create({"key": str, "value": str}, pk="key")
            self._db.table("policies").create({"policy": str, "settings": str}, pk="policy")
            self._db.table("runs").create({name: _BASE[name] for name in _ORDER}, pk="run")
            columns = {"run": str, "tenant": str} | dict.fromkeys(_ACCOUNT[1:], float)
            self._db.table("tenants").create(columns, pk=("run", "tenant"))

    def _check(self) -> None:
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION:
            raise InputError(f"{self.path}: {_NOT_OURS}")
        if version > FORMAT:
            raise InputError(
                f"{self.path}: was made by a newer slurm-fair: use that one, or name another file"
            )

    def about(self) -> About | None:
        """The trace and options of the sweep; None before they are written."""
        with _in_words(self.path):
            found = {
                key: json.loads(value) for key, value in self._db.execute("SELECT key, value FROM about")
            }
        return About(found["trace"], found["cluster"], found["options"]) if "trace" in found else None

    def belong(self, about: About, settings: Mapping[str, Mapping[str, object]]) -> None:
        """Refuse a file that holds another sweep; an empty one is this sweep's from now on."""
        with self._writing():
            there = self.about()
            if there is not None:
                _refuse_another(self.path, there, about)
            self._refuse_other_settings(settings)
            if there is None:
                parts = (("trace", about.trace), ("cluster", about.cluster), ("options", about.options))
                self._db.table("about").insert_all(
                    {"key": key, "value": json.dumps(part)} for key, part in parts
                )
            rows = [{"policy": name, "settings": json.dumps(given)} for name, given in settings.items()]
            self._db.table("policies").insert_all(rows, replace=True)

    def _refuse_other_settings(self, settings: Mapping[str, Mapping[str, object]]) -> None:
        known = {name: json.loads(text) for name, text in self._db.execute("SELECT * FROM policies")}
        for policy, wanted in settings.items():
            was = _differing(policy, known[policy], wanted) if policy in known else ""
            if was:
                raise InputError(
                    f"{self.path}: holds runs of {policy} with other settings ({plain(was)}): give the same with "
                    "--set, or name another file with --out"
                )

    # -- rows ------------------------------------------------------------------------------------------------

    def done(self) -> set[str]:
        """The names of the runs whose results are there."""
        with _in_words(self.path):
            rows = self._db.execute("SELECT run FROM runs WHERE state = ?", [DONE])
            return {name for (name,) in rows}

    def keep(self, cell: SweepRun, row: Row, version: str) -> None:
        """Write the results of a run."""
        numbers = {key: value for key, value in row.items() if _is_number(value) and key not in _ORDER}
        accounts = [{"run": cell.name} | {key: one[key] for key in _ACCOUNT} for one in row["tenants"]]
        accounts = [one | {"tenant": plain(one["tenant"])} for one in accounts]
        with self._writing():
            there = {column.name for column in self._db.table("runs").columns}
            for key in numbers:
                if key not in there:
                    self._db.table("runs").add_column(key, float)
            self._insert(cell, DONE, "", version, numbers)
            self._db.table("tenants").delete_where("run = ?", [cell.name])
            self._db.table("tenants").insert_all(accounts)

    def fail(self, cell: SweepRun, problem: str, version: str) -> None:
        """Write why there is no result of a run; a result that another command has written stays."""
        with self._writing():
            kept = self._db.execute(
                "SELECT 1 FROM runs WHERE run = ? AND state = ?", [cell.name, DONE]
            ).fetchone()
            if kept is None:
                self._insert(cell, FAILED, problem, version, {})

    def _insert(self, cell: SweepRun, state: str, problem: str, version: str, numbers: Row) -> None:
        row = {
            "run": cell.name,
            "policy": cell.policy,
            "lease_s": cell.lease_s,
            "load": cell.load,
            "seed": cell.seed,
            "state": state,
            "problem": plain(problem),
            "version": version,
        }
        self._db.table("runs").insert(row | numbers, replace=True)

    def rows(self) -> list[Row]:
        """All runs, those of a policy together."""
        with _in_words(self.path):
            found = self._db.query("SELECT * FROM runs ORDER BY policy, lease_s IS NULL, lease_s, load, seed")
            return sorted(found, key=lambda row: _by_number(row["policy"]))


def _by_number(name: str) -> list[tuple[float, str]]:
    """The order of names in which 2 comes before 10."""
    parts = re.split(r"([0-9]+(?:\.[0-9]+)?)", name)
    return [(float(part), "") if at % 2 else (-1.0, part) for at, part in enumerate(parts)]


def _is_number(value: object) -> bool:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return value is None or (known and math.isfinite(float(str(value))))


def _differing(name: str, known: Mapping[str, object], wanted: Mapping[str, object]) -> str:
    """The settings of a policy's runs in a file that are not those wanted, as --set has them; "" = none.

    A file names all settings of a policy. One of before names those that were given.
    """
    policy = base_of(name)
    there = in_full(policy, load_recorded(policy, known), known)
    return ", ".join(f"{key}={there.get(key)}" for key in wanted if there.get(key) != wanted[key])


def _refuse_another(path: Path, there: About, here: About) -> None:
    if there.trace["sha256"] != here.trace["sha256"]:
        name, jobs = plain(Path(there.trace["path"]).name), there.trace["jobs"]
        raise InputError(
            f"{path}: holds a sweep of another trace ({name}, {jobs} jobs): name another file with --out"
        )
    for option in _in_order(there.options, here.options):
        was, now = (about.options.get(option) for about in (there, here))
        if _content(was) != _content(now):
            raise InputError(
                f"{path}: holds a sweep {_given(option, was)}, and this one is {_given(option, now)}: give the "
                "same options, or name another file with --out"
            )


def _in_order(*options: Iterable[str]) -> list[str]:
    return sorted({name for some in options for name in some})


def _content(value: Any) -> Any:
    """The value to compare: of a file its content, wherever the file lies."""
    return value["sha256"] if _is_file(value) else value


def _is_file(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"file", "sha256"}


def _given(option: str, value: Any) -> str:
    if value is None:
        return f"without {option}"
    if value is True:
        return f"with {option}"
    if _is_file(value):
        return f"with {option} {plain(value['file'])} (sha256 {value['sha256'][:8]}...)"
    return f"with {option} {value if isinstance(value, str) else json.dumps(value)}"


@contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """Failures of SQLite leave this block as one line with a cure."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            raise InputError(f"{path}: {_NOT_OURS}") from error
        if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            raise InputError(
                f"{path}: cannot be opened: name a file in a directory that you may write to"
            ) from error
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise SlurmFairError(f"{path}: another program holds it locked: close that program") from error
        raise SlurmFairError(f"{path}: cannot be read or written: {error}") from error
