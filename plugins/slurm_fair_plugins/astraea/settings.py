"""The settings of `astraea`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from slurm_fair.policy import PlacerName, Urgency, Within, check_settings


@dataclass(frozen=True, slots=True)
class AstraeaSettings:
    """Choices of a site; the defaults are by measurement where they are not the paper's."""

    choose_share: Literal["quota", "demand"] = "quota"  # eq. 16 or eq. 8
    new_jobs_first: bool = True  # a job that never ran goes before others of its tenant
    # So do leases renewed this often, after the new jobs.
    keep_long_renewed: Annotated[int, Within(0, 1e9, "0 = off")] = 0
    # A waiting job takes the place of a running sibling only when that one is ahead of it by so many leases.
    swap_after: Annotated[float, Within(0, 1e6, "0 = as in the paper")] = 4.0
    # A job that never ran goes before all others while first leases of its tenant hold no more of its quota.
    early_starts: Annotated[float, Within(0, 1, "0 = as in the paper")] = 0.0
    urgent: Urgency = "tight"  # which jobs with a deadline go before all these
    placement: PlacerName = "consolidated"

    def __post_init__(self) -> None:
        check_settings(self, "astraea")
