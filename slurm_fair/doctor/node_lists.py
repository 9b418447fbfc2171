"""Node lists on jobs that are ours, or may be, and that nobody takes away."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from slurm_fair.doctor.facts import Facts
from slurm_fair.doctor.finding import Finding, ok, warning
from slurm_fair.doctor.storage import lock_is_listed
from slurm_fair.model import Snapshot, labels
from slurm_fair.model.apiece import apiece
from slurm_fair.model.counted import first_sayings

_NAMED = 20
_UPDATE = "scontrol update JobId=N ReqNodeList="


def findings(facts: Facts) -> Iterator[Finding]:
    """Ours by the journal, then those of which nobody can tell."""
    seen = facts.snapshot
    if isinstance(seen, str):
        return
    if not _is_open(facts):
        yield ok(f"which node lists are ours stands in the journal, which {facts.account} cannot read")
        return
    left = _left(seen) if not lock_is_listed(facts.places.journal.with_name("journal.db.lock")) else []
    if left:
        yield warning(
            f"a node list of ours keeps waiting jobs on its nodes, and no daemon takes it away: {_some(left)}",
            f"start the daemon, or `slurm-fair fail-open`, or for each job: {_UPDATE}",
        )
    doubtful = apiece(seen.in_doubt, lambda each: each.user, _NAMED)
    doubts = [f"job {each.label} of {each.user or 'nobody known'} ({each.nodes})" for each in doubtful]
    doubts += [""] * (len(seen.in_doubt) - len(doubts))  # only counted
    if doubts and os.path.exists(facts.places.journal):
        yield warning(
            f"the journal began after these jobs had got node lists: {_some(doubts)}. Whether their users asked "
            "for these nodes or an earlier daemon set them cannot be told, so they stay",
            f"ask their users; for a job whose user did not ask for these nodes: {_UPDATE}",
        )
    elif doubts:
        yield ok(
            f"no journal is here, and these jobs carry node lists: {_some(doubts)}. If a journal was lost, an "
            f"earlier daemon may have set them; {_UPDATE} takes one away"
        )
    if not left and not doubts:
        yield ok("no job carries a node list that nobody takes away")


def _is_open(facts: Facts) -> bool:
    """False if this account may not read the journal. True if there is no journal yet."""
    folder, journal = facts.places.directory, facts.places.journal
    if os.path.isdir(folder) and not os.access(folder, os.X_OK):
        return False
    return not os.path.exists(journal) or os.access(journal, os.R_OK)


def _left(seen: Snapshot) -> list[str]:
    jobs = seen.jobs
    waits = jobs.waiting & jobs.pinned
    return [f"job {name}" for name in labels(jobs.key[waits])]


def _some(sayings: Sequence[str]) -> str:
    return first_sayings(sayings, _NAMED)
