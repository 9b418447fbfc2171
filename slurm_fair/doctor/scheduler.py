"""Slurm's own settings, as far as leases meet them."""

from __future__ import annotations

from collections.abc import Iterator

from slurm_fair.doctor.facts import Facts, number_or
from slurm_fair.doctor.finding import Finding, error, ok, warning

_SCHED_SECONDS, _BACKFILL_SECONDS, _BATCH_DELAY_SECONDS = 60, 30, 3  # Slurm's defaults
_RECOMMENDED = "sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0,bf_continue"


def findings(facts: Facts) -> Iterator[Finding]:
    if not facts.reachable:
        return
    yield start_delay(facts)
    yield requeues(facts)
    yield from preemption(facts)
    yield ages(facts)
    yield from gpus_counted(facts)
    yield from accounts_kept_apart(facts)
    yield from memory(facts)


def start_delay(facts: Facts) -> Finding:
    """Check how long Slurm may take to start a job whose gate was opened."""
    words = facts.words_of("SchedulerParameters")
    soon = number_or(words.get("batch_sched_delay", ""), _BATCH_DELAY_SECONDS)
    main = number_or(words.get("sched_interval", ""), _SCHED_SECONDS)
    backfill = number_or(words.get("bf_interval", ""), _BACKFILL_SECONDS)
    if facts.value("SchedulerType") != "sched/backfill":
        backfill = main
    late = backfill if main < 0 else min(main, backfill)
    lease = facts.config.lease
    delay = f"Slurm starts a job about {max(soon, 1)} s after its gate opens, {late} s at worst"
    cure = f"SchedulerParameters={_RECOMMENDED} starts jobs within about a second"
    if late >= lease.term:
        return error(f"{delay}: longer than a lease ({lease.term:g} s)", cure)
    if late > lease.start_timeout:
        return warning(
            f"{delay}: later than [lease] start_timeout ({lease.start_timeout:g} s) waits",
            f"{cure}; or raise start_timeout",
        )
    if late > lease.term / 10:
        return warning(f"{delay}: a lease is {lease.term:g} s", cure)
    if "defer" in words:
        return warning(f"{delay}, and `defer` is set: starts wait for the next pass", cure)
    return ok(delay)


def requeues(facts: Facts) -> Finding:
    """Check that a job can be requeued unless it says otherwise."""
    if facts.value("JobRequeue") == "0":
        return warning(
            "JobRequeue=0: only jobs that ask for it (--requeue, as the templates do) can give GPUs back",
            "set JobRequeue=1 in slurm.conf",
        )
    return ok("jobs can be requeued (JobRequeue=1)")


def preemption(facts: Facts) -> Iterator[Finding]:
    """Check that Slurm itself takes no GPUs away."""
    kind, mode = facts.value("PreemptType"), facts.value("PreemptMode").upper()
    if "GANG" in mode:
        yield error(
            f"PreemptMode={mode}: Slurm suspends jobs in turn, with their GPUs",
            "leave GANG out of PreemptMode: leases take turns instead",
        )
    elif kind and kind != "preempt/none":
        yield warning(
            f"PreemptType={kind}: Slurm may take GPUs from a job in the middle of its lease",
            "let no partition or QOS preempt the managed partitions",
        )
    else:
        yield ok("Slurm itself preempts nobody")


def ages(facts: Facts) -> Finding:
    """Tell if jobs behind a gate gather age. Priorities matter only among jobs whose gates are open together."""
    if "ACCRUE_ALWAYS" in facts.value("PriorityFlags").upper():
        return ok("jobs behind a gate gather age (PriorityFlags=ACCRUE_ALWAYS)")
    return ok(
        "jobs behind a gate gather no age in Slurm's priority; among managed jobs the gates order the queue"
    )


def gpus_counted(facts: Facts) -> Iterator[Finding]:
    """Check that Slurm counts GPUs."""
    if facts.value("SelectType") not in ("select/cons_tres", ""):
        yield error(
            f"SelectType={facts.value('SelectType')} gives no single GPUs", "set SelectType=select/cons_tres"
        )
    counted = facts.value("AccountingStorageTRES").split(",")
    if "slurmdbd" in facts.value("AccountingStorageType") and "gres/gpu" not in counted:
        yield error("Slurm does not count GPUs (AccountingStorageTRES)", "set AccountingStorageTRES=gres/gpu")
    elif "gres/gpu" in counted:
        yield ok("Slurm counts GPUs (AccountingStorageTRES)")


def accounts_kept_apart(facts: Facts) -> Iterator[Finding]:
    """Check that a user cannot name any account."""
    if "slurmdbd" not in facts.value("AccountingStorageType"):
        return
    enforced = facts.value("AccountingStorageEnforce")
    if "associations" in enforced:
        yield ok("Slurm checks accounts (AccountingStorageEnforce)")
    else:
        yield warning(
            f"AccountingStorageEnforce={enforced or 'none'}: a user may submit under any tenant's name",
            "set AccountingStorageEnforce=associations",
        )


def memory(facts: Facts) -> Iterator[Finding]:
    """Check that Slurm remembers a job that ended until we look."""
    age, interval = facts.whole("MinJobAge", 300), facts.config.lease.longest_interval
    if age < 2 * interval:
        yield warning(
            f"Slurm forgets ended jobs after {age} s (MinJobAge), and we look every {interval:g} s",
            f"set MinJobAge={max(300, int(3 * interval))} in slurm.conf",
        )
