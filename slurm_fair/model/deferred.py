"""Frozen values some of whose fields are read from elsewhere, and only when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from inspect import get_annotations
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, ClassVar, Self

_new, _set = object.__new__, object.__setattr__
Put = Callable[[object, Any], None]


class Deferred:
    """A frozen dataclass of which fields may be left to be read later."""

    __slots__ = ("_source",)

    if TYPE_CHECKING:  # of each kind, and no fields of it
        _names: ClassVar[tuple[str, ...]]
        _put: ClassVar[dict[str, Put]]  # what sets each field
        _source: Any
    else:

        def __getattr__(self, name: str) -> Any:
            """A field that was left to be read later."""
            if name not in self._names:
                raise AttributeError(f"{type(self).__name__} has no {name}")
            value = getattr(self._source, name)
            self._put[name](self, value)
            return value

    def __init_subclass__(cls) -> None:
        cls._names = tuple(cls._kinds())
        cls._put = {name: setter(cls, name) for name in cls._names}

    @classmethod
    def _kinds(cls) -> dict[str, str]:
        """The fields and how they are annotated."""
        return {
            name: str(kind) for base in reversed(cls.__mro__) for name, kind in get_annotations(base).items()
        }

    @classmethod
    def made_of(cls, at_hand: Iterable[tuple[str, Any]], source: object = None) -> Self:
        """A value of fields that belong together, so that nothing need be checked.

        Nobody asks for most fields of some values: one that is not at hand is read from the source when somebody
        asks for it, and the source must answer at any time as it would have now.
        """
        value, put = _new(cls), cls._put
        for name, field in at_hand:
            put[name](value, field)
        _set(value, "_source", source)
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is made by the constructor, of all fields."""
        return partial(type(self), **{name: getattr(self, name) for name in self._names}), ()

    def read(self) -> Self:
        """The same value, with nothing left to be read later."""
        for name in self._names:
            getattr(self, name)
        return self


def setter(cls: type, name: str) -> Put:
    """What sets a field of a frozen value: its own descriptor, where it has one, which then need not be found."""
    member = getattr(cls, name, None)
    if isinstance(member, MemberDescriptorType):
        put: Put = member.__set__
        return put
    return lambda value, field: _set(value, name, field)
