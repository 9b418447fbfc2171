"""Frozen values some of whose fields are read from elsewhere, and only when somebody asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, field
from functools import partial
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, ClassVar, Self

from slurm_fair.model.once import once


class Deferred:
    """A frozen dataclass of which fields may be left to be read later.

    It is copied as one dict of what is at hand, at half the cost of its fields one by one: no slots.
    """

    if TYPE_CHECKING:  # of each kind, and no fields of it
        _names: ClassVar[tuple[str, ...]]
        _kept: ClassVar[tuple[str, ...]]  # what is worked out of its fields and kept with them
        _source: Any
    else:
        _kept = ()

        def __getattr__(self, name: str) -> Any:
            """A field that was left to be read later."""
            if name not in self._names:
                raise AttributeError(f"{type(self).__name__} has no {name}")
            value = self.__dict__[name] = getattr(self._source, name)
            return value

    def __init_subclass__(cls) -> None:
        if "__slots__" in vars(cls):
            raise TypeError(f"{cls.__name__}: fields may be left to be read later, so it has no slots")
        cls._names = tuple(cls._kinds())
        for name, default in vars(cls).copy().items():
            if name in cls._names and not isinstance(default, Field):
                setattr(cls, name, _given(default))
        once_worked_out = (name for name, value in vars(cls).items() if isinstance(value, once))
        cls._kept = (*cls._kept, *once_worked_out)

    @classmethod
    def _kinds(cls) -> dict[str, str]:
        """The fields and how they are annotated."""
        return {
            name: str(kind) for base in reversed(cls.__mro__) for name, kind in get_annotations(base).items()
        }

    @classmethod
    def made_of(cls, at_hand: Mapping[str, Any], source: object = None) -> Self:
        """A value of fields that belong together, so that nothing need be checked.

        Nobody asks for most fields of some values: one that is not at hand is read from the source when somebody
        asks for it, and the source must answer at any time as it would have now.
        """
        value = object.__new__(cls)
        fields = value.__dict__
        fields.update(at_hand)
        fields["_source"] = source
        return value

    def _copied(self) -> Self:
        """The same fields, at hand or left to be read later, and nothing that was worked out of them."""
        copy = object.__new__(type(self))
        fields = copy.__dict__
        fields.update(self.__dict__)
        for name in self._kept:
            fields.pop(name, None)
        return copy

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is made by the constructor, of all fields."""
        return partial(type(self), **{name: getattr(self, name) for name in self._names}), ()

    def read(self) -> Self:
        """The same value, with nothing left to be read later."""
        for name in self._names:
            getattr(self, name)
        return self


def _given(default: Any) -> Any:
    """A default of the constructor alone: as the kind's own it would be found before what was left to be read."""
    return field(default_factory=lambda: default)
