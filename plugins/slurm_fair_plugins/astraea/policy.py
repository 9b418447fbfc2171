"""Astraea: long-term GPU-time fairness by leases (Ye et al., TPDS 2022), algorithms 1 and 2 and section 5.1.2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from slurm_fair.model import Plan
from slurm_fair.policy import (
    Decided,
    Draft,
    SettingWords,
    View,
    only_renews,
)
from slurm_fair.policy.orders.two_phase import decided_by
from slurm_fair_plugins.astraea.round import Round
from slurm_fair_plugins.astraea.setting_words import SETTING_WORDS
from slurm_fair_plugins.astraea.settings import AstraeaSettings

_BETWEEN_EQUALS = "what its tenant has had by its weight"


@dataclass(frozen=True, slots=True)
class Astraea(AstraeaSettings):
    """The neediest tenant's neediest job first; the fields are the settings.

    Section 5.2.1 names three kinds of jobs that a tenant's own order may prefer, and 6.1.1 uses one of them: so
    new jobs first is on, and long-renewed leases are not preferred. The paper does not rank the kinds; here a
    deadline goes before a first start, because what is missed is missed for good. A preferred job is charged like
    any other. Tenants go by their rho, but for first leases within their quota (`early_starts`).

    Jobs store only when they lose their lease (5.1.1, on-demand checkpoint): one that is renewed hears nothing.
    """

    setting_words: ClassVar[SettingWords] = SETTING_WORDS
    rests = only_renews

    def plan(self, view: View) -> Plan:
        """One round: pick on all GPUs that may be had, renew in place, place the others, fill what is left."""
        sheet = Draft(view)
        if not view.waiting_rows.size and not view.over_rows.size:
            return sheet.unchanged()
        round_ = Round(self, view)
        return sheet.finish(round_.say(sheet), lambda: round_.rank, lambda: round_.score)

    def decided(self, plan: Plan, view: View) -> Decided:
        """The tenant's rho when the walk came to the job: with the leases that the plan gave it before."""
        owed = "its quota" if self.choose_share == "quota" else "what it wanted of its quota"
        name = f"what its tenant has had, with the leases of this round before it, of {owed}"
        return Decided(name, True, decided_by(plan, view, self.choose_share), then=_BETWEEN_EQUALS)
