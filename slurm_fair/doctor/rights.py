"""Findings on the rights of the account that runs the daemon."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from slurm_fair.doctor.facts import Facts
from slurm_fair.doctor.finding import Finding, error, ok, warning
from slurm_fair.model import Snapshot, label
from slurm_fair.slurm.reading.details import JobDetails
from slurm_fair.slurm.reading.messages import Wanted
from slurm_fair.slurm.reading.readers import Readers

VERBS = "begin times, node lists, hold, release, requeue, signals"
_JOBS_LOOKED_AT = 8


def findings(facts: Facts) -> Iterator[Finding]:
    if not facts.reachable:
        return
    yield verbs(facts)
    yield from sees_jobs_of_others(facts)
    yield from answers_heard(facts)


def verbs(facts: Facts) -> Finding:
    """Check whether Slurm lets it do to others' jobs what leases need."""
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


def sees_jobs_of_others(facts: Facts) -> Iterator[Finding]:
    """Check whether it sees others' jobs."""
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


def answers_heard(facts: Facts) -> Iterator[Finding]:
    """Check whether the answers of running jobs are heard: by the daemon's own way to them, job by job."""
    reports = facts.config.slurm.reports
    if reports not in ("auto", "file") or isinstance(facts.snapshot, str):
        return
    asked = _running(facts.snapshot, JobDetails(facts.commands()))
    if not asked:
        return
    readers = Readers()
    try:
        complaints = readers.complaints(asked)
    finally:
        readers.close()
    unheard = {asked[key].job: why for key, why in complaints.items() if why}
    if not unheard:
        yield ok(f"{facts.account} hears the answers of running jobs ({len(asked)} looked at)")
        return
    job, why = next(iter(unheard.items()))
    instead = (
        "only a token in their comment is heard" if reports == "auto" else "the whole grace is waited for"
    )
    yield warning(
        f"{facts.account} does not hear the answers of {len(unheard)} of {len(asked)} running jobs in their "
        f"folders, so {instead}; job {job}: {why}",
        "mount the file system here, let others pass through its folders (chmod o+x), or give the daemon "
        "CAP_DAC_READ_SEARCH (see slurm-fair.service)",
    )


def _running(snapshot: Snapshot, details: JobDetails) -> dict[int, Wanted]:
    """Some running jobs that speak the protocol, by their rows."""
    jobs = snapshot.jobs
    rows = np.flatnonzero(jobs.running & jobs.checkpoints)[:_JOBS_LOOKED_AT].tolist()
    identities = {row: (jobs.record.item(row), jobs.restarts.item(row)) for row in rows}
    if not rows or details.learn(identities.values()):
        return {}
    return {
        row: Wanted(
            snapshot.users[jobs.user.item(row)],
            details.of(*identities[row]).work_dir,
            label(jobs.key.item(row)),
        )
        for row in rows
    }
