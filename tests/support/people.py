"""Acts of users and admins on jobs in a random history of the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurm_fair.model import label
from slurm_fair.model.ids import pack
from tests.support.fake_slurm import ADMIN, PENDING, RUNNING, USER

if TYPE_CHECKING:
    from tests.support.controller_history import History

NODES = {"n1": 4, "n2": 4, "n3": 8}


def cancel(history: History) -> None:
    if record := history.pick(PENDING, RUNNING, "COMPLETING"):
        task = record.tasks[0] if record.tasks else record.task
        history.held.pop(pack(record.base, task), None)
        history.site.world.cancel(record.base, task)


def finish(history: History) -> None:
    if record := history.pick(RUNNING):
        history.site.world.finish(record.base, record.task)


def hold(history: History) -> None:
    record = history.pick(PENDING, PENDING, RUNNING)
    if record and not record.held and not record.tasks:
        by = history.dice.choice([USER, ADMIN])
        history.site.world.hold(record.base, record.task, by)
        history.held[record.key] = by


def release(history: History) -> None:
    if history.held:
        key = history.dice.choice(sorted(history.held))
        history.held.pop(key)
        base, _, task = label(key).partition("_")
        history.moved[key] = history.site.now
        history.site.world.release(int(base), int(task or -1))


def move_begin(history: History) -> None:
    record = history.pick(PENDING)
    if record and not record.tasks:
        history.site.world.move_begin(
            record.base, history.site.now + history.dice.choice([-10, 5, 40]), record.task
        )
        history.moved[record.key] = history.site.now


def name_nodes(history: History) -> None:
    """A user's `scontrol update ReqNodeList=` of a job that waits."""
    record = history.pick(PENDING)
    if record and not record.tasks and record.nodes == 1:
        names = history.dice.choice([(), *((name,) for name in NODES if NODES[name] >= record.gpus)])
        history.site.world.update(record, wanted=names)
        history.nodes[record.key] = names


def requeue_by_hand(history: History) -> None:
    """A user's or an admin's `scontrol requeue`."""
    record = history.pick(RUNNING)
    if record and record.requeue:
        history.site.world.requeue(record, hold=False)
        history.site.world.wasted.pop(record.key, None)
        history.moved[record.key] = history.site.now
