"""The start of the app from the command line, and the terminal in which it runs.

Nothing heavy is imported here: the app checks its terminal before its first frame.
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
    """Return whether the encoding of a stream is UTF-8, which has every character."""
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
    """Return ASCII text of the same width in place of characters that could not be encoded.

    The second value is the index at which the encoder continues.
    """
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


WRONG_USAGE: Final = 2
"""The exit code for wrong usage of the command line."""


def start(paths: Sequence[str], common: CommonOptions) -> int:
    """Open the app on paths, or on the sample traces if there are none.

    Args:
        paths: The paths as the user typed them.
        common: The common options.

    Returns:
        The exit code. A missing path or terminal is reported on stderr before a screen opens.
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
    # Commands and error messages must not wait for the import of Textual.
    from mast_tui.ui.app import run_app

    return run_app(options)


def _checked_paths(typed: Sequence[str], common: CommonOptions) -> tuple[Path, ...]:
    """Return the paths to open, all of which exist; none if none were typed.

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
    """Return the options of the app; ask for the password of a workspace on a server first."""
    password = None
    if common.workspace is not None and "://" in common.workspace:
        # Imported here for a fast start: only a workspace on a server may need a password.
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
    # Start-up: only the sample traces need it, once the workspace is open.
    from mast_tui.exchange.jsonl import fill_samples_workspace

    fill_samples_workspace(workspace)


def _missing_path_text(path: str) -> str:
    """Return the error for a missing path, with the command of a similar name, if any."""
    from difflib import get_close_matches

    matches = get_close_matches(path, COMMANDS, n=1)
    if matches:
        return f"no such file or folder, and no command; did you mean 'mast-tui {matches[0]}'?"
    return "no such file or folder; give a trace, a folder of traces or a command"


def error_text(error: OSError) -> str:
    """Return the message of an error, after the name of its file if it has one."""
    if error.strerror:
        prefix = f"{error.filename}: " if error.filename else ""
        return f"{prefix}{error.strerror}"
    return str(error)


def complain(name: str, message: str, code: int = 1) -> int:
    """Report an error on stderr in one line.

    Args:
        name: The command.
        message: The message.
        code: The exit code.

    Returns:
        The exit code.
    """
    if sys.stderr is not None:  # it may have been closed before the start
        sys.stderr.write(f"{name}: {one_line(ADDRESSES.without_secrets(message))}\n")
    return code
