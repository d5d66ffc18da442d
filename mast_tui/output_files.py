"""The files that a command writes because the user named them.

All files of a command are written or none. Each is written under an unpredictable name in the
folder of its target, and is renamed to the target when all of them are on the disk. An existing
path that is no regular file (a pipe, a terminal, a device) is written to directly and never
replaced. If a path is a link, the file behind it is replaced and the link stays.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mast_tui.errors import MastError

Content = str | Iterable[bytes]
"""A text, or pieces of bytes that are read one by one while they are written."""

LOOKED_AT: Final = 1 << 20
"""The bytes at the start of a file that identify its kind."""

_PIECE: Final = 1 << 20
_MOST_LINKS: Final = 40
_PERMISSIONS: Final = 0o777


class OutputError(MastError):
    """A file cannot or must not be written; the message is one sentence for the user."""


class InTheWay(OutputError):
    """An existing file is not replaced unless the user gives ``--force``."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}; name another place, or give --force to replace it")
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ReplacementRules:
    """The rules that protect existing files from being replaced.

    ``never`` returns the reason to keep a file in any case, ``precious`` the reason to keep it
    unless ``force`` is True; both return None if the file may be replaced.
    """

    never: Callable[[Path], str | None] = lambda _: None
    precious: Callable[[Path], str | None] = lambda _: None
    force: bool = False


@dataclass(frozen=True, slots=True)
class _Destination:
    """The destination of an output: its ``path``, and the ``target`` behind all links.

    A path such as ``/dev/fd/3`` has an open ``descriptor``, which is written to directly.
    """

    path: Path
    target: Path
    descriptor: int | None = None

    @property
    def is_stream(self) -> bool:
        """True if it exists and is no regular file."""
        return self.descriptor is not None or _is_special(self.target)


class Outputs:
    """The files of one command; ``commit`` writes all that were added, or none."""

    def __init__(self, rules: ReplacementRules | None = None) -> None:
        self._rules = rules or ReplacementRules()
        self._folders: list[Path] = []
        self._files: list[tuple[_Destination, Content]] = []
        self._removed: list[Path] = []

    def check(self, path: Path, *, ours: Callable[[bytes], bool] | None = None) -> None:
        """Check that a path can be written, before any work is done.

        Args:
            path: The path of an output.
            ours: Checks by the first ``LOOKED_AT`` bytes of an existing file whether this program
                wrote it; then no other file is replaced. None to apply the rules instead.

        Raises:
            OutputError: The existing file is kept, no file can be made, or it cannot be read.
        """
        self._checked(path, ours)

    def add(
        self, path: Path, content: Content, *, ours: Callable[[bytes], bool] | None = None
    ) -> None:
        """Add a file to be written, after the same checks as ``check``.

        Args:
            path: The path of the file.
            content: A text, whose lone surrogates are escaped as in JSON, or pieces of bytes,
                which ``commit`` reads.
            ours: See ``check``.

        Raises:
            OutputError: See ``check``; or the file was added before.
        """
        destination = self._checked(path, ours)
        if any(destination.target == other.target for other, _ in self._files):
            raise OutputError(f"{path}: two outputs of this command name this file; name two")
        self._files.append((destination, content))

    def add_folder(self, folder: Path) -> None:
        """Add a folder for files; ``commit`` makes it if it does not exist.

        Raises:
            OutputError: There is a file of that name.
        """
        if folder.exists() and not folder.is_dir():
            raise OutputError(f"{folder}: is a file; name a folder to write")
        self._folders.append(folder)

    def remove(self, path: Path) -> None:
        """Add a file that ``commit`` removes once all others are written.

        Raises:
            OutputError: The rules protect the file.
        """
        if path.exists() or path.is_symlink():
            self._checked(path, None)
            self._removed.append(_real(path.parent) / path.name)

    def commit(self) -> None:
        """Write all files and remove those to be removed; undo everything if a step fails.

        Streams are written after the files are on the disk, since what was written to a stream
        cannot be undone. On a file system without hard links, replacing a file cannot be undone.

        Raises:
            OSError: A file could not be written; the error names the file.
        """
        streams = [
            (destination, content) for destination, content in self._files if destination.is_stream
        ]
        files = [
            (destination, content)
            for destination, content in self._files
            if not destination.is_stream
        ]
        alone = len(files) + len(self._removed) == 1
        set_aside: list[Path] = []
        with ExitStack() as undo:
            for folder in self._folders:
                _make_folder(folder, undo)
            drafts = [
                (destination, _draft(destination, content, undo)) for destination, content in files
            ]
            for destination, content in streams:
                _write_through(destination, content)
            for destination, draft in drafts:
                with _naming_errors(destination.path):
                    if not alone:
                        set_aside += _prepare_undo(destination.target, undo)
                    draft.replace(destination.target)
            for target in self._removed:
                aside = _new_draft_path(target)
                undo.callback(_put_back, aside, target)
                with _naming_errors(target):
                    target.replace(aside)
                set_aside.append(aside)
            undo.pop_all()
        for aside in set_aside:
            aside.unlink(missing_ok=True)
        for folder in {target.parent for target in (*(p.target for p, _ in files), *self._removed)}:
            _sync_folder(folder)

    def _checked(self, path: Path, ours: Callable[[bytes], bool] | None) -> _Destination:
        destination = _destination_of(path)
        if destination.is_stream:
            return destination
        target = destination.target
        if target.is_dir():
            raise OutputError(f"{path}: is a folder; name a file to write")
        if not target.parent.is_dir() and not any(
            path.is_relative_to(folder) for folder in self._folders
        ):
            raise OutputError(f"{path.parent}: no such folder; make it first")
        if (reason := self._rules.never(target)) is not None:
            raise OutputError(f"{path}: {reason}; name another file to write")
        if not self._rules.force and (reason := self._reason_to_stay(target, ours)) is not None:
            raise InTheWay(path, reason)
        return destination

    def _reason_to_stay(self, target: Path, ours: Callable[[bytes], bool] | None) -> str | None:
        try:
            if ours is not None and target.exists():
                head = _head(target)
                is_ours = not head or ours(head)
                return None if is_ours else "is there and was not written by mast-tui"
            return self._rules.precious(target)
        except OSError as error:
            return f"nobody can tell what is there ({error.strerror})"


