"""An installed product holds all that a clone holds: each package, and each file in it that is no module."""

from __future__ import annotations

from configparser import ConfigParser
from fnmatch import fnmatch
from pathlib import Path

from tests.support.trees import ROOT, ours, python

SETUP = ConfigParser()
SETUP.read(ROOT / "setup.cfg")
PACKAGES = SETUP["options"]["packages"].split()
FOLDERS = dict(line.split(" = ") for line in SETUP["options"]["package_dir"].strip().splitlines())
DATA = {name: globs.replace(",", " ").split() for name, globs in SETUP["options.package_data"].items()}
SOURCES = {ROOT / FOLDERS.get(name, name): name for name in ("slurm_fair", *FOLDERS)}  # of the whole product


def package_of(folder: Path) -> str:
    """The dotted name of a folder of the product; "" elsewhere."""
    for source, name in SOURCES.items():
        if folder.is_relative_to(source):
            return ".".join((name, *folder.relative_to(source).parts))
    return ""


def test_every_package_is_installed() -> None:
    there = {package_of(path.parent) for path in python()} - {""}
    assert len(there) > 40
    assert sorted(PACKAGES) == sorted(there)
    assert len(PACKAGES) == len(set(PACKAGES))


def test_every_file_of_a_package_that_is_no_module_is_installed() -> None:
    files = [path for path in ours() if path.suffix != ".py" and package_of(path.parent)]
    assert len(files) >= 5
    lacking = []
    for path in files:
        source = next(source for source in SOURCES if path.is_relative_to(source))
        name = path.relative_to(source).as_posix()
        if not any(fnmatch(name, glob) for glob in DATA.get(SOURCES[source], ())):
            lacking.append(name)
    assert lacking == []
