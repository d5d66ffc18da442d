"""The files under a folder, and which of them are not looked into because of their names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mast_tui.traces.io.file_kinds import reason_by_name
from mast_tui.traces.io.remote import RemotePath, is_row, table_of
from mast_tui.traces.trials import Trial, trial_in


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing under a folder: a file to look into, or why it is ``skipped`` or has ``failed``.

    With ``trial`` it is a folder, which is read as the one run that it holds. ``real`` is the path
    without links, where it is known.
    """

    path: Path
    skipped: str | None = None
    failed: str | None = None
    trial: Trial | None = None
    real: str | None = None


def entries_under(folder: Path) -> Iterator[Entry]:
    """Everything under ``folder`` in sorted order, files before the folders beside them.

    Hidden folders are named once and not entered; a folder reached twice through links is
    entered once. The rows of a table of traces are the files of a folder.
    """
    if not isinstance(folder, RemotePath):
        yield from _entries(folder, set())
        return
    try:
        below = folder.below(fresh=True)
    except OSError as error:
        yield Entry(folder, failed=error.strerror or str(error))
        return
    yield from _far_entries(folder, below)


def _far_entries(folder: Path, below: Sequence[str]) -> Iterator[Entry]:
    """What is in a folder that lies elsewhere, of which all files below it are known."""
    folders: dict[str, list[str]] = {}
    files = []
    for name in below:
        first, inside, rest = name.partition("/")
        if inside:
            folders.setdefault(first, []).append(rest)
        else:
            files.append(name)
    if (entry := _trial_entry(folder, frozenset((*files, *folders)))) is not None:
        yield entry
        if entry.trial is not None:
            return
    for name in files:
        yield from _file_entries(folder / name, str(folder / name))
    for name, inside_it in folders.items():
        if name.startswith("."):
            yield Entry(folder / name, skipped="hidden folder")
        else:
            yield from _far_entries(folder / name, inside_it)


def _file_entries(path: Path, real: str | None) -> Iterator[Entry]:
    table = table_of(path)
    if table is None:
        skipped = None if is_row(path) else reason_by_name(path)
        yield Entry(path, skipped=skipped, real=real)
    else:
        yield from entries_under(table)


def _trial_entry(folder: Path, names: frozenset[str]) -> Entry | None:
    try:
        trial = trial_in(folder, names)
    except OSError as error:  # its files are read as any others then
        return Entry(folder, failed=error.strerror or str(error))
    return None if trial is None else Entry(folder, trial=trial)


def _entries(folder: Path, entered: set[Path]) -> Iterator[Entry]:
    try:
        real = folder.resolve(strict=True)
        with os.scandir(folder) as found:
            members = sorted(found, key=lambda member: member.name)
    except OSError as error:
        yield Entry(folder, failed=error.strerror or str(error))
        return
    if real in entered:
        return
    entered.add(real)
    if (entry := _trial_entry(folder, frozenset(member.name for member in members))) is not None:
        yield entry
        if entry.trial is not None:
            return
    folders = []
    for member in members:
        if _is_folder(member):
            folders.append(member)
        else:
            path = folder / member.name
            at = None if member.is_symlink() else f"{real}{os.sep}{member.name}"
            yield from _file_entries(path, at)
    for member in folders:
        if member.name.startswith("."):
            yield Entry(folder / member.name, skipped="hidden folder")
        else:
            yield from _entries(folder / member.name, entered)


def _is_folder(member: os.DirEntry[str]) -> bool:
    """Whether it is a folder; a link that leads nowhere, or to itself, is told of as a file."""
    try:
        return member.is_dir()
    except OSError:
        return False
