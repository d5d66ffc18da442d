"""The one base of errors that are told to people rather than fixed by programmers."""

from __future__ import annotations

from typing import ClassVar


class MastError(Exception):
    """Something is wrong in the data or the request, and nothing is wrong with the program.

    The message says what, where and what to do, in one or two sentences. A command prints it and
    ends with ``exit_code``; a screen shows it. Any other exception is a bug.
    """

    exit_code: ClassVar[int] = 1
