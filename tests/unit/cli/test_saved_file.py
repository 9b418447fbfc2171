"""A saved file of sacct with texts of users among its columns: why rows of it cannot be read, and the cure."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_fair.cli.replay import saved_file
from slurm_fair.trace.convert import sacct
from tests.support.command_line import call
from tests.support.pasts import COLUMNS, run, saved

ROOT = Path(__file__).parents[3]
REPLAY = ("replay", "--sacct", "{file}", "--gpus", "8", "--policy", "fifo")
TUNE = ("tune-lease", "--sacct", "{file}", "--gpus", "8", "--terms", "900")
CONVERT = ("trace", "convert", "sacct", "{file}", "-o", "{out}")


def file_of(folder: Path, text: str, *free: str) -> Path:
    """Three jobs, the second of which has this text in the free columns, as `sacct --format ALL` writes it."""
    texts = [dict.fromkeys(free, words) for words in ("train", text, "train")]
    rows = [
        run(str(number), 0, 0, 600, ElapsedRaw="600") | cells for number, cells in enumerate(texts, start=1)
    ]
    return saved(folder / "all.txt", rows, [*COLUMNS[:2], *free, *COLUMNS[2:], "ElapsedRaw"])


@pytest.mark.parametrize(
    ("command", "again"),
    [(REPLAY, saved_file.SAVE), (TUNE, saved_file.SAVE), (CONVERT, sacct.SAVE)],
    ids=["replay", "tune-lease", "convert"],
)
@pytest.mark.parametrize("text", ["srun a | tee b", "two\nlines"])
def test_a_bar_or_a_line_end_in_a_text_is_named_with_its_line_and_the_cure(
    command: tuple[str, ...], again: str, text: str, tmp_path: Path
) -> None:
    file, out = file_of(tmp_path, text, "SubmitLine", "Comment"), tmp_path / "out.csv"
    arguments = [part.format(file=file, out=out) for part in command]
    said = call(*arguments)
    assert (said.code, said.out) == (2, "")
    assert said.complaint.startswith(f"slurm-fair: {file}:3: row: has ")
    assert (
        f"is there a | or a line end in SubmitLine or Comment? save it again with {again} (" in said.complaint
    )
    assert call(*arguments, "--skip-bad").code == 0


def test_a_state_that_nobody_knows_costs_its_row(tmp_path: Path) -> None:
    rows = [run(str(number), 0, 0, 600, ElapsedRaw="600") for number in (1, 2)]
    file = saved(tmp_path / "s.txt", [rows[0] | {"State": "FOO"}, rows[1]])
    arguments = [part.format(file=file) for part in REPLAY]
    said = call(*arguments)
    assert (said.code, said.out) == (2, "")
    assert said.complaint.startswith(f"slurm-fair: {file}:2: State: 'FOO' is no known status")
    assert call(*arguments, "--skip-bad").code == 0


@pytest.mark.parametrize("command", [REPLAY, CONVERT], ids=["replay", "convert"])
def test_a_row_of_columns_that_hold_no_texts_has_the_usual_cure(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    file = file_of(tmp_path, "train")
    file.write_text(file.read_text() + "7|8|9\n")
    said = call(*(part.format(file=file, out=tmp_path / "out.csv") for part in command))
    assert ":5: row: has 3 cells, the header 13: give one for each column" in said.complaint


def test_a_file_without_times_is_to_be_saved_again_in_the_same_words(tmp_path: Path) -> None:
    file = saved(tmp_path / "s.txt", [run("1", 0, 0, 9)], [name for name in COLUMNS if name != "Start"])
    assert saved_file.SAVE in call(*(part.format(file=file) for part in REPLAY)).complaint


@pytest.mark.parametrize(("page", "command"), [("tune.md", saved_file.SAVE), ("traces.md", sacct.SAVE)])
def test_the_pages_give_the_same_command(page: str, command: str) -> None:
    assert f"{command} > history.txt\n" in (ROOT / "docs" / page).read_text()
