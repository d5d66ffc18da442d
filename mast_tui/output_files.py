"""Output files that a user names in a command.

Either all files of a command are written, or none. Each file is first written under a random name
in the folder of its target, and replaces the target once all files are on the disk. A pipe, a
terminal or a device is written to directly; ``-`` is stdout. A link stays, and its target is
replaced.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from mast_tui.errors import MastError
from mast_tui.safe_text import safe_line

Content = str | Iterable[bytes]
"""A text, or an iterable of bytes that is read while it is written."""

LOOKED_AT: Final = 1 << 20
"""The number of first bytes of a file that show which program wrote it."""

_STDOUT: Final = Path("-")
_STDOUT_DESCRIPTOR: Final = 1
_PIECE: Final = 1 << 20
_MOST_LINKS: Final = 40
_PERMISSIONS: Final = 0o777


class OutputError(MastError):
    """A file that cannot or must not be written."""


class InTheWay(OutputError):
    """An existing file that is replaced only with ``--force``."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}; give another file, or use --force to replace it")
        self.path = path
        self.reason = reason


class ReplacementRules(Struct, frozen=True):
    """The rules by which outputs may replace existing files.

    Attributes:
        never: Returns the reason why a file is never replaced; None if there is no such reason.
        precious: Returns the reason why a file is replaced only with ``force``; None if there is
            no such reason.
        force: The user allows to replace precious files.
    """

    never: Callable[[Path], str | None] = lambda _: None
    precious: Callable[[Path], str | None] = lambda _: None
    force: bool = False


class _OutputPath(Struct, frozen=True):
    """The path of an output.

    Attributes:
        path: The path that the user named.
        target: The path after all links.
        descriptor: The open descriptor that the path names, such as ``/dev/fd/3``.
    """

    path: Path
    target: Path
    descriptor: int | None = None

    @property
    def is_stream(self) -> bool:
        """True if the path exists and is not a regular file."""
        return self.descriptor is not None or _is_special(self.target)


