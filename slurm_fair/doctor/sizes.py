"""Jobs that name several sizes and keep one: their users hear why."""

from __future__ import annotations

from collections.abc import Iterator

from slurm_fair.doctor.facts import Facts
from slurm_fair.doctor.finding import Finding, ok, warning
from slurm_fair.model import label
from slurm_fair.model.counted import first_sayings

_NAMED = 5


def findings(facts: Facts) -> Iterator[Finding]:
    """The number of elastic jobs, and the jobs that name sizes in vain."""
    seen = facts.snapshot
    if isinstance(seen, str):
        return
    if seen.sizes is not None and len(seen.sizes):
        yield ok(f"jobs that can run with several sizes: {len(set(seen.sizes.row.tolist()))}")
    if not seen.rigid:
        return
    some = first_sayings([f"job {label(key)}: {why}" for key, why in seen.rigid.items()], _NAMED)
    yield warning(
        f"jobs name sizes and keep one all the same ({some})",
        "submit them with --gres=gpu:N or --gpus=N, with N among --gpus-choices, as docs/elastic.md says",
    )
