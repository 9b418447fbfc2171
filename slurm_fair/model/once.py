"""A property that is worked out when it is first read, and kept."""

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
