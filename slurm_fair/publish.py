"""Lease ends for jobs that want to know: one small file per job in a directory that all may read."""

from __future__ import annotations

import json
import logging
import time
from contextlib import suppress
from pathlib import Path

from slurm_fair.board import draw
from slurm_fair.errors import StoreError
from slurm_fair.model import LeasePhase, Leases, Standing, TickRecord, labels
from slurm_fair.places import write_whole

log = logging.getLogger("slurm_fair")


class Publisher:
    """Writes `<id>.json` when a lease changes and takes it away when it is over."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory) if directory else None
        self._written: dict[str, str] = {}
        self._next_board = 0.0

    def publish_board(self, record: TickRecord, standing: Standing) -> None:
        """What users may see of the queue; drawn no more often than costs little."""
        if self._directory is None or time.monotonic() < self._next_board:
            return
        began = time.monotonic()
        try:
            write_whole(self._directory / "board.json", json.dumps(draw(record, standing).document()), 0o644)
        except StoreError as problem:
            log.warning("the board is not published: %s", problem)
        self._next_board = time.monotonic() + 20 * (time.monotonic() - began)

    def publish(self, leases: Leases) -> None:
        """Bring the directory up to the leases; a file system that fails costs a warning, not the tick."""
        if self._directory is None:
            return
        running = leases.phase == LeasePhase.RUNNING
        names, restarts = labels(leases.key[running]), leases.restarts[running].tolist()
        ends = zip(names, restarts, leases.end[running].tolist(), strict=True)
        wanted = {name: json.dumps({"v": 1, "restart": run, "lease_end": end}) for name, run, end in ends}
        try:
            for name, text in wanted.items():
                if self._written.get(name) != text:
                    write_whole(self._directory / f"{name}.json", text, 0o644)
        except StoreError as problem:
            log.warning("lease ends are not published: %s", problem)
            return
        for name in self._written.keys() - wanted.keys():
            with suppress(OSError):
                (self._directory / f"{name}.json").unlink()
        self._written = wanted
