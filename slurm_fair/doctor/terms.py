"""Our own configuration against itself and against Slurm's: lengths, names, limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from slurm_fair.config.lease import LeaseSection
from slurm_fair.doctor.facts import Facts, number_or
from slurm_fair.doctor.finding import Finding, error, ok, warning
from slurm_fair.model.gpu_weight import misfit, named
from slurm_fair.slurm.ownership.ours import DELAY_SLACK_SECONDS
from slurm_fair.slurm.reading.billing import Billing, billing_of
from slurm_fair.slurm.scope import Territory

_CRED_EXPIRE_SECONDS = 120
_KILL_WAIT_SECONDS = 30
_RPCS_A_LOOK = 6
_MOST_SHARES = 20  # that are told one by one


@dataclass(frozen=True, slots=True)
class Bucket:
    """Slurm's rate limit for one account."""

    size: int
    refill_per_second: float


def findings(facts: Facts) -> Iterator[Finding]:
    yield ok(f"configuration: {facts.config.source}")
    yield from lengths(facts)
    if not facts.reachable:
        return
    yield from unknown_names(facts)
    yield from half_life(facts)
    yield from tenant_shares(facts)
    yield from gpu_weights(facts)
    yield requeue_delay(facts)
    yield kill_wait(facts)
    yield rate_limit(facts)


def lengths(facts: Facts) -> Iterator[Finding]:
    """Lengths that do not go together."""
    lease = facts.config.lease
    wrong = list(_wrong_lengths(lease, facts.config.slurm.requeue_delay))
    yield from wrong
    if not wrong:
        renewed = "" if lease.align == "aligned" else f", renewed for {lease.terms().shortest:g} s"
        yield ok(f"lease {lease.term:g} s{renewed}, looked at {_how_often(lease)}, grace {lease.grace:g} s")


def _wrong_lengths(lease: LeaseSection, requeue_delay: float) -> Iterator[Finding]:
    term, interval = lease.term, lease.longest_interval
    if interval > term / 3:
        yield warning(
            f"[lease] interval ({interval:g} s) is more than a third of the term ({term:g} s): "
            "who comes between two looks may wait for long",
            f"set interval to at most {term / 3:g}",
        )
    if lease.grace >= term:
        yield warning(
            f"[lease] grace ({lease.grace:g} s) is not shorter than the term ({term:g} s): "
            "a job may save for longer than it may run",
            "shorten the grace or lengthen the term",
        )
    if term < requeue_delay:
        yield warning(
            f"[lease] term ({term:g} s) is shorter than Slurm's requeue delay "
            f"({requeue_delay:g} s): if we die, a job just requeued waits longer than a lease",
            "lengthen the term, or shorten Slurm's delay (AuthInfo=cred_expire, or requeue_delay from 25.11 on)",
        )
    if lease.align == "aligned" and (idle := _of_rolling_leases(lease)):
        yield warning(
            f"[lease] {idle}: without effect, since all leases end together (align)",
            f'take {idle} out, or set align = "rolling"',
        )
    if lease.min_runtime > term:
        aligned = lease.align == "aligned"
        ends = "at the first end of a term after min_runtime" if aligned else "after min_runtime"
        yield warning(
            f"[lease] min_runtime ({lease.min_runtime:g} s) exceeds the term ({term:g} s): a lease ends {ends}, "
            "and so late do others have their turn",
            "shorten min_runtime, or lengthen the term",
        )


def _of_rolling_leases(lease: LeaseSection) -> str:
    """The keys that are set though leases do not roll."""
    usual = LeaseSection()
    return " and ".join(
        key for key in ("reserve_after", "renewal") if getattr(lease, key) != getattr(usual, key)
    )


def half_life(facts: Facts) -> Iterator[Finding]:
    """A memory of fairness that is shorter than a lease: it is in seconds, as Slurm's is in days or hours."""
    seconds, term = facts.config.tenants.half_life, facts.config.lease.term
    if 0 < seconds < term:
        yield warning(
            f"[tenants] half_life ({seconds:g} s) is shorter than a lease ({term:g} s): who had GPUs is forgotten "
            "before others have their turn",
            "give seconds: 604800 is a week, 0 never forgets",
        )


def _how_often(lease: LeaseSection) -> str:
    if lease.follows_changes:
        return f"when something changes and every {lease.longest_interval:g} s"
    return f"every {lease.longest_interval:g} s"


def unknown_names(facts: Facts) -> Iterator[Finding]:
    """Names in the configuration that Slurm does not know."""
    scope = facts.config.scope
    if not isinstance(facts.machines, str):
        yield from _known("[scope] partitions", scope.partitions, frozenset(facts.machines.partitions))
    for key, kind, given in (
        ("[scope] accounts", "accounts", scope.accounts),
        ("[scope] qos", "qos", scope.qos),
        ("[tenants] weights", "accounts", tuple(facts.config.tenants.weights)),
    ):
        listed = facts.known.get(kind, "")
        if not isinstance(listed, str):
            yield from _known(key, given, listed)


def _known(key: str, given: tuple[str, ...], known: frozenset[str]) -> Iterator[Finding]:
    strange = [name for name in given if name not in known]
    if strange:
        listed = ", ".join(sorted(known)[:20]) or "none"
        yield error(f"{key}: Slurm knows no {', '.join(strange)}", f"Slurm knows {listed}: mend the names")


