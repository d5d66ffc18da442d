"""The one door for files that a command writes because somebody named them.

All files of a command are written or none. Each is written whole under a name that nobody can
guess, beside the place where it goes, and takes that place only when all of them are on the disk.
What exists and is no regular file (a pipe, a terminal, a device) is written straight into and
never replaced. Of a link it is the file behind it that is replaced, the link stays.
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
"""A text, or pieces of bytes that are asked for one by one while they are written."""

LOOKED_AT: Final = 1 << 20
"""So many bytes from the start of a file tell whose it is."""

_PIECE: Final = 1 << 20
_MOST_LINKS: Final = 40
_PERMISSIONS: Final = 0o777


class OutputError(MastError):
    """A file cannot or must not be written; the message is one sentence for a person."""


class InTheWay(OutputError):
    """What lies where something is to be written stays unless somebody says that it may go."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}; name another place, or give --force to replace it")
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ReplacementRules:
    """What of the files that lie where something is to be written may be replaced.

    ``never`` says what a file is that stays in any case, ``precious`` what one looks like that
    stays unless ``force`` is given; None where there is nothing to say.
    """

    never: Callable[[Path], str | None] = lambda _: None
    precious: Callable[[Path], str | None] = lambda _: None
    force: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an output goes: ``path`` as it was named, ``target`` behind all links.

    An open ``descriptor`` that was named as a path is written to as it stands.
    """

    path: Path
    target: Path
    descriptor: int | None = None

    @property
    def is_stream(self) -> bool:
        """Whether this is something that exists and is no regular file."""
        return self.descriptor is not None or _is_special(self.target)


class Outputs:
    """The files of one command; ``commit`` writes all that were added, or none."""

    def __init__(self, rules: ReplacementRules | None = None) -> None:
        self._rules = rules or ReplacementRules()
        self._folders: list[Path] = []
        self._files: list[tuple[_Place, Content]] = []
        self._removed: list[Path] = []

    def check(self, path: Path, *, ours: Callable[[bytes], bool] | None = None) -> None:
        """Refuse a path where nothing can or must be written, before any work is done.

        Args:
            path: A file that is to be written.
            ours: Tells from the first ``LOOKED_AT`` bytes of a file whether this program wrote
                it. Given where nothing else may be replaced, as nobody named the file or it is of
                a kind that is always safe to replace.

        Raises:
            OutputError: What is there stays, no file can be there, or it cannot be looked at.
        """
        self._checked(path, ours)

    def add(
        self, path: Path, content: Content, *, ours: Callable[[bytes], bool] | None = None
    ) -> None:
        """Add a file to be written, after the same checks as ``check``.

        Args:
            path: Where it goes.
            content: A text, of which lone surrogates are escaped as JSON does, or pieces of bytes,
                which ``commit`` asks for.
            ours: As ``check`` takes it.

        Raises:
            OutputError: As ``check`` raises it, and for a file that was added before.
        """
        place = self._checked(path, ours)
        if any(place.target == other.target for other, _ in self._files):
            raise OutputError(f"{path}: two outputs of this command name this file; name two")
        self._files.append((place, content))

    def add_folder(self, folder: Path) -> None:
        """Add a folder, which ``commit`` makes where it is missing; for files that are in it.

        Raises:
            OutputError: There is a file of that name.
        """
        if folder.exists() and not folder.is_dir():
            raise OutputError(f"{folder}: is a file; name a folder to write")
        self._folders.append(folder)

    def remove(self, path: Path) -> None:
        """Let a file go when the others are in their places.

        Raises:
            OutputError: It is a file that stays.
        """
        if path.exists() or path.is_symlink():
            self._checked(path, None)
            self._removed.append(_real(path.parent) / path.name)

    def commit(self) -> None:
        """Write all files, and remove what is to be removed; where that fails, undo all of it.

        Streams are written after everything else is on the disk; what has gone into one cannot be
        taken back. So can a name not be taken back on a file system without hard links.

        Raises:
            OSError: Something could not be written; it has the name of the file itself.
        """
        streams = [(place, content) for place, content in self._files if place.is_stream]
        files = [(place, content) for place, content in self._files if not place.is_stream]
        alone = len(files) + len(self._removed) == 1
        set_aside: list[Path] = []
        with ExitStack() as undo:
            for folder in self._folders:
                _make_folder(folder, undo)
            drafts = [(place, _draft(place, content, undo)) for place, content in files]
            for place, content in streams:
                _write_through(place, content)
            for place, draft in drafts:
                with _named(place.path):
                    if not alone:
                        set_aside += _kept_for_undo(place.target, undo)
                    draft.replace(place.target)
            for target in self._removed:
                aside = _hidden_beside(target)
                undo.callback(_put_back, aside, target)
                with _named(target):
                    target.replace(aside)
                set_aside.append(aside)
            undo.pop_all()
        for aside in set_aside:
            aside.unlink(missing_ok=True)
        for folder in {target.parent for target in (*(p.target for p, _ in files), *self._removed)}:
            _sync_folder(folder)

    def _checked(self, path: Path, ours: Callable[[bytes], bool] | None) -> _Place:
        place = _place_of(path)
        if place.is_stream:
            return place
        target = place.target
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
        return place

    def _reason_to_stay(self, target: Path, ours: Callable[[bytes], bool] | None) -> str | None:
        try:
            if ours is not None and target.exists():
                head = _head(target)
                known = not head or ours(head)
                return None if known else "is there and was not written by mast-tui"
            return self._rules.precious(target)
        except OSError as error:
            return f"nobody can tell what is there ({error.strerror})"


def write_output(path: Path, text: str) -> None:
    """Write one file whole or not at all: what fails leaves what was there before.

    Raises:
        OutputError: No file can be written there.
        OSError: It could not be written; it has the name of the file itself.
    """
    outputs = Outputs()
    outputs.add(path, text)
    outputs.commit()


def is_stream(path: Path) -> bool:
    """Whether a path names something that exists and is no regular file, so that it is written
    straight into, and no other file has its place beside it."""
    return _place_of(path).is_stream


def is_stdout(path: Path) -> bool:
    """Whether what is written to a path goes where this program's own output goes."""
    place = _place_of(path)
    if place.descriptor is not None:
        return place.descriptor == 1
    try:
        return place.is_stream and os.path.samestat(place.target.stat(), os.fstat(1))
    except OSError:
        return False


