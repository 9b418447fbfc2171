"""The page on installing, taken at its word: its commands, in their order, on a machine with a real Slurm.

The machine is a mount namespace with its own /etc, /var/lib and /run, so that accounts and files stay in it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from slurm_fair.lab import available
from tests.slurm.harness import REPOSITORY

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(available() is not None, reason=str(available())),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a machine of its own"),
]
PAGE = REPOSITORY / "docs" / "install.md"

# Everything below it is thrown away with the namespace.
MACHINE = """
set -e
mount --make-rprivate /
mkdir -p "$TOP"/etc "$TOP"/lib "$TOP"/run
if [[ $BASE == /root/* ]]; then  # Python lies where other users cannot read it
    mkdir -p "$TOP/home$BASE"
    mount --bind "$BASE" "$TOP/home$BASE"
    mount --rbind "$TOP/home/root" /root
fi
cp -a /etc/. "$TOP"/etc/
rm -rf "$TOP"/etc/slurm "$TOP"/etc/systemd/system
mount --bind "$TOP"/etc /etc
mount --bind "$TOP"/lib /var/lib
mount --bind "$TOP"/run /run
exec "$PYTHON" "$SCRIPT" "$TOP"
"""


def section(heading: str) -> list[str]:
    """The commands of a section of the page, without their remarks."""
    text = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    block = re.search(r"```\n(.*?)```", text, re.DOTALL)
    assert block is not None
    return [line.split("  #")[0].strip() for line in block[1].splitlines() if line.strip()]


@pytest.fixture(scope="module")
def said() -> Iterator[str]:
    """The output of the machine while the page's commands ran."""
    with TemporaryDirectory(prefix="slurm-fair-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield played(Path(name))


def played(top: Path) -> str:
    """One machine from its beginning to its end."""
    tried = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip("no mount namespace can be made here")
    env = {
        **os.environ,
        "TOP": str(top),
        "BASE": sys.base_prefix,
        "PYTHON": sys.executable,
        "SCRIPT": str(Path(__file__).with_name("by_hand.py")),
        "PYTHONPATH": str(REPOSITORY),
        "INSTALL": "\n".join(section("The first steps")),
        "SHADOW": "\n".join(section("Shadow mode first")),
    }
    env.pop("SLURM_CONF", None)
    done = subprocess.run(
        ["unshare", "-m", "--propagation=private", "bash", "-c", MACHINE],
        env=env, capture_output=True, text=True, timeout=240, check=False, cwd="/",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    print(done.stdout)
    return done.stdout


def test_the_commands_of_the_page_work_as_written(said: str) -> None:
    assert "DONE install" in said
    assert "DONE shadow" in said


def test_the_daemons_account_runs_the_shadow_and_an_ordinary_user_reads_it(said: str) -> None:
    assert re.search(r"^status: slurm_fair: shadow mode", said, re.MULTILINE), said
    assert re.search(r"^explain: job \d+ of games \(vision\)", said, re.MULTILINE), said
    assert re.search(r"^report: slurm-fair: .*slurm-fair", said, re.MULTILINE), said


def test_init_found_this_slurm_for_the_services_and_made_the_folders(said: str) -> None:
    assert re.search(r'^unit: Environment="SLURM_CONF=\S+/slurm\.conf"', said, re.MULTILINE)
    assert "folder: slurm-fair 750 /var/lib/slurm-fair" in said
    assert "folder: slurm-fair 755 /run/slurm-fair" in said


def test_where_slurm_hides_jobs_an_ordinary_user_reads_no_name(said: str) -> None:
    assert "hidden: names of nobody" in said


def test_where_slurm_hides_jobs_users_still_find_their_own(said: str) -> None:
    assert "own: games finds 1 of its own" in said
    assert "own: news finds 0 of its own" in said
