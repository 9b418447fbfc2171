"""Values that are worked out when they are first read, and kept with what they follow from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

Of = TypeVar("Of")
Value = TypeVar("Value")


class once(Generic[Of, Value]):
    """functools.cached_property without its lock, for values that never change."""

    def __init__(self, work: Callable[[Of], Value]) -> None:
        self._work, self._name = work, ""
        self.__doc__ = work.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, of: None, kind: type) -> Self: ...
    @overload
    def __get__(self, of: Of, kind: type | None = None) -> Value: ...
    def __get__(self, of: Any, kind: type | None = None) -> Any:
        if of is None:
            return self
        value = of.__dict__[self._name] = self._work(of)  # found there from now on, before this is asked
        return value


def kept_with(of: Any, name: str, given: tuple[Any, ...], work: Callable[[], Value]) -> Value:
    """A value that follows from `of` and from what else is given, kept with `of` until something else is given.

    Tables are the same only if they are the very same object.
    """
    last: tuple[tuple[Any, ...], Value] | None = of.__dict__.get(name)
    if last is not None and all(map(_same, last[0], given)):
        return last[1]
    value = work()
    of.__dict__[name] = given, value
    return value


def _same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is tuple and type(other) is tuple and one == other)
