"""Output files: whole or not there, and never written through what another Unix user has planted."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from slurm_fair import output
from slurm_fair.errors import InputError, SlurmFairError, StoreError
from slurm_fair.host.state_folder import write_kept as write_place
from slurm_fair.trace.files import write_with as write_trace
from slurm_fair_accounting.drawing.page_file import replacing
from tests.support.command_line import call
from tests.support.simulations import COSTS, made, simulated
from tests.support.trees import named, python

MALLORY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as another user")


def page(path: Path) -> None:
    with replacing(path) as write:
        write("new")


WRITERS: dict[str, Callable[[Path], object]] = {
    "a whole file": lambda path: output.write_whole(path, lambda file: file.write(b"new")),
    "a file of the storage folder": lambda path: write_place(path, "new"),
    "a trace": lambda path: write_trace(path, lambda text: text.writelines(["new"])),
    "a page": page,
    "a file that grows": lambda path: output.open_anew(path).close(),
}
every_writer = pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)


def as_mallory(*argv: str) -> None:
    """A command of another user's."""
    subprocess.run(argv, user=MALLORY, group=MALLORY, extra_groups=[], check=True)


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A file of ours that nobody may change."""
    path = tmp_path / "precious"
    path.write_text("as it was")
    return path


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """A folder as /tmp is, which another user can reach."""
    folder = Path("/tmp") / f"slurm-fair-test-{os.getpid()}"
    folder.mkdir(mode=0o755)
    inner = folder / "shared"
    inner.mkdir()
    inner.chmod(0o1777)
    yield inner
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@needs_root
@every_writer
def test_a_link_that_another_user_planted_is_refused_and_what_it_names_stays(
    write: Callable[[Path], object], shared: Path, precious: Path
) -> None:
    as_mallory("ln", "-s", str(precious), str(shared / "out"))
    with pytest.raises(InputError, match=r"is a link of uid 65534, .*: name the file itself"):
        write(shared / "out")
    assert precious.read_text() == "as it was"
    assert left(shared) == ["out"]


@needs_root
@every_writer
def test_a_folder_on_the_way_that_another_user_made_a_link_is_refused(
    write: Callable[[Path], object], shared: Path, precious: Path
) -> None:
    as_mallory("ln", "-s", str(precious.parent), str(shared / "folder"))
    with pytest.raises(InputError, match="is a link of uid 65534"):
        write(shared / "folder" / precious.name)
    assert precious.read_text() == "as it was"


@needs_root
@every_writer
def test_a_folder_that_its_owner_makes_a_link_once_it_was_looked_at_is_refused(
    write: Callable[[Path], object], shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = shared / "way"
    as_mallory("mkdir", "-p", str(way / "folder"))
    look = output.leads_to

    def exchanged(path: Path) -> Path:
        found = look(path)
        as_mallory("mv", str(way), str(shared / "away"))
        as_mallory("ln", "-s", str(tmp_path), str(way))
        return found

    monkeypatch.setattr(output, "leads_to", exchanged)
    (tmp_path / "folder").mkdir()
    with pytest.raises((OSError, SlurmFairError)):
        write(way / "folder" / "out")
    assert left(tmp_path / "folder") == []
    assert not any(file.stat().st_size for file in (shared / "away" / "folder").iterdir())


@needs_root
@every_writer
def test_root_refuses_a_folder_in_which_others_can_exchange_its_files(
    write: Callable[[Path], object], shared: Path
) -> None:
    shared.chmod(0o777)
    with pytest.raises(
        InputError, match=r"others can change .* \(mode 0777\): as root, name a file in a folder"
    ):
        write(shared / "out")
    assert left(shared) == []


@needs_root
@pytest.mark.parametrize("mode", [0o1777, 0o755])
@every_writer
def test_root_refuses_a_sticky_folder_of_another_user_and_takes_a_plain_one(
    write: Callable[[Path], object], mode: int, shared: Path
) -> None:
    shared.chmod(mode)
    os.chown(shared, MALLORY, MALLORY)
    if mode == 0o755:
        write(shared / "out")
        assert left(shared) == ["out"]
        return
    with pytest.raises(InputError, match="others can change"):
        write(shared / "out")


@every_writer
def test_a_folder_such_as_tmp_is_fine_and_nothing_is_left_beside(
    write: Callable[[Path], object], shared: Path
) -> None:
    write(shared / "out")
    assert left(shared) == ["out"]


@every_writer
def test_a_link_of_ones_own_stays_one(write: Callable[[Path], object], tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() in ("new", "")


def test_links_in_a_circle_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(InputError, match="too many links"):
        output.leads_to(tmp_path / "a")


@pytest.mark.parametrize("way", ["up/../plain", "link/plain", "./link/../real/plain", "link/../real/./plain"])
def test_a_name_leads_where_the_system_says(way: str, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "up").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert output.leads_to(tmp_path / way) == Path(os.path.realpath(tmp_path / way))


def test_what_is_readable_follows_from_the_mode_that_was_given_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        output.write_text(tmp_path / "all", "x", 0o644)
        output.write_text(tmp_path / "usual", "x")
    finally:
        os.umask(before)
    output.write_text(tmp_path / "mine", "x", 0o600)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"all": 0o644, "usual": 0o600, "mine": 0o600}


def test_a_file_is_synced_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    sync, rename = os.fsync, os.rename

    def noted_sync(handle: int) -> None:
        done.append(
            f"sync {os.readlink(f'/proc/self/fd/{handle}').rpartition('/')[2].startswith('.slurm-fair-')}"
        )
        sync(handle)

    def noted_rename(old: str, new: str, **where: Any) -> None:
        done.append(f"rename {new}")
        rename(old, new, **where)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "rename", noted_rename)
    write_place(tmp_path / "paused", "lunch")
    assert done == ["sync True", "rename paused"]


def test_what_fails_amid_writing_leaves_the_old_file_and_nothing_beside(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("old")

    def fails(file: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        output.write_whole(tmp_path / "out", fails)
    assert (tmp_path / "out").read_text() == "old"
    assert left(tmp_path) == ["out"]


def test_each_user_of_it_says_in_its_own_words_what_went_wrong(tmp_path: Path) -> None:
    missing = tmp_path / "none" / "out"
    with pytest.raises(StoreError, match="out: cannot be written: No such file"):
        write_place(missing, "x")
    with pytest.raises(SlurmFairError, match="out: cannot be written: No such file"):
        write_trace(missing, lambda text: None)


@needs_root
def test_a_log_is_not_appended_to_through_a_link(tmp_path: Path, precious: Path) -> None:
    (tmp_path / "log").symlink_to(precious)
    with pytest.raises(OSError, match="symbolic"):
        output.open_to_append(tmp_path / "log")
    with output.open_to_append(tmp_path / "new.log") as file:
        file.write(b"x")
    assert (tmp_path / "new.log").stat().st_mode & 0o777 == 0o600


@needs_root
@pytest.mark.parametrize("option", ["--jobs-out", "--events-out", "--html"])
def test_a_simulation_writes_through_no_link_of_another_user(
    option: str, shared: Path, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("as it was")
    as_mallory("ln", "-s", str(precious), str(shared / "out.jsonl"))
    said = simulated(made(tmp_path), *COSTS, option, str(shared / "out.jsonl"))
    assert (said.code, said.out) == (2, "")
    assert "is a link of uid 65534" in said.complaint
    assert precious.read_text() == "as it was"


@needs_root
def test_a_report_writes_through_no_link_of_another_user(shared: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("as it was")
    as_mallory("ln", "-s", str(precious), str(shared / "page.html"))
    said = call("report", "jobs", "--html", str(shared / "page.html"))
    assert (said.code, "is a link of uid 65534" in said.complaint) == (2, True)
    assert precious.read_text() == "as it was"


# -- one way --------------------------------------------------------------------------------------------------

# Whoever writes a file by another way, and why.
OTHER_WAYS = {
    "slurm_fair/output.py": "is the one way",
    "slurm_fair/host/state_folder.py": "the heartbeat is written in place: a full disk looks like no dead daemon",
    "slurm_fair/lease.py": "stands alone, so that it can be copied to a compute node",
    "sbatch_templates/slurm_fair_templates/demo_counter.py": "runs as a job of its user's",
    "slurm_fair/planner/child.py": "its own line in /proc",
    "slurm_fair/cli/base.py": "/dev/null",
    "slurm_fair/cli/outlet.py": "/dev/null",
}
_WRITES = re.compile(
    r"write_text\((?!\w+, |self\._path)|\.write_bytes\(|open\([^)]*[\"'][wax]b?[\"']|os\.O_CREAT|os\.rename\("
)


def test_the_product_writes_files_in_one_way() -> None:
    product = [path for path in python() if named(path).split("/")[0] not in ("tests", "benchmarks")]
    apart = ("slurm_fair/lab/", "slurm_fair/demo/")  # a private Slurm below one folder of its own
    found = {named(path) for path in product if _WRITES.search(path.read_text())}
    assert {name for name in found if not name.startswith(apart)} <= OTHER_WAYS.keys()


def test_even_a_name_that_was_guessed_leads_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slurm_fair.output.secrets.token_hex", lambda size: "0" * 2 * size)
    precious = tmp_path / "precious"
    precious.write_text("mine")
    planted = tmp_path / f"{output.BESIDE}{'0' * 16}"
    for plant in (planted.symlink_to, planted.hardlink_to):
        plant(precious)
        with pytest.raises(FileExistsError):
            output.write_text(tmp_path / "page.html", "theirs")
        assert precious.read_text() == "mine"
        planted.unlink()
    assert not (tmp_path / "page.html").exists()


def test_a_link_of_our_own_is_followed_wherever_it_lies(tmp_path: Path) -> None:
    shared, ours = tmp_path / "shared", tmp_path / "ours"
    for folder, mode in ((shared, 0o1777), (ours, 0o755)):
        folder.mkdir()
        folder.chmod(mode)
    (shared / "link").symlink_to(ours)
    output.write_text(shared / "link" / "page.html", "mine")
    assert (ours / "page.html").read_text() == "mine"
