"""The program of the planning process: it holds a policy, is shown views and answers with plans.

It ends with its parent, is served after it, hears none of its signals, and has no file of it but two pipes. For
each view it first says the policy's quick plan, if there is one, so that its parent has it whatever comes next.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO

from slurm_fair.model import Plan
from slurm_fair.planner.frames import HEAD, framed, unframed
from slurm_fair.planner.messages import FAILED, PLAN, QUICK, RAISED, READY, plan_data
from slurm_fair.policy.check import planned
from slurm_fair.policy.error_place import POLICY_FAILURES, where
from slurm_fair.policy.protocol import Policy, QuickPolicy
from slurm_fair.policy.view import View

_NICE = 5
_PR_SET_PDEATHSIG = 1
_MB = 1 << 20


def main() -> None:
    """Answer until the parent closes the pipe or dies."""
    memory_mb, parent = float(sys.argv[1]), int(sys.argv[2])
    listening, speaking = _own_pipes()
    _bound(int(memory_mb * _MB), parent)

    def say(*message: Any) -> None:
        speaking.write(framed(message))
        speaking.flush()

    try:
        search, pickled = _heard(listening)
        sys.path += [place for place in search if place not in sys.path]
        policy = unframed(pickled)
    except EOFError:
        return
    except BaseException as error:
        say(FAILED, 0, f"{type(error).__name__}: {error}")
        return
    say(READY, 0)
    with suppress(EOFError):
        while True:
            number, view = _heard(listening)
            _answer(policy, view, number, say)


def _answer(policy: Policy, view: View, number: int, say: Callable[..., None]) -> None:
    try:
        if isinstance(policy, QuickPolicy) and view.anything_to_have:  # else nothing is as good as a plan
            with suppress(*POLICY_FAILURES):
                say(QUICK, number, _parts(policy.quick_plan, view))
        say(PLAN, number, _parts(policy.plan, view))
    except BaseException as error:
        say(RAISED, number, where(type(policy), error), traceback.format_exc(limit=-3).strip())


def _parts(make: Callable[[View], Plan], view: View) -> dict[str, Any]:
    return plan_data(planned(make, view))


def _heard(listening: BinaryIO) -> Any:
    """The next message; EOFError where there is none any more."""
    head = listening.read(HEAD.size)
    if len(head) < HEAD.size:
        raise EOFError
    size = HEAD.unpack(head)[0]
    data = listening.read(size)
    if len(data) < size:
        raise EOFError
    return unframed(data)


def _own_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The two pipes under numbers of their own: what a policy prints is no answer, and goes to standard error."""
    listening, speaking = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return os.fdopen(listening, "rb"), os.fdopen(speaking, "wb")


def _bound(memory_bytes: int, parent: int) -> None:
    """End with the parent, heed no signal but SIGKILL, and take neither its turn nor its memory."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we could ask for this
        os._exit(0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    with suppress(OSError):
        os.nice(_NICE)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
