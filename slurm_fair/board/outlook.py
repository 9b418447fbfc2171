"""Expected starts for the board that the daemon publishes, and how far the last ones were off."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from slurm_fair.board.board import Board, draw
from slurm_fair.board.estimates import NAME, Estimates
from slurm_fair.errors import SlurmFairError
from slurm_fair.forecast import Forecast, ForecastBounds, forecast
from slurm_fair.model import Snapshot, Standing, TickRecord
from slurm_fair.model.columns import find
from slurm_fair.output import write_whole
from slurm_fair.tick import Rules

# A look waits for it: it takes about half a second at most, and one part in fifty of the time.
_BOUNDS = ForecastBounds(seconds=0.5, looks=200, jobs=5000)
_PART_OF_TIME = 50
_KEPT_SECONDS = 60.0
log = logging.getLogger("slurm_fair")


class Outlook:
    """Hears of every tick; draws the board of one when it is asked."""

    def __init__(
        self, directory: Path, rules: Callable[[], Rules], plans: Callable[[], Mapping[str, Any]] = dict
    ) -> None:
        self._file, self._rules, self._plans = directory / NAME, rules, plans
        self._estimates = Estimates.read(self._file)
        self._ahead: Forecast | None = None
        self._next_play = self._next_write = 0.0

    def hear(self, record: TickRecord) -> None:
        """Settle the estimates of jobs that started or ended; write them down now and then."""
        self._estimates.hear(record.events)
        if time.monotonic() >= self._next_write:
            self.keep()

    def board(self, record: TickRecord, standing: Standing) -> Board:
        """The board of one tick."""
        began = time.monotonic()
        if began >= self._next_play:
            self._ahead = forecast(record, standing, self._rules(), _BOUNDS)
            self._estimates.note(self._ahead.starts, _owners(record.snapshot, self._ahead.starts))
            self._next_play = began + _PART_OF_TIME * (time.monotonic() - began)
        rules = self._rules()
        policy = rules.policy if rules.policy_name == record.policy else None
        past = self._estimates.summary(record.time)
        return draw(
            record,
            standing,
            self._ahead,
            estimates=past,
            policy=policy,
            counts_seconds=rules.ledger.counts_seconds,
            plans=self._plans(),
        )

    def keep(self) -> None:
        """Write down what was said, so that a restart forgets nothing; what cannot be written costs no more."""
        self._next_write = time.monotonic() + _KEPT_SECONDS
        try:
            write_whole(self._file, lambda file: file.write(self._estimates.text().encode()), 0o600)
        except (OSError, SlurmFairError) as problem:
            log.info("past estimates are not kept: %s", problem)


def _owners(seen: Snapshot, keys: Collection[int]) -> dict[int, str]:
    """The user of each job that is still in the queue, by key."""
    rows = find(seen.jobs.key, np.fromiter(keys, dtype=np.int64, count=len(keys)))
    return {
        key: seen.users[seen.jobs.user.item(row)]
        for key, row in zip(keys, rows.tolist(), strict=True)
        if row >= 0
    }
