"""The start of the app from the command line, and the streams of its terminal.

Nothing slow is imported before the app checks its terminal.
"""

from __future__ import annotations

import codecs
import os
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TextIO

from mast_tui.cli.command_line import COMMANDS, CommonOptions
from mast_tui.errors import MastError
from mast_tui.safe_text import one_line
from mast_tui.traces.io.named_paths import paths_of
from mast_tui.traces.io.url_secrets import ADDRESSES
from mast_tui.traces.library import samples_folder
from mast_tui.ui.options import AppOptions, in_browser

if TYPE_CHECKING:
    from mast_tui.workspace import Workspace

NO_TERMINAL: Final = (
    "the app needs a terminal. For scripts use the commands: mast-tui inspect, judge, export "
    "(mast-tui --help)"
)

_ERROR_HANDLER: Final = "mast-tui-ascii"
"""The name of ``_ascii_replacement`` in Python's codecs."""

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
"""ASCII replacements of the same width for signs of the app."""


def has_terminal() -> bool:
    """Check whether the app runs in a terminal or a browser."""
    if in_browser(os.environ):
        return True
    # A stream that was closed before the start is None.
    return all(
        stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)
    )


def is_utf8(stream: TextIO) -> bool:
    """Check whether the encoding of a stream is UTF-8."""
    try:
        return codecs.lookup(stream.encoding or "").name == "utf-8"
    except LookupError:
        return False


def replace_closed_streams() -> None:
    """Replace stdout and stderr by the null device if they were closed before the start.

    Otherwise the next opened file would get the number of a closed stream.
    """
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115


def replace_unencodable_characters() -> None:
    """Make stdout and stderr replace characters that their encoding does not have.

    The app draws on stderr.
    """
    for stream in (sys.stdout, sys.stderr):
        # A replaced stream may have no encoding to change.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None and not is_utf8(stream):
            codecs.register_error(_ERROR_HANDLER, _ascii_replacement)
            reconfigure(errors=_ERROR_HANDLER)


def _ascii_replacement(error: UnicodeError) -> tuple[str, int]:
    """Return ASCII text of the same width for unencodable characters.

    The second value is the index at which the encoder continues.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    characters = error.object[error.start : error.end]
    return "".join(map(_ascii_text_of, characters)), error.end


def _ascii_text_of(character: str) -> str:
    """Return ASCII text of the same width for a character."""
    if character in _ASCII:
        return _ASCII[character]
    if ord(character) in _BOX_DRAWING:
        return "+"
    if ord(character) in _BLOCK_ELEMENTS:
        return "#"
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return ""
    return "?" * (2 if unicodedata.east_asian_width(character) in "WF" else 1)


WRONG_USAGE: Final = 2
"""The exit code for wrong usage."""


def start(paths: Sequence[str], common: CommonOptions) -> int:
    """Open the app on paths, or on the sample traces without paths.

    Args:
        paths: The paths as typed.
        common: The common options.

    Returns:
        The exit code.
    """
    try:
        checked_paths = _checked_paths(paths, common)
        if not has_terminal():
            return complain("mast-tui", NO_TERMINAL, WRONG_USAGE)
        options = _app_options(checked_paths, common)
    except MastError as error:
        return complain("mast-tui", str(error))
    except OSError as error:
        return complain("mast-tui", error_text(error))
    # Commands and error messages do not wait for the import of Textual.
    from mast_tui.ui.app import run_app

    return run_app(options)


def _checked_paths(typed: Sequence[str], common: CommonOptions) -> tuple[Path, ...]:
    """Return the typed paths; lists and patterns are replaced by the paths that they name.

    Raises:
        MastError: A path or the taxonomy file does not exist.
    """
    paths = tuple(paths_of(*typed))
    for path in paths:
        if not path.exists():
            raise MastError(f"{path}: {_missing_path_text(str(path))}")
    if common.taxonomy is not None and not common.taxonomy.is_file():
        raise MastError(f"{common.taxonomy}: no such taxonomy file; --taxonomy needs a TOML file")
    return paths


def _app_options(paths: tuple[Path, ...], common: CommonOptions) -> AppOptions:
    """Return the options of the app."""
    password = None
    if common.workspace is not None and "://" in common.workspace:
        # Other starts do not wait for this import.
        asking = import_module("mast_tui.cli.shared.asking")
        password = asking.typed_password(common.workspace)
    return AppOptions(
        paths=paths or (samples_folder(),),
        samples=not paths,
        **common._asdict(),
        fill_new_workspace=None if paths else _fill_samples,
        password=password,
    )


def _fill_samples(workspace: Workspace) -> None:
    # Only the sample traces need this import.
    from mast_tui.exchange.jsonl import fill_samples_workspace

    fill_samples_workspace(workspace)


def _missing_path_text(path: str) -> str:
    """Return the error for a missing path, which may be a misspelt command."""
    from difflib import get_close_matches

    matches = get_close_matches(path, COMMANDS, n=1)
    if matches:
        return f"no such file or folder, and no command; did you mean 'mast-tui {matches[0]}'?"
    return "no such file or folder; give a trace, a folder of traces or a command"


def error_text(error: OSError) -> str:
    """Return the message of an error with the name of its file."""
    if error.strerror:
        prefix = f"{error.filename}: " if error.filename else ""
        return f"{prefix}{error.strerror}"
    return str(error)


def complain(name: str, message: str, code: int = 1) -> int:
    """Report an error on stderr in one line, and return the exit code.

    Args:
        name: The name of the command.
        message: The message.
        code: The exit code.
    """
    if sys.stderr is not None:  # None if it was closed before the start
        sys.stderr.write(f"{name}: {one_line(ADDRESSES.without_secrets(message))}\n")
    return code
