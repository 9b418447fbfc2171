"""Options as a command gets them, by group."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from slurm_fair.config.lease import A_TERM, AUTO
from slurm_fair.errors import InputError
from slurm_fair.ledger.settings import Counted, JobShare, LedgerSettings
from slurm_fair.sim.scenario import Costs

_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """RUN, as a command gets them."""

    settings: tuple[str, ...]
    seed: int
    workers: int
    html: Path | None
    repeat: int = 1


@dataclass(frozen=True, slots=True)
class LeaseOptions:
    """TERM (where the command takes it), LEASES, JOB_SHARE and COUNTED, as a command gets them."""

    interval: float | str | None
    align: str | None
    reserve_after: float | None
    renewal: float | str | None
    half_life: float | None
    job_share: JobShare | None
    counted: Counted | None
    lease: float | None = None
    pace: Literal["events", "daemon"] = "events"
    look_cost: float | None = None

    @property
    def renewal_seconds(self) -> float | None:
        """Seconds of a renewed lease; inf = as long as a new one, None = the usual part of it."""
        if isinstance(self.renewal, str):
            return math.inf if self.renewal == A_TERM else None
        return self.renewal

    def look_seconds(self, *, gavel_rounds: bool) -> float | None:
        """Seconds of a look at the daemon's pace; None at that of events."""
        if self.pace == "events":
            if self.look_cost is not None:
                raise InputError("--look-cost: looks take time only at the daemon's pace: add --pace daemon")
            return None
        if gavel_rounds:
            raise InputError("--rounds gavel looks only where a round ends: leave --pace out")
        return self.look_cost or 0.0

    def refuse_idle(self, gavel_rounds: bool) -> None:
        """Refuse options that change nothing where leases end together."""
        together = "--align aligned" if self.align == "aligned" else "--rounds gavel" if gavel_rounds else ""
        for option, value in (("--renewal", self.renewal), ("--reserve-after", self.reserve_after)):
            if together and value not in (None, AUTO):
                raise InputError(f"{option} is of leases that roll: leave it out, or {together}")

    def ledger(self, site: LedgerSettings | None = None) -> LedgerSettings:
        """The settings of the ledger; what is not said is the site's own, where there is one."""
        own = site or LedgerSettings()
        return replace(
            own,
            half_life_seconds=own.half_life_seconds if self.half_life is None else self.half_life,
            everyone_counts=(self.counted or own.counted) == "all",
            water_filled=(self.job_share or own.job_share) == "max-min",
        )


@dataclass(frozen=True, slots=True)
class CostOptions:
    """COSTS, as a command gets them; None = not said."""

    checkpoint_cost: float | None
    restart_cost: float | None
    requeue_delay: float | None
    start_cost: float | None = None

    def costs(self) -> Costs:
        """The costs that a simulation goes by; a cost that is not given is nothing."""
        given = (self.checkpoint_cost, self.restart_cost, self.requeue_delay, self.start_cost)
        return Costs(*(seconds or 0.0 for seconds in given))


@dataclass(frozen=True, slots=True)
class FileOptions:
    """FILES, as a command gets them."""

    jobs_out: Path | None
    events_out: Path | None


def part(kind: type[_Part], options: Mapping[str, Any]) -> _Part:
    """The options that a dataclass has fields for, as one of it."""
    names = inspect.signature(kind).parameters
    return kind(**{name: options[name] for name in names if name in options})
