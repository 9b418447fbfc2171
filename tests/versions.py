"""The tests on other releases of Slurm: a Debian suite in a folder, with that suite's Slurm and Python.

`python -m tests.versions --root DIR --suite trixie` (as root, with apt, mmdebstrap and unshare) builds the suite's
system in DIR unless it is there, copies this checkout into it, runs the test files one by one and prints a table.
Everything runs in name spaces of its own, so that no mount and no daemon outlives the run. What is not an option
of ours is pytest's: `-k speed`, `-x`.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from dataclasses import dataclass
from pathlib import Path

from slurm_fair.lab.packages import PACKAGES

HERE = Path(__file__).resolve().parent.parent
PAGE = HERE / "docs" / "versions.md"
SUITES = ("bookworm", "trixie", "sid")
FIRST = ("lab", "adapter", "conformance", "job_side", "job_submit", "contract")
MORE_PACKAGES = ("ca-certificates", "mount", "python3", "python3-venv")
BUILD_SECONDS, INSTALL_SECONDS, FILE_SECONDS = 1200.0, 900.0, 1800.0
# A mirror that is a snapshot stays good when its Release file says that it is old.
APT_OPTIONS = (
    'Acquire::Check-Valid-Until "false"',
    'Acquire::Languages "none"',
    'APT::Install-Recommends "false"',
)
# A folder that is mounted on itself can be a root with mounts of its own. The shell stays as the first process of
# its name space: it collects what daemons leave behind.
ENTER = (
    'mount --bind "$0" "$0" && mount --rbind /dev "$0/dev" && mount --rbind /sys "$0/sys" && '
    'mount -t proc proc "$0/proc" || exit 125; '
    'chroot "$0" "$@"; code=$?; exit $code'
)
SPACES = ("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child")
# What makes pip find its index here makes it find it there too.
MACHINE_FILES = (
    "etc/hosts",
    "etc/hostname",
    "etc/resolv.conf",
    "etc/pip.conf",
    "etc/ssl/certs/ca-certificates.crt",
)
MACHINE_VARIABLES = re.compile(
    r"PIP_(?!FIND_LINKS)|SSL_CERT_|REQUESTS_CA_BUNDLE$|(https?|no|all)_proxy$", re.IGNORECASE
)
NOT_COPIED = (".git", ".venv", ".*_cache", "__pycache__", "*.egg-info", ".hypothesis", "build", "dist")
PYTHON = "/opt/venv/bin/python"


@dataclass(frozen=True, slots=True)
class Root:
    """A system in a folder."""

    folder: Path

    def run(self, *argv: str, seconds: float, quiet: bool = False) -> subprocess.CompletedProcess[str]:
        """One command inside, in the checkout's copy; when it ends, everything that it started has ended."""
        kept = {name: value for name, value in os.environ.items() if MACHINE_VARIABLES.match(name)}
        env = kept | {
            "PATH": "/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        inside = ("env", "-C", "/src", *argv)
        return subprocess.run(
            (*SPACES, "sh", "-c", ENTER, str(self.folder), *inside),
            env=env,
            stdin=subprocess.DEVNULL,
            timeout=seconds,
            text=True,
            check=False,
            stdout=subprocess.PIPE if quiet else None,
        )

    def says(self, *argv: str) -> str:
        """The first line that a command prints."""
        return (self.run(*argv, seconds=60, quiet=True).stdout.splitlines() or [""])[0].strip()


@dataclass(frozen=True, slots=True)
class Row:
    """The outcome of one test file."""

    file: str
    passed: int
    failed: tuple[str, ...]
    skipped: int
    seconds: float
    whole: bool = True

    def line(self) -> str:
        """The outcome as a row of the table."""
        failed = str(len(self.failed)) if self.whole else "did not end"
        return f"| {self.file} | {self.passed} | {failed} | {self.skipped} | {self.seconds:.0f} |"


def files() -> list[str]:
    """The tests that need a Slurm: what the others stand on first, the demonstration last."""
    named = [f"tests/slurm/test_{name}.py" if name != "contract" else f"tests/{name}" for name in FIRST]
    rest = {str(path.relative_to(HERE)) for path in (HERE / "tests" / "slurm").glob("test_*.py")} - {*named}
    return named + sorted(rest, key=lambda path: (path.endswith("test_demo.py"), path))


def mirror() -> str:
    """The archive that this machine's own apt installs from."""
    asked = ("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages")
    found = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True).stdout.split()
    archives = [address for address in found if address.rstrip("/").endswith("/debian")]
    if not archives:
        raise SystemExit("versions: apt on this machine names no Debian archive: see /etc/apt/sources.list.d")
    return archives[0]


def build(folder: Path, suite: str) -> None:
    """A small system of the suite with its Slurm; mmdebstrap lets no service start."""
    print(f"versions: building {suite} in {folder}", flush=True)
    options = [f"--aptopt={option}" for option in APT_OPTIONS]
    wanted = ",".join((*PACKAGES, *MORE_PACKAGES))
    argv = ("mmdebstrap", "--quiet", "--mode=root", "--variant=apt", *options, f"--include={wanted}", suite)
    done = subprocess.run((*argv, str(folder), mirror()), timeout=BUILD_SECONDS, check=False)
    if done.returncode != 0:
        raise SystemExit(
            f"versions: mmdebstrap failed with code {done.returncode}: remove {folder} and try again"
        )


