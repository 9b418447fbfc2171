"""The managed nodes and their GPUs, and the jobs that are left alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from slurm_fair.board.row import word
from slurm_fair.config.sections import ScopeSection
from slurm_fair.doctor.facts import Facts
from slurm_fair.doctor.finding import Finding, error, ok, warning
from slurm_fair.doctor.hook import HOOK_ANEW
from slurm_fair.model import Blocked, JobState, Snapshot
from slurm_fair.model.apiece import apiece
from slurm_fair.model.counted import counted, first_of
from slurm_fair.slurm.reading.nodes import NodeListing, RawNode
from slurm_fair.slurm.scope import HETEROGENEOUS, INTERACTIVE, SEVERAL_TYPES, Territory

_NAMED = 5  # names in one line


def findings(facts: Facts) -> Iterator[Finding]:
    if not facts.reachable:
        return
    if isinstance(facts.machines, str):
        yield error(
            f"the nodes cannot be read: {facts.machines}", "look at what sinfo says; report it if it is sound"
        )
        return
    yield from nodes(facts.machines, facts)
    if isinstance(facts.snapshot, str):
        yield error(
            f"the cluster cannot be seen as a whole: {facts.snapshot}",
            "mend what it names: until then no job is touched",
        )
    else:
        yield from job_counts(facts.snapshot)
        yield from floods(facts.snapshot, facts.config.scope)


# Jobs without a gate, by why they are left alone; what they are called; and the words of [scope] that end it.
_WITHOUT_GATE = (
    (frozenset({INTERACTIVE}), "srun and salloc", "interactive", "gate"),
    (
        frozenset({HETEROGENEOUS, SEVERAL_TYPES}),
        "heterogeneous jobs and jobs of several GPU types",
        "unplanned",
        "refuse",
    ),
)


def floods(snapshot: Snapshot, scope: ScopeSection) -> Iterator[Finding]:
    """Warnings of jobs that may take each GPU that comes free, where the site allows them."""
    there = {alone.reason for alone in snapshot.left_alone}
    for reasons, kind, key, cure in _WITHOUT_GATE:
        if there & reasons and getattr(scope, key) != cure:
            yield warning(
                f"{kind} start before jobs behind gates: a flood of them gets each GPU that comes free",
                f'{cure} them: [scope] {key} = "{cure}", and write the hook anew (`{HOOK_ANEW}`)',
            )


def nodes(machines: NodeListing, facts: Facts) -> Iterator[Finding]:
    """Findings on the nodes and GPUs that there are to share."""
    territory = Territory.of(machines, facts.config.scope)
    managed = [machines.nodes[name] for name in territory.nodes]
    if not managed:
        yield error(
            "no managed partition has a GPU", "name partitions with GPUs in [scope], or look at gres.conf"
        )
        return
    listed = ", ".join(f"{count} {kind or 'untyped'}" for kind, count in sorted(_gpus(managed).items()))
    yield ok(
        f"{counted(len(managed), 'node')} with GPUs in {', '.join(sorted(territory.partitions))}: {listed}"
    )
    mixed = [node.name for node in managed if node.gpu_type == "+"]
    if mixed:
        yield warning(
            f"several GPU types on one node, so no new work is planned there: {first_of(mixed, _NAMED)}",
            "give such nodes a partition of their own, outside [scope]",
        )
    out = [f"{node.name} ({node.why_unusable})" for node in managed if node.why_unusable]
    if out:
        yield warning(
            f"{len(out)} of {counted(len(managed), 'node')} take no work: {first_of(out, _NAMED)}",
            "look at `sinfo -R`",
        )


def _gpus(managed: list[RawNode]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for node in managed:
        counts["of several types" if node.gpu_type == "+" else node.gpu_type] += node.gpus
    return counts


def job_counts(snapshot: Snapshot) -> Iterator[Finding]:
    """Counts of managed jobs and of jobs left alone, and the reasons."""
    table = snapshot.jobs
    waits, runs = (int((table.state == state).sum()) for state in (JobState.WAITING, JobState.RUNNING))
    yield ok(f"managed jobs: {waits} waiting, {runs} running")
    stuck = Counter(word(Blocked(code)) for code in table.blocked.tolist() if code != Blocked.NOT_BLOCKED)
    if stuck:
        listed = ", ".join(f"{count} {word}" for word, count in stuck.most_common())
        yield ok(f"of these kept back by something else: {listed}")
    unreadable = [alone for alone in snapshot.left_alone if alone.unreadable]
    for alone in apiece(unreadable, lambda alone: alone.user, 5):
        yield warning(
            f"job {alone.label} of {alone.user or 'nobody known'} is left alone: {alone.reason}",
            f"ask its owner, or look at it: scontrol show job {alone.label}",
        )
    if len(unreadable) > 5:
        yield warning(f"{len(unreadable) - 5} more jobs cannot be read and are left alone", "see the log")
    reasons = Counter(alone.reason for alone in snapshot.left_alone if not alone.unreadable)
    for reason, count in reasons.most_common():
        yield ok(f"{counted(count, 'job')} of the managed partitions left to plain Slurm: each {reason}")
    holders = table.running
    rigid = int((holders & ~table.requeueable).sum())
    if rigid:
        yield warning(
            f"{counted(rigid, 'running job')} cannot be requeued",
            "submit without --no-requeue (fair-sbatch does)",
        )
