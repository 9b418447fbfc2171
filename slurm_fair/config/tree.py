"""The configuration: a frozen tree read from TOML; an unknown key is refused with the nearest known one."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from slurm_fair.config.lease import LeaseSection as LeaseSection
from slurm_fair.errors import ConfigError, PolicyError
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.model import Gate
from slurm_fair.model.gpu_weight import fault_in
from slurm_fair.model.spans import DAY_SECONDS
from slurm_fair.model.tenant import LEAST_WEIGHT
from slurm_fair.policy.packing.placement import spreads
from slurm_fair.policy.profiling import Profiling
from slurm_fair.policy.registry import DEFAULT_POLICY, kind_of, names
from slurm_fair.suggest import did_you_mean
from slurm_fair.throughput import Alike, Keeping, fault_in_links

DEFAULT_PATH = Path("/etc/slurm/slurm-fair.toml")


FROM_SLURM = "slurm"  # the TRESBillingWeights of its partitions
GpuWeightSetting = Mapping[str, float] | str
LinkSetting = Mapping[str, Mapping[str, float]]  # rates of links by GPU type


@dataclass(frozen=True, slots=True)
class ScopeSection:
    """The jobs that are managed; empty means all that want GPUs."""

    partitions: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    plain: str = "quota"
    interactive: str = "leave"


@dataclass(frozen=True, slots=True)
class TenantsSection:
    """Tenants' weights: Slurm's shares; `weights` takes the place of the RawShares of single accounts."""

    weights: Mapping[str, float] = field(default_factory=dict)
    memory_days: float = 30.0
    half_life: float = 0.0
    counted: str = "seen"
    job_share: str = "proportional"
    gpu_weights: GpuWeightSetting = field(default_factory=dict)

    def ledger(self) -> LedgerSettings:
        """Settings for the ledger."""
        return LedgerSettings(
            tenant_memory_seconds=self.memory_days * DAY_SECONDS,
            half_life_seconds=self.half_life,
            everyone_counts=self.counted == "all",
            water_filled=self.job_share == "max-min",
        )


@dataclass(frozen=True, slots=True)
class SlurmSection:
    """Settings for talking to Slurm."""

    gate: str = Gate.BEGIN.value
    transport: str = "auto"
    reports: str = "auto"
    conf: str = ""
    bin_dir: str = ""
    timeout: float = 20.0
    client_timeout: int = 3
    requeue_delay: float = 121.0
    notice: bool = True


@dataclass(frozen=True, slots=True)
class StorageSection:
    """The folder of the journal, and how much is kept."""

    dir: str = "/var/lib/slurm-fair"
    keep_days: float = 30.0
    max_mb: float = 2048.0


@dataclass(frozen=True, slots=True)
class GuardSection:
    """Limits on what one tick may do; the rest waits for the next tick."""

    max_revokes: int = 512
    max_opens: int = 1024
    max_closes: int = 2048
    shrink_alarm: float = 0.3


@dataclass(frozen=True, slots=True)
class ThroughputSection:
    """Learning of the speeds of jobs."""

    learn: bool = True
    alike: str = Alike.NAME.value
    half_life_days: float = Keeping().half_life_days
    links: LinkSetting = field(default_factory=dict)

    def keeping(self) -> Keeping:
        """Settings for what is kept."""
        return Keeping(half_life_days=self.half_life_days)


@dataclass(frozen=True, slots=True)
class ProfilerSection:
    """Short turns in which the speed of jobs is measured."""

    enabled: bool = False
    gpus: int = Profiling().gpus
    seconds: float = Profiling().seconds
    gpu_hours: float = Profiling().gpu_hours
    iterations: int = Profiling().iterations
    tries: int = Profiling().tries

    def profiling(self) -> Profiling | None:
        """The bounds of these turns; None where there are none."""
        if not self.enabled:
            return None
        return Profiling(self.gpus, self.seconds, self.gpu_hours, self.iterations, self.tries)


@dataclass(frozen=True, slots=True)
class LogSection:
    """The settings of the daemon's log."""

    level: str = "info"
    json: bool = False


@dataclass(frozen=True, slots=True)
class PolicySection:
    """The policy that decides; its own settings stand in [policy.<name>]."""

    name: str = DEFAULT_POLICY
    plan_limit: float = 30.0
    plan_memory_mb: float = 2048.0
    late_plan: str = "drop"
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def chosen(self) -> Mapping[str, Any]:
        """The settings of the policy in force."""
        return self.settings.get(self.name, {})

    @property
    def placement(self) -> str:
        """The placer of the policy in force: its setting, else what its class says; empty where neither does."""
        try:
            by_class = getattr(kind_of(self.name), "placement", "")
        except PolicyError:  # whoever loads the policy says so
            by_class = ""
        place = self.chosen().get("placement", by_class)
        return place if isinstance(place, str) else ""


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """All that the adapter to Slurm goes by."""

    scope: ScopeSection
    term: float  # of a lease
    requeue_delay: float
    reports: str
    weights: Mapping[str, float]
    gangs_may_spread: bool  # over more nodes than they need: then Slurm is asked over how many each may
    gpu_weights: GpuWeightSetting  # by GPU type


@dataclass(frozen=True, slots=True)
class Config:
    """Everything a site can set."""

    scope: ScopeSection = ScopeSection()
    lease: LeaseSection = field(default_factory=LeaseSection)
    policy: PolicySection = PolicySection()
    tenants: TenantsSection = TenantsSection()
    slurm: SlurmSection = SlurmSection()
    storage: StorageSection = StorageSection()
    throughput: ThroughputSection = ThroughputSection()
    profiler: ProfilerSection = ProfilerSection()
    guard: GuardSection = GuardSection()
    log: LogSection = LogSection()
    source: str = "built-in defaults"

    @property
    def cluster(self) -> ClusterSettings:
        """Settings for the adapter to Slurm."""
        slurm, place = self.slurm, self.policy.placement
        return ClusterSettings(
            self.scope,
            self.lease.term,
            slurm.requeue_delay,
            slurm.reports,
            self.tenants.weights,
            bool(place) and spreads(place),
            self.tenants.gpu_weights,
        )


