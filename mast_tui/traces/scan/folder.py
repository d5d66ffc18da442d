"""The files under a folder."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mast_tui.traces.io.remote import RemotePath, is_row, table_of
from mast_tui.traces.scan.file_kinds import reason_by_name, reason_by_neighbours
from mast_tui.traces.trials import Trial, trial_in


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """A file or folder under a folder.

    Attributes:
        path: The path.
        skipped: The reason why it is left out.
        failed: The reason why it cannot be read.
        trial: The trial, if the folder is read as one run.
        real: The path without links; None if unknown.
    """

    path: Path
    skipped: str | None = None
    failed: str | None = None
    trial: Trial | None = None
    real: str | None = None


def entries_under(folder: Path) -> Iterator[FolderEntry]:
    """Yield an entry for each file under ``folder``, in sorted order.

    - The files of a folder come before its folders.
    - A hidden folder is one entry, without its files.
    - A folder with several links to it is entered once.
    - A table of traces is a folder with its rows as files.
    """
    if not isinstance(folder, RemotePath):
        yield from _local_entries(folder, set())
        return
    try:
        file_paths = folder.below(fresh=True)
    except OSError as error:
        yield FolderEntry(folder, failed=error.strerror or str(error))
        return
    yield from _remote_entries(folder, file_paths)


def _remote_entries(folder: Path, file_paths: Sequence[str]) -> Iterator[FolderEntry]:
    """Yield the entries of a remote folder, from the relative paths of all files in it."""
    paths_by_folder: dict[str, list[str]] = {}
    files: dict[str, str | None] = {}
    for file_path in file_paths:
        name, slash, path_in_folder = file_path.partition("/")
        if slash:
            paths_by_folder.setdefault(name, []).append(path_in_folder)
        else:
            files[name] = str(folder / name)
    subfolders = {
        name: _remote_entries(folder / name, paths) for name, paths in paths_by_folder.items()
    }
    yield from _entries_of_members(folder, files, subfolders)


def _entries_of_members(
    folder: Path,
    files: Mapping[str, str | None],
    subfolders: Mapping[str, Iterator[FolderEntry]],
) -> Iterator[FolderEntry]:
    """Yield the entry of a folder that is a trial, or else the entries of its members.

    ``files`` has the paths of its files without links (None if unknown), ``subfolders`` the entries
    of its folders, both by name.
    """
    entry = _trial_entry(folder, frozenset((*files, *subfolders)))
    if entry is not None:
        yield entry
        if entry.trial is not None:  # its files are read as one run
            return
    for name, real_path in files.items():
        yield from _file_entries(folder / name, real_path, files)
    for name, entries in subfolders.items():
        if name.startswith("."):
            yield FolderEntry(folder / name, skipped="hidden folder")
        else:
            yield from entries


def _file_entries(path: Path, real: str | None, names: Collection[str]) -> Iterator[FolderEntry]:
    """Yield the entry of a file, or the entries of the rows of a table of traces.

    ``real`` is its path without links, ``names`` the names of the files in its folder.
    """
    table = table_of(path)
    if table is None:
        reason = reason_by_neighbours(path.name, names) or reason_by_name(path)
        skipped = None if is_row(path) else reason  # the name of a row is an id, not a file's name
        yield FolderEntry(path, skipped=skipped, real=real)
    else:
        yield from entries_under(table)


def _trial_entry(folder: Path, names: frozenset[str]) -> FolderEntry | None:
    """Return the entry of a folder with a trial (one run in several files), if it is one.

    If a file of the trial cannot be read, the entry has ``failed`` and no ``trial``.
    """
    try:
        trial = trial_in(folder, names)
    except OSError as error:
        return FolderEntry(folder, failed=error.strerror or str(error))
    return None if trial is None else FolderEntry(folder, trial=trial)


def _local_entries(folder: Path, entered: set[Path]) -> Iterator[FolderEntry]:
    """Yield the entries of a folder, unless it is in ``entered``, and add it there."""
    try:
        real_folder = folder.resolve(strict=True)
        with os.scandir(folder) as members_iterator:
            members = sorted(members_iterator, key=lambda member: member.name)
    except OSError as error:
        yield FolderEntry(folder, failed=error.strerror or str(error))
        return
    if real_folder in entered:
        return
    entered.add(real_folder)
    files = {
        member.name: None if member.is_symlink() else f"{real_folder}{os.sep}{member.name}"
        for member in members
        if not _is_folder(member)
    }
    subfolders = {
        member.name: _local_entries(folder / member.name, entered)
        for member in members
        if member.name not in files
    }
    yield from _entries_of_members(folder, files, subfolders)


def _is_folder(member: os.DirEntry[str]) -> bool:
    """Return whether a member is a folder; a broken link is none."""
    try:
        return member.is_dir()
    except OSError:
        return False
