"""Bounds of policies' settings: annotations of fields state them, and one function checks them.

`reset_seconds: Annotated[float, Within(0, YEARS, "0 = at every look")]` and `check_settings(self, "fifo")` in
`__post_init__` are all that a policy says about it. Every number must be finite, whatever its field says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Literal, Protocol, get_args, get_origin, get_type_hints

from slurm_fair.errors import ConfigError
from slurm_fair.policy.packing.placement import placer

YEARS = 1e9  # seconds: as long as anything here lasts


@dataclass(frozen=True, slots=True)
class Within:
    """Finite numbers between two others; a list or a table must have only such numbers."""

    least: float
    most: float
    note: str = ""
    above: bool = False  # `least` itself may not be

    def __str__(self) -> str:
        note = f" ({self.note})" if self.note else ""
        if self.above:
            return f" above {self.least:.10g} and at most {self.most:.10g}{note}"
        return f" from {self.least:.10g} to {self.most:.10g}{note}"

    def allows(self, value: object) -> bool:
        """Each number in it."""
        return all(
            (self.least < number if self.above else self.least <= number) and number <= self.most
            for number in _numbers(value)
        )


@dataclass(frozen=True, slots=True)
class Rising:
    """A list in which each number is greater than the one before it."""

    def __str__(self) -> str:
        return ", each greater than the one before it"

    def allows(self, value: object) -> bool:
        """True if the numbers are in order, and no two alike."""
        numbers = list(_numbers(value))
        return numbers == sorted(set(numbers))


@dataclass(frozen=True, slots=True)
class OneOf:
    """Words to choose from; what `Literal` says, for those who do not come by the configuration."""

    words: tuple[object, ...]

    def __str__(self) -> str:
        return " or ".join(f"'{word}'" for word in self.words)

    def allows(self, value: object) -> bool:
        return value in self.words


@dataclass(frozen=True, slots=True)
class OfPlacers:
    """Names of ways to lay a gang over nodes."""

    def __str__(self) -> str:
        return ": consolidated, or the name of an entry point slurm_fair.placements"

    def allows(self, value: object) -> bool:
        """True if there is a placer of this name; ConfigError says which there are."""
        placer(str(value))
        return True


PlacerName = Annotated[str, OfPlacers()]


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


def check_settings(policy: _Dataclass, name: str) -> None:
    """Refuse a policy with a setting that cannot be; `name` is what the configuration calls it."""
    kind = type(policy)
    hints = get_type_hints(kind, include_extras=True)
    for key in (field.name for field in fields(kind) if field.init):
        value, bounds = getattr(policy, key), _extras(hints[key])
        try:
            right = all(map(math.isfinite, _numbers(value))) and all(each.allows(value) for each in bounds)
        except ConfigError as problem:
            raise refusal(name, key, value, str(problem)) from None
        if not right:
            raise refusal(name, key, value, f"give {allowed(kind, key)}")


def refusal(name: str, key: str, value: object, cure: str) -> ConfigError:
    """One line that says which setting is wrong, and what it may be."""
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return ConfigError(f"policy.{name}.{key} = {shown}: {cure}")


def allowed(kind: type[Any], key: str) -> str:
    """The values that a setting may have, in words."""
    hint = get_type_hints(kind, include_extras=True)[key]
    plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    limits = "".join(str(each) for each in _extras(hint))
    if get_origin(plain) is Literal:
        return limits
    if plain is bool:
        return "true or false"
    return _noun(plain) + limits


def _noun(plain: Any) -> str:
    nouns = {int: "a whole number", float: "a number", str: "a name", tuple: "a list of numbers"}
    if get_origin(plain) in (dict, Mapping):
        return "a table of numbers by name"
    return nouns.get(get_origin(plain) or plain, "a value of its type")


def _extras(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) is Literal:
        return (OneOf(get_args(hint)),)
    extras = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return tuple(each for each in extras if hasattr(each, "allows"))


def _numbers(value: object) -> Iterator[float]:
    """All numbers in a setting's value."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _numbers(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _numbers(each)
