"""A job's --constraint as Slurm reads it: on which nodes each of its ways lets a gang lie.

From left to right, without precedence (slurm-facts: constraint-left-to-right): `&` and `,` mean and, `|` means or,
parentheses group, `!` denies. `[a|b]` wants all nodes to have a, or all to have b: these are two ways. A count
(`a*2`) is kept by nodes that all have the feature. Where several features have counts, the nodes that have one of
them are taken: whether so many of each are among them, Slurm says when the job is to start.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from slurm_fair.model.columns import Bools

_TOKEN = re.compile(r"\s*([^\s&|,()\[\]!*]+|[&|,()\[\]!*])")
_MOST_LETTERS, _DEEPEST, _MOST_WAYS = 1000, 50, 64
_COUNTED = re.compile(r"\*\s*[0-9]+")


def ways_of(text: str, features: Sequence[frozenset[str]]) -> tuple[Bools, ...]:
    """The nodes on which a gang may lie, for each way; all nodes for a text that cannot be read.

    `features` are those of each node. Slurm refuses what it cannot read itself, and starts no job elsewhere than
    its constraint says, whatever is planned.
    """
    try:
        return _Reader(text, features).ways()
    except _Unread:
        return (np.ones(len(features), dtype=bool),)


class _Unread(Exception):
    """Not a constraint as we know it."""


class _Reader:
    """Reads one text from left to right."""

    def __init__(self, text: str, features: Sequence[frozenset[str]]) -> None:
        if len(text) > _MOST_LETTERS:
            raise _Unread
        self._features = features
        self._either = len(_COUNTED.findall(text)) > 1
        self._tokens = _TOKEN.findall(text)
        if sum(token in "([!" for token in self._tokens) > _DEEPEST:
            raise _Unread
        if "".join(self._tokens) != "".join(text.split()):
            raise _Unread

    def ways(self) -> tuple[Bools, ...]:
        """The ways of the whole text; the same nodes are one way."""
        found = self._expression(())
        if self._tokens:
            raise _Unread
        return tuple(_distinct(found))

    def _expression(self, ends: tuple[str, ...]) -> list[Bools]:
        """Terms up to one of these brackets, joined as they come."""
        found = self._term()
        while self._tokens and self._tokens[0] not in ends:
            word = self._tokens.pop(0)
            if word not in ("&", ",", "|"):
                raise _Unread
            join: Callable[..., Bools] = np.logical_or if word == "|" or self._either else np.logical_and
            found = _distinct([join(one, other) for other in self._term() for one in found])
        return found

    def _term(self) -> list[Bools]:
        if not self._tokens:
            raise _Unread
        word = self._tokens.pop(0)
        if word == "!":
            return [np.logical_not(way) for way in self._term()]
        if word == "(":
            found = self._expression((")",))
            self._close(")")
        elif word == "[":
            found = self._options()
        elif word in "&|,)]*":
            raise _Unread
        else:
            found = [np.array([word in each for each in self._features], dtype=bool)]
        self._count()
        return found

    def _options(self) -> list[Bools]:
        """All nodes by one of the options; with counts, nodes of each of them."""
        found = self._and_terms()
        options = [found]
        while self._tokens and self._tokens[0] == "|":
            self._tokens.pop(0)
            options.append(self._and_terms())
        self._close("]")
        every = [way for option in options for way in option]
        return [reduce(np.logical_or, every)] if self._either else every

    def _and_terms(self) -> list[Bools]:
        return self._expression(("|", "]"))

    def _close(self, bracket: str) -> None:
        if not self._tokens or self._tokens.pop(0) != bracket:
            raise _Unread

    def _count(self) -> None:
        if self._tokens and self._tokens[0] == "*":
            self._tokens.pop(0)
            if not self._tokens or not re.fullmatch("[0-9]{1,6}", self._tokens.pop(0)):
                raise _Unread


def _distinct(ways: list[Bools]) -> list[Bools]:
    found = {way.tobytes(): way for way in ways}
    if len(found) > _MOST_WAYS:
        raise _Unread
    return list(found.values())
