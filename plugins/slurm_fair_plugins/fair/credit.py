"""Claims of tenants are believed as far as what they said before came true."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from slurm_fair.policy import Floats, Ints, View, ended_now, speed_in
from slurm_fair.throughput.robust import weighted_medians

# In memory: of each tenant, seconds run by its ended jobs as far as they still count, and these over declared.
CREDIT = "credit"
_MOST = 24  # numbers of a tenant that are remembered
_TOLERANCE = 1.1  # restarts make an honest job a little longer
_LEAST_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Credit:
    """The ended jobs of tenants beside what was declared of them."""

    # By tenant: seconds run as far as they still count, and these over declared.
    ended: Mapping[str, tuple[list[float], list[float]]]
    fresh: bool  # whether any job ended since the last look

    @classmethod
    def of(cls, view: View) -> Self:
        """The credit of each tenant by the jobs that ended up to this look."""
        ended = {name: (list(ran), list(over)) for name, (ran, over) in view.memory.get(CREDIT, {}).items()}
        fresh = False
        for job in ended_now(view):
            if job.declared_seconds >= _LEAST_SECONDS and job.ran_seconds >= _LEAST_SECONDS:
                ran, over = ended.setdefault(job.tenant, ([], []))
                _remember(ran, over, job.ran_seconds, job.ran_seconds / job.declared_seconds)
                fresh = True
        return cls(ended, fresh)

    def kept(self, memory: Mapping[str, Any]) -> Mapping[str, Any]:
        """The memory of the next plan; as it was where no job ended."""
        if not self.fresh:
            return memory
        return {**memory, CREDIT: {name: list(map(list, of)) for name, of in self.ended.items()}}

    def longer(self, view: View) -> Floats:
        """[job]: how many times as long it will take as is said of it, by what became of its tenant's claims.

        Declarations count for what half of the tenant's work took beside them; jobs that already run longer than
        declared belong to it. Reports count for as much more as half of the tenant's reports tell of less work
        than that. Half is by work, so that many small true claims do not cover a large false one. A job that is
        longer on a slow GPU type, or in a small size, was not declared wrongly: so much longer may all be.
        """
        said, tenant = view.told_alone, view.snapshot.jobs.tenant
        slowest = _slowest(view)
        ratio = self._ratios(view, slowest)[tenant]
        reported = ~np.isnan(said.left_seconds) & ~np.isfinite(said.left_spread)
        due = np.where(reported, ratio * said.declared_seconds - view.ran_seconds, 0.0)
        claims = (due >= _LEAST_SECONDS).nonzero()[0]
        shorter = due[claims] / np.maximum(said.left_seconds[claims], _LEAST_SECONDS)
        of_reports = _medians(view, tenant[claims], shorter, due[claims])[tenant]
        factor = np.where(reported, of_reports, ratio) * slowest / _TOLERANCE
        return np.fmax(factor, 1.0)  # 1 where nothing is known of the tenant

    def _ratios(self, view: View, slowest: float) -> Floats:
        """[tenant]: seconds run over seconds declared, in the middle of its work; nan where none is known."""
        names, tenant = view.snapshot.tenants.names, view.snapshot.jobs.tenant
        declared, ran = view.told_alone.declared_seconds, view.ran_seconds
        late = (ran * slowest > declared * _TOLERANCE) & (declared >= _LEAST_SECONDS)
        met = [(at, *self.ended[name]) for at, name in enumerate(names) if name in self.ended]
        group = np.concatenate([tenant[late], *(np.full(len(of), at) for at, of, _ in met)])
        seconds = np.concatenate([ran[late], *(of for _, of, _ in met)])
        over = np.concatenate([ran[late] / declared[late], *(of for _, _, of in met)])
        return _medians(view, group, over, seconds)


def _slowest(view: View) -> float:
    """The speed of a job in the slowest of all shapes, against that which is declared; at most 1.

    That is the type and the size of an elastic job in which some job here is slowest.
    """
    rate, sizes = view.told.rate, view.snapshot.sizes
    of_types = float(np.min(rate, where=rate > 0, initial=1.0))
    if sizes is None or not len(sizes):
        return of_types
    first, together = np.zeros(len(sizes), dtype=np.int64), np.zeros(len(sizes), dtype=bool)
    speed = speed_in(view, sizes.row, first, sizes.gpus, together)
    return of_types * float(np.min(speed, where=speed > 0, initial=1.0))


def _remember(ran: list[float], over: list[float], seconds: float, ratio: float) -> None:
    """One more job: from then on what is remembered counts less, by this job's part of it, or by 1 / 24 at most.

    Once there are too many, the two that came true most alike count as one. So many small true claims drive out no
    large false one: it is forgotten by as much work, however many jobs that takes.
    """
    left = 1.0 - seconds / max(_MOST * seconds, sum(ran))
    met = sorted([*zip(over, (each * left for each in ran), strict=True), (ratio, seconds)])
    if len(met) > _MOST:
        at = min(range(_MOST), key=lambda first: met[first + 1][0] / met[first][0])
        (one, its), (other, others) = met[at : at + 2]
        met[at : at + 2] = [((its + others) / (its / one + others / other), its + others)]
    over[:], ran[:] = zip(*met, strict=True)


def _medians(view: View, tenant: Ints, value: Floats, weight: Floats) -> Floats:
    """[tenant]: the value with half of its weight on either side; nan where there is none."""
    return weighted_medians(tenant.astype(np.int64), value, weight, len(view.snapshot.tenants.names))
