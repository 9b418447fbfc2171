"""The links between GPUs, by GPU type: measured by jobs made for it, or given (Hops eq. 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from slurm_fair.model.columns import Columns, Floats
from slurm_fair.suggest import did_you_mean

RATES = ("link", "net", "bus", "host")
SPEED = "speed"
_LEAST, _MOST = 1e-6, 1e18


@dataclass(frozen=True)
class Links(Columns):
    """One row per GPU type; rates are parameters a second, nan = not known, inf = it takes no time.

    An all-reduce of P parameters by n GPUs, of which at most k share a node, takes P/link (n-1)/n on one node,
    and P/net (n-1)/n on several: eq. 2, with its ring factor. What the GPUs of a node share, and the paper leaves
    out, adds P/bus (k-1) without end, and P/host (k-1)/k up to a limit. Only the ratios of these rates are used.
    """

    link: Floats  # B_link: between GPUs of one node
    net: Floats  # B_net: between nodes
    bus: Floats
    host: Floats
    speed: Floats  # of one GPU against the reference type, for a class that was never measured on this type
    gpu_types: tuple[str, ...] = ()

    @classmethod
    def unknown(cls, gpu_types: tuple[str, ...] = ()) -> Self:
        """Nobody measured: priors that say little take their place."""
        nan = np.full(len(gpu_types), np.nan)
        return cls(nan, nan, nan, nan, np.ones(len(gpu_types)), gpu_types)

    @classmethod
    def given(cls, rates: Mapping[str, Mapping[str, float]]) -> Self:
        """Rates by GPU type and name, as a site gives them; what is not named is not known."""
        each = list(rates.values())
        table = np.array([[of.get(name, np.nan) for name in RATES] for of in each], dtype=np.float64)
        link, net, bus, host = table.reshape(-1, len(RATES)).T
        speed = np.array([of.get(SPEED, 1.0) for of in each], dtype=np.float64)
        return cls(link, net, bus, host, speed, tuple(rates))


def fault_in_links(rates: object) -> str:
    """The fault in the rates that a site gives, and how to mend it; "" = none. It follows the setting's name."""
    if not isinstance(rates, Mapping):
        return f" must be a table such as {{ a100 = {{ link = 6e10, net = 5e9 }} }}, not {repr(rates)[:60]}"
    for gpu_type, of_type in rates.items():
        if not isinstance(of_type, Mapping):
            return (
                f": {gpu_type} must be a table such as {{ link = 6e10, net = 5e9 }}, not {repr(of_type)[:60]}"
            )
        for name, rate in of_type.items():
            if name not in (*RATES, SPEED):
                return f": {gpu_type}.{name} is no rate: {did_you_mean(str(name), (*RATES, SPEED))}"
            is_number = isinstance(rate, int | float) and not isinstance(rate, bool)
            without_end = name != SPEED and rate == np.inf
            if not (is_number and (_LEAST <= rate <= _MOST or without_end)):
                return (
                    f": {gpu_type}.{name} must be a rate from {_LEAST:g} to {_MOST:g}, not {repr(rate)[:60]}"
                )
        if "net" not in of_type and set(of_type) & set(RATES):
            return f": {gpu_type} needs net too: the other rates of a GPU type count against it"
        if of_type.get("net") == np.inf:
            return f": {gpu_type}.net must be a number: the other rates of a GPU type count against it"
    return ""
