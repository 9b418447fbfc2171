"""The number by which a policy puts one waiting job before another, for people who ask why."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from slurm_fair.model import Plan
from slurm_fair.model.columns import Floats
from slurm_fair.policy.error_place import POLICY_FAILURES
from slurm_fair.policy.protocol import Policy
from slurm_fair.policy.view import View

SUBMITTED = "the time of its submission"


class Order(NamedTuple):
    """The meaning of a policy's `Plan.score`, which its class names in `score_is`."""

    name: str
    highest_first: bool = False
    then: str = SUBMITTED  # what decides between equals, and wherever the number does not


class Decided(NamedTuple):
    """The number that decided each job's place in the order of a plan; nan = none."""

    by: str = ""  # its name; nothing where the policy names none
    of_tenants: bool = False  # the number is that of the job's tenant
    numbers: Floats = np.empty(0)
    highest_first: bool = False
    then: str = ""  # what decides where the number does not
    about: str = ""  # what is to be said of the whole plan


@runtime_checkable
class Decides(Protocol):
    """A policy that tells its own numbers. Others say in `score_is` what `Plan.score` means, or say nothing."""

    def decided(self, plan: Plan, view: View) -> Decided:
        """The numbers of a plan of its own."""
        ...


def decided(policy: Policy, plan: Plan, view: View) -> Decided:
    """The deciding numbers of a plan; none if the plan is not the policy's own or the policy names none."""
    if not plan.is_own:
        return Decided()
    if isinstance(policy, Decides):
        try:
            return policy.decided(plan, view)
        except POLICY_FAILURES:  # a policy from elsewhere: what people are told costs no look
            return Decided()
    order = getattr(policy, "score_is", None)
    if not isinstance(order, Order):
        return Decided()
    return Decided(order.name, False, plan.explanation.score, order.highest_first, order.then)


def age(view: View) -> Floats:
    """Seconds since each waiting job was first submitted; nan for the others."""
    return np.where(view.waiting, view.now - view.first_submit, np.nan)
