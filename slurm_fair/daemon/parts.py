"""Builders that make the parts of daemon, dead-man and commands from the configuration."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from slurm_fair.config.sections import Config
from slurm_fair.errors import ConfigError
from slurm_fair.host.state_folder import Places
from slurm_fair.knowing import KnowingRules
from slurm_fair.planner import IsolatedPlanner, PlannerLimits
from slurm_fair.policy.protocol import solves
from slurm_fair.policy.registry import in_full
from slurm_fair.policy.registry import load as load_policy
from slurm_fair.reconcile import Limits
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.private_conf import short_timeout_copy, site_conf
from slurm_fair.throughput import Alike, Links
from slurm_fair.tick import Rules

_PART_OF_TERM, _LEAST_SECONDS = 0.5, 5.0  # a plan that takes longer is of no use any more


def rules_of(config: Config) -> Rules:
    """The rules of a tick, from the configuration; a policy that cannot be loaded is a ConfigError here."""
    chosen = config.policy.chosen()
    for name, others in config.policy.settings.items():
        load_policy(name, others)  # a mistake in settings that are not in force yet is a mistake all the same
    policy = load_policy(config.policy.name, chosen)
    return Rules(
        policy_name=config.policy.name,
        policy=policy,
        settings=in_full(config.policy.name, policy, chosen),
        terms=config.lease.terms(),
        ledger=config.tenants.ledger(),
        limits=Limits(
            config.guard.max_revokes,
            config.guard.max_opens,
            config.guard.max_closes,
            shrink_alarm=config.guard.shrink_alarm,
            partitions=config.scope.partitions,
        ),
        plan_limit_seconds=min(
            config.policy.plan_limit, max(_PART_OF_TERM * config.lease.term, _LEAST_SECONDS)
        ),
        profiling=config.profiler.profiling(),
    )


def knowing_rules_of(config: Config) -> KnowingRules:
    """The rules of learning from jobs, as the configuration has them."""
    section = config.throughput
    return KnowingRules(section.learn, Alike(section.alike), section.keeping(), Links.given(section.links))


def planner_of(
    config: Config, rules: Rules, waits: Callable[[], None] = lambda: None
) -> IsolatedPlanner | None:
    """The planner of a policy that solves, its process under way; None for one that this process calls itself."""
    if not solves(rules.policy):
        return None
    limits = PlannerLimits(config.policy.plan_memory_mb, config.policy.late_plan == "next")
    planner = IsolatedPlanner(rules.policy, limits, waits=waits)
    planner.begin()
    return planner


def commands_of(config: Config, places: Places) -> Commands:
    """Slurm's commands as the configuration wants them run."""
    conf = conf_of(config)
    if conf is not None and _is_ours(places.directory):
        conf = short_timeout_copy(conf, places.slurm_conf, config.slurm.client_timeout)
    return Commands(conf, config.slurm.timeout, _bin_dir(config))


def redirect_commands(commands: Commands, config: Config) -> None:
    """Slurm's commands as a new configuration wants them; their slurm.conf stays the one of the start."""
    commands.timeout_seconds = config.slurm.timeout
    commands.look_in(_bin_dir(config))


def _bin_dir(config: Config) -> Path | None:
    return Path(config.slurm.bin_dir) if config.slurm.bin_dir else None


def waiting_for_start(old: Config, new: Config) -> tuple[str, ...]:
    """The settings that differ and that a running daemon cannot take over."""
    kept = {
        "[storage] dir": (old.storage.dir, new.storage.dir),
        "[slurm] conf": (old.slurm.conf, new.slurm.conf),
        "[slurm] client_timeout": (old.slurm.client_timeout, new.slurm.client_timeout),
        "[slurm] notice": (old.slurm.notice, new.slurm.notice),
    }
    return tuple(name for name, (before, after) in kept.items() if before != after)


def conf_of(config: Config) -> Path | None:
    """The site's slurm.conf, where it is not left to Slurm's commands to find it."""
    conf = site_conf(config.slurm.conf)
    if config.slurm.conf and conf is None:
        raise ConfigError(f"{config.source}: slurm.conf = '{config.slurm.conf}': there is no such file")
    return conf


def _is_ours(directory: Path) -> bool:
    """True if the storage is this account's own.

    Root neither makes the daemon's copy of slurm.conf, which the daemon could not read then, nor believes it.
    """
    try:
        return directory.stat().st_uid == os.geteuid() and os.access(directory, os.W_OK)
    except OSError:
        return False


def heartbeat_limit(config: Config) -> float:
    """Age of the heartbeat at which the dead-man acts: within one lease, and never for one slow tick."""
    return max(0.75 * config.lease.term, min(3.0, config.lease.term))