def write_output(path: Path, text: str) -> None:
    """Write one file; if that fails, the existing file stays unchanged.

    Args:
        path: The path of the file.
        text: The text.

    Raises:
        OutputError: No file can be written at the path.
        OSError: The file could not be written; the error names it.
    """
    outputs = Outputs()
    outputs.add(path, text)
    outputs.commit()


def is_stream(path: Path) -> bool:
    """Check whether a path exists and is no regular file, so that it is written to directly."""
    return _destination_of(path).is_stream


def is_stdout(path: Path) -> bool:
    """Check whether a path is the standard output of this program."""
    destination = _destination_of(path)
    if destination.descriptor is not None:
        return destination.descriptor == 1
    try:
        return destination.is_stream and os.path.samestat(destination.target.stat(), os.fstat(1))
    except OSError:
        return False


def _destination_of(path: Path) -> _Destination:
    """Follow the links at the end of a path.

    A link is followed only if it belongs to this user, to root, or to the owner of its target, so
    that others who can write to a shared folder cannot make this program replace a file.

    Raises:
        OutputError: A link of another user, or a circle of links.
    """
    own_descriptors = ("/dev/fd", f"/proc/{os.getpid()}/fd")
    current = path
    for _ in range(_MOST_LINKS):
        current = (
            _real(current.parent) / current.name
            if current.name not in ("", "..")
            else _real(current)
        )
        if str(current.parent) in own_descriptors and current.name.isdecimal():
            return _Destination(path, current, int(current.name))
        if not current.is_symlink():
            return _Destination(path, current)
        trusted = {os.geteuid(), 0}
        with suppress(OSError):  # it leads nowhere, or nowhere that we can see
            trusted.add(current.stat().st_uid)
        if current.lstat().st_uid not in trusted:
            raise OutputError(f"{path}: is a link that somebody else has made; name its target")
        if _is_special(current):
            return _Destination(
                path, current
            )  # what stands in the link need not be a path, as in /proc
        current = current.parent / current.readlink()
    raise OutputError(f"{path}: a link that leads to itself; name another file")


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # Path.resolve raises RuntimeError for links in a circle


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LOOKED_AT)


def _pieces(content: Content) -> Iterator[bytes]:
    if isinstance(content, str):
        for start in range(0, len(content), _PIECE):
            yield content[start : start + _PIECE].encode("utf-8", "backslashreplace")
    else:
        yield from content


def _draft(destination: _Destination, content: Content, undo: ExitStack) -> Path:
    """Write the content to a new file in the folder of the target, and return its path."""
    draft = _new_draft_path(destination.target)
    with _naming_errors(destination.path):
        # These flags refuse an existing file and a link that another user has planted.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(draft, flags, 0o666)
    undo.callback(_delete, draft)
    try:
        with _naming_errors(destination.path):
            if destination.target.exists():
                os.fchmod(descriptor, destination.target.stat().st_mode & _PERMISSIONS)
        _write_all(descriptor, destination.path, content)
        with _naming_errors(destination.path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return draft


def _write_through(destination: _Destination, content: Content) -> None:
    """Write to a stream; raise ``OutputError`` if it has become a regular file meanwhile."""
    sys.stdout.flush()
    with _naming_errors(destination.path):
        if destination.descriptor is not None:
            descriptor = os.dup(destination.descriptor)
        else:
            descriptor = os.open(destination.target, os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if destination.descriptor is None and stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OutputError(f"{destination.path}: has become another file meanwhile; try again")
        _write_all(descriptor, destination.path, content)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, path: Path, content: Content) -> None:
    for piece in _pieces(content):
        left = memoryview(piece)
        while left:
            with _naming_errors(path):
                left = left[os.write(descriptor, left) :]


def _prepare_undo(target: Path, undo: ExitStack) -> list[Path]:
    """Make ``undo`` restore the target; return the second names to remove afterwards."""
    if not target.exists():
        undo.callback(_delete, target)
        return []
    aside = _new_draft_path(target)
    try:
        aside.hardlink_to(target)
    except OSError:
        return []  # without hard links the file cannot be kept without a gap
    undo.callback(_put_back, aside, target)
    return [aside]


def _delete(path: Path) -> None:
    with suppress(OSError):  # the error that led here is the one to report
        path.unlink(missing_ok=True)


def _put_back(aside: Path, target: Path) -> None:
    with suppress(OSError):  # as above
        aside.replace(target)
        aside.unlink(missing_ok=True)  # two names of one file: replacing did nothing


def _make_folder(folder: Path, undo: ExitStack) -> None:
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    for parent in reversed(missing):
        with _naming_errors(parent, "this folder cannot be made"):
            parent.mkdir()
        undo.callback(_remove_empty, parent)


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):  # another program may have put a file there meanwhile
        folder.rmdir()


def _new_draft_path(target: Path) -> Path:
    return target.with_name(f".mast-tui-{secrets.token_hex(8)}.part")


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # not every file system can; the files themselves are on the disk
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _naming_errors(path: Path, problem: str = "cannot be written") -> Iterator[None]:
    """Replace errors of the file system by ones that name the path of the user."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, f"{problem}: {error.strerror}", str(path)) from error