class Outputs:
    """The output files of one command; ``commit`` writes all of them or none."""

    def __init__(self, rules: ReplacementRules | None = None) -> None:
        self._rules = rules or ReplacementRules()
        self._folders: list[Path] = []
        self._files: list[tuple[_OutputPath, Content]] = []
        self._removed: list[Path] = []

    def check(self, path: Path, *, ours: Callable[[bytes], bool] | None = None) -> None:
        """Refuse a path that cannot or must not be written.

        Args:
            path: The file to write.
            ours: Returns True for the first ``LOOKED_AT`` bytes of a file that this program
                wrote. An existing file is then replaced only if ``ours`` accepts it.

        Raises:
            OutputError: The path cannot be written or examined, or an existing file must stay.
        """
        self._checked_output(path, ours)

    def add(
        self, path: Path, content: Content, *, ours: Callable[[bytes], bool] | None = None
    ) -> None:
        """Add a file to be written, after the same checks as ``check``.

        Args:
            path: The file to write.
            content: A text, in which lone surrogates are escaped as in JSON; or pieces of bytes,
                which ``commit`` reads.
            ours: As in ``check``.

        Raises:
            OutputError: As in ``check``; or the file was added before.
        """
        output = self._checked_output(path, ours)
        if any(output.target == other.target for other, _ in self._files):
            raise OutputError(f"{path}: two outputs of this command name this file; give two files")
        self._files.append((output, content))

    def add_folder(self, folder: Path) -> None:
        """Add a folder for output files, which ``commit`` creates if it is missing.

        Raises:
            OutputError: A file has that name, or the folder is stdout.
        """
        if is_stdout(folder):
            raise OutputError(f"{folder}: is stdout, but several files are written; give a folder")
        if folder.exists() and not folder.is_dir():
            raise OutputError(f"{folder}: is a file; give a folder")
        self._folders.append(folder)

    def remove(self, path: Path) -> None:
        """Let ``commit`` remove a file after the other files are written.

        Raises:
            OutputError: The file must stay.
        """
        if path.exists() or path.is_symlink():
            self._checked_output(path, None)
            self._removed.append(_real_path(path.parent) / path.name)

    def commit(self) -> None:
        """Write the added files and remove files; if a step fails, undo all earlier steps.

        Streams are written last, because writing to a stream cannot be undone. On a file system
        without hard links, replaced files cannot be restored.

        Raises:
            OSError: A file could not be written; the error has the name that the user gave.
        """
        streams = [(output, content) for output, content in self._files if output.is_stream]
        files = [(output, content) for output, content in self._files if not output.is_stream]
        is_single_step = len(files) + len(self._removed) == 1  # then nothing must be undone
        backups: list[Path] = []
        with ExitStack() as undo:
            for folder in self._folders:
                _make_folder(folder, undo)
            drafts = [(output, _write_draft(output, content, undo)) for output, content in files]
            for output, content in streams:
                _write_stream(output, content)
            for output, draft in drafts:
                with _errors_named(output.path):
                    if not is_single_step:
                        backups += _back_up_for_undo(output.target, undo)
                    draft.replace(output.target)
            for target in self._removed:
                backup = _hidden_path_beside(target)
                undo.callback(_restore_target, backup, target)
                with _errors_named(target):
                    target.replace(backup)
                backups.append(backup)
            undo.pop_all()  # all steps have succeeded, so that nothing is undone
        for backup in backups:
            backup.unlink(missing_ok=True)
        targets = [*(output.target for output, _ in files), *self._removed]
        for folder in {target.parent for target in targets}:
            _sync_folder(folder)

    def _checked_output(self, path: Path, ours: Callable[[bytes], bool] | None) -> _OutputPath:
        """Follow the links of a path, and refuse it if it cannot be written.

        Raises:
            OutputError: The path cannot be written, or an existing file must stay.
        """
        output = _output_path(path)
        if output.is_stream:
            return output
        target = output.target
        if target.is_dir():
            raise OutputError(f"{path}: is a folder; give a file to write")
        if not target.parent.is_dir() and not any(
            path.is_relative_to(folder) for folder in self._folders
        ):
            raise OutputError(f"{path.parent}: no such folder; create it first")
        if (reason := self._rules.never(target)) is not None:
            raise OutputError(f"{path}: {reason}; give another file to write")
        if not self._rules.force and (reason := self._reason_to_stay(target, ours)) is not None:
            raise InTheWay(path, reason)
        return output

    def _reason_to_stay(self, target: Path, ours: Callable[[bytes], bool] | None) -> str | None:
        """Return the reason why an existing file needs ``force``; None if it may be replaced."""
        try:
            if ours is not None and target.exists():
                first_bytes = _first_bytes(target)
                if not first_bytes or ours(first_bytes):
                    return None
                return "exists and was not written by mast-tui"
            return self._rules.precious(target)
        except OSError as error:
            return f"the existing file cannot be examined ({error.strerror})"


def write_output(path: Path, text: str) -> None:
    """Write one file completely, or leave an existing file unchanged.

    Args:
        path: The file to write.
        text: Its text.

    Raises:
        OutputError: The path cannot be written.
        OSError: The file could not be written; the error has the name of the path.
    """
    outputs = Outputs()
    outputs.add(path, text)
    outputs.commit()


def is_stream(path: Path) -> bool:
    """Return whether a path exists and is not a regular file, such as a pipe or a device."""
    return _output_path(path).is_stream


def is_stdout(path: Path) -> bool:
    """Return whether a path is the standard output of this program."""
    output = _output_path(path)
    if output.descriptor is not None:
        return output.descriptor == _STDOUT_DESCRIPTOR
    try:
        return output.is_stream and os.path.samestat(output.target.stat(), os.fstat(1))
    except OSError:
        return False


def _output_path(path: Path) -> _OutputPath:
    """Follow the links at the end of a path.

    A link is followed only if it belongs to the user, to root, or to the owner of its target.
    Otherwise another user of a shared folder could choose which file is replaced.

    Raises:
        OutputError: A link must not be followed, or leads to itself.
    """
    if path == _STDOUT:
        return _OutputPath(path, path, _STDOUT_DESCRIPTOR)
    own_descriptors = ("/dev/fd", f"/proc/{os.getpid()}/fd")
    target = path
    for _ in range(_MOST_LINKS):
        has_name = target.name not in ("", "..")
        target = _real_path(target.parent) / target.name if has_name else _real_path(target)
        if str(target.parent) in own_descriptors and target.name.isdecimal():
            return _OutputPath(path, target, int(target.name))
        if not target.is_symlink():
            return _OutputPath(path, target)
        trusted = {os.geteuid(), 0}
        with suppress(OSError):  # the target of the link is missing, or hidden from the user
            trusted.add(target.stat().st_uid)
        if target.lstat().st_uid not in trusted:
            raise OutputError(f"{path}: is a link that another user created; give its target")
        if _is_special(target):
            return _OutputPath(path, target)  # the text of the link may not be a path, as in /proc
        target = target.parent / target.readlink()
    raise OutputError(f"{path}: a link that leads to itself; give another file")


