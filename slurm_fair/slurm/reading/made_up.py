"""Accounts that nobody lists: where Slurm does not enforce associations, users may make up new ones for ever."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model.columns import Bools
from slurm_fair.slurm.reading.queue import Queue, may_take_gpus

OF_A_USER = 16  # each is a tenant that the ledger and the journal remember


class MadeUp:
    """The accounts that neither Slurm nor the configuration lists, each with the user who brought it."""

    def __init__(self) -> None:
        self._brought: dict[str, set[str]] = {}
        self._known: set[str] = set()

    def beyond(self, rows: NDArray[np.void], queue: Queue, listed: Collection[str]) -> Bools:
        """Rows with an account too many of their user."""
        asks = may_take_gpus(rows)
        pairs, pair = np.unique(rows[["user", "account"]], return_inverse=True)
        beyond = np.zeros(len(pairs), dtype=bool)
        # The accounts of the oldest jobs first: a new job never takes the place of another.
        for at in _in_order(pair[asks], rows["record"][asks]):
            user, account = (int(number) for number in pairs[at].tolist())
            beyond[at] = not self._may(queue.users.texts[user], queue.accounts.texts[account], listed)
        found: Bools = beyond[pair]
        found &= asks
        return found

    def _may(self, user: str, account: str, listed: Collection[str]) -> bool:
        if account in listed or account in self._known:
            return True
        brought = self._brought.setdefault(user, set())
        if len(brought) >= OF_A_USER:
            return False
        brought.add(account)
        self._known.add(account)
        return True


def _in_order(pair: NDArray[np.int64], record: NDArray[np.int64]) -> Iterator[int]:
    """Each pair once, by its oldest job."""
    order = np.argsort(record, kind="stable")
    different, first = np.unique(pair[order], return_index=True)
    yield from different[np.argsort(first, kind="stable")].tolist()
