"""The acts beside each other: a picture, the figures, and in words what slurm_fair gains and costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from slurm_fair.demo.measure import Measures, TenantMeasures
from slurm_fair.demo.scenario import DemoScenario, Scheduler

Acts: TypeAlias = Mapping[Scheduler, Measures]
_Figure: TypeAlias = tuple[str, Callable[[Measures], str]]

_BAR = 40  # characters of 100 %
_FIGURES: Sequence[_Figure] = (
    ("Jain's index of rho, everybody hungry (1 = fair)", lambda m: f"{m.jain_hungry:.2f}"),
    ("worst tenant's rho, everybody hungry", lambda m: f"{m.worst_rho:.2f}"),
    ("mean wait for the first start", lambda m: f"{m.first_wait_mean_seconds:.1f} s"),
    ("longest wait for the first start", lambda m: f"{m.first_wait_max_seconds:.0f} s"),
    ("mean time from submission to end", lambda m: f"{m.jct_mean_seconds:.1f} s"),
    ("makespan", lambda m: f"{m.makespan_seconds:.0f} s"),
    ("GPUs held while a job waits", lambda m: f"{m.held_while_waiting:.0%}"),
    ("pre-emptions", lambda m: f"{m.preemptions}"),
)
_MORE: Sequence[_Figure] = (
    ("everybody hungry for", lambda m: f"{m.hungry_seconds:.0f} s"),
    ("worst tenant's rho, whole act", lambda m: f"{m.worst_rho_overall:.2f}"),
    ("GPU time held", lambda m: f"{m.held_gpu_seconds:.0f} s"),
)


def bars_of(scenario: DemoScenario, acts: Acts) -> Iterator[str]:
    """Each tenant's part of the GPU time while everybody was hungry: a bar for what is due, and one an act."""
    total, wide = sum(scenario.weights.values()), max(len(scheduler.value) for scheduler in acts)
    names = max(map(len, scenario.weights))
    for name, weight in scenario.weights.items():
        yield _bar(f"{name:<{names}}  {'due':<{wide}}", weight / total)
        for scheduler, measures in acts.items():
            yield _bar(f"{'':<{names}}  {scheduler.value:<{wide}}", _of(measures, name).hungry_share)


def _bar(label: str, part: float) -> str:
    return f"{label}  {part:4.0%}  {'#' * round(part * _BAR)}".rstrip()


def figures(scenario: DemoScenario, acts: Acts, full: bool) -> list[dict[str, str]]:
    """Rows of figures; `full` adds those of each tenant and a few more."""
    work = scenario.work_gpu_seconds
    wanted = list(_FIGURES)
    if full:
        wanted = [*_of_tenants(scenario), *_FIGURES, *_MORE]
    wanted.append((f"GPU time held / needed ({work:.0f} s)", lambda m: f"{m.held_gpu_seconds / work:.2f}"))
    return [
        {"what": what, **{scheduler.value: text(measures) for scheduler, measures in acts.items()}}
        for what, text in wanted
    ]


def _of_tenants(scenario: DemoScenario) -> Iterator[_Figure]:
    for name in scenario.weights:
        yield f"{name}'s mean wait for the first start", partial(_first_wait, name)
        yield f"{name}'s mean time from submission to end", partial(_completion, name)


def _first_wait(name: str, measures: Measures) -> str:
    return f"{_of(measures, name).first_wait_mean_seconds:.1f} s"


def _completion(name: str, measures: Measures) -> str:
    return f"{_of(measures, name).jct_mean_seconds:.1f} s"


def gains_and_costs(scenario: DemoScenario, acts: Acts) -> Iterator[str]:
    """Sentences: whose jobs end sooner and whose later than under Slurm alone, and what pre-emptions took."""
    fair = acts[Scheduler.SLURM_FAIR]
    for scheduler, plain in acts.items():
        if not scheduler.ours:
            yield f"Beside {scheduler.value}: {_sooner_and_later(scenario, fair, plain)} (means)."
    more = fair.held_gpu_seconds / scenario.work_gpu_seconds - 1
    yield f"The price: {fair.preemptions} pre-emptions, and {more:.0%} more GPU time than the work needs."


def _sooner_and_later(scenario: DemoScenario, fair: Measures, plain: Measures) -> str:
    later = {
        name: _of(fair, name).jct_mean_seconds - _of(plain, name).jct_mean_seconds
        for name in scenario.weights
    }
    return ", ".join(
        f"{name}'s jobs end {abs(seconds):.0f} s {'later' if seconds > 0 else 'sooner'}"
        for name, seconds in sorted(later.items(), key=lambda item: item[1])
    )


def _of(measures: Measures, tenant: str) -> TenantMeasures:
    return next(each for each in measures.tenants if each.name == tenant)
