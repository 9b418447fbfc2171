"""The reasons that `astraea` gives."""

from __future__ import annotations

from slurm_fair.policy import Words

OWED_MOST = "it is among those owed most"
EARLY = "it never ran, and with it the first leases of its tenant stay within its quota"
FILLS = "it fills GPUs that nobody ahead of it can use"
STILL_OWED = "it is still among those owed most"
MISFIT = Words().misfit
TENANT_SKIPPED = "a job of its tenant that goes before it does not fit now"
NOWHERE = Words().nowhere
NODE_NEEDED = "a job that is owed more needs its node"
PROMISED_AWAY = "its GPUs were promised to a job that is owed more"
