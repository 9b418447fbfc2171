"""GPUs by weight, from the TRESBillingWeights of Slurm's partitions."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from slurm_fair.config.sections import GpuWeightSetting
from slurm_fair.model.gpu_weight import MOST_WEIGHT, GpuWeights, named
from slurm_fair.slurm.command import Commands

_EVERY_SECONDS = 60.0
_PARTITION = re.compile(r"\bPartitionName=(\S+)")
_BILLING = re.compile(r"\bTRESBillingWeights=(\S*)")
_GPU = re.compile(r"gres/gpu(?::([^=\s]+))?=([0-9.]{1,40})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Billing:
    """Weights by GPU type as the managed partitions have them."""

    weights: GpuWeights = field(default_factory=dict)  # empty where none of them weighs GPUs
    without: tuple[str, ...] = ()  # types that none of them weighs: these count 1
    several: tuple[str, ...] = ()  # types that partitions weigh differently: the highest counts


def gpu_weights_in(text: str) -> dict[str, float]:
    """Weights by GPU type, "" = of any; Slurm adds both (slurm-facts: billing-adds-types)."""
    found = {}
    for kind, number in _GPU.findall(text):
        try:
            weight = float(number)
        except ValueError:
            continue
        if weight <= MOST_WEIGHT and math.isfinite(weight):
            found[kind] = weight
    return found


def billing_of(lines: Iterable[str], partitions: Collection[str], types: Iterable[str]) -> Billing:
    """The weights of these GPU types in these partitions, from `scontrol -o show partition`."""
    given = [
        gpu_weights_in(billing[1])
        for line in lines
        if (name := _PARTITION.search(line)) and name[1] in partitions and (billing := _BILLING.search(line))
    ]
    given = [weights for weights in given if weights]
    if not given:
        return Billing()
    weights: dict[str, float] = {}
    without, several = [], []
    for kind in sorted(set(types)):
        levels = {
            one.get("", 0.0) + (one.get(kind, 0.0) if kind else 0.0)
            for one in given
            if "" in one or kind in one
        }
        if not levels:
            without.append(named(kind))
        if len(levels) > 1:
            several.append(named(kind))
        weights[named(kind)] = max(levels, default=1.0)
    return Billing(weights, tuple(without), tuple(several))


class BillingReader:
    """The weights in force: the configuration's own, or Slurm's as last read, again each minute."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._read_at = -math.inf
        self._asked: tuple[Collection[str], Collection[str]] = ((), ())
        self.billing = Billing()

    def learn(
        self, given: GpuWeightSetting, partitions: Collection[str], types: Collection[str], now: float
    ) -> str:
        """A complaint where Slurm's were never read and cannot be now; what was read stays while it is silent."""
        if not isinstance(given, str):
            self.billing, self._read_at = Billing(given), -math.inf
            return ""
        asked = (frozenset(partitions), frozenset(types))
        if 0 <= now - self._read_at <= _EVERY_SECONDS and asked == self._asked:
            return ""
        answer = self._commands.run("scontrol", "-o", "show", "partition")
        if not answer.whole:
            return "" if math.isfinite(self._read_at) else answer.complaint
        self.billing = billing_of(answer.out.splitlines(), *asked)
        self._read_at, self._asked = now, asked
        return ""