def furnish(root: Root) -> None:
    """The checkout as it is now, and a virtual environment with what setup.cfg asks for."""
    for name in MACHINE_FILES:
        if Path("/", name).exists():
            shutil.copy(Path("/", name), root.folder / name)
    source = root.folder / "src"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(HERE, source, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
    wanted = hashlib.sha256((HERE / "setup.cfg").read_bytes()).hexdigest()
    stamp = root.folder / "opt" / "installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    for argv in (
        ("python3", "-m", "venv", "/opt/venv"),
        (PYTHON, "-m", "pip", "install", "-q", "-e", ".[dev]"),
    ):
        if root.run(*argv, seconds=INSTALL_SECONDS).returncode != 0:
            raise SystemExit(f"versions: {' '.join(argv)} failed in {root.folder}")
    stamp.write_text(wanted)


def test(root: Root, file: str, more: list[str]) -> Row:
    """One test file or folder in a pytest of its own."""
    report = root.folder / "tmp" / "report.xml"
    report.unlink(missing_ok=True)
    argv = (
        PYTHON,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--junit-xml=/tmp/report.xml",
        file,
        *more,
    )
    began = time.monotonic()
    try:
        root.run(*argv, seconds=FILE_SECONDS)
    except subprocess.TimeoutExpired:
        print(f"versions: {file} did not end within {FILE_SECONDS:g} s", flush=True)
    return read_report(file, report, time.monotonic() - began)


def read_report(file: str, report: Path, seconds: float) -> Row:
    """Counts from pytest's own report; without one the file did not end."""
    if not report.exists():
        return Row(file, 0, (), 0, seconds, whole=False)
    named: dict[tuple[str, str], set[str]] = {}  # a test that fails at its end too is listed twice
    for case in xml.parse(report).getroot().iter("testcase"):
        who = (case.get("classname", ""), case.get("name", ""))
        named.setdefault(who, set()).update(part.tag for part in case)
    failed = sorted(name for (_, name), parts in named.items() if parts & {"failure", "error"})
    skipped = sum("skipped" in parts for parts in named.values())
    return Row(file, len(named) - len(failed) - skipped, tuple(failed), skipped, seconds)


def table(rows: list[Row], root: Root) -> str:
    """The runs, their releases and their outcomes, as Markdown."""
    slurm = root.says("slurmctld", "-V").split()[-1:] or ["of unknown release"]
    known = re.search(r"[0-9]+\.[0-9]+\.[0-9]+-MariaDB|Distrib [0-9.]+", root.says("mariadbd", "--version"))
    database = known[0].removesuffix("-MariaDB").removeprefix("Distrib ") if known else "of unknown release"
    where = (
        f"Slurm {slurm[0]}, MariaDB {database}, {root.says('python3', '-V')}, {time.strftime('%Y-%m-%d')}."
    )
    lines = [where, "", "| tests | passed | failed | skipped | seconds |", "| --- | --- | --- | --- | --- |"]
    lines += [row.line() for row in rows]
    lines += ["", *(f"* failed: `{name}` of {row.file}" for row in rows for name in row.failed)]
    return "\n".join(lines).rstrip() + "\n"


def with_part(page: str, suite: str, text: str) -> str:
    """The page with the suite's own part, between its marks, replaced."""
    first, last = f"<!-- {suite} -->\n", f"<!-- end of {suite} -->"
    before, found, rest = page.partition(first)
    _, closed, after = rest.partition(last)
    if not (found and closed):
        raise SystemExit(f"versions: {PAGE} has no part between {first.strip()} and {last}")
    return f"{before}{first}{text}{last}{after}"


def with_rows_of(page: str, suite: str, text: str) -> str:
    """A table of some files, and what the page says of the others if that was measured on the same releases."""
    there = page.partition(f"<!-- {suite} -->\n")[2].partition(f"<!-- end of {suite} -->")[0].splitlines()
    head, *lines = text.splitlines()
    if not there or _releases(there[0]) != _releases(head):
        return text
    run = {_file(line) for line in lines} - {""}
    kept = [line for line in there[1:] if _file(line) and _file(line) not in run]
    both = [line for line in (*kept, *lines) if _file(line)]
    table, failed = ([line for line in both if line.startswith(mark)] for mark in "|*")
    return "\n".join([head, *lines[:3], *table, "", *failed]).rstrip() + "\n"


def _releases(head: str) -> str:
    """The first line of a table without its day."""
    return head.rpartition(",")[0]


def _file(line: str) -> str:
    """The test file of which a line of a table speaks."""
    found = re.search(r"^(?:\| |\* failed: .* of )(tests/[\w/.]+)", line)
    return found[1] if found else ""


def main() -> int:
    """0 when every test passed."""
    options, more = _parser().parse_known_args()
    if os.geteuid() != 0:
        raise SystemExit("versions: only root may build a system and enter it: use sudo")
    missing = [name for name in ("mmdebstrap", "unshare", "chroot") if shutil.which(name) is None]
    if missing:
        raise SystemExit(f"versions: {', '.join(missing)} not found: apt-get install mmdebstrap util-linux")
    root = Root(options.root.absolute())
    if not (root.folder / "usr" / "sbin" / "slurmctld").exists():
        build(root.folder, options.suite)
    furnish(root)
    rows = [test(root, file, more) for file in options.file or files()]
    text = table(rows, root)
    print(text)
    if options.write:
        page = PAGE.read_text()
        PAGE.write_text(with_part(page, options.suite, with_rows_of(page, options.suite, text)))
    return 0 if all(row.whole and not row.failed for row in rows) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__)
    parser.add_argument(
        "--root", type=Path, required=True, metavar="DIR", help="where the system is or will be"
    )
    parser.add_argument("--suite", choices=SUITES, default="trixie", help="its Debian suite (trixie)")
    parser.add_argument(
        "--file", action="append", metavar="FILE", help="renew only this test file's row; repeatable"
    )
    parser.add_argument("--write", action="store_true", help="put the table into docs/versions.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
