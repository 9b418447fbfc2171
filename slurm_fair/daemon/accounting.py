"""The ledger beside Slurm's accounting: the time without a daemon, and charges that were not quite right."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from slurm_fair.errors import SlurmFairError
from slurm_fair.ledger import LedgerSettings, fill_gap, settle
from slurm_fair.model import Blind, Event, Standing
from slurm_fair.ports import History
from slurm_fair.tick import Rules

_LATE_SECONDS = 2.0  # what happened in the last seconds may not have reached accounting yet
_WORTH_A_LINE = 0.5  # GPU-seconds
log = logging.getLogger("slurm_fair")


def with_gap_filled(
    standing: Standing, history: History, partitions: Sequence[str], rules: Rules, now: float
) -> tuple[Standing, tuple[Event, ...]]:
    """The standing with the time without us, and the events of that time.

    Without accounting the ledger goes on from what it sees.
    """
    ledger = standing.ledger
    if standing.tick == 0 or now - ledger.time < 2 * rules.terms.interval:
        return standing, ()
    try:
        runs = history.runs(ledger.time, now, partitions)
    except SlurmFairError as problem:
        runs = Blind(now, str(problem))
    if isinstance(runs, Blind):
        log.warning(
            "accounting does not answer: the time without us is counted from what runs: %s", runs.reason
        )
        return standing, ()
    until = max(now - _LATE_SECONDS, ledger.time)
    filled, happened = fill_gap(ledger, runs, until, rules.ledger)
    log.info("filled %.0f s without us from accounting", until - ledger.time)
    return standing._replace(ledger=filled, amended=True), tuple(happened)


def with_charges_settled(
    standing: Standing, history: History, partitions: Sequence[str], settings: LedgerSettings, now: float
) -> Standing:
    """The standing with accounting's word on runs that it counted otherwise."""
    runs = history.runs(now - settings.closed_memory_seconds, now, partitions)
    if isinstance(runs, Blind):
        log.info("accounting does not answer; charges settle later: %s", runs.reason)
        return standing
    known = standing.ledger  # an account that no look has shown may be made up
    ledger, moved = settle(known, runs.of_tenants(known.tenants.names), known.time)
    if moved > _WORTH_A_LINE:
        log.info("settled %.1f GPU-seconds with accounting", moved)
    return standing._replace(ledger=ledger, amended=True) if moved > 0 else standing