def _place_of(path: Path) -> _Place:
    """Where the links at the end of a path lead.

    A link is followed if its owner could do the same harm without it: whoever may write to a
    shared folder shall not choose which of our files we replace.
    """
    own_descriptors = ("/dev/fd", f"/proc/{os.getpid()}/fd")
    at = path
    for _ in range(_MOST_LINKS):
        at = _real(at.parent) / at.name if at.name not in ("", "..") else _real(at)
        if str(at.parent) in own_descriptors and at.name.isdecimal():
            return _Place(path, at, int(at.name))
        if not at.is_symlink():
            return _Place(path, at)
        trusted = {os.geteuid(), 0}
        with suppress(OSError):  # it leads nowhere, or nowhere that we can see
            trusted.add(at.stat().st_uid)
        if at.lstat().st_uid not in trusted:
            raise OutputError(f"{path}: is a link that somebody else has made; name its target")
        if _is_special(at):
            return _Place(path, at)  # what stands in the link need not be a path, as in /proc
        at = at.parent / at.readlink()
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


def _draft(place: _Place, content: Content, undo: ExitStack) -> Path:
    """The whole content in a new file beside its place, on the disk."""
    draft = _hidden_beside(place.target)
    with _named(place.path):
        # No name that was planted there is taken, and no link followed.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(draft, flags, 0o666)
    undo.callback(_take_away, draft)
    try:
        with _named(place.path):
            if place.target.exists():
                os.fchmod(descriptor, place.target.stat().st_mode & _PERMISSIONS)
        _write_all(descriptor, place.path, content)
        with _named(place.path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return draft


def _write_through(place: _Place, content: Content) -> None:
    sys.stdout.flush()
    with _named(place.path):
        if place.descriptor is not None:
            descriptor = os.dup(place.descriptor)
        else:
            descriptor = os.open(place.target, os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if place.descriptor is None and stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OutputError(f"{place.path}: has become another file meanwhile; try again")
        _write_all(descriptor, place.path, content)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, path: Path, content: Content) -> None:
    for piece in _pieces(content):
        left = memoryview(piece)
        while left:
            with _named(path):
                left = left[os.write(descriptor, left) :]


def _kept_for_undo(target: Path, undo: ExitStack) -> list[Path]:
    """See to it that ``undo`` brings back what is at a place; the names to remove afterwards."""
    if not target.exists():
        undo.callback(_take_away, target)
        return []
    aside = _hidden_beside(target)
    try:
        aside.hardlink_to(target)
    except OSError:
        return []  # where there are no hard links, nothing can be kept without a moment's gap
    undo.callback(_put_back, aside, target)
    return [aside]


def _take_away(path: Path) -> None:
    with suppress(OSError):  # the error that led here is the one to tell
        path.unlink(missing_ok=True)


def _put_back(aside: Path, target: Path) -> None:
    with suppress(OSError):  # as above
        aside.replace(target)
        aside.unlink(missing_ok=True)  # two names of one file: replacing did nothing


def _make_folder(folder: Path, undo: ExitStack) -> None:
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        with _named(one, "this folder cannot be made"):
            one.mkdir()
        undo.callback(_remove_empty, one)


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):  # somebody else has put something there meanwhile
        folder.rmdir()


def _hidden_beside(target: Path) -> Path:
    return target.with_name(f".mast-tui-{secrets.token_hex(8)}.part")


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # not every file system can; the files themselves are on the disk
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _named(path: Path, what: str = "cannot be written") -> Iterator[None]:
    """Let errors of the file system have the name of the file that somebody asked for."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, f"{what}: {error.strerror}", str(path)) from error