def _real_path(path: Path) -> Path:
    return Path(os.path.realpath(path))  # Path.resolve raises RuntimeError for links in a circle


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LOOKED_AT)


def _safe_pieces(content: Content) -> Iterator[bytes]:
    """Yield a content as bytes, without characters that control a terminal."""
    decoder = getincrementaldecoder("utf-8")("backslashreplace")
    for piece in _byte_pieces(content):
        lines = decoder.decode(piece).split("\n")
        yield "\n".join(map(safe_line, lines)).encode("utf-8", "backslashreplace")


def _byte_pieces(content: Content) -> Iterator[bytes]:
    """Yield a content as bytes."""
    if isinstance(content, str):
        for start in range(0, len(content), _PIECE):
            yield content[start : start + _PIECE].encode("utf-8", "backslashreplace")
    else:
        yield from content


def _write_draft(output: _OutputPath, content: Content, undo: ExitStack) -> Path:
    """Write the content to a new hidden file beside the target."""
    draft = _hidden_path_beside(output.target)
    with _errors_named(output.path):
        # Other users may have prepared files or links in the folder, so only a new file is opened.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(draft, flags, 0o666)
    undo.callback(_unlink_quietly, draft)
    try:
        with _errors_named(output.path):
            if output.target.exists():
                os.fchmod(descriptor, output.target.stat().st_mode & _PERMISSIONS)
        _write_all(descriptor, output.path, content)
        with _errors_named(output.path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return draft


def _write_stream(output: _OutputPath, content: Content) -> None:
    """Write the content to a pipe, a terminal, a device or an open descriptor."""
    sys.stdout.flush()  # earlier output to the same terminal or pipe must come first
    with _errors_named(output.path):
        if output.descriptor is not None:
            descriptor = os.dup(output.descriptor)
        else:
            descriptor = os.open(output.target, os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if output.descriptor is None and stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OutputError(f"{output.path}: was replaced meanwhile; try again")
        is_terminal = os.isatty(descriptor)
        _write_all(descriptor, output.path, _safe_pieces(content) if is_terminal else content)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, path: Path, content: Content) -> None:
    """Write a content completely; one system call may write only a part."""
    for piece in _byte_pieces(content):
        unwritten = memoryview(piece)
        while unwritten:
            with _errors_named(path):
                written_count = os.write(descriptor, unwritten)
            unwritten = unwritten[written_count:]


def _back_up_for_undo(target: Path, undo: ExitStack) -> list[Path]:
    """Keep a backup of a file, if it exists, and let ``undo`` restore the earlier state."""
    if not target.exists():
        undo.callback(_unlink_quietly, target)
        return []
    backup = _hidden_path_beside(target)
    try:
        backup.hardlink_to(target)
    except OSError:
        return []  # without hard links, a backup could not be made and restored in one step
    undo.callback(_restore_target, backup, target)
    return [backup]


def _unlink_quietly(path: Path) -> None:
    with suppress(OSError):  # the first error is the one to report
        path.unlink(missing_ok=True)


def _restore_target(backup: Path, target: Path) -> None:
    with suppress(OSError):  # as above
        backup.replace(target)
        backup.unlink(missing_ok=True)  # two names of one file: replacing did nothing


def _make_folder(folder: Path, undo: ExitStack) -> None:
    """Create a folder and its missing parents; ``undo`` removes those that are empty."""
    missing_folders = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    for parent in reversed(missing_folders):
        with _errors_named(parent, "this folder cannot be created"):
            parent.mkdir()
        undo.callback(_remove_if_empty, parent)


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):  # another program may have put a file into it
        folder.rmdir()


def _hidden_path_beside(target: Path) -> Path:
    return target.with_name(f".mast-tui-{secrets.token_hex(8)}.part")


def _sync_folder(folder: Path) -> None:
    """Write the entries of a folder to the disk."""
    with suppress(OSError):  # not every file system can; the files themselves are on the disk
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _errors_named(path: Path, problem: str = "cannot be written") -> Iterator[None]:
    """Raise errors of the file system with the path that the user named."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, f"{problem}: {error.strerror}", str(path)) from error