CHOICES = {
    "scope.plain": ("quota", "revoke", "leave"),
    "scope.interactive": ("leave", "gate"),
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
_MOST = 1e12
LEAST_PLAN_MEMORY_MB = 256.0  # numpy and a solver take half of it before there is a problem
_MOST_TIMEOUT = 600.0  # a command that hangs for longer would be a daemon that hangs
_MOST_BYTES = 1 << 20  # of a file; one without an end must not fill memory


def load_config(path: Path) -> Config:
    """The configuration in a file; every mistake is one ConfigError that names the key and the cure."""
    try:
        text = _content(path)
    except OSError as problem:
        raise ConfigError(f"{path}: {problem.strerror}; write one with `slurm-fair init`") from None
    except ValueError:
        raise ConfigError(f"{str(path)!r}: is no name of a file") from None
    if len(text) == _MOST_BYTES:
        raise ConfigError(f"{path}: more than {_MOST_BYTES >> 20} MB: is it the right file?")
    try:
        tree = tomllib.loads(text.decode())
    except ValueError as problem:  # not TOML, not UTF-8, or a number of thousands of digits
        raise ConfigError(f"{path}: not TOML: {problem}") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply: no key takes more than a table in a table") from None
    return from_tree(tree, str(path))


def _content(path: Path) -> bytes:
    """The content of a regular file; a pipe or a device could keep us waiting for ever."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ConfigError(f"{path}: is no regular file: name the configuration itself")
        return file.read(_MOST_BYTES)


def from_tree(tree: Mapping[str, Any], source: str) -> Config:
    """The configuration in a parsed TOML document."""
    sections = {f.name: f for f in fields(Config) if f.name != "source"}
    built: dict[str, Any] = {"source": source}
    for name, value in tree.items():
        if name not in sections:
            raise ConfigError(f"{source}: unknown section [{name}]; {did_you_mean(name, sections)}")
        if not isinstance(value, dict):
            raise ConfigError(f"{source}: {name} must be a section: write [{name}]")
        built[name] = _policy(value, source) if name == "policy" else _section(name, value, source)
    config = Config(**built)
    _check(config)
    return config


def _policy(tree: Mapping[str, Any], source: str) -> PolicySection:
    hints = get_type_hints(PolicySection)
    settings = {name: value for name, value in tree.items() if isinstance(value, dict) and name not in hints}
    plain = {name: value for name, value in tree.items() if name not in settings}
    for name in plain:
        if name not in hints or name == "settings":
            raise ConfigError(
                f"{source}: unknown key policy.{name}: a policy's settings go into [policy.<name>]"
            )
    for other in settings:
        if other not in names():
            raise ConfigError(
                f"{source}: [policy.{other}]: there is no such policy: {did_you_mean(other, names())}"
            )
    values = {key: _typed(value, hints[key], f"{source}: policy.{key}") for key, value in plain.items()}
    return PolicySection(settings=settings, **values)


def _section(name: str, tree: Mapping[str, Any], source: str) -> Any:
    kind = type(getattr(Config(), name))
    hints = get_type_hints(kind)
    values = {}
    for key, value in tree.items():
        if key not in hints:
            raise ConfigError(f"{source}: unknown key {name}.{key}; {did_you_mean(key, hints)}")
        values[key] = _typed(value, hints[key], f"{source}: {name}.{key}")
    return kind(**values)


def _typed(value: Any, hint: Any, where: str) -> Any:
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
    if is_number and isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MOST:
        return float(value)
    if isinstance(value, hint) and not (isinstance(value, bool) and hint is not bool):
        return value
    wanted = {float: "a number", int: "a whole number", str: "a string", bool: "true or false"}
    kind = wanted.get(hint, "a number, or one of its words")
    raise ConfigError(f"{where} must be {kind}, not {repr(value)[:60]}")


def _names(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise ConfigError(f'{where} must be a list of names, such as ["gpu"]')
    return tuple(value)


def _weights(value: Any, where: str) -> dict[str, float]:
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must be a table of account = weight")
    for name, weight in value.items():
        fits = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not fits or not LEAST_WEIGHT <= weight <= _MOST:
            wanted = f"a weight above 0, from {LEAST_WEIGHT:g} to {_MOST:g}"
            raise ConfigError(f"{where}.{name} must be {wanted}, not {repr(weight)[:60]}")
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


def setting(config: Config, dotted: str) -> Any:
    """The value of `section.key`."""
    section, key = dotted.split(".")
    return getattr(getattr(config, section), key)


def _check(config: Config) -> None:
    where = config.source
    for dotted, allowed in CHOICES.items():
        if setting(config, dotted) not in allowed:
            raise ConfigError(
                f"{where}: {dotted} must be one of {', '.join(allowed)}, not {setting(config, dotted)!r}"
            )
    for dotted in _POSITIVE:
        if not 0 < setting(config, dotted) < _MOST:
            raise ConfigError(
                f"{where}: {dotted} must be above 0 and below {_MOST:g}, not {setting(config, dotted)}"
            )
    for dotted in _NOT_NEGATIVE:
        if not 0 <= setting(config, dotted) < _MOST:
            raise ConfigError(
                f"{where}: {dotted} must be 0 or more and below {_MOST:g}, not {setting(config, dotted)}"
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
    if not LEAST_PLAN_MEMORY_MB <= config.policy.plan_memory_mb < _MOST:
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
