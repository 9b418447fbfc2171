"""The cost of a change of hands: as options give it, as the site's own journal measured it, or as others found
it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from slurm_fair.cli.base import Site
from slurm_fair.cli.simulate.given import CostOptions
from slurm_fair.errors import StoreError
from slurm_fair.model import Event, EventKind
from slurm_fair.sim.scenario import Costs
from slurm_fair_accounting.source.period import Period

# Themis (NSDI 2020, section 6.2.3): 5 to 10 s to save, 35 s at the median until a container works again.
USUAL_CHECKPOINT_SECONDS = 10.0
USUAL_RESTART_SECONDS = 35.0
_FEWEST = 3  # measurements below which a median says nothing
# In which they happen. A request comes to nothing where Slurm would not stop the job.
_ORDER = (EventKind.ASKED, EventKind.STAYS, EventKind.REQUEUED, EventKind.OPENED, EventKind.STARTED)


@dataclass(frozen=True, slots=True)
class MeasuredCosts:
    """Seconds that a site's jobs took, one entry for each time that it happened."""

    saves: tuple[float, ...] = ()  # from the request to the requeue
    starts: tuple[float, ...] = ()  # from the opened gate to the start of a run


@dataclass(frozen=True, slots=True)
class KnownCosts:
    """The costs of a simulation, and where each is from."""

    costs: Costs
    checkpoint_from: str  # given, measured, assumed, or unknown and taken for nothing
    start_from: str
    restart_from: str
    words: str  # one line that says it all

    def document(self) -> dict[str, Any]:
        """The costs as JSON holds them."""
        return {
            "checkpoint_s": self.costs.checkpoint,
            "checkpoint_from": self.checkpoint_from,
            "start_s": self.costs.start + self.costs.opening,
            "start_from": self.start_from,
            "restart_s": self.costs.restart,
            "restart_from": self.restart_from,
            "requeue_delay_s": self.costs.requeue_delay,
        }


def measured_costs(events: Iterable[Event]) -> MeasuredCosts:
    """Measure costs from the journal's events. A start, in whole seconds, may seem to precede its opening."""
    asked: dict[int, float] = {}
    opened: dict[int, float] = {}
    saves, starts = [], []
    for event in sorted(events, key=lambda event: (int(event.time), _ORDER.index(event.kind))):
        if event.kind == EventKind.ASKED:
            asked.setdefault(event.key, event.time)
        elif event.kind == EventKind.REQUEUED and event.key in asked:
            saves.append(event.time - asked.pop(event.key))
        elif event.kind == EventKind.STAYS:
            asked.pop(event.key, None)
        elif event.kind == EventKind.OPENED:
            opened[event.key] = event.time
        elif event.kind == EventKind.STARTED:
            asked.pop(event.key, None)
            since = opened.pop(event.key, None)
            if since is not None:
                starts.append(max(event.time - since, 0.0))
    return MeasuredCosts(tuple(saves), tuple(starts))


def measured_at(site: Site, period: Period) -> MeasuredCosts:
    """Costs measured from the controller's journal; none are known where there is no journal."""
    try:
        with site.reader() as journal:
            events = list(journal.events(period.start, period.end, kinds=_ORDER))
    except StoreError:
        return MeasuredCosts()
    return measured_costs(events)


def known_costs(
    given: CostOptions, measured: MeasuredCosts | None = None, load_in_work: bool = False
) -> KnownCosts:
    """Choose each cost: the given one, else the measured one, else the assumed one.

    The journal knows when a job was asked, requeued, let through and started, not how long it then takes to load
    its checkpoint: where the restart cost is not given, that is assumed. With `load_in_work` it is not where the
    journal measured starts: the time is part of what the recorded runs are taken to have worked.
    """
    found = measured or MeasuredCosts()
    checkpoint, checkpoint_from, saving = _checkpoint(given, found)
    start, start_from, starting = _start(given, found)
    # What the journal measured passes before the start: nobody holds the GPUs, and no recorded run has it.
    opening = start if start_from == "measured" else 0.0
    restart, restart_from, returning = _restart(given, load_in_work and start_from == "measured")
    delay = given.requeue_delay or 0.0
    words = f"saving costs {saving}, {starting}coming back {returning}"
    if delay:
        words += f", a requeue is delayed by {delay:g} s"
    unsure = [
        name
        for name, source in (("--checkpoint-cost", checkpoint_from), ("--restart-cost", restart_from))
        if source == "assumed"
    ]
    if unsure:
        words += f"; set {' and '.join(unsure)} to your jobs' own"
    return KnownCosts(
        Costs(checkpoint, restart, delay, start - opening, opening=opening),
        checkpoint_from,
        start_from,
        restart_from,
        words,
    )


def _checkpoint(given: CostOptions, found: MeasuredCosts) -> tuple[float, str, str]:
    if given.checkpoint_cost is not None:
        return given.checkpoint_cost, "given", f"{given.checkpoint_cost:g} s (given)"
    if len(found.saves) >= _FEWEST:
        seconds = round(median(found.saves), 3)
        return seconds, "measured", f"{seconds:g} s (measured: median of {len(found.saves)})"
    return USUAL_CHECKPOINT_SECONDS, "assumed", f"{USUAL_CHECKPOINT_SECONDS:g} s (assumed)"


def _start(given: CostOptions, found: MeasuredCosts) -> tuple[float, str, str]:
    if given.start_cost is not None:
        return given.start_cost, "given", f"a start {given.start_cost:g} s (given), "
    if len(found.starts) >= _FEWEST:
        seconds = round(median(found.starts), 3)
        return seconds, "measured", f"a start {seconds:g} s (measured: median of {len(found.starts)}), "
    return 0.0, "unknown", ""


def _restart(given: CostOptions, load_in_work: bool) -> tuple[float, str, str]:
    if given.restart_cost is not None:
        return given.restart_cost, "given", f"{given.restart_cost:g} s more (given)"
    if load_in_work:
        return (
            0.0,
            "unknown",
            "no more (how long jobs load is not known and counts as work; set --restart-cost)",
        )
    return USUAL_RESTART_SECONDS, "assumed", f"{USUAL_RESTART_SECONDS:g} s more (assumed)"
