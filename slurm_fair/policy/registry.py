"""Policies by name: the entry points of the group `slurm_fair.policies`, ours and a site's alike."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, redirect_stdout
from dataclasses import fields, is_dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

from slurm_fair.errors import ConfigError, PolicyError
from slurm_fair.policy.error_place import POLICY_FAILURES, beginning, where, where_loading
from slurm_fair.policy.protocol import Policy
from slurm_fair.policy.settings import allowed, check_settings, refusal
from slurm_fair.suggest import did_you_mean

GROUP = "slurm_fair.policies"
DEFAULT_POLICY = "fair"
# By policy, the value of a setting in ticks that do not name it: its default before that was changed, or what the
# policy did before it had the setting. Ticks once named only what the configuration named, and now all settings.
_UNNAMED: Mapping[str, Mapping[str, object]] = {
    "astraea": {"swap_after": 1.0},
    "fair": {"repay_leases": 0.0, "reserve_part": 1e6, "unknown_beyond": 1.0, "urgent": "off"},
}


def names() -> tuple[str, ...]:
    """The policies that could be loaded, by name."""
    return tuple(sorted(_found()))


def load(name: str, settings: Mapping[str, object]) -> Policy:
    """The policy of this name with these settings, checked against the fields of its class."""
    kind = kind_of(name)
    hints = _hints(name, kind)
    checked = {key: _value(name, kind, hints, key, value) for key, value in settings.items()}
    try:
        with prints_aside():
            policy = kind(**checked)
    except ConfigError:
        raise
    except POLICY_FAILURES as error:
        raise PolicyError(f"{where(kind, error)}: policy '{name}' cannot be made: {gist(error)}") from error
    check_settings(policy, name)
    return cast(Policy, policy)


def load_recorded(name: str, settings: Mapping[str, object]) -> Policy:
    """The policy that planned a tick, which keeps these settings."""
    return load(name, {**_UNNAMED.get(name, {}), **settings})


def in_full(name: str, policy: Policy, given: Mapping[str, object]) -> Mapping[str, object]:
    """All settings of a policy as plain values, for a tick to keep: those given, and the defaults of the others.

    A default that no configuration could give is left out.
    """
    import msgspec

    full: dict[str, object] = {}
    for key, hint in _hints(name, type(policy)).items():
        value = getattr(policy, key)
        try:
            plain = msgspec.to_builtins(value)
            if msgspec.convert(plain, type=hint) == value:
                full[key] = plain
        except (TypeError, ValueError):  # of no plain type, or not of its own
            continue
    return {**full, **msgspec.to_builtins(given)}


def entry_of(name: str) -> EntryPoint:
    """The entry point of a policy; PolicyError where there is none of this name, or more than one.

    No package takes the name of another's policy without a word, ours included.
    """
    found = _found()
    if not name:
        raise PolicyError(f"the name of the policy is empty; known are {', '.join(sorted(found))}")
    if name not in found:
        raise PolicyError(f"unknown policy '{name}': {did_you_mean(name, sorted(found))}")
    rivals = {entry.value: entry for entry in entry_points(group=GROUP, name=name)}
    if len(rivals) > 1:
        listed = " and ".join(
            f"{entry.dist.name if entry.dist else '?'} ({value})" for value, entry in sorted(rivals.items())
        )
        raise PolicyError(
            f"policy '{name}' is in several packages: {listed}: uninstall one, or rename its entry point"
        )
    return found[name]


def settings_of(name: str) -> tuple[str, ...]:
    """The names of its settings: the fields of its class."""
    return tuple(_hints(name, kind_of(name)))


def _found() -> Mapping[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def kind_of(name: str) -> type[Any]:
    """The class of a policy; PolicyError where it cannot be loaded or is none."""
    entry = entry_of(name)
    try:
        with prints_aside():
            kind = entry.load()
    except (ImportError, AttributeError) as error:
        raise PolicyError(
            f"{_at(error)}policy '{name}' cannot be loaded from {entry.value}: {error}"
        ) from error
    except POLICY_FAILURES as error:
        at, what = _at(error), gist(error)
        raise PolicyError(f"{at}policy '{name}' cannot be loaded from {entry.value}: {what}") from error
    if not (isinstance(kind, type) and is_dataclass(kind) and callable(getattr(kind, "plan", None))):
        raise PolicyError(f"policy '{name}': {entry.value} is no dataclass with a method plan(view)")
    return kind


def prints_aside() -> AbstractContextManager[object]:
    """A policy's own words are no part of what a command prints: they go to standard error."""
    return redirect_stdout(sys.stderr)


def _hints(name: str, kind: type[Any]) -> Mapping[str, object]:
    try:
        hints = get_type_hints(kind)
    except POLICY_FAILURES as error:
        wrong = f"an annotation of a setting cannot be read: {gist(error)}"
        raise PolicyError(f"{beginning(kind)}: policy '{name}': {wrong}") from error
    return {f.name: hints[f.name] for f in fields(kind) if f.init}


def _at(error: BaseException) -> str:
    place = where_loading(error)
    return f"{place}: " if place else ""


# Types as msgspec names them, in the words of people.
_IN_WORDS = {
    "float": "a number",
    "int": "a whole number",
    "bool": "true or false",
    "str": "a text",
    "null": "nothing",
}


def gist(error: BaseException) -> str:
    """An error in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def _value(name: str, kind: type[Any], hints: Mapping[str, object], key: str, value: object) -> object:
    if key not in hints:
        raise ConfigError(f"[policy.{name}]: unknown setting '{key}': {did_you_mean(key, sorted(hints))}")
    if get_origin(hints[key]) is Literal and value not in get_args(hints[key]):
        options = did_you_mean(str(value), sorted(map(str, get_args(hints[key]))))
        raise refusal(name, key, value, f"{options}: give {allowed(kind, key)}")
    import msgspec  # only who sets something waits for it

    try:
        return msgspec.convert(value, type=hints[key])
    except msgspec.ValidationError as error:
        what = re.sub("`([a-z]+)`", lambda kind: _IN_WORDS.get(kind[1], kind[1]), str(error)).replace("`", "")
        cure = f"{what[0].lower()}{what[1:]}: give {allowed(kind, key)}"
        raise refusal(name, key, value, cure) from error
