"""Values of a TOML document as the types of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_origin

from slurm_fair.config.lease import MOST_NUMBER
from slurm_fair.config.lease import LeaseSection as LeaseSection
from slurm_fair.config.sections import FROM_SLURM, GpuWeightSetting, LinkSetting
from slurm_fair.errors import ConfigError
from slurm_fair.model.gpu_weight import fault_in
from slurm_fair.model.tenant import LEAST_WEIGHT
from slurm_fair.throughput import fault_in_links


def typed(value: Any, hint: Any, where: str) -> Any:
    """The value as the field's type, or a ConfigError that says what it should be."""
    origin = get_origin(hint)
    if hint == GpuWeightSetting:
        return _gpu_weights(value, where)
    if hint == LinkSetting:
        return _links(value, where)
    if origin is tuple:
        return _names(value, where)
    if origin is not None and issubclass(origin, Mapping):
        return _weights(value, where)
    is_number = hint in (float, float | str)
    if is_number and isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MOST_NUMBER:
        return float(value)
    if isinstance(value, hint) and not (isinstance(value, bool) and hint is not bool):
        return value
    wanted = {float: "a number", int: "a whole number", str: "a string", bool: "true or false"}
    kind = wanted.get(hint, "a number, or one of its words")
    raise ConfigError(f"{where} must be {kind}, not {_in_toml(value)}")


def _in_toml(value: Any) -> str:
    """The value in TOML's words, as far as a line holds them."""
    return str(value).lower() if isinstance(value, bool) else repr(value)[:60]


def _names(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise ConfigError(f'{where} must be a list of names, such as ["gpu"]')
    return tuple(value)


def _weights(value: Any, where: str) -> dict[str, float]:
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must be a table of account = weight")
    if "" in value:
        raise ConfigError(f"{where} must name accounts, not an empty text")
    for name, weight in value.items():
        fits = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not fits or not LEAST_WEIGHT <= weight <= MOST_NUMBER:
            wanted = f"a weight above 0, from {LEAST_WEIGHT:g} to {MOST_NUMBER:g}"
            raise ConfigError(f"{where}.{name} must be {wanted}, not {_in_toml(weight)}")
    return {name: float(weight) for name, weight in value.items()}


def _gpu_weights(value: Any, where: str) -> GpuWeightSetting:
    if value == FROM_SLURM:
        return FROM_SLURM
    if not isinstance(value, dict):
        wanted = f'a table such as {{ a100 = 1, v100 = 0.5 }}, or "{FROM_SLURM}"'
        raise ConfigError(f"{where} must be {wanted}, not {repr(value)[:60]}")
    if fault := fault_in(value):
        raise ConfigError(f"{where}: {fault}")
    return {name: float(weight) for name, weight in value.items()}


def _links(value: Any, where: str) -> LinkSetting:
    if fault := fault_in_links(value):
        raise ConfigError(f"{where}{fault}")
    return {gpu_type: {name: float(rate) for name, rate in of.items()} for gpu_type, of in value.items()}