def tenant_shares(facts: Facts) -> Iterator[Finding]:
    """Tell each tenant's part while all of them have jobs."""
    if isinstance(facts.snapshot, str):
        return
    tenants = facts.snapshot.tenants
    total = float(tenants.weight.sum())
    if total <= 0:
        return
    order = sorted(zip(-tenants.weight, tenants.names, strict=True))
    shares = [f"{name} {-100 * weight / total:.3g} %" for weight, name in order[:_MOST_SHARES]]
    shares += [f"{len(order) - _MOST_SHARES} more"] if len(order) > _MOST_SHARES else []
    yield ok(f"shares of the tenants while all have jobs: {', '.join(shares)}")


def gpu_weights(facts: Facts) -> Iterator[Finding]:
    """The weight of a GPU of each type, where they are weighed."""
    given, machines = facts.config.tenants.gpu_weights, facts.machines
    if not given or isinstance(machines, str):
        return
    territory = Territory.of(machines, facts.config.scope)
    types = {machines.nodes[name].gpu_type for name in territory.nodes}
    if isinstance(given, str):
        answer = facts.commands().run("scontrol", "-o", "show", "partition")
        if not answer.whole:
            yield error(
                f"[tenants] gpu_weights: {answer.complaint}", "see that scontrol show partition answers"
            )
            return
        billing = billing_of(answer.out.splitlines(), territory.partitions, types)
        yield from _billed(billing)
        given = billing.weights
    elif wrong := misfit(given, types):
        yield error(f"[tenants] gpu_weights: {wrong}", "mend the weights")
        return
    counts = [f"{name} {given.get(name, 1.0):g}" for name in sorted(map(named, types))]
    yield ok(f"a GPU counts by its type: {', '.join(counts)}")


def _billed(billing: Billing) -> Iterator[Finding]:
    """Warnings of what the partitions leave open."""
    where = '[tenants] gpu_weights = "slurm"'
    cure = "set TRESBillingWeights=GRES/gpu:TYPE=... of the managed partitions, or write the weights out"
    if not billing.weights:
        yield warning(f"{where}: no managed partition weighs GPUs: each counts 1", cure)
    if billing.without:
        yield warning(f"{where}: no managed partition weighs {', '.join(billing.without)}: it counts 1", cure)
    if billing.several:
        several = ", ".join(billing.several)
        yield warning(f"{where}: partitions differ in what {several} counts: the highest holds", cure)


def requeue_delay(facts: Facts) -> Finding:
    """Slurm's own begin time after a requeue must be told from one that a user set."""
    given = facts.words_of("SchedulerParameters").get("requeue_delay", "")
    expire = facts.words_of("AuthInfo").get("cred_expire", "")
    slurms = number_or(given, number_or(expire, _CRED_EXPIRE_SECONDS)) + 1
    ours = facts.config.slurm.requeue_delay
    if abs(slurms - ours) > DELAY_SLACK_SECONDS:
        return error(
            f"Slurm keeps a requeued job back for {slurms} s, [slurm] requeue_delay says {ours:g}: "
            "a requeued job looks as if its user wanted it later",
            f"set [slurm] requeue_delay = {slurms}",
        )
    return ok(f"Slurm keeps a requeued job back for {slurms} s; it is let go earlier when its turn comes")


def kill_wait(facts: Facts) -> Finding:
    """Check the time that a job has which did not save when it was asked."""
    wait, lease = facts.whole("KillWait", _KILL_WAIT_SECONDS), facts.config.lease
    if lease.grace < lease.term <= lease.grace + wait:
        return warning(
            f"grace ({lease.grace:g} s) and KillWait ({wait} s) together fill a lease ({lease.term:g} s)",
            "lengthen the term or shorten the grace",
        )
    if wait < _KILL_WAIT_SECONDS:
        return warning(
            f"KillWait is {wait} s: all that a job has to save once it is requeued unsaved",
            "set KillWait=30 or more in slurm.conf; multi-GPU jobs may need 120",
        )
    return ok(f"KillWait is {wait} s after the grace of {lease.grace:g} s")


def rate_limit(facts: Facts) -> Finding:
    """Check that Slurm's limit lets us renew the gates of all waiting jobs once a lease."""
    bucket = bucket_of(facts)
    if bucket is None:
        return ok("Slurm limits no account's calls (rl_enable is off)")
    if facts.all_powerful:
        return ok("Slurm's rate limit does not hold for this account")
    lease, waiting = facts.config.lease, waiting_jobs(facts)
    asked = _RPCS_A_LOOK * lease.term / lease.longest_interval
    asked += lease.term / lease.interval_min if lease.follows_changes else 0.0
    left = bucket.refill_per_second * lease.term - asked
    bears = max(int(left), 0)
    limit = f"Slurm's rate limit ({bucket.refill_per_second:g} calls/s) bears about {bears} gated jobs"
    if waiting > bears:
        return warning(
            f"{limit}, and {waiting} wait now: gates would be renewed late and open early",
            f"raise rl_refill_rate in SlurmctldParameters, lengthen [lease] term and {_paced_by(lease)}, "
            "or run as SlurmUser",
        )
    return ok(f"{limit}; {waiting} wait now")


def _paced_by(lease: LeaseSection) -> str:
    return "interval_min" if lease.follows_changes else "interval"


def bucket_of(facts: Facts) -> Bucket | None:
    """The limit, if it is on."""
    words = facts.words_of("SlurmctldParameters")
    if "rl_enable" not in words:
        return None
    size, rate, period = (
        max(number_or(words.get(name, ""), default), 1)
        for name, default in (("rl_bucket_size", 30), ("rl_refill_rate", 2), ("rl_refill_period", 1))
    )
    return Bucket(size, rate / period)


def waiting_jobs(facts: Facts) -> int:
    """Managed jobs that wait."""
    return 0 if isinstance(facts.snapshot, str) else int(facts.snapshot.jobs.waiting.sum())
