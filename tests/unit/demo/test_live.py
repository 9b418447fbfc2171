"""A spectator of the demo sees a picture of it."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from slurm_fair.board.board import Board
from slurm_fair.demo import live
from slurm_fair.demo.picture import Phase, Picture, Seen
from slurm_fair.demo.scenario import PLAIN, DemoJob, DemoScenario, Scheduler
from slurm_fair.demo.stage import Stage

SCENARIO = DemoScenario(2, 4, 5.0, 2.0, (), {"vision": 1, "nlp": 1}, least_rho=0.6)
WIDE = DemoJob("nlp-01", "nlp", 2, 3, 0.0, 10)
OURS = Scheduler.SLURM_FAIR
SMALL = DemoJob("vision-01", "vision", 1, 1, 0.0, 10)
WAITS = DemoJob("vision-02", "vision", 1, 4, 0.0, 10)
SEEN = (
    Seen(WIDE, "RUNNING", ("n1", "n2")),
    Seen(SMALL, "COMPLETING", ("n2",)),
    Seen(WAITS, "PENDING", ()),
)


def board() -> Board:
    """One that knows vision only."""
    row = {"tenant": "vision", "had_gpu_seconds": 12.0, "owed_gpu_seconds": 24.0, "rho": 0.5}
    return Board(0.0, 1, "p", 5.0, 8, False, "", (row,), (), (), (), {})


def stage(scheduler: Scheduler, picture: Picture) -> Stage:
    """A stage that was never entered."""
    made = Stage(SCENARIO, Path("nowhere"), scheduler, threading.Barrier(1), threading.Event())
    made.picture = picture
    return made


def once() -> Callable[[], bool]:
    """Answers False, then True."""
    answers = iter([False, True, True])
    return lambda: next(answers)


def test_the_strip_shows_every_gpu_of_every_node() -> None:
    assert live.strip(Picture(Phase.PLAYING, seen=SEEN), SCENARIO) == {"n1": "NNN.", "n2": "NNNV"}


def test_a_job_that_ends_still_holds_its_gpus_and_one_that_waits_holds_none() -> None:
    picture = Picture(Phase.PLAYING, seen=SEEN)
    assert live.gpus_now(picture, SCENARIO) == {"vision": 1, "nlp": 6}
    assert live.waiting(picture, SCENARIO) == {"vision": 1, "nlp": 0}


def test_a_line_names_the_act_its_tenants_and_rho_where_the_daemon_knows_it() -> None:
    line = live.line(stage(OURS, Picture(Phase.PLAYING, 7.0, SEEN, 3, board())))
    assert line == "   7 s  slurm_fair: GPUs vision 1 (rho 0.50), nlp 6; done 3  [NNN. NNNV]"


def test_before_and_after_the_act_a_line_says_where_it_stands() -> None:
    assert live.line(stage(Scheduler.FIFO, Picture(Phase.STARTING_SLURM))) == "   0 s  FIFO: starting Slurm"


def test_without_a_terminal_there_are_plain_lines() -> None:
    said = io.StringIO()
    stages = [stage(each, Picture(Phase.PLAYING, 7.0, SEEN, 3)) for each in (OURS, *PLAIN)]
    live.show_acts(Console(file=said, width=80), stages, once())
    assert [line.split(":")[0].strip() for line in said.getvalue().splitlines()] == [
        "7 s  slurm_fair",
        "7 s  fair share",
        "7 s  FIFO",
    ]
    assert "\x1b" not in said.getvalue()


def test_the_live_table_fits_eighty_columns_and_shows_all_acts() -> None:
    said = io.StringIO()
    stages = [stage(OURS, Picture(Phase.PLAYING, 7.0, SEEN, 3, board()))]
    stages += [stage(scheduler, Picture(Phase.STARTING_SLURM)) for scheduler in PLAIN]
    Console(file=said, width=80).print(live.acts_table(stages))
    text = said.getvalue()
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert "…" not in text
    for word in ("vision", "0.50", "12 s", "24 s", "N N N .", "starting Slurm", "fair share", "FIFO"):
        assert word in text


def test_no_color_is_respected_on_a_terminal() -> None:
    said = io.StringIO()
    console = Console(file=said, width=80, force_terminal=True, no_color=True)
    console.print(live.acts_table([stage(OURS, Picture(Phase.PLAYING, 7.0, SEEN, 3))]))
    assert "\x1b[34m" not in said.getvalue()
    coloured = io.StringIO()
    Console(file=coloured, width=80, force_terminal=True, no_color=False, color_system="standard").print(
        live.acts_table([stage(OURS, Picture(Phase.PLAYING, 7.0, SEEN, 3))])
    )
    assert "\x1b[34m" in coloured.getvalue()
