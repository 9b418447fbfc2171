"""The source of a report: the journal, or an export of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

from slurm_fair.model import Event, Standing
from slurm_fair.model.tenant_moment import TenantMoment


class JournalReader(Protocol):
    """The questions that reports ask; the store's reader and an exported file answer them."""

    def latest(self) -> Standing | None:
        """The newest standing; None when there is none."""
        ...

    def began(self) -> float | None:
        """The first instant that is known."""
        ...

    def events(
        self,
        start: float = ...,
        end: float = ...,
        *,
        kinds: Collection[str] = ...,
        tenant: str | None = ...,
        keys: Collection[int] | None = ...,
    ) -> Iterator[Event]:
        """Events in [start, end), oldest first; no kinds = all of them."""
        ...

    def moments(self, start: float, end: float) -> Iterator[TenantMoment]:
        """Tenants' accounts in [start, end], oldest first."""
        ...

    def moment_time(self, near: float) -> float | None:
        """The instant nearest to one at which the tenants' accounts are known."""
        ...

    def close(self) -> None:
        """Give the file back."""
        ...
