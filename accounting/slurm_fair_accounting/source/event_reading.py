"""One line of an export read back; what no report could make use of is refused with a word on how to mend it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from slurm_fair.errors import InputError
from slurm_fair.ledger.charging.advance import BY_WEIGHT
from slurm_fair.ledger.charging.window_events import GPU_WEIGHT
from slurm_fair.model import Event, EventKind
from slurm_fair.model.ids import parse_label
from slurm_fair.model.tenant_moment import TenantMoment
from slurm_fair_accounting.source.export import ACCOUNT, HEAD, NUMBERS

Line: TypeAlias = Event | TenantMoment

_SCHEMA = "docs/schema/events.json says what a line holds"
_MOST = 1e18  # what is more would not add up
_MOST_RATIO = 1e75  # weights are from 1e-12 to 1e12: who is owed little of much has far more than that
_ROUNDING = 1e-3
_MOST_GPUS = 2**31 - 1
_YEAR_9999 = 253370764800.0  # calendars end in it
_MUST_SAY = {EventKind.FINISHED: ("had", "owed", "waited", "ran")}


def read_line(text: str, where: str) -> Line:
    """The event or the account in a line; InputError begins with where it stands."""
    try:
        return _read(json.loads(text))
    except json.JSONDecodeError as error:
        raise InputError(
            f"{where}: is no JSON: give a file of events, as `slurm-fair report export` or --events-out writes it"
        ) from error
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    except (RecursionError, ValueError) as error:  # deeper, or of more digits, than can be read
        raise InputError(f"{where}: is no event: {_SCHEMA}") from error


def _read(content: Any) -> Line:
    if not isinstance(content, dict):
        raise InputError(f"is no event but another JSON value: {_SCHEMA}")
    time, kind = _said(content, "time", _instant), _said(content, "kind", _text)
    if kind == EventKind.CAPACITY:
        by_weight = {BY_WEIGHT: _said(content, BY_WEIGHT, _number)} if BY_WEIGHT in content else {}
        return Event(time, EventKind.CAPACITY, 0, "", _said(content, "gpus", _gpus), by_weight)
    tenant = _said(content, "tenant", _text)
    if kind == ACCOUNT:
        return TenantMoment(
            time, tenant, **{name: _said(content, name, _of_account(name)) for name in NUMBERS}
        )
    for name in _MUST_SAY.get(kind, ()):
        _said(content, name, _amount)
    key = parse_label(str(_said(content, "job", _job)))
    return Event(time, kind, key, tenant, _said(content, "gpus", _gpus), _detail(content))


def _said(content: Mapping[str, Any], name: str, read: Callable[[str, Any], Any]) -> Any:
    """A value that must be there."""
    if content.get(name) is None:
        raise InputError(f"is no event, for it does not say its `{name}`: {_SCHEMA}")
    return read(name, content[name])


def _of_account(name: str) -> Callable[[str, Any], float]:
    return _weight if name == "weight" else _amount


def _detail(content: Mapping[str, Any]) -> dict[str, Any]:
    """The other values; null counts as left out, except where it says that there is none."""
    detail: dict[str, Any] = {}
    for name, value in content.items():
        if name in HEAD:
            continue
        read = _READ.get(name)
        if read is None or (value is None and name in _MAY_BE_NOTHING):
            detail[name] = value
        elif value is not None:
            detail[name] = read(name, value)
    return detail


# -- values -------------------------------------------------------------------------------------------------------


def _number(name: str, value: Any, most: float = _MOST) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -most <= value <= most:
        raise _wrong(name, value, f"give a number, at most {most:g}")
    return float(value)


def _amount(name: str, value: Any) -> float:
    """A sum of GPU time or seconds: below 0 only by a rounding error."""
    if (amount := _number(name, value)) < -_ROUNDING:
        raise _wrong(name, value, "give a number of 0 or more")
    return amount


def _weight(name: str, value: Any) -> float:
    if not (weight := _number(name, value)) > 0:
        raise _wrong(name, value, "give a number above 0")
    return weight


def _ratio(name: str, value: Any) -> float:
    return _number(name, value, _MOST_RATIO)


def _instant(name: str, value: Any) -> float:
    seconds = _number(name, value)
    if not 0 <= seconds <= _YEAR_9999:
        raise _wrong(name, value, "give seconds since 1970, before the year 9999")
    return seconds


def _count(name: str, value: Any) -> int:
    count = _number(name, value)
    if count != int(count):
        raise _wrong(name, value, "give a whole number")
    return int(count)


def _gpus(name: str, value: Any) -> int:
    gpus = _count(name, value)
    if not 0 <= gpus <= _MOST_GPUS:
        raise _wrong(name, value, "give a number of GPUs, 0 or more")
    return gpus


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(name, value, "give a text")
    return value


def _job(name: str, value: Any) -> str | int:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise _wrong(name, value, 'give a job id as a text, like "1234" or "1234_5"')
    return value


def _nodes(name: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(node, str) for node in value):
        raise _wrong(name, value, 'give a list of names, like ["n1", "n2"]')
    return value


def _wrong(name: str, value: Any, cure: str) -> InputError:
    shown = json.dumps(value)
    return InputError(f"`{name}` is {shown if len(shown) <= 40 else shown[:37] + '...'}: {cure}")


_MAY_BE_NOTHING = ("until", "rho")  # a lease that lasts until its job ends; a job that was owed nothing
_READ: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(("submit", "start", "end", "until"), _instant),
    **dict.fromkeys(("had", "owed", "waited", "ran", "held_seconds", "grace_seconds"), _amount),
    **dict.fromkeys(("exclusive_seconds", "declared_seconds", "expected_seconds", "spread_seconds"), _number),
    **dict.fromkeys(("limit_seconds", GPU_WEIGHT), _number),
    "rho": _ratio,
    **dict.fromkeys(("restarts", "number"), _count),
    **dict.fromkeys(("user", "name", "app", "state"), _text),
    "nodes": _nodes,
}
