"""A virtual cluster: the Cluster and Clock ports on virtual time, and the loop that drives a tick over them.

The policies, the ledger, the tick and the metrics are those of the daemon; only time and machines are made up.
"""

from slurm_fair.sim.loop.drive import Simulation
from slurm_fair.sim.loop.log import Listener, Log
from slurm_fair.sim.port.at_once import RequeuesAtOnce
from slurm_fair.sim.port.clock import VirtualClock
from slurm_fair.sim.port.cluster import VirtualCluster
from slurm_fair.sim.port.users import Submission, UserActions
from slurm_fair.sim.result import SimulationResult
from slurm_fair.sim.run import rules_for, simulate, with_looks_at_changes, with_renewal, with_reserve_after
from slurm_fair.sim.scenario import Costs, Hitch, Manners, NodeEvent, Outage, Scenario
from slurm_fair.sim.world.books import Books, Run
from slurm_fair.sim.world.load import impossible, population

__all__ = [
    "Books",
    "Costs",
    "Hitch",
    "Listener",
    "Log",
    "Manners",
    "NodeEvent",
    "Outage",
    "RequeuesAtOnce",
    "Run",
    "Scenario",
    "Simulation",
    "SimulationResult",
    "Submission",
    "UserActions",
    "VirtualClock",
    "VirtualCluster",
    "impossible",
    "population",
    "rules_for",
    "simulate",
    "with_looks_at_changes",
    "with_renewal",
    "with_reserve_after",
]
