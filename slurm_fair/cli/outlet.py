"""Standard output whose reader may go away, as `head` does: that changes nothing of what a command does."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO, TextIO, cast


class _Outlet:
    """A stream that drops what nobody reads any more; the exit code stays what it would have been."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._gone = stream, False

    @property
    def encoding(self) -> str:
        """Encoding of the stream."""
        return self._stream.encoding

    @property
    def errors(self) -> str | None:
        """Treatment of characters that the encoding lacks."""
        return self._stream.errors

    @property
    def buffer(self) -> BinaryIO:
        """The bytes below the stream."""
        return self._stream.buffer

    def isatty(self) -> bool:
        """True if a terminal shows it."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Number of the file below the stream."""
        return self._stream.fileno()

    def write(self, text: str) -> int:
        """Write to the stream while somebody reads."""
        with self._dropping():
            if not self._gone:
                self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream while somebody reads."""
        with self._dropping():
            if not self._gone:
                self._stream.flush()

    @contextlib.contextmanager
    def _dropping(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            self._gone = True
            with contextlib.suppress(OSError, ValueError, io.UnsupportedOperation):
                # What is left in buffers goes there.
                nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
                os.dup2(nowhere, self._stream.fileno())
                os.close(nowhere)


def _open_what_is_closed() -> None:
    """A standard stream that the caller closed (`>&-`) leads nowhere; else the next file takes its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)  # has the lowest number that is free
            os.set_inheritable(handle, handle == number)
            setattr(sys, name, os.fdopen(handle, "w" if number else "r"))


@contextlib.contextmanager
def _any_text(stream: TextIO) -> Iterator[None]:
    """Inside it characters that the encoding of a stream lacks are escaped, not an error amid the output."""
    errors = stream.errors
    if not isinstance(stream, io.TextIOWrapper) or (errors != "strict" and _has_all(stream.encoding)):
        yield
        return
    stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            stream.reconfigure(errors=errors)


def _has_all(encoding: str) -> bool:
    return encoding.lower().replace("-", "").startswith("utf")


@contextlib.contextmanager
def readers_may_leave() -> Iterator[None]:
    """Inside it standard output is such a stream."""
    _open_what_is_closed()
    before = sys.stdout
    with _any_text(before), _put_before(before):
        yield


@contextlib.contextmanager
def _put_before(stream: TextIO) -> Iterator[None]:
    sys.stdout = cast(Any, _Outlet(stream))
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        if isinstance(sys.stdout, _Outlet):
            sys.stdout = stream
