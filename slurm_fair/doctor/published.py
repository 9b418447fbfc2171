"""Findings on publishing: the folder that the daemon writes for users, and who learns what there."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from slurm_fair.board.publish import what_is_wrong
from slurm_fair.doctor.facts import Facts
from slurm_fair.doctor.finding import Finding, error, ok, warning
from slurm_fair.errors import InputError
from slurm_fair.output import leads_to
from slurm_fair.slurm.privacy import hidden

_UNIT = Path("/etc/systemd/system/slurm-fair.service")


def findings(facts: Facts) -> Iterator[Finding]:
    named = facts.config.lease.publish_dir
    if not named:
        yield ok(
            "nothing is published ([lease] publish_dir is empty): who may read the storage sees the queue"
        )
        return
    yield folder(Path(named), facts)
    yield from configuration(facts)
    if facts.reachable:
        yield audience(facts)


def folder(place: Path, facts: Facts) -> Finding:
    """Check whether the daemon may write there, nobody else, and users may read."""
    make = f"install -d -o {facts.account} -m 0755 {place}"
    if place == Path("/") or os.path.realpath(place) == os.path.realpath(facts.places.directory):
        what = "/ itself" if place == Path("/") else "the folder of the journal"
        return warning(
            f"[lease] publish_dir is {what}", "publish to a folder of its own, such as /run/slurm-fair"
        )
    there = next(step for step in (place, *place.parents) if os.path.lexists(step))
    if not os.path.isdir(there):
        cure = "set [lease] publish_dir to another folder, or move away what stands there"
        return error(f"{place} cannot be published to: {there} is no folder", cure)
    if not os.path.isdir(place):
        if os.path.exists(_UNIT) and place.is_relative_to("/run"):
            return ok(f"{place} is not there yet: slurm-fair.service makes it at its start")
        return warning(f"{place} is not there: users' status, queue and explain find nothing", make)
    try:
        leads_to(place)
    except InputError as problem:
        return error(str(problem), "set [lease] publish_dir to the folder itself")
    found = place.stat()
    wrong = what_is_wrong(found)
    if found.st_uid != facts.uid:
        cure = f"run this as the daemon's account; if that is {facts.account}: {make}"
        return warning(f"{place} {wrong}: that account could not publish there", cure)
    if wrong:
        return error(f"{place}: {wrong}: jobs and users would believe what others write there", make)
    shut = _shut(place)
    if shut:
        return warning(f"{place}: users cannot read it ({shut} is closed to them)", f"chmod 0755 {shut}")
    return ok(f"{place} belongs to {facts.account}, and users can read it")


def configuration(facts: Facts) -> Iterator[Finding]:
    """Check whether users' commands learn where to look."""
    source = Path(facts.config.source)
    if not os.path.isfile(source):
        return
    shut = str(source) if not source.stat().st_mode & stat.S_IROTH else _shut(source.parent)
    if shut:
        yield warning(
            f"users cannot read {source} ({shut} is closed to them): their commands do not find what is published",
            f"chmod o+r{'' if shut == str(source) else 'x'} {shut}",
        )


def _shut(place: Path) -> str:
    """The first folder on the way, or the last, that others may not look into."""
    for step in (*reversed(place.parents), place):
        try:
            mode = step.stat().st_mode
        except OSError:
            return str(step)
        wanted = stat.S_IXOTH | (stat.S_IROTH if step == place else 0)
        if mode & wanted != wanted:
            return str(step)
    return ""


def audience(facts: Facts) -> Finding:
    """Names the data that everybody reads who can read the folder."""
    words = sorted(hidden(facts.value("PrivateData")))
    if words:
        return ok(
            f"published to everybody on this machine without names of users, tenants and QOS and without reasons: "
            f"Slurm's PrivateData hides {', '.join(words)}"
        )
    return ok(
        "published to everybody on this machine: all jobs with users, tenants and reasons, as squeue shows them "
        "(PrivateData hides nothing of it)"
    )
