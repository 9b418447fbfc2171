"""The demo's display: a live table on a terminal, a line every few seconds anywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from slurm_fair.demo.picture import Phase, Picture
from slurm_fair.demo.scenario import DemoScenario, Scheduler

FREE = "."
_COLOURS = ("blue", "yellow", "green", "magenta", "cyan")
_POLL_SECONDS = 0.25
LINE_SECONDS = 4.0


class Act(Protocol):
    """An act as a spectator sees it, on a real Slurm or a virtual cluster."""

    scenario: DemoScenario
    scheduler: Scheduler
    picture: Picture


Show: TypeAlias = Callable[[Sequence[Act], Callable[[], bool]], None]


def strip(picture: Picture, scenario: DemoScenario) -> dict[str, str]:
    """Each node's GPUs as letters: the initial of the tenant that holds one, a dot for a free one."""
    letters: dict[str, str] = {f"n{number + 1}": "" for number in range(scenario.nodes)}
    for seen in sorted(picture.seen, key=lambda seen: seen.job.tenant):
        if seen.holds_gpus:
            for node in seen.nodes:
                letters[node] = letters.get(node, "") + seen.job.tenant[0].upper() * seen.job.gpus_per_node
    return {node: held.ljust(scenario.gpus_per_node, FREE) for node, held in letters.items()}


def gpus_now(picture: Picture, scenario: DemoScenario) -> dict[str, int]:
    """The GPUs that each tenant holds."""
    held = dict.fromkeys(scenario.weights, 0)
    for seen in picture.seen:
        held[seen.job.tenant] += seen.job.gpus * seen.holds_gpus
    return held


def waiting(picture: Picture, scenario: DemoScenario) -> dict[str, int]:
    """The number of jobs of each tenant that hold nothing."""
    counts = dict.fromkeys(scenario.weights, 0)
    for seen in picture.seen:
        counts[seen.job.tenant] += not seen.holds_gpus
    return counts


def line(stage: Act) -> str:
    """One act in one line."""
    picture, scenario = stage.picture, stage.scenario
    title = stage.scheduler.value
    if not picture.seen:
        return f"{picture.seconds:4.0f} s  {title}: {picture.phase}"
    held, rows = gpus_now(picture, scenario), _accounts(picture)
    tenants = ", ".join(f"{name} {gpus}" + _rho(rows.get(name)) for name, gpus in held.items())
    nodes = " ".join(strip(picture, scenario).values())
    return f"{picture.seconds:4.0f} s  {title}: GPUs {tenants}; done {picture.done}  [{nodes}]"


def _rho(row: Mapping[str, Any] | None) -> str:
    return f" (rho {row['rho']:.2f})" if row else ""


def _accounts(picture: Picture) -> dict[str, Mapping[str, Any]]:
    board = picture.board
    return {row["tenant"]: row for row in board.tenants} if board else {}


def acts_table(stages: Sequence[Act]) -> Group:
    """All acts beside each other: tenants, then the GPUs of every node."""
    scenario = stages[0].scenario
    tenants = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("Tenant", "Quota"):
        tenants.add_column(f"\n{title}", justify="left" if title == "Tenant" else "right")
    for stage in stages:
        more = ("had", "owed", "rho") if stage.scheduler.ours else ()
        head = stage.scheduler.value
        for at, title in enumerate(("GPUs", "wait", *more)):
            tenants.add_column(f"{'' if at else head}\n{title}", justify="right")
    total = sum(scenario.weights.values())
    for at, (name, weight) in enumerate(scenario.weights.items()):
        cells = [f"{weight / total * scenario.total_gpus:g}"]
        for stage in stages:
            cells += _cells(stage, name)
        tenants.add_row(Text(name, style=_colour(at)), *cells)
    nodes = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    nodes.add_column("\nNode")
    for stage in stages:
        nodes.add_column(f"{stage.scheduler.value}\n{_where(stage)}")
    strips = [strip(stage.picture, scenario) for stage in stages]
    for node in strips[0]:
        nodes.add_row(node, *(_painted(letters.get(node, ""), scenario) for letters in strips))
    return Group(tenants, Text(), nodes)


def _cells(stage: Act, tenant: str) -> Iterator[str]:
    picture, scenario = stage.picture, stage.scenario
    yield str(gpus_now(picture, scenario)[tenant])
    yield str(waiting(picture, scenario)[tenant])
    if stage.scheduler.ours:
        row = _accounts(picture).get(tenant)
        yield f"{row['had_gpu_seconds']:.0f} s" if row else "-"
        yield f"{row['owed_gpu_seconds']:.0f} s" if row else "-"
        yield f"{row['rho']:.2f}" if row and row["rho"] is not None else "-"


def _where(stage: Act) -> str:
    picture = stage.picture
    if picture.phase is not Phase.PLAYING:
        return picture.phase
    return f"{picture.seconds:.0f} s, {picture.done}/{len(stage.scenario.jobs)} jobs done"


def _painted(letters: str, scenario: DemoScenario) -> Text:
    colours = {name[0].upper(): _colour(at) for at, name in enumerate(scenario.weights)}
    text = Text()
    for letter in letters:
        text.append(letter + " ", style=colours.get(letter, "dim"))
    return text


def _colour(at: int) -> str:
    return _COLOURS[at % len(_COLOURS)]


def show_acts(console: Console, stages: Sequence[Act], over: Callable[[], bool]) -> None:
    """Show the table until the acts are over; rich heeds NO_COLOR by itself."""
    if console.is_terminal:
        with Live(acts_table(stages), console=console, refresh_per_second=4, transient=True) as live:
            while not over():
                time.sleep(_POLL_SECONDS)
                live.update(acts_table(stages))
        return
    tell, next_line = ActLines(console, stages), 0.0
    while not over():
        if time.monotonic() >= next_line:
            next_line = time.monotonic() + LINE_SECONDS
            tell()
        time.sleep(_POLL_SECONDS)


class ActLines:
    """A line for each act that has changed since it was last asked."""

    def __init__(self, console: Console, stages: Sequence[Act]) -> None:
        self._console, self._stages, self._said = console, stages, [""] * len(stages)

    def __call__(self) -> None:
        """Print the lines that are new."""
        for at, stage in enumerate(self._stages):
            words = line(stage)
            if words != self._said[at]:
                self._console.print(words, highlight=False, markup=False, soft_wrap=True)
            self._said[at] = words
