"""The terminal that mast-tui runs in: its presence, and the characters that it can show.

Nothing heavy is imported here: the app checks its terminal before its first frame.
"""

from __future__ import annotations

import codecs
import os
import sys
import unicodedata
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TextIO

from mast_tui.ui.options import in_browser

NO_TERMINAL: Final = (
    "the app needs a terminal. For scripts use the commands: mast-tui inspect, judge, export "
    "(mast-tui --help)"
)

_ERROR_HANDLER: Final = "mast-tui-ascii"
"""The name under which Python's codecs know ``_ascii_replacement``."""

_BOX_DRAWING: Final = range(0x2500, 0x2580)
_BLOCK_ELEMENTS: Final = range(0x2580, 0x25A0)
_ASCII: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys("─━┄┅┈┉╌╍═╴╶╸╺╼╾", "-"),
        **dict.fromkeys("│┃┆┇┊┋╎╏║╵╷╹╻╽╿▌▏▎▍▐▕", "|"),
        **dict.fromkeys("╱⁄", "/"),
        **dict.fromkeys("−–—‐‑", "-"),
        **dict.fromkeys("‘’", "'"),
        **dict.fromkeys("“”", '"'),
        **dict.fromkeys("●✓•◆", "*"),
        **dict.fromkeys("◌○◐", "o"),
        **dict.fromkeys("→▶▸", ">"),
        **dict.fromkeys("←◀◂", "<"),
        **dict.fromkeys("↑▲", "^"),
        **dict.fromkeys("↓▼▾", "v"),
        **dict.fromkeys("✗╳", "x"),
        "╲": "\\",
        "█": "#",
        "▓": "%",
        "▒": ":",
        "░": ".",
        "▁": "_",
        "…": ".",
        "α": "a",
        "κ": "k",
    }
)
"""Replacements of the same width for signs that mast-tui draws."""


def has_terminal() -> bool:
    """Return whether the app can draw and read keys: in a terminal or in a browser."""
    if in_browser(os.environ):
        return True
    # A stream that was closed before the start is None.
    return all(
        stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)
    )


def is_utf8(stream: TextIO) -> bool:
    """Return whether a stream can show every character."""
    try:
        return codecs.lookup(stream.encoding or "").name == "utf-8"
    except LookupError:
        return False


def replace_closed_streams() -> None:
    """Replace stdout and stderr by the null device if they were closed before the start (``>&-``).

    Python then has None for them, and the next opened file would get the number of the stream.
    """
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115


def replace_unencodable_characters() -> None:
    """Make stdout and stderr replace the characters that their encoding does not have.

    The app draws on stderr, so this holds for its frames as well.
    """
    for stream in (sys.stdout, sys.stderr):
        # A stream that a program has put in place of the real one may have no encoding to change.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None and not is_utf8(stream):
            codecs.register_error(_ERROR_HANDLER, _ascii_replacement)
            reconfigure(errors=_ERROR_HANDLER)


def _ascii_replacement(error: UnicodeError) -> tuple[str, int]:
    """Replace the characters that could not be encoded by ASCII of the same width."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    characters = error.object[error.start : error.end]
    return "".join(map(_ascii_text_of, characters)), error.end


def _ascii_text_of(character: str) -> str:
    """Return an ASCII text of the same width for a character."""
    if character in _ASCII:
        return _ASCII[character]
    if ord(character) in _BOX_DRAWING:
        return "+"
    if ord(character) in _BLOCK_ELEMENTS:
        return "#"
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return ""
    return "?" * (2 if unicodedata.east_asian_width(character) in "WF" else 1)
