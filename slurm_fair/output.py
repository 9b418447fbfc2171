"""Output files: each is whole or not there, and none is written through a link that another user has planted."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections import deque
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import IO, Self

from slurm_fair.errors import InputError

BESIDE = ".slurm-fair-"  # how the names of files begin that are not whole yet
KEPT = ".old"  # the ending of a file that was replaced, and is kept
_MOST_LINKS = 40  # as many as Linux follows
_DATABASE = b"SQLite format 3\0"
# Endings of the files that SQLite keeps beside one, and of those that tell who owns a journal.
OF_A_DATABASE = ("-wal", "-shm", "-journal", ".lock", ".epoch")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_LEVEL = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PLAINLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
Fill = Callable[[IO[bytes]], object]


class Folder:
    """One folder, held open: what was looked at is what is written to, whatever becomes of its name.

    The path is one of `leads_to`, so that no link is on it. Whoever puts one there meanwhile gets an error.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = _entered(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    def facts(self) -> os.stat_result:
        """Owner and mode of the file that stands there."""
        return os.fstat(self._handle)

    def make(self, ending: str = "", mode: int | None = None) -> tuple[str, int]:
        """A new file with a name that nobody can guess, and its descriptor; without a mode the umask decides."""
        name = f"{BESIDE}{secrets.token_hex(8)}{ending}"
        handle = os.open(name, _NEW, 0o666 if mode is None else mode, dir_fd=self._handle)
        if mode is not None:
            os.fchmod(handle, mode)
        return name, handle

    def write(self, name: str, fill: Fill, mode: int | None = None, durable: bool = True) -> None:
        """Write beside, sync, rename: readers see the old file or the new one."""
        beside, handle = self.make(mode=mode)
        try:
            with os.fdopen(handle, "wb") as file:
                fill(file)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            self.rename(beside, name)
        except BaseException:
            self.remove(beside)
            raise

    def put(self, name: str, text: str, mode: int, durable: bool = True) -> None:
        """The same for a text."""
        self.write(name, lambda file: file.write(text.encode()), mode, durable)

    def rename(self, beside: str, name: str) -> None:
        """The file beside gets its name; a link of that name is replaced, not followed."""
        os.rename(beside, name, src_dir_fd=self._handle, dst_dir_fd=self._handle)

    def keep(self, name: str) -> str:
        """Give a file a second name that nothing has yet, so that it outlives a new file of its name.

        A file whose bytes are kept already under such a name is not kept again.
        """
        for number in count(1):
            kept = f"{name}{KEPT}" if number == 1 else f"{name}{KEPT}-{number}"
            try:
                os.link(name, kept, src_dir_fd=self._handle, dst_dir_fd=self._handle, follow_symlinks=False)
            except FileExistsError:
                if self._bytes(kept) != self._bytes(name):
                    continue
            return kept
        raise AssertionError("numbers end nowhere")

    def _bytes(self, name: str) -> bytes | None:
        """The bytes of a plain file; None for everything else."""
        try:
            handle = os.open(name, _PLAINLY, dir_fd=self._handle)
        except OSError:
            return None
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            return None
        with os.fdopen(handle, "rb") as file:
            return file.read()

    def remove(self, name: str) -> None:
        """Away with a file of ours, if it is there."""
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=self._handle)

    def names(self) -> list[str]:
        """The names in the folder."""
        return os.listdir(self._handle)

    def need_name(self, name: str) -> None:
        """An error of the system where no file can have this name."""
        with contextlib.suppress(FileNotFoundError):
            os.lstat(name, dir_fd=self._handle)


def _entered(path: Path) -> int:
    """A folder, entered level by level from the root, none of them through a link."""
    at = os.open("/", _LEVEL)
    for name in path.absolute().parts[1:]:
        at = _below(at, name, _LEVEL, path)
    return _below(at, ".", _FOLDER, path)


def _below(above: int, name: str, flags: int, path: Path) -> int:
    """The next level; the one above is let go."""
    try:
        return os.open(name, flags, dir_fd=above)
    except OSError as problem:
        raise OSError(problem.errno, problem.strerror, str(path)) from None
    finally:
        os.close(above)


def write_whole(path: Path, fill: Fill, mode: int | None = None) -> None:
    """Write a file beside its name, sync it, and rename it; a link that another may have planted is refused."""
    target = leads_to(path)
    with open_folder(target) as folder:
        folder.write(target.name, fill, mode)


def write_text(path: Path, text: str, mode: int | None = None) -> None:
    """The same for a text."""
    write_whole(path, lambda file: file.write(text.encode("utf-8", "surrogateescape")), mode)


