"""Signals in the processes that tests start."""

from __future__ import annotations

import signal


def heed_signals() -> None:
    """Heed Ctrl-C and SIGHUP: a shell starts what it runs in the background deaf to one, nohup to the other."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
