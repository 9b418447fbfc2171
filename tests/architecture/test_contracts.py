"""The contract of plugins forbids all that it does not name."""

from __future__ import annotations

import configparser
from pathlib import Path

ROOT = Path(__file__).parents[2]
ALLOWED = {"model", "ledger", "throughput", "policy", "solve", "errors", "suggest"}


def test_whatever_stands_beside_what_plugins_may_see_is_forbidden_to_them() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    contract = setup["importlinter:contract:plugins"]
    forbidden = set(contract["forbidden_modules"].split())
    packages = {path.parent.name for path in (ROOT / "slurm_fair").glob("*/__init__.py")}
    modules = {path.stem for path in (ROOT / "slurm_fair").glob("*.py")} - {"__init__"}
    beside = {f"slurm_fair.{name}" for name in packages | modules if name not in ALLOWED}
    assert beside - forbidden == set()
    assert all(name in contract["name"] for name in ALLOWED)
