"""Reports of unexpected errors: one line for the user, and a log that can be shared.

The message of an error and the values of variables may contain text of a trace. So the log has only
the type of the error, its position in the code, and details that are names of code. Nothing heavy
is imported here, because the command line uses it as well.
"""

from __future__ import annotations

import errno
import os
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

from mast_tui.safe_text import one_line

if TYPE_CHECKING:
    from rich.traceback import Traceback

MAX_LOGS: Final = 20
"""The number of logs; the oldest is deleted when another is written."""

MAX_LOG_CHARS: Final = 64_000
"""The most characters of a log."""

FRAMES: Final = 60
"""The number of innermost calls in the log of an error."""

LINKS: Final = 10
"""The number of chained errors in a log."""

MAX_NAME_CHARS: Final = 60


def log_error(error: BaseException) -> str:
    """Write a log of an error.

    Args:
        error: The unexpected error.

    Returns:
        A line, fit for display, that names the type of the error and the file of the log.
    """
    return _log_and_describe(type(error).__name__, log_of(error))


def log_traceback(rich_traceback: Traceback) -> str:
    """Write a log of a traceback of Rich; return a line as ``log_error`` does."""
    stacks = rich_traceback.trace.stacks
    calls = [
        f"{stack.exc_type}\n"
        + "".join(
            f"  {call.filename}:{call.lineno} {call.name}\n" for call in stack.frames[-FRAMES:]
        )
        for stack in stacks[:LINKS]
    ]
    return _log_and_describe(stacks[0].exc_type, "\n".join([_head(), *calls]))


def _log_and_describe(name: str, log: str) -> str:
    try:
        result = f"the log is {_write_log(log[:MAX_LOG_CHARS])}"
    except OSError as refused:
        result = f"no log could be written: {refused.strerror or type(refused).__name__}"
    return one_line(f"unexpected error ({name}); {result}")


def excepthook(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Replace ``sys.excepthook``: print one line instead of a traceback. Python then exits with 1.

    Args:
        kind: The type of the error.
        error: The error that was not caught.
        trace: Its traceback, which the error has as well.
    """
    message = "interrupted" if issubclass(kind, KeyboardInterrupt) else log_error(error)
    with suppress(OSError):  # stderr may be closed
        sys.stderr.write(f"mast-tui: {message}\n")


def log_of(error: BaseException) -> str:
    """Return the log of an error: versions, calls and types, without text of a trace."""
    parts = [_head()]
    for link in _chain(error):
        calls = "".join(traceback.format_tb(link.__traceback__, -FRAMES))
        kind = type(link)
        parts.append(f"{calls}{kind.__module__}.{kind.__qualname__}{_safe_details(link)}\n")
    return "\n".join(parts)


def _head() -> str:
    """Return the versions and the time at the beginning of a log."""
    from importlib.metadata import version

    return (
        f"mast-tui {version('mast-tui')}, Textual {version('textual')}, "
        f"Python {platform.python_version()}, {platform.platform()}\n"
        f"{time.strftime('%Y-%m-%d %H:%M:%S %z')}\n"
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, then its causes and the members of its group."""
    waiting = [error]
    seen = set[int]()
    while waiting and len(seen) < LINKS:
        link = waiting.pop(0)
        if id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        if isinstance(link, BaseExceptionGroup):
            waiting += link.exceptions
        cause = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
        if cause is not None:
            waiting.append(cause)


def _safe_details(error: BaseException) -> str:
    """Return the details of an error that consist of names and numbers only."""
    if isinstance(error, OSError) and error.errno is not None:
        return f": {errno.errorcode.get(error.errno, error.errno)}, {os.strerror(error.errno)}"
    if isinstance(error, AttributeError):
        return f": {type(error.obj).__name__} has no {_name(error.name)}"
    if isinstance(error, NameError | ImportError):
        return f": {_name(error.name)}"
    database = getattr(error, "sqlite_errorname", None)
    return f": {_name(database)}" if database is not None else ""


def _name(value: object) -> str:
    if isinstance(value, str) and value.replace(".", "_").isidentifier():
        return value[:MAX_NAME_CHARS]
    return "…"


def _write_log(text: str) -> Path:
    """Write a log that only this user can read, and delete the oldest ones.

    Raises:
        OSError: It cannot be written.
    """
    from platformdirs import user_log_path

    folder = user_log_path("mast-tui")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    descriptor, path = tempfile.mkstemp(
        dir=folder, prefix=time.strftime("crash-%Y%m%d-%H%M%S-"), suffix=".log"
    )
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
    for old in sorted(folder.glob("crash-*.log"))[:-MAX_LOGS]:
        with suppress(OSError):
            old.unlink()
    return Path(path)
