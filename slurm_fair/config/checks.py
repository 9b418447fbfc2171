"""The bounds of values, one by one and together."""

from __future__ import annotations

from typing import Any

from slurm_fair.config.lease import LEAST_SECONDS, MOST_NUMBER
from slurm_fair.config.lease import LeaseSection as LeaseSection
from slurm_fair.config.sections import Config
from slurm_fair.errors import ConfigError
from slurm_fair.model import Gate
from slurm_fair.throughput import Alike

CHOICES = {
    "scope.plain": ("quota", "revoke", "leave"),
    "scope.interactive": ("leave", "gate"),
    "scope.unplanned": ("leave", "refuse"),
    "lease.align": ("rolling", "aligned"),
    "policy.late_plan": ("drop", "next"),
    "tenants.counted": ("seen", "all"),
    "tenants.job_share": ("proportional", "max-min"),
    "slurm.gate": tuple(gate.value for gate in Gate),
    "slurm.transport": ("auto", "cli"),  # Slurm's text is at least as fast as pyslurm
    "slurm.reports": ("auto", "file", "comment", "none"),
    "throughput.alike": tuple(alike.value for alike in Alike),
    "log.level": ("debug", "info", "warning", "error"),
}
_POSITIVE = (
    "lease.term",
    "lease.interval_min",
    "lease.grace",
    "lease.max_grace",
    "lease.start_timeout",
    "policy.plan_limit",
    "slurm.timeout",
    "slurm.client_timeout",
    "storage.keep_days",
    "storage.max_mb",
    "guard.max_revokes",
    "guard.max_opens",
    "guard.max_closes",
    "tenants.memory_days",
    "throughput.half_life_days",
    "profiler.gpus",
    "profiler.seconds",
    "profiler.gpu_hours",
    "profiler.iterations",
    "profiler.tries",
)
_NOT_NEGATIVE = ("tenants.half_life", "lease.min_runtime", "slurm.requeue_delay")
_PATHS = ("lease.publish_dir", "slurm.conf", "slurm.bin_dir", "storage.dir")
LEAST_PLAN_MEMORY_MB = 256.0  # numpy and a solver take half of it before there is a problem
_MOST_TIMEOUT = 600.0  # a command that hangs for longer would be a daemon that hangs


def setting(config: Config, dotted: str) -> Any:
    """The value of `section.key`."""
    section, key = dotted.split(".")
    return getattr(getattr(config, section), key)


def check(config: Config) -> None:
    where = config.source
    for dotted, allowed in CHOICES.items():
        if setting(config, dotted) not in allowed:
            raise ConfigError(
                f"{where}: {dotted} must be one of {', '.join(allowed)}, not {setting(config, dotted)!r}"
            )
    for dotted in _POSITIVE:
        if not 0 < setting(config, dotted) < MOST_NUMBER:
            raise ConfigError(
                f"{where}: {dotted} must be above 0 and below {MOST_NUMBER:g}, not {setting(config, dotted)}"
            )
    for dotted in _NOT_NEGATIVE:
        if not 0 <= setting(config, dotted) < MOST_NUMBER:
            raise ConfigError(
                f"{where}: {dotted} must be 0 or more and below {MOST_NUMBER:g}, not {setting(config, dotted)}"
            )
    _check_paths(config)
    for fault in config.lease.faults():
        raise ConfigError(f"{where}: {fault}")
    lease, slurm = config.lease, config.slurm
    if lease.grace > lease.max_grace:
        raise ConfigError(
            f"{where}: lease.grace ({lease.grace:g} s) must not exceed lease.max_grace ({lease.max_grace:g} s)"
        )
    if slurm.timeout > _MOST_TIMEOUT:
        raise ConfigError(
            f"{where}: slurm.timeout must be at most {_MOST_TIMEOUT:g} s, not {slurm.timeout:g}"
        )
    if slurm.client_timeout > slurm.timeout:
        raise ConfigError(
            f"{where}: slurm.client_timeout ({slurm.client_timeout} s) must not exceed slurm.timeout "
            f"({slurm.timeout:g} s)"
        )
    _check_profiler(config)
    if 0 < config.tenants.half_life < LEAST_SECONDS:
        least = f"0, or {LEAST_SECONDS:g} s at least"
        raise ConfigError(f"{where}: tenants.half_life must be {least}, not {config.tenants.half_life:g}")
    if not LEAST_PLAN_MEMORY_MB <= config.policy.plan_memory_mb < MOST_NUMBER:
        raise ConfigError(
            f"{where}: policy.plan_memory_mb must be {LEAST_PLAN_MEMORY_MB:g} or more, not "
            f"{config.policy.plan_memory_mb:g}"
        )
    if not 0 < config.guard.shrink_alarm <= 1:
        raise ConfigError(f"{where}: guard.shrink_alarm must be a fraction above 0 and at most 1")


def _check_profiler(config: Config) -> None:
    where, profiler = config.source, config.profiler
    if not profiler.enabled:
        return
    if not config.throughput.learn or config.slurm.reports == "none":
        raise ConfigError(
            f"{where}: profiler.enabled is true, but nothing would become known: set throughput.learn to true "
            'and slurm.reports to something else than "none"'
        )
    hours = max(profiler.seconds, config.lease.min_runtime) / 3600
    if hours > profiler.gpu_hours:
        raise ConfigError(
            f"{where}: profiler.gpu_hours ({profiler.gpu_hours:g}) has no room for one turn of one GPU "
            f"({hours:g} h): raise it, or lower profiler.seconds or lease.min_runtime"
        )


def _check_paths(config: Config) -> None:
    """The daemon, its dead-man and the commands run in different folders: a relative path would mean many."""
    for dotted in _PATHS:
        path = setting(config, dotted)
        unset = path == "" and dotted != "storage.dir"
        if not path.isprintable():
            raise ConfigError(f"{config.source}: {dotted} holds a character that no path may: {path!r}")
        if not unset and not path.startswith("/"):
            raise ConfigError(f"{config.source}: {dotted} must be an absolute path, not {path!r}")
