"""Reports of unexpected errors: a line for the user, and a log that can be shared.

Messages of errors and values of variables may contain text of a trace. So the log has only the type
of the error, the position in the code, and details that are names of code. The command line imports
this module too, so it imports nothing heavy.
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
from typing import Final

from mast_tui.safe_text import one_line

MAX_LOGS: Final = 20
"""The number of logs. A further log replaces the oldest one."""

MAX_LOG_CHARS: Final = 64_000
"""The most characters of a log."""

MAX_FRAMES: Final = 60
"""The number of innermost calls in the log of an error."""

MAX_CHAINED_ERRORS: Final = 10
"""The number of chained errors in a log."""

MAX_NAME_CHARS: Final = 60


def log_error(error: BaseException) -> str:
    """Write a log of an error.

    Args:
        error: The unexpected error.

    Returns:
        A line with the type of the error and the file of the log, or the reason why there is no
        log.
    """
    try:
        result = f"the log is {_write_log(log_of(error)[:MAX_LOG_CHARS])}"
    except OSError as write_error:
        reason = write_error.strerror or type(write_error).__name__
        result = f"no log could be written: {reason}"
    return one_line(f"unexpected error ({type(error).__name__}); {result}")


def excepthook(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Log an uncaught error, and print one line instead of a traceback.

    This replaces ``sys.excepthook``. Python then exits with 1.

    Args:
        kind: The type of the error.
        error: The error.
        trace: The traceback, which is also part of the error.
    """
    message = "interrupted" if issubclass(kind, KeyboardInterrupt) else log_error(error)
    with suppress(OSError):  # stderr may be closed
        sys.stderr.write(f"mast-tui: {message}\n")


def log_of(error: BaseException) -> str:
    """Return the log of an error, without text of a trace."""
    parts = [_log_heading()]
    for linked_error in _linked_errors(error):
        calls = "".join(traceback.format_tb(linked_error.__traceback__, -MAX_FRAMES))
        kind = type(linked_error)
        details = _safe_details(linked_error)
        parts.append(f"{calls}{kind.__module__}.{kind.__qualname__}{details}\n")
    return "\n".join(parts)


def _log_heading() -> str:
    """Return the versions and the time at the beginning of a log."""
    from importlib.metadata import version

    return (
        f"mast-tui {version('mast-tui')}, Textual {version('textual')}, "
        f"Python {platform.python_version()}, {platform.platform()}\n"
        f"{time.strftime('%Y-%m-%d %H:%M:%S %z')}\n"
    )


def _linked_errors(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its causes and the members of its group, at most ``MAX_CHAINED_ERRORS``."""
    queue = [error]
    seen_ids = set[int]()
    while queue and len(seen_ids) < MAX_CHAINED_ERRORS:
        linked_error = queue.pop(0)
        if id(linked_error) in seen_ids:
            continue
        seen_ids.add(id(linked_error))
        yield linked_error
        if isinstance(linked_error, BaseExceptionGroup):
            queue += linked_error.exceptions
        cause = linked_error.__cause__
        if cause is None and not linked_error.__suppress_context__:
            cause = linked_error.__context__
        if cause is not None:
            queue.append(cause)


def _safe_details(error: BaseException) -> str:
    """Return the details of an error that are only names and numbers; empty for none."""
    if isinstance(error, OSError) and error.errno is not None:
        return f": {errno.errorcode.get(error.errno, error.errno)}, {os.strerror(error.errno)}"
    if isinstance(error, AttributeError):
        return f": {type(error.obj).__name__} has no {_safe_name(error.name)}"
    if isinstance(error, NameError | ImportError):
        return f": {_safe_name(error.name)}"
    sqlite_error = getattr(error, "sqlite_errorname", None)
    return f": {_safe_name(sqlite_error)}" if sqlite_error is not None else ""


def _safe_name(value: object) -> str:
    """Return a value that is a name of code, shortened; an ellipsis for any other value."""
    if isinstance(value, str) and value.replace(".", "_").isidentifier():
        return value[:MAX_NAME_CHARS]
    return "…"


def _write_log(text: str) -> Path:
    """Write a log for this user alone, delete the oldest logs, and return its path."""
    from platformdirs import user_log_path

    folder = user_log_path("mast-tui")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    descriptor, path = tempfile.mkstemp(
        dir=folder, prefix=time.strftime("crash-%Y%m%d-%H%M%S-"), suffix=".log"
    )
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
    for old_log in sorted(folder.glob("crash-*.log"))[:-MAX_LOGS]:
        with suppress(OSError):
            old_log.unlink()
    return Path(path)
