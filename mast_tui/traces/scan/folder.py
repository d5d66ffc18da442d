"""The files under a folder, and which of them are not looked into because of their names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mast_tui.traces.io.file_kinds import reason_by_name
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
    entered once.
    """
    yield from _entries(folder, set())


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
    try:
        trial = trial_in(folder, frozenset(member.name for member in members))
    except OSError as error:  # its files are read as any others then
        yield Entry(folder, failed=error.strerror or str(error))
        trial = None
    if trial is not None:
        yield Entry(folder, trial=trial)
        return
    folders = []
    for member in members:
        if _is_folder(member):
            folders.append(member)
        else:
            path = folder / member.name
            at = None if member.is_symlink() else f"{real}{os.sep}{member.name}"
            yield Entry(path, skipped=reason_by_name(path), real=at)
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
