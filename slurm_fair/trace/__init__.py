"""Traces: the files that a simulation reads, their converters, a generator, and what a trace holds."""

from slurm_fair.trace.classes import WORKLOADS, Workload
from slurm_fair.trace.cluster import Machines, read_machines, uniform
from slurm_fair.trace.describe import Description, describe
from slurm_fair.trace.faults import Fault
from slurm_fair.trace.generate import TraceWish, generate
from slurm_fair.trace.read import Reading, read_trace
from slurm_fair.trace.regimes import JobRegimes, Regime, read_regimes, refuse_foreign
from slurm_fair.trace.status import End
from slurm_fair.trace.table import Mode, Trace
from slurm_fair.trace.throughputs import Throughputs, read_throughputs
from slurm_fair.trace.weights import read_weights
from slurm_fair.trace.write import write_trace

__all__ = [
    "WORKLOADS",
    "Description",
    "End",
    "Fault",
    "JobRegimes",
    "Machines",
    "Mode",
    "Reading",
    "Regime",
    "Throughputs",
    "Trace",
    "TraceWish",
    "Workload",
    "describe",
    "generate",
    "read_machines",
    "read_regimes",
    "read_throughputs",
    "read_trace",
    "read_weights",
    "refuse_foreign",
    "uniform",
    "write_trace",
]
