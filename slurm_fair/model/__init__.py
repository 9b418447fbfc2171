"""The nouns: frozen values made of the standard library and numpy."""

from slurm_fair.model.account import ClosedRuns, JobAccounts, Ledger, TenantAccounts
from slurm_fair.model.action import Action, Outcome, Result, Untried, Verb
from slurm_fair.model.aside import Aside
from slurm_fair.model.belief import Beliefs
from slurm_fair.model.event import Event, EventKind
from slurm_fair.model.gate import Gate
from slurm_fair.model.ids import label, labels, pack_keys, parse_label
from slurm_fair.model.job import Answer, Blocked, JobState, JobTable
from slurm_fair.model.lease import NEVER_ENDS_SECONDS, USUAL_RENEWALS, LeasePhase, Leases, LeaseTerms
from slurm_fair.model.node import NodeTable, PartitionTable
from slurm_fair.model.placement import NO_PLACES, Placement
from slurm_fair.model.plan import Explanation, Plan, Verdict
from slurm_fair.model.profiles import Profiles
from slurm_fair.model.record import Standing, TickRecord, Unfilled
from slurm_fair.model.reported import Reported
from slurm_fair.model.reservation import ReservedNodes
from slurm_fair.model.retries import Retries
from slurm_fair.model.run import RunTable
from slurm_fair.model.sizes import Sizes
from slurm_fair.model.snapshot import Blind, LeftAlone, ListInDoubt, Snapshot
from slurm_fair.model.speeds import NodeSpeeds, Speeds
from slurm_fair.model.tenant import TenantTable
from slurm_fair.model.told import Mode, Told

__all__ = [
    "NEVER_ENDS_SECONDS",
    "NO_PLACES",
    "USUAL_RENEWALS",
    "Action",
    "Answer",
    "Aside",
    "Beliefs",
    "Blind",
    "Blocked",
    "ClosedRuns",
    "Event",
    "EventKind",
    "Explanation",
    "Gate",
    "JobAccounts",
    "JobState",
    "JobTable",
    "LeasePhase",
    "LeaseTerms",
    "Leases",
    "Ledger",
    "LeftAlone",
    "ListInDoubt",
    "Mode",
    "NodeSpeeds",
    "NodeTable",
    "Outcome",
    "PartitionTable",
    "Placement",
    "Plan",
    "Profiles",
    "Reported",
    "ReservedNodes",
    "Result",
    "Retries",
    "RunTable",
    "Sizes",
    "Snapshot",
    "Speeds",
    "Standing",
    "TenantAccounts",
    "TenantTable",
    "TickRecord",
    "Told",
    "Unfilled",
    "Untried",
    "Verb",
    "Verdict",
    "label",
    "labels",
    "pack_keys",
    "parse_label",
]
