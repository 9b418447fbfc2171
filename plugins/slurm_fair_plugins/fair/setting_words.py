"""The settings of `fair` in words, as `slurm-fair init` and the page on the configuration have them."""

from __future__ import annotations

from slurm_fair.policy import PLACEMENT_WORDS, URGENT_WORDS, SettingWords

_OF = {
    "price_hours": "X, the price of a tenant's quota: a job of a tenant beyond its quota goes before those "
    "within theirs once it has no more hours left. 0: quota first; 24: nearly shortest first",
    "debt_hours": "hours of its quota that a tenant may lack: from there on its jobs within quota go first",
    "repay_leases": "leases within which a tenant gets back what it lacks: its quota grows by so much; "
    "0: a quota never grows",
    "unknown_beyond": "what a job of unknown length ran counts so many times as what it has left, where its "
    "tenant is beyond its quota",
    "claim_weight": "worth per GPU-hour of ending by the fair finish time; 0: none",
    "claim_stretch": "a job is due after so much of the time that it would take if all jobs shared the "
    "GPUs evenly",
    "claim_margin_seconds": "seconds before a job must start to end in time, from which on it goes first",
    "claim_growing_part": "a job whose batch size grows becomes faster: so much of what it says it has left "
    "counts",
    "claim_hours": "jobs that came in so many hours share the cluster; 0: those of this hour",
    "makespan_weight": "worth per GPU-hour of the longest jobs; 0: none",
    "makespan_part": "part of the backlog that makes a job one of the longest",
    "restart_seconds": "seconds that a stop costs a job",
    "inertia": "a job that runs counts as having so much less left: more of it, and fewer jobs are stopped",
    "reserve_part": "a gang that stands first and whose length is known waits for so much of what it has "
    "left, and for reserve_after at most, until nodes are set aside for it",
    "solver": "auto: a solver looks for a better plan where the walk's is not proven to be near the best and "
    "jobs could run on several GPU types or in several sizes; always: also where they could not; "
    "off: the walk alone",
    "solver_gap": "part of the best plan's worth that the walk's may lack and still stand",
    "urgent": URGENT_WORDS,
    "placement": PLACEMENT_WORDS,
}
SETTING_WORDS = SettingWords(
    "The jobs to which a GPU-hour is worth most, by quota, work left and finish time (the policy in force "
    "without another name); docs/fair.md says what each setting costs.",
    _OF,
)
