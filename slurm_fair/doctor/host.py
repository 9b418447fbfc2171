"""This machine: Python, Slurm's commands, pyslurm, the templates, the policy."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

import slurm_fair_templates as templates
from slurm_fair.doctor.facts import Facts
from slurm_fair.doctor.finding import Finding, error, ok, warning
from slurm_fair.doctor.versions import release
from slurm_fair.errors import SlurmFairError
from slurm_fair.policy.registry import load

_SCRIPT = "#!/bin/bash\ntrue\n"
_OLDEST_PYTHON = (3, 11)


def findings(facts: Facts) -> Iterator[Finding]:
    yield python()
    yield commands(facts)
    yield pyslurm(facts)
    yield policy(facts)
    yield from other_policies(facts)
    yield template()


def python() -> Finding:
    """Check whether this Python is new enough."""
    now = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < _OLDEST_PYTHON:
        return error(f"Python {now} is too old", "install slurm_fair with Python 3.11 or newer")
    return ok(f"Python {now}")


def commands(facts: Facts) -> Finding:
    """Check whether Slurm's commands are found."""
    where = facts.config.slurm.bin_dir or "the PATH"
    if facts.missing:
        listed = ", ".join(facts.missing)
        return error(
            f"not in {where}: {listed}",
            "install Slurm's client commands or set [slurm] bin_dir to their folder",
        )
    return ok(f"Slurm's commands are in {where}")


def pyslurm(facts: Facts) -> Finding:
    """Check whether pyslurm is there, and fits; the commands serve without it."""
    try:
        found = version("pyslurm")
    except PackageNotFoundError:
        return ok("pyslurm is not installed (optional: Slurm's commands serve as well)")
    if facts.client and release(found) != release(facts.client):
        return warning(
            f"pyslurm {found} does not fit Slurm {facts.client}", "install the pyslurm of Slurm's own release"
        )
    return ok(f"pyslurm {found}")


def policy(facts: Facts) -> Finding:
    """Check whether the policy loads with its settings."""
    name = facts.config.policy.name
    try:
        load(name, facts.config.policy.chosen())
    except SlurmFairError as problem:
        return error(f"policy {name}: {problem}", "mend [policy] in the configuration")
    return ok(f"policy {name} loads")


def other_policies(facts: Facts) -> Iterator[Finding]:
    """Settings of policies that are not in force: the daemon refuses a mistake there too."""
    section = facts.config.policy
    for name, settings in section.settings.items():
        if name == section.name:
            continue
        try:
            load(name, settings)
        except SlurmFairError as problem:
            yield error(f"policy {name}, which is not in force: {problem}", f"mend or remove [policy.{name}]")


def template() -> Finding:
    """Check whether a job's script can be rendered."""
    try:
        templates.wrap(_SCRIPT, (), templates.Options(), templates.template_folders(os.environ))
    except SlurmFairError as problem:
        return error(f"the generic template: {problem}", "mend or remove the site's or your own layer of it")
    return ok("the generic template renders")
