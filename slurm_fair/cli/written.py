"""Option values that a function reads out of their text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import click

_Value = TypeVar("_Value")


class Written(click.ParamType[_Value], Generic[_Value]):
    """The type of an option; `read` makes its value of its text, and raises click.BadParameter."""

    def __init__(self, name: str, read: Callable[[str], _Value]) -> None:
        self.name, self._read = name, read

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """The name as it is written: click would show words that are typed in capitals."""
        return self.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> _Value:
        """The value; a default that is one already stays as it is."""
        if isinstance(value, str):
            return self._read(value)
        made: _Value = value
        return made


def each_once(text: str, found: Sequence[_Value]) -> tuple[_Value, ...]:
    """The numbers of a list, none of which may be there twice; None is the word `own`."""
    if len(set(found)) < len(found):
        twice = next(one for at, one in enumerate(found) if one in found[:at])
        word = "own" if twice is None else f"{twice:g}"
        raise click.BadParameter(f"{text!r}: {word} is there twice: keep one of them")
    return tuple(found)
