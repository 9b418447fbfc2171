"""Microsoft Philly (github.com/msr-fiddle/philly-traces): `cluster_job_log`, one JSON list.

Each entry: `status` (Pass, Killed, Failed), `vc` (virtual cluster: the tenant), `jobid`, `user`, `submitted_time`
(YYYY-MM-DD HH:MM:SS), and `attempts`, each with `start_time`, `end_time` (null where not recorded) and `detail`, a
list of {ip, gpus}. GPUs are those of the last attempt that has any; the run time is the sum of all attempts whose
start and end are known. A last attempt without an end still ran.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from slurm_fair.errors import InputError
from slurm_fair.trace.convert.entry import NEVER_RAN, NO_GPU, STILL_RUNS, Item, each, instant_of
from slurm_fair.trace.faults import BadCell, nearest_of, shown
from slurm_fair.trace.files import reading
from slurm_fair.trace.write import number_text

COLUMNS = ("job_id", "tenant", "submit_s", "gpus", "duration_s", "user", "status", "node_count")
_KEYS = ("status", "vc", "jobid", "attempts", "submitted_time", "user")
_NOTHING = (None, "None", "")


def items(path: Path) -> Iterator[Item]:
    """Each entry of the log."""
    with reading(path) as text:
        try:
            log = json.loads(text.read())
        except (ValueError, RecursionError) as problem:
            raise InputError(f"{path}: not JSON ({str(problem)[:80]}): give cluster_job_log whole") from None
    if not isinstance(log, list):
        raise InputError(f"{path}: must be one JSON list of jobs, as cluster_job_log is")
    yield from each(((f": entry {at}", entry) for at, entry in enumerate(log, start=1)), _job)


def _job(entry: Any) -> Mapping[str, str] | str:
    if not isinstance(entry, dict):
        raise BadCell("is no JSON object: each job is one", "entry")
    for key in _KEYS:
        if key not in entry:
            raise BadCell(f"is missing; {nearest_of(key, entry or ['none'])}", key)
    attempts = entry["attempts"]
    if not isinstance(attempts, list) or not all(isinstance(attempt, dict) for attempt in attempts):
        raise BadCell("must be a list of objects", "attempts")
    if attempts and attempts[-1].get("start_time") not in _NOTHING and _open(attempts[-1]):
        return STILL_RUNS
    seconds = sum(_seconds(attempt) for attempt in attempts)
    nodes = next((found for found in map(_nodes, reversed(attempts)) if found), {})
    if seconds <= 0:
        return NEVER_RAN
    if not sum(nodes.values()):
        return NO_GPU
    return {
        "job_id": _text(entry, "jobid"),
        "tenant": _text(entry, "vc"),
        "submit_s": number_text(instant_of(_text(entry, "submitted_time"), "submitted_time")),
        "gpus": str(sum(nodes.values())),
        "duration_s": number_text(seconds),
        "user": _text(entry, "user"),
        "status": _text(entry, "status"),
        "node_count": str(len(nodes)),
    }


def _open(attempt: Mapping[str, Any]) -> bool:
    return attempt.get("end_time") in _NOTHING


def _seconds(attempt: Mapping[str, Any]) -> float:
    """Seconds that an attempt ran; 0 where the log lacks its start or end."""
    if attempt.get("start_time") in _NOTHING or _open(attempt):
        return 0.0
    start, end = (instant_of(_text(attempt, key), key) for key in ("start_time", "end_time"))
    if end < start:
        raise BadCell(f"{shown(str(attempt['end_time']))} lies before the start", "end_time")
    return end - start


def _nodes(attempt: Mapping[str, Any]) -> dict[str, int]:
    """The number of GPUs by server."""
    detail = attempt.get("detail", [])
    if not isinstance(detail, list) or not all(isinstance(server, dict) for server in detail):
        raise BadCell("must be a list of {ip, gpus}", "detail")
    counts: dict[str, int] = {}
    for server in detail:
        gpus = server.get("gpus", [])
        if not isinstance(gpus, list):
            raise BadCell("must be a list of GPUs", "gpus")
        if gpus:
            name = str(server.get("ip"))
            counts[name] = counts.get(name, 0) + len(gpus)
    return counts


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry[key]
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadCell(f"must be a text, not {type(value).__name__}", key)
    return value.strip()
