"""The settings of `astraea` in words, as `slurm-fair init` and the page on the configuration have them."""

from __future__ import annotations

from slurm_fair.policy import PLACEMENT_WORDS, URGENT_WORDS, SettingWords

_OF = {
    "choose_share": "what a tenant is owed when the next one is chosen. quota: all of its quota, "
    "so that what it lends comes back; demand: at most what its jobs ask for",
    "new_jobs_first": "a job that never ran goes before others of its tenant: short jobs are soon done",
    "keep_long_renewed": "a running job whose lease was renewed for at least so many terms goes "
    "before others of its tenant, after new jobs; 0: none",
    "swap_after": "a waiting job takes the place of a running one of its own tenant only when that one "
    "is ahead of it by so many leases: fewer stops at the same fairness; 0: at once, as in the paper",
    "early_starts": "a job that never ran goes before all tenants' other jobs while first leases of its "
    "tenant hold no more than this part of its quota: short jobs wait less; 0: as in the paper",
    "urgent": URGENT_WORDS,
    "placement": PLACEMENT_WORDS,
}
SETTING_WORDS = SettingWords(
    "Astraea: the tenant that had least of what it is owed, then its job that had least.",
    _OF,
)
