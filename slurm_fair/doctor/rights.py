"""What the account that runs this may do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from slurm_fair.doctor.facts import Facts
from slurm_fair.doctor.finding import Finding, error, ok, warning
from slurm_fair.model import JobState, Snapshot, label
from slurm_fair.model.columns import Ints
from slurm_fair.slurm.acks import Asked
from slurm_fair.slurm.details import DetailsBook
from slurm_fair.slurm.readers import Readers

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
    """Whether it hears what running jobs answer: it reads in their folders as the daemon does."""
    reports = facts.config.slurm.reports
    if reports not in ("auto", "file") or isinstance(facts.snapshot, str):
        return
    book = DetailsBook(facts.commands())
    rows = _running(facts.snapshot)
    jobs = facts.snapshot.jobs
    identities = list(zip(jobs.record[rows].tolist(), jobs.restarts[rows].tolist(), strict=True))
    if not identities or book.learn(identities):
        return
    asked = {row: _probe(facts.snapshot, book, row) for row in rows.tolist()}
    readers = Readers()
    told = {row: why for row, why in readers.complaints(asked).items() if why}
    readers.close()
    if not told:
        yield ok(
            f"{facts.account} reads the answers of running jobs in their folders ({len(asked)} looked at)"
        )
        return
    row, why = next(iter(told.items()))
    count = f"{len(told)} of {len(asked)} running jobs"
    example = (
        f"{facts.account} cannot read the answers of {count} in their folders (job {asked[row].job}: {why!r})"
    )
    if reports == "auto":
        yield ok(f"{example}; those are heard by their Slurm comments")
    else:
        yield warning(
            f"{example}: the whole grace is waited for",
            'set [slurm] reports = "auto", so that jobs answer by their Slurm comments there',
        )


def _probe(snapshot: Snapshot, book: DetailsBook, row: int) -> Asked:
    """A request to a running job that is never sent."""
    jobs = snapshot.jobs
    restarts = int(jobs.restarts[row])
    work_dir = book.of(int(jobs.record[row]), restarts).work_dir
    job, user = label(int(jobs.key[row])), snapshot.users[jobs.user[row]]
    return Asked(user, work_dir, job, restarts, snapshot.time, snapshot.time)


def _running(snapshot: Snapshot) -> Ints:
    """Rows of some running jobs that speak the protocol."""
    jobs = snapshot.jobs
    return np.flatnonzero((jobs.state == JobState.RUNNING) & jobs.checkpoints)[:_JOBS_LOOKED_AT]
