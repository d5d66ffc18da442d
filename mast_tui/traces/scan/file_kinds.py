"""The kinds of files by their names, and the files that are left out because of them.

This module imports no readers, for a fast start of the app.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

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
_READ_SUFFIXES: Final = frozenset({".parquet"})
"""The suffixes of tables that may hold traces."""

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
    """Return why the name of a file in a folder rules it out; None if its content must decide."""
    if path.name.startswith("."):
        return "hidden file"
    stem = path.name.split(".", 1)[0].lower()
    if stem in _DOCUMENT_NAMES and path.suffix.lower() in ("", ".txt", ".cff"):
        return "document"
    if stem in _CODE_NAMES and path.suffix.lower() in ("", ".txt"):
        return "code"
    kind = kind_by_name(path)
    return None if path.suffix.lower() in _READ_SUFFIXES else kind


def reason_by_neighbours(name: str, names: Collection[str]) -> str | None:
    """Return why a file is left out that repeats a session beside it, else None.

    Grok writes a log of its protocol beside the messages of a session, and OpenClaw a trajectory.

    Args:
        name: The name of the file.
        names: The names of the files in its folder.
    """
    if name == "updates.jsonl":
        session_name = "chat_history.jsonl"
    elif name.endswith(".trajectory.jsonl"):
        session_name = name.removesuffix(".trajectory.jsonl") + ".jsonl"
    else:
        return None
    return f"the same session as in {session_name}" if session_name in names else None


def kind_by_name(path: Path) -> str | None:
    """Return the kind of a file by its suffix, such as document, code or table; None if unknown."""
    return _KIND_OF_SUFFIX.get(path.suffix.lower())
