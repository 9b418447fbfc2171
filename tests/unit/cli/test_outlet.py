"""A reader that goes away costs a command nothing, and any other fault of its output is still one."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TextIO

import pytest

from slurm_fair.cli.outlet import readers_may_leave

LONG = "x" * 200_000  # more than a pipe or a buffer holds


class _Pipe:
    """A pipe into which a command writes and from which others read."""

    def __init__(self) -> None:
        self.reader, writer = os.pipe()
        os.set_blocking(self.reader, False)
        self.stream: TextIO = os.fdopen(writer, "w", encoding="utf-8", errors="backslashreplace")

    def leave(self) -> None:
        os.close(self.reader)
        self.reader = -1


@contextmanager
def _piped() -> Iterator[_Pipe]:
    """Inside it a pipe is standard output."""
    pipe = _Pipe()
    try:
        with redirect_stdout(pipe.stream):
            yield pipe
            assert sys.stdout is pipe.stream
    finally:
        if pipe.reader >= 0:
            pipe.leave()
        with suppress(BrokenPipeError):
            pipe.stream.close()


def test_what_is_written_arrives() -> None:
    with _piped() as pipe:
        with readers_may_leave():
            print("one")
            assert sys.stdout.write("twö") == 3
        assert os.read(pipe.reader, 100) == "one\ntwö".encode()


def test_a_reader_that_has_left_stops_nothing() -> None:
    done = []
    with _piped() as pipe:
        with readers_may_leave():
            print("one", flush=True)
            pipe.leave()
            for _ in range(3):
                assert sys.stdout.write(LONG) == len(LONG)
                sys.stdout.flush()
                done.append(1)
        pipe.stream.flush()
    assert len(done) == 3


def test_a_reader_that_leaves_before_the_last_flush_stops_nothing() -> None:
    with _piped() as pipe:
        with readers_may_leave():
            print("in a buffer")
            pipe.leave()
        pipe.stream.flush()


def _fail_after(words: str) -> None:
    print(words, flush=True)
    raise KeyError("its own")


def test_an_error_of_the_command_is_its_own() -> None:
    with _piped() as pipe:
        pipe.leave()
        with pytest.raises(KeyError), readers_may_leave():
            _fail_after(LONG)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device here")
def test_a_full_disk_is_no_reader_that_left() -> None:
    full = open("/dev/full", "w")  # noqa: SIM115
    with redirect_stdout(full), pytest.raises(OSError, match="No space left"), readers_may_leave():
        print("x", flush=True)
    with pytest.raises(OSError, match="No space left"):
        full.close()


def test_the_stream_is_told_of_as_it_is() -> None:
    with _piped() as pipe:
        with readers_may_leave():
            out = sys.stdout
            assert (out.encoding, out.errors, out.isatty()) == ("utf-8", "backslashreplace", False)
            assert out.fileno() == pipe.stream.fileno()
            out.buffer.write(b"raw\xff")
            out.flush()
        assert os.read(pipe.reader, 100) == b"raw\xff"


def test_an_output_that_was_put_in_its_place_inside_stays() -> None:
    other = io.StringIO()
    with redirect_stdout(io.StringIO()):
        with readers_may_leave():
            sys.stdout = other
        assert sys.stdout is other


def test_one_inside_the_other_leaves_the_first() -> None:
    with _piped() as pipe:
        with readers_may_leave():
            outer = sys.stdout
            with readers_may_leave():
                print("one")
            assert sys.stdout is outer
        assert os.read(pipe.reader, 10) == b"one\n"


CLOSED = """
import sys
from slurm_fair.cli.outlet import readers_may_leave
with readers_may_leave():
    print("out")
    print("err", file=sys.stderr)
    assert sys.stdin.read() == ""
    with open(sys.argv[1], "w") as file:
        assert file.fileno() > 2, file.fileno()
        file.write("mine")
"""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", "</dev/null"])
def test_a_stream_that_was_closed_before_takes_no_words_of_a_file(
    closed: str, tmp_path: os.PathLike[str]
) -> None:
    mine = os.path.join(tmp_path, "mine")
    given = "" if "<" in closed else "</dev/null"
    command = f'exec "$@" {closed} {given}'
    done = subprocess.run(
        ["/bin/sh", "-c", command, "sh", sys.executable, "-c", CLOSED, mine],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    with open(mine) as file:
        assert file.read() == "mine"
    assert done.stdout == ("" if " >" in f" {closed}" else "out\n")


@pytest.mark.parametrize(("encoding", "errors"), [("latin-1", "strict"), ("ascii", "surrogateescape")])
def test_any_text_can_be_written_in_any_encoding(encoding: str, errors: str) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors=errors)
    with redirect_stdout(stream), readers_may_leave():
        print("gr\u00f6\u00dfe-\u65e5\U0001f680")
    assert stream.errors == errors
    shown = raw.getvalue().decode(encoding)
    assert shown.endswith("e-\\u65e5\\U0001f680\n")
    assert shown.startswith("gr\u00f6\u00df" if encoding == "latin-1" else "gr\\xf6\\xdf")


def test_bytes_that_a_utf_8_stream_was_to_pass_on_pass() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8", errors="surrogateescape")
    with redirect_stdout(stream), readers_may_leave():
        print("\udcff\u65e5")
    assert raw.getvalue() == b"\xff\xe6\x97\xa5\n"