def copy_beside(path: Path) -> Path:
    """The path of a copy of a file, which has its owner and its mode and stays when the file is written anew."""
    target = leads_to(path)
    with open_folder(target) as folder:
        return target.with_name(folder.keep(target.name))


def open_anew(path: Path) -> IO[str]:
    """A new text file under this name, to be written while it is made; what had the name is not touched."""
    target = leads_to(path)
    with open_folder(target) as folder:
        beside, handle = folder.make()
        try:
            folder.rename(beside, target.name)
        except BaseException:
            os.close(handle)
            folder.remove(beside)
            raise
    return os.fdopen(handle, "w", encoding="utf-8", newline="\n")


def open_kept(path: Path, flags: int = os.O_RDWR, mode: int = 0o600) -> int:
    """A file that stays and is opened again and again, such as a lock; a link in its place is an error.

    One that root makes belongs to the folder's owner, whose programs it would shut out otherwise. A file that
    was there before keeps its owner: another user may have put it there.
    """
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(path, flags | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        return os.open(path, flags | os.O_CREAT, mode)
    owner = os.stat(path.parent).st_uid
    if os.geteuid() == 0 and owner != 0:
        os.fchown(handle, owner, -1)
    return handle


def open_to_append(path: Path, mode: int = 0o600) -> IO[bytes]:
    """A log of ours, which grows."""
    return os.fdopen(open_kept(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK, mode), "ab")


def open_folder(target: Path) -> Folder:
    """The folder of a file that is to be written; root refuses one that others can change."""
    folder = Folder(target.parent)
    try:
        _refuse_others(folder, target)
    except BaseException:
        folder.__exit__()
        raise
    return folder


def others_write(found: os.stat_result) -> bool:
    """True if the mode lets others than owner and root's group change what lies in a folder."""
    return bool(found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and found.st_gid != 0))


def _refuse_others(folder: Folder, target: Path) -> None:
    found = folder.facts()
    # As /tmp: nobody takes another's file away.
    shared_safely = found.st_mode & stat.S_ISVTX and found.st_uid == 0
    if os.geteuid() == 0 and others_write(found) and not shared_safely:
        raise InputError(
            f"{target}: others can change {folder.path} (mode {stat.S_IMODE(found.st_mode):04o}): "
            "as root, name a file in a folder that is root's alone"
        )


def refuse_database(path: Path) -> None:
    """Refuse to put an output in the place of a database, such as a journal, or of a file that belongs to one."""
    ending = next((end for end in OF_A_DATABASE if path.name.endswith(end)), "")
    if _is_database(path) or (ending and _is_database(path.with_name(path.name.removesuffix(ending)))):
        raise InputError(f"{path}: is a database or belongs to one: name another file")


def _is_database(path: Path) -> bool:
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            return file.read(len(_DATABASE)) == _DATABASE
    except OSError:
        return False  # not there, or closed to us: the attempt to write says so


# -- links ----------------------------------------------------------------------------------------------------


def leads_to(path: Path) -> Path:
    """The file that a name stands for; a link on the way that another user may have planted is refused."""
    at = Path("/")
    for here, link in _steps(path):
        if link is not None and not _is_honest(here.parent, link):
            raise InputError(
                f"{path}: {here} is a link of uid {link.st_uid}, in a folder that others can change: "
                "name the file itself"
            )
        at = here
    return at


def _steps(path: Path) -> Iterator[tuple[Path, os.stat_result | None]]:
    """Each place on the way, and what is known of it if it is a link; the last one is no link."""
    whole = path if path.is_absolute() else Path.cwd().joinpath(path)
    at, rest, links = Path("/"), deque(whole.parts[1:]), 0
    while rest:
        name = rest.popleft()
        here = at.parent if name == ".." else at / name
        link = _link(here)
        yield here, link
        if link is None:
            at = here
            continue
        links += 1
        if links > _MOST_LINKS:
            raise InputError(f"{path}: too many links: name the file itself")
        leads = Path(os.readlink(here))
        rest.extendleft(reversed(leads.parts[1:] if leads.is_absolute() else leads.parts))
        at = Path("/") if leads.is_absolute() else at
    yield at, None


def _link(place: Path) -> os.stat_result | None:
    try:
        found = os.lstat(place)
    except OSError:
        return None  # not there yet, or closed to us: the attempt to write says so
    return found if stat.S_ISLNK(found.st_mode) else None


def _is_honest(folder: Path, link: os.stat_result) -> bool:
    """True if nobody but root and we can have put a link there."""
    ours = (0, os.geteuid())
    where = os.stat(folder)
    return link.st_uid in ours or (where.st_uid in ours and not others_write(where))
