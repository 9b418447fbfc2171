"""A lab in the foreground: `python -m slurm_fair.lab` brings it up, says how to use it, stops on Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from slurm_fair.errors import InputError, SlurmFairError
from slurm_fair.lab.lab import Lab
from slurm_fair.lab.packages import ensure_packages
from slurm_fair.lab.spec import LabSpec


def main(arguments: list[str] | None = None) -> int:
    """Run until interrupted; 0 after a clean stop, else the exit code of the error."""
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.default_int_handler)
    options = _parser().parse_args(arguments)
    try:
        ensure_packages(_say)
        if options.packages_only:
            return 0
        with Lab(options.folder, _spec(options)) as lab:
            print(lab.describe())
            print("Ctrl-C stops it.", flush=True)
            _wait()
    except KeyboardInterrupt:
        _say("lab: stopped before it was up")
        return 130
    except SlurmFairError as error:
        _say(str(error))
        return error.exit_code
    except OSError as error:
        _say(f"lab: {error.filename or options.folder}: {error.strerror}: name another file or folder")
        return InputError.exit_code
    return 0


def _wait() -> None:
    """Wait for Ctrl-C or SIGTERM."""
    try:
        while True:
            signal.pause()
    except KeyboardInterrupt:
        _say("lab: stopping")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _spec(options: argparse.Namespace) -> LabSpec:
    """The spec that was asked for, over its own defaults."""
    asked = dict(_pair(text, "--tenant") for text in options.tenant)
    users = dict(_pair(text, "--user") for text in options.user)
    try:
        shares = {name: int(share) for name, share in asked.items()} or LabSpec().tenants
    except ValueError as error:
        raise InputError(
            f"--tenant: {error}: write NAME=SHARE with a whole number, as in vision=2"
        ) from error
    return LabSpec(
        nodes=options.nodes,
        gpus_per_node=options.gpus,
        gpu_type=options.gpu_type,
        tenants=shares,
        users={user: tuple(accounts.split(",")) for user, accounts in users.items()},
        database=not options.no_database,
        job_submit=options.job_submit,
    )


def _pair(text: str, option: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (name and sign and value):
        raise InputError(
            f"{option} {text!r}: write NAME=VALUE, as in --tenant vision=2 or --user alice=vision,nlp"
        )
    return name, value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m slurm_fair.lab", description=__doc__)
    parser.add_argument("--nodes", type=int, default=4, metavar="N", help="how many nodes (4)")
    parser.add_argument("--gpus", type=int, default=8, metavar="N", help="pretend GPUs a node (8)")
    parser.add_argument("--gpu-type", default="a100", metavar="TYPE", help="their type (a100)")
    parser.add_argument(
        "--tenant", action="append", default=[], metavar="NAME=SHARE", help="an account; repeatable"
    )
    parser.add_argument(
        "--user", action="append", default=[], metavar="NAME=ACCOUNT,..", help="a further Unix user"
    )
    parser.add_argument("--no-database", action="store_true", help="without MariaDB and slurmdbd")
    parser.add_argument("--job-submit", type=Path, metavar="FILE", help="a job_submit.lua to install")
    parser.add_argument("--packages-only", action="store_true", help="install what is missing, start nothing")
    parser.add_argument(
        "--folder", type=Path, metavar="DIR", help="where to live and stay (a temporary folder)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
