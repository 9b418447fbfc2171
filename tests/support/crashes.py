"""Points at which a controller can die: round each intent, each command, each outcome and each record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from slurm_fair.model import Action, Verb
from tests.support.fake_cluster import Site

POINTS = (
    "before_intent", "after_intent", "before_exec", "after_exec", "before_outcome", "after_outcome",
    "before_append", "after_append",
)  # fmt: skip


class Crash(BaseException):
    """kill -9: nobody catches it."""


@dataclass(slots=True)
class Failpoint:
    """Dies at a point of a batch of acts that has a certain verb, when it comes by for the n-th time."""

    point: str
    verb: Verb | None = None  # None = whatever is done
    left: int = 1  # so many times it must come by
    fired: bool = False
    _batch: frozenset[Verb] = field(default_factory=frozenset)
    _tick: frozenset[Verb] = field(default_factory=frozenset)  # of all batches since a tick was kept

    def arm(self, site: Site) -> None:
        """Listen to a site's journal and commands."""
        site.journal.at = self.at
        site.commands.watch = lambda when, lines: self.at(f"{when}_exec", ())

    def at(self, point: str, actions: Sequence[Action]) -> None:
        """Count, and die when it is time."""
        if actions:
            self._batch = frozenset(action.verb for action in actions)
            self._tick |= self._batch
        verbs = self._tick if point.endswith("append") else self._batch
        if point == "after_append":
            self._tick = frozenset()
        if self.fired or point != self.point or (self.verb is not None and self.verb not in verbs):
            return
        self.left -= 1
        if self.left == 0:
            self.fired = True
            raise Crash(f"{point} {self.verb}")


def disarm(site: Site) -> None:
    """Nobody dies any more."""
    site.journal.at = lambda point, actions: None
    site.commands.watch = lambda when, lines: None
