"""What nobody expected: one line for people, and a log that can be shown to others.

An error's own words, and the values of variables, may hold text of a trace. So the log tells where
in the code it happened and of which type it is, and of its words only what Python made of names.
Nothing heavy is imported here: the command line uses it as well.
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

LOGS_KEPT: Final = 20
"""How many logs stay; the oldest goes when another is written."""

LONGEST_LOG: Final = 64_000
"""Characters of one log at most."""

FRAMES: Final = 60
"""Innermost calls that are told of one error."""

LINKS: Final = 10
"""Errors that are told where one came of another."""

LONGEST_NAME: Final = 60


def log_error(error: BaseException) -> str:
    """Keep a log of an error and say in one line what happened and where the log is.

    Args:
        error: What nobody expected.

    Returns:
        A line that is fit for display and holds nothing of the error's own words.
    """
    return _told(type(error).__name__, log_of(error))


def log_traceback(shown: Traceback) -> str:
    """Do the same where only a traceback is left, which Rich would show."""
    stacks = shown.trace.stacks
    calls = [
        f"{stack.exc_type}\n"
        + "".join(
            f"  {call.filename}:{call.lineno} {call.name}\n" for call in stack.frames[-FRAMES:]
        )
        for stack in stacks[:LINKS]
    ]
    return _told(stacks[0].exc_type, "\n".join([_head(), *calls]))


def _told(name: str, log: str) -> str:
    try:
        place = f"the log is {_keep(log[:LONGEST_LOG])}"
    except OSError as refused:
        place = f"no log could be written: {refused.strerror or type(refused).__name__}"
    return one_line(f"unexpected error ({name}); {place}")


def excepthook(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Be ``sys.excepthook``: one line on stderr in place of a traceback; Python then exits with 1.

    Args:
        kind: The error's type.
        error: What was not caught.
        trace: Where it was raised; the error knows it as well.
    """
    words = "interrupted" if issubclass(kind, KeyboardInterrupt) else log_error(error)
    with suppress(OSError):  # nobody may be there to read it
        sys.stderr.write(f"mast-tui: {words}\n")


def log_of(error: BaseException) -> str:
    """The log of an error: versions, calls and types, without any text of a trace."""
    parts = [_head()]
    for link in _chain(error):
        calls = "".join(traceback.format_tb(link.__traceback__, -FRAMES))
        kind = type(link)
        parts.append(f"{calls}{kind.__module__}.{kind.__qualname__}{_safe_details(link)}\n")
    return "\n".join(parts)


def _head() -> str:
    from importlib.metadata import version

    return (
        f"mast-tui {version('mast-tui')}, Textual {version('textual')}, "
        f"Python {platform.python_version()}, {platform.platform()}\n"
        f"{time.strftime('%Y-%m-%d %H:%M:%S %z')}\n"
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, then those that it came of, or that it is a group of."""
    waiting, seen = [error], set[int]()
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
    """What can be said of an error beside its type, made of names and numbers alone."""
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
        return value[:LONGEST_NAME]
    return "…"


def _keep(text: str) -> Path:
    """Write a log for this user's eyes alone, and let the oldest ones go.

    Raises:
        OSError: It cannot be written.
    """
    from platformdirs import user_log_path

    folder = user_log_path("mast-tui")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    descriptor, place = tempfile.mkstemp(
        dir=folder, prefix=time.strftime("crash-%Y%m%d-%H%M%S-"), suffix=".log"
    )
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
    for old in sorted(folder.glob("crash-*.log"))[:-LOGS_KEPT]:
        with suppress(OSError):
            old.unlink()
    return Path(place)
