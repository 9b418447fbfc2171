"""The section [lease] of the configuration."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from slurm_fair.model import USUAL_RENEWALS, LeaseTerms

A_TERM, NEVER = "term", "never"  # of `reserve_after` and, but for never, `renewal`, beside seconds
AUTO = "auto"  # beside seconds: of `interval`, looks follow changes; of `renewal`, a part of the term
_LONGEST_SECONDS = 10.0  # without a look, with `auto`
LEAST_SECONDS = 0.001
MOST_NUMBER = 1e12


@dataclass(frozen=True, slots=True)
class LeaseSection:
    """The lease rules; all lengths in seconds."""

    term: float = 900.0
    interval: float | str = AUTO
    interval_min: float = 1.0
    grace: float = 60.0
    max_grace: float = 600.0
    min_runtime: float = 0.0
    align: str = "rolling"
    renewal: float | str = AUTO
    reserve_after: float | str = A_TERM
    start_timeout: float = 60.0
    publish_dir: str = "/run/slurm-fair"

    @property
    def follows_changes(self) -> bool:
        """True where a look follows each change."""
        return self.interval == AUTO

    @property
    def longest_interval(self) -> float:
        """The seconds between two looks; with `auto` the most, also where nothing happens."""
        if isinstance(self.interval, str):
            return max(min(_LONGEST_SECONDS, self.term / 3), self.interval_min)
        return self.interval

    @property
    def near_seconds(self) -> int:
        """A begin time so near is as good as now: before it comes, the controller has gated the job."""
        return math.ceil(2 * self.longest_interval)

    def terms(self) -> LeaseTerms:
        """Lease terms for the core."""
        return LeaseTerms(
            self.term,
            self.longest_interval,
            self.grace,
            self.min_runtime,
            self.align == "aligned",
            self.start_timeout,
            self.max_grace,
            interval_min=self.interval_min if self.follows_changes else 0.0,
            reserve_after=self._reserve_after,
            renewal=self._renewal,
        )

    @property
    def _renewal(self) -> float:
        if isinstance(self.renewal, str):
            return self.term if self.renewal == A_TERM else self.term / USUAL_RENEWALS
        return self.renewal

    @property
    def _reserve_after(self) -> float:
        if isinstance(self.reserve_after, str):
            return self.term if self.reserve_after == A_TERM else math.inf
        return self.reserve_after

    def faults(self) -> Iterator[str]:
        """The faults of a key that takes a number or a word, and how to mend it."""
        yield from self._of_interval()
        after = self.reserve_after
        if after not in (A_TERM, NEVER) and (isinstance(after, str) or not 0 <= after < MOST_NUMBER):
            yield f'lease.reserve_after must be seconds, 0 or more, or "{A_TERM}" or "{NEVER}", not {after!r:.60}'
        yield from self._of_renewal()

    def _of_renewal(self) -> Iterator[str]:
        renewal = self.renewal
        if isinstance(renewal, str):
            if renewal not in (AUTO, A_TERM):
                yield f'lease.renewal must be seconds, or "{AUTO}" or "{A_TERM}", not {renewal!r:.60}'
        elif not LEAST_SECONDS <= renewal <= self.term:
            least = f"{LEAST_SECONDS:g} s at least"
            yield f"lease.renewal must be {least} and at most lease.term ({self.term:g} s), not {renewal:g}"

    def _of_interval(self) -> Iterator[str]:
        name, interval, longest = "interval", self.interval, self.term
        if self.follows_changes:
            name, interval, longest = "interval_min", self.interval_min, min(_LONGEST_SECONDS, self.term)
        if isinstance(interval, str):
            yield f'lease.interval must be a number or "{AUTO}", not {interval!r:.60}'
        elif not 0 < interval < MOST_NUMBER:
            yield f"lease.{name} must be above 0, not {interval}"
        elif interval > longest:
            of = f"lease.term ({longest:g} s)"
            if longest != self.term:
                of = f"{longest:g} s, in which there is a look anyway"
            yield f"lease.{name} ({interval:g} s) must not exceed {of}"
