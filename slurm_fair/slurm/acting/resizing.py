"""Another number of GPUs for a waiting job, its user's own request, and what the mark says of both."""

from __future__ import annotations

from dataclasses import replace

from slurm_fair.errors import SlurmTextError
from slurm_fair.model import Action
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.acting import scontrol_lines
from slurm_fair.slurm.ownership.ours import either_size, own_size_requests
from slurm_fair.slurm.ownership.ours_afresh import OursAfresh
from slurm_fair.slurm.reading.request import SizeRequest
from slurm_fair.slurm.reading.reread import FreshRow


def wanted(ours: OursAfresh, action: Action, row: FreshRow) -> SizeRequest | None:
    """The request with which a job is to start; None where it stays as it is."""
    own = ours.own_request(action, row)
    request = SizeRequest.read(own)
    if action.gpus and request is None:
        raise SlurmTextError(f"its size cannot be changed: {own}")
    if request and action.gpus not in (0, request.gpus, *ours.stamp_on(action).sizes):
        raise SlurmTextError(f"it cannot run with {action.gpus} GPUs")
    if request is None or not (action.gpus or ours.resized(action, row)):
        return None
    return request.resized(action.gpus, len(action.nodes)) if action.gpus else request


def opening(
    lines: scontrol_lines.ScontrolLines, job: str, ours: OursAfresh, action: Action, row: FreshRow
) -> scontrol_lines.ScontrolLines:
    """The lines that open a job, with its size changed once it is pinned: a task has its own record by then."""
    request, here = wanted(ours, action, row), SizeRequest.read(row.request)
    if request is None:
        return lines
    if here is None:
        raise SlurmTextError(f"its size cannot be changed: {row.request}")
    sized = scontrol_lines.resize(job, request.words_from(here))
    return replace(lines, pin=lines.pin + sized, request=str(request))


def own_size(job: str, ours: OursAfresh, action: Action, row: FreshRow) -> tuple[str, ...]:
    """The line that gives a job its user's own request back; none where it carries that."""
    own, here = SizeRequest.read(ours.own_request(action, row)), SizeRequest.read(row.request)
    if own is None or here is None or not ours.resized(action, row):
        return ()
    return scontrol_lines.resize(job, own.words_from(here))


def words_to_undo(ours: OursAfresh, action: Action, row: FreshRow) -> tuple[str, ...]:
    """The words for scontrol by which a request, however far we changed it, is its user's own again.

    Nothing where its user has changed it since.
    """
    mark = ours.mark_on(action)
    if mark is None:
        return ()
    own, here = SizeRequest.read(mark.user_size), SizeRequest.read(row.request)
    imposed = [SizeRequest.read(text) for text in own_size_requests(mark)]
    if own is None or here is None or not any(each and here.is_between(own, each) for each in imposed):
        return ()
    return own.words_from(here)


def asks_for(row: FreshRow, request: str) -> bool:
    """True if a job asks for all that was wanted."""
    here, there = SizeRequest.read(row.request), SizeRequest.read(request)
    return there is None or (here is not None and here.is_like(there))


def with_size(mark: Mark, ours: OursAfresh, action: Action, row: FreshRow) -> Mark:
    """The mark of a job that is to start with a request of ours: whichever of two it carries after a crash."""
    request, own = wanted(ours, action, row), ours.own_request(action, row)
    fresh = str(request) if request is not None and str(request) != own else ""
    before = row.request if own != row.request else ""
    size = either_size(fresh, before)
    return replace(mark, size=size, user_size=own if size else "")
