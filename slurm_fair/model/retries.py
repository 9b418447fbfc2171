"""Retries: what failed rests before it is tried again, and rests longer after each failure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, Self, TypeVar

Key = TypeVar("Key", bound=Hashable)
_DOUBLINGS = 20  # a number that goes on doubling has an end


@dataclass(frozen=True, slots=True)
class Growth:
    """The rest after the n-th failure in a row: twice as long each time, up to the longest."""

    first_seconds: float
    most_seconds: float
    spared: int = 0  # failures in a row that cost no rest

    def rest_after(self, times: int) -> float:
        doublings = times - self.spared - 1
        if doublings < 0:
            return 0.0
        return min(self.first_seconds * 2.0 ** min(doublings, _DOUBLINGS), self.most_seconds)


@dataclass(frozen=True, slots=True)
class Retries(Generic[Key]):
    """The instant from which each key may be tried again, and the number of its failures in a row."""

    due: Mapping[Key, tuple[float, int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.due)

    def resting(self, now: float) -> list[Key]:
        """The keys whose time has not come."""
        return [key for key, (until, _) in self.due.items() if now < until]

    def failed(self, keys: Iterable[Key], now: float, growth: Growth) -> Self:
        """The retries after one more failure of each key."""
        due = dict(self.due)
        for key in keys:
            times = due.get(key, (0.0, 0))[1] + 1
            due[key] = now + growth.rest_after(times), times
        return replace(self, due=due)

    def until(self, ends: Mapping[Key, float], *, anew: bool = False) -> Self:
        """The retries with rests that end then, which are no failures; `anew` forgets earlier ones."""
        if not ends:
            return self
        times = {key: 0 if anew else self.due.get(key, (0.0, 0))[1] for key in ends}
        return replace(self, due={**self.due, **{key: (end, times[key]) for key, end in ends.items()}})

    def earlier_by(self, seconds: float) -> Self:
        """The retries with rests that end so much earlier: the clock was set back."""
        return replace(self, due={key: (end - seconds, times) for key, (end, times) in self.due.items()})

    def remembered(self, now: float, seconds: float) -> Self:
        """The retries without those whose rest has been over for so long."""
        return replace(self, due={key: rest for key, rest in self.due.items() if now < rest[0] + seconds})

    def only(self, keys: Iterable[Key]) -> Self:
        """Keep these jobs; the others are forgotten, and begin anew."""
        kept = {key: self.due[key] for key in keys if key in self.due}
        return replace(self, due=kept)

    def without(self, keys: Iterable[Key]) -> Self:
        """Forget these jobs: they begin anew."""
        gone = set(keys)
        return self.only([key for key in self.due if key not in gone])
