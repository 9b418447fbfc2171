"""Files that no command can use - devices, pipes, directories, lines without an end - are one line, soon said."""

from __future__ import annotations

import gzip
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from slurm_fair.errors import ConfigError, InputError
from slurm_fair.trace import files, read_machines, read_trace
from slurm_fair.trace.convert import convert
from tests.support.command_line import call
from tests.support.simulations import HEADER, written

COMMANDS = {
    "simulate": ("simulate", "{odd}", "--gpus", "8"),
    "weights": ("simulate", "{good}", "--gpus", "8", "--weights", "{odd}"),
    "throughputs": ("simulate", "{good}", "--gpus", "8", "--throughputs", "{odd}"),
    "regimes": ("simulate", "{good}", "--gpus", "8", "--regimes", "{odd}"),
    "outages": ("simulate", "{good}", "--gpus", "8", "--outages", "{odd}"),
    "cluster": ("simulate", "{good}", "--cluster", "{odd}"),
    "replay": ("replay", "--sacct", "{odd}", "--gpus", "8"),
    "tune-lease": ("tune-lease", "--sacct", "{odd}", "--gpus", "8"),
    "describe": ("trace", "describe", "{odd}"),
    "convert lines": ("trace", "convert", "swf", "{odd}", "-o", "{out}"),
    "convert a whole": ("trace", "convert", "philly", "{odd}", "-o", "{out}"),
    "report": ("report", "fairness", "--from", "{odd}"),
}


def zeros(folder: Path) -> Path:
    """It has no end."""
    return Path("/dev/zero")


def sparse(folder: Path) -> Path:
    """2 GiB of nothing."""
    path = folder / "sparse"
    with path.open("wb") as file:
        file.truncate(2 << 30)
    return path


def pipe(folder: Path) -> Path:
    """Nobody writes into it."""
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def packed(folder: Path) -> Path:
    """Its name does not say so."""
    (folder / "packed.csv").write_bytes(gzip.compress(f"{HEADER}\na,x,0,1,5\n".encode(), mtime=0))
    return folder / "packed.csv"


def endless(folder: Path) -> Path:
    """One line of more than is ever read."""
    (folder / "line").write_text("a" * (files.MOST_LINE + 1))
    return folder / "line"


ODD = {
    "a device": (zeros, "is no text"),
    "a sparse file": (sparse, "is no text"),
    "a pipe": (pipe, "is a pipe that nobody writes to"),
    "a gzipped file": (packed, "is gzipped: give it a name that ends in .gz"),
    "a directory": (lambda folder: folder, "irectory"),
    "one line": (endless, ""),
}


@pytest.mark.parametrize(("make", "words"), ODD.values(), ids=ODD)
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_an_odd_file_is_one_line_that_names_it(
    command: tuple[str, ...], make: Callable[[Path], Path], words: str, tmp_path: Path
) -> None:
    good = written(tmp_path, "a,x,0,1,5")
    odd, out = make(tmp_path), tmp_path / "out.csv"
    said = call(*(part.format(odd=odd, good=good, out=out) for part in command))
    assert (said.code, said.out) == (2, "")
    assert words in said.complaint
    assert str(odd) in said.complaint
    assert not out.exists()


def test_a_line_without_an_end_is_refused_by_its_number(tmp_path: Path) -> None:
    path = written(tmp_path, "a,x,0,1,5", "b" * (files.MOST_LINE + 1))
    with pytest.raises(InputError, match=r"trace\.csv:3: a line of more than 16 million characters"):
        read_trace(path)


@pytest.mark.parametrize("size", [999, 1000])
def test_what_is_read_at_once_has_a_bound(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_WHOLE", 1000)
    path = tmp_path / "c.toml.gz"
    path.write_bytes(gzip.compress(b" " * size, mtime=0))
    with pytest.raises(InputError, match="right file" if size == 1000 else "no .*nodes.* table"):
        read_machines(path)
    (tmp_path / "log").write_text("[" + " " * size)
    with pytest.raises(InputError, match="MB: is it the right file"):
        convert("philly", tmp_path / "log")


def test_a_pipe_that_somebody_writes_to_is_a_file_like_any_other() -> None:
    reader, writer = os.pipe()
    with open(reader, "rb"):
        with open(writer, "w") as file:
            file.write(f"{HEADER}\na,x,0,1,5\n")
        trace = read_trace(Path(f"/dev/fd/{reader}")).trace  # as a shell's <(...) names it
    assert list(trace.job_id) == ["a"]


@pytest.mark.parametrize("kind", ["device", "pipe", "folder", "socket"])
def test_a_configuration_that_is_no_regular_file_is_refused_without_waiting_for_it(
    tmp_path: Path, kind: str
) -> None:
    path = Path("/dev/zero") if kind == "device" else tmp_path / "fair.toml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
    said = call("--config", str(path), "status")
    assert said.code == 2
    assert said.complaint.startswith(f"slurm-fair: {path}: ")
    assert len(said.err.splitlines()) == 1
    assert issubclass(ConfigError, InputError)


def test_a_configuration_of_more_than_a_megabyte_is_refused(tmp_path: Path) -> None:
    (tmp_path / "fair.toml").write_text("#" * (2 << 20))
    said = call("--config", str(tmp_path / "fair.toml"), "status")
    assert (said.code, "more than 1 MB: is it the right file?" in said.complaint) == (2, True)


def test_a_name_that_no_file_can_have_is_one_line() -> None:
    said = call("--config", "/tmp/a\0b", "status")
    assert (said.code, len(said.err.splitlines())) == (2, 1)
