"""The sections of the configuration, with their defaults, and the whole of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from slurm_fair.config.lease import LeaseSection as LeaseSection
from slurm_fair.errors import PolicyError
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.model import Gate
from slurm_fair.model.spans import DAY_SECONDS
from slurm_fair.policy.packing.placement import spreads
from slurm_fair.policy.profiling import Profiling
from slurm_fair.policy.registry import DEFAULT_POLICY, kind_of
from slurm_fair.throughput import Alike, Keeping

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
    unplanned: str = "leave"


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
