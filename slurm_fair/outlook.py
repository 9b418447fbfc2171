"""What the daemon knows beyond one tick for the board that it publishes: what is ahead, and what is just past."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from pathlib import Path

from slurm_fair.board import Board, draw
from slurm_fair.errors import StoreError
from slurm_fair.estimates import NAME, Estimates
from slurm_fair.forecast import Bounds, Forecast, forecast
from slurm_fair.model import Event, Standing, TickRecord
from slurm_fair.places import write_whole
from slurm_fair.recent import Recent
from slurm_fair.tick import Rules

# A look waits for it: it takes about half a second at most, and one part in fifty of the time.
_BOUNDS = Bounds(seconds=0.5, looks=200, jobs=5000)
_SHARE = 50
_KEPT_SECONDS = 60.0
log = logging.getLogger("slurm_fair")


class Outlook:
    """Hears of every tick; draws the board of one when it is asked."""

    def __init__(self, directory: Path, ended: Iterable[Event] = ()) -> None:
        self._file = directory / NAME
        self._estimates, self._recent = Estimates.read(self._file), Recent(ended)
        self._ahead: Forecast | None = None
        self._next_play = self._next_write = 0.0

    def hear(self, record: TickRecord) -> None:
        """Of starts and ends."""
        self._estimates.hear(record.events)
        self._recent.hear(record.events)

    def board(self, record: TickRecord, standing: Standing, rules: Rules) -> Board:
        """The board of one tick, with expected starts, past errors and the jobs that ended in the last day."""
        began = time.monotonic()
        if began >= self._next_play:
            self._ahead = forecast(record, standing, rules, _BOUNDS)
            self._estimates.note(self._ahead.starts)
            self._next_play = began + _SHARE * (time.monotonic() - began)
        self._keep(began)
        return draw(
            record, standing, self._ahead,
            finished=self._recent.rows(record.time), estimates=self._estimates.summary(record.time),
        )  # fmt: skip

    def _keep(self, now: float) -> None:
        if now < self._next_write:
            return
        self._next_write = now + _KEPT_SECONDS
        try:
            write_whole(self._file, self._estimates.text())
        except StoreError as problem:
            log.info("past estimates are not kept: %s", problem)
