"""What the account that runs this may do."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from slurm_fair.doctor.facts import Facts
from slurm_fair.doctor.finding import Finding, error, ok, warning
from slurm_fair.model import JobState, Snapshot
from slurm_fair.slurm.details import DetailsBook

VERBS = "begin times, node lists, hold, release, requeue, signals"
_JOBS_LOOKED_AT = 8


def findings(facts: Facts) -> Iterator[Finding]:
    """All of them."""
    if not facts.reachable:
        return
    yield verbs(facts)
    yield from sight(facts)
    yield from folders(facts)


def verbs(facts: Facts) -> Finding:
    """Whether Slurm lets it do to others' jobs what leases need."""
    who = facts.account
    if facts.all_powerful:
        return ok(f"{who} may do all that is needed ({VERBS}); an Operator could as well")
    if facts.admin_level in ("Operator", "Administrator"):
        return ok(f"{who} is {facts.admin_level} in Slurm: may do all that is needed ({VERBS})")
    why = "Slurm knows it as no operator" if facts.admin_level else "accounting does not know it"
    if facts.history and not facts.admin_level:
        why = "accounting, which knows its rights, does not answer"
    return warning(
        f"{who} may not act on others' jobs ({VERBS}): {why}; shadow mode works",
        f"sacctmgr add user {who} account=root adminlevel=operator (modify user {who} set, if it is there), "
        "or run this as the daemon's account",
    )


def sight(facts: Facts) -> Iterator[Finding]:
    """Whether it sees others' jobs."""
    private = facts.value("PrivateData").replace(",", " ").split()
    if "jobs" not in private:
        return
    if facts.all_powerful or facts.admin_level in ("Operator", "Administrator"):
        yield ok("PrivateData hides jobs from others, not from this account")
    else:
        yield error(
            f"PrivateData hides others' jobs from {facts.account}",
            "make it an Operator: sacctmgr modify user",
        )


def folders(facts: Facts) -> Iterator[Finding]:
    """Whether it reaches the folders in which running jobs acknowledge."""
    if facts.config.slurm.reports != "file" or isinstance(facts.snapshot, str):
        return
    book = DetailsBook(facts.commands())
    running = _running(facts.snapshot)
    if not running or book.learn(running):
        return
    paths = {book.of(*identity).work_dir for identity in running} - {""}
    shut = sorted(path for path in paths if not os.access(path, os.R_OK | os.X_OK))
    if shut:
        yield warning(
            f"{facts.account} cannot read {len(shut)} of {len(paths)} folders of running jobs ({shut[0]!r}): "
            "acknowledgements there are not seen, and the whole grace is waited for",
            "let it read them (CAP_DAC_READ_SEARCH, see slurm-fair.service), "
            "mount the file system, or set [slurm] reports",
        )
    elif paths:
        yield ok(f"{facts.account} can read the folders of running jobs ({len(paths)} looked at)")


def _running(snapshot: Snapshot) -> list[tuple[int, int]]:
    """Some running jobs that speak the protocol, as (record, restarts)."""
    jobs = snapshot.jobs
    rows = np.flatnonzero((jobs.state == JobState.RUNNING) & jobs.checkpoints)[:_JOBS_LOOKED_AT]
    return list(zip(jobs.record[rows].tolist(), jobs.restarts[rows].tolist(), strict=True))
