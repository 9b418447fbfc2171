"""The site itself: its past out of slurmdbd, its nodes as they are now, tenants' weights from Slurm's shares."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from slurm_fair.cli.base import Site
from slurm_fair.config.sections import ScopeSection
from slurm_fair.daemon.parts import commands_of
from slurm_fair.errors import InputError, SlurmError
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.model.gpu_weight import UNTYPED, GpuWeights
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.past import Past, read_past
from slurm_fair.slurm.reading.accounts import read_share_weights
from slurm_fair.slurm.reading.billing import billing_of
from slurm_fair.slurm.reading.nodes import NodeListing as SlurmMachines
from slurm_fair.slurm.reading.nodes import read_nodes
from slurm_fair.slurm.scope import Territory
from slurm_fair.trace import Machines
from slurm_fair_accounting.source.period import Period

_SAVED = "or give a saved file with --sacct FILE"


@dataclass(frozen=True, slots=True)
class LiveSite:
    """The cluster at hand, asked with the site's own Slurm commands."""

    site: Site
    commands: Commands

    @classmethod
    def of(cls, site: Site) -> LiveSite:
        """The cluster of a site's configuration."""
        return cls(site, commands_of(site.config, site.places))

    @property
    def scope(self) -> ScopeSection:
        return self.site.config.scope

    @property
    def ledger(self) -> LedgerSettings:
        """The settings by which the controller counts shares."""
        return self.site.config.tenants.ledger()

    def past(self, period: Period) -> Past:
        """Every run that lived in a period."""
        found = read_past(self.commands, period.start, period.end, self.scope)
        if isinstance(found, str):
            raise SlurmError(f"accounting tells nothing ({found}): is slurmdbd up? {_SAVED}")
        return found

    def machines(self) -> tuple[Machines, tuple[str, ...]]:
        """The managed GPU nodes as they are now, and those that cannot be simulated."""
        try:
            seen = read_nodes(self.commands)
        except SlurmError as problem:
            seen = str(problem)
        if isinstance(seen, str):
            raise SlurmError(f"the nodes cannot be seen ({seen}): give --gpus N or --cluster FILE.toml")
        return machines_of_site(seen, self.scope)

    def gpu_weights(self) -> GpuWeights:
        """The weights of GPU types by which the controller charges."""
        given = self.site.config.tenants.gpu_weights
        if not isinstance(given, str):
            return given
        try:
            seen, answer = read_nodes(self.commands), self.commands.run("scontrol", "-o", "show", "partition")
        except SlurmError as problem:
            raise SlurmError(f"Slurm's weights cannot be read ({problem}): give --gpu-weights") from None
        if isinstance(seen, str) or not answer.whole:
            why = seen if isinstance(seen, str) else answer.complaint
            raise SlurmError(f"Slurm's weights cannot be read ({why}): give --gpu-weights")
        territory = Territory.of(seen, self.scope)
        types = {seen.nodes[name].gpu_type for name in territory.nodes}
        return billing_of(answer.out.splitlines(), territory.partitions, types).weights

    def weights(self, tenants: Iterable[str]) -> dict[str, float]:
        """Slurm's shares under the configuration's own, as the controller weighs tenants."""
        try:
            shares = read_share_weights(self.commands, self.site.config.tenants.weights)
        except SlurmError as problem:
            shares = str(problem)
        if isinstance(shares, str):
            raise SlurmError(
                f"Slurm's shares cannot be read ({shares}): give --weights equal, demand, requested or FILE"
            )
        return {tenant: shares.of(tenant) for tenant in tenants}


def machines_of_site(seen: SlurmMachines, scope: ScopeSection) -> tuple[Machines, tuple[str, ...]]:
    """Nodes with one type of GPUs; racks and speeds are not known to Slurm."""
    here = [seen.nodes[name] for name in Territory.of(seen, scope).nodes]
    nodes = [node for node in here if node.gpu_type != "+"]
    mixed = tuple(node.name for node in here if node.gpu_type == "+")
    if not nodes:
        raise InputError("no managed partition has a node with GPUs: give --gpus N or --cluster FILE.toml")
    types = sorted({node.gpu_type or UNTYPED for node in nodes})
    zeros = np.zeros(len(nodes), dtype=np.int64)
    machines = Machines(
        names=tuple(node.name for node in nodes),
        gpus=np.array([node.gpus for node in nodes], dtype=np.int64),
        gpu_type=np.array([types.index(node.gpu_type or UNTYPED) for node in nodes], dtype=np.int64),
        rack=zeros,
        speed=np.ones(len(nodes)),
        cpus=zeros,  # what jobs asked for beside GPUs does not limit a simulation
        memory_gb=np.zeros(len(nodes)),
        gpu_types=tuple(types),
        racks=("",),
    )
    return machines, mixed
