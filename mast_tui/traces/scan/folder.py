"""The files under a folder, and which of them are not looked into because of their names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mast_tui.traces.io.remote import RemotePath, is_row, table_of
from mast_tui.traces.trials import Trial, trial_in

_KINDS: Final[Mapping[str, str]] = {
    "document": ".md .markdown .rst .adoc .pdf .html .htm .tex .bib .doc .docx .odt .pptx .ipynb",
    "code": (
        ".py .pyi .js .mjs .ts .tsx .jsx .sh .bash .zsh .fish .rb .go .rs .c .h .cc .cpp .hpp "
        ".java .kt .cs .php .pl .lua .r .sql .css .scss .ps1 .patch .diff .tcss"
    ),
    "configuration": ".toml .yaml .yml .ini .cfg .conf .lock .env .xml .properties",
    "image": ".png .jpg .jpeg .gif .svg .webp .bmp .ico .tif .tiff",
    "table": ".csv .tsv .parquet .xlsx .xls",
    "recording": ".mp3 .mp4 .wav .webm .mov .cast",
    "database": ".db .sqlite .sqlite3 .db-wal .db-shm .db-journal",
}
_KIND_OF_SUFFIX: Final[Mapping[str, str]] = {
    suffix: kind for kind, suffixes in _KINDS.items() for suffix in suffixes.split()
}
_LOOKED_INTO: Final = frozenset({".parquet"})
"""Tables that may hold traces all the same."""

_DOCUMENT_NAMES: Final = frozenset(
    {
        "authors",
        "changelog",
        "changes",
        "citation",
        "contributing",
        "copying",
        "licence",
        "license",
        "notice",
        "readme",
        "security",
    }
)
_CODE_NAMES: Final = frozenset({"makefile", "dockerfile", "requirements"})


def reason_by_name(path: Path) -> str | None:
    """Return why a file that the user has not named is left out; None if its content decides."""
    if path.name.startswith("."):
        return "hidden file"
    stem = path.name.split(".", 1)[0].lower()
    if stem in _DOCUMENT_NAMES and path.suffix.lower() in ("", ".txt", ".cff"):
        return "document"
    if stem in _CODE_NAMES and path.suffix.lower() in ("", ".txt"):
        return "code"
    kind = kind_by_name(path)
    return None if path.suffix.lower() in _LOOKED_INTO else kind


def kind_by_name(path: Path) -> str | None:
    """Return the kind of a file by its suffix: document, code, table and so on; else None."""
    return _KIND_OF_SUFFIX.get(path.suffix.lower())


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """One thing under a folder: a file to look into, or why it is ``skipped`` or has ``failed``.

    With ``trial`` it is a folder, which is read as the one run that it holds. ``real`` is the path
    without links, where it is known.
    """

    path: Path
    skipped: str | None = None
    failed: str | None = None
    trial: Trial | None = None
    real: str | None = None


def entries_under(folder: Path) -> Iterator[FolderEntry]:
    """Yield everything under ``folder`` in sorted order, files before the folders beside them.

    Hidden folders are named once and not entered; a folder reached twice through links is
    entered once. The rows of a table of traces are the files of a folder.
    """
    if not isinstance(folder, RemotePath):
        yield from _entries(folder, set())
        return
    try:
        below = folder.below(fresh=True)
    except OSError as error:
        yield FolderEntry(folder, failed=error.strerror or str(error))
        return
    yield from _far_entries(folder, below)


def _far_entries(folder: Path, below: Sequence[str]) -> Iterator[FolderEntry]:
    """Yield the entries of a remote folder, of which all files below it are known."""
    folders: dict[str, list[str]] = {}
    files = []
    for name in below:
        first, inside, below_it = name.partition("/")
        if inside:
            folders.setdefault(first, []).append(below_it)
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
            yield FolderEntry(folder / name, skipped="hidden folder")
        else:
            yield from _far_entries(folder / name, inside_it)


def _file_entries(path: Path, real: str | None) -> Iterator[FolderEntry]:
    table = table_of(path)
    if table is None:
        skipped = None if is_row(path) else reason_by_name(path)
        yield FolderEntry(path, skipped=skipped, real=real)
    else:
        yield from entries_under(table)


def _trial_entry(folder: Path, names: frozenset[str]) -> FolderEntry | None:
    try:
        trial = trial_in(folder, names)
    except OSError as error:  # its files are read as any others then
        return FolderEntry(folder, failed=error.strerror or str(error))
    return None if trial is None else FolderEntry(folder, trial=trial)


def _entries(folder: Path, entered: set[Path]) -> Iterator[FolderEntry]:
    """Yield the entries of a folder; a folder in ``entered`` is passed over."""
    try:
        real = folder.resolve(strict=True)
        with os.scandir(folder) as members_iterator:
            members = sorted(members_iterator, key=lambda member: member.name)
    except OSError as error:
        yield FolderEntry(folder, failed=error.strerror or str(error))
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
            real_path = None if member.is_symlink() else f"{real}{os.sep}{member.name}"
            yield from _file_entries(path, real_path)
    for member in folders:
        if member.name.startswith("."):
            yield FolderEntry(folder / member.name, skipped="hidden folder")
        else:
            yield from _entries(folder / member.name, entered)


def _is_folder(member: os.DirEntry[str]) -> bool:
    """Return whether it is a folder; a link that leads nowhere, or to itself, counts as a file."""
    try:
        return member.is_dir()
    except OSError:
        return False
