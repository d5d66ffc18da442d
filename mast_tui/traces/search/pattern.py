"""Regular expressions to look for, matched in a process of their own."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Sequence
from subprocess import DEVNULL, PIPE, Popen
from threading import Lock
from typing import Final

from mast_tui.errors import MastError
from mast_tui.traces.byte_prefilter import Sieve
from mast_tui.traces.search import pattern_child
from mast_tui.traces.search.pattern_child import BUDGET, COUNT, NUMBER, PLACES, packed
from mast_tui.traces.search.required_literals import needs_of
from mast_tui.traces.search.text_search import MOST_MATCHES, TooSlow

SECONDS: Final = 1.0
"""How long a pattern may take on one text, in seconds of computing."""

_ESCAPED: Final = re.compile(r"\\.", re.DOTALL)


class InvalidPattern(MastError, ValueError):
    """The text is no regular expression; the message says why."""


class Pattern:
    """A regular expression: case counts where it has a capital, or is ``exact``; ``^`` and ``$``
    mean lines.

    Raises ``InvalidPattern``. ``count`` and ``places`` raise ``TooSlow`` where a text takes longer
    than ``seconds`` (``SECONDS``); they may be called from any thread.
    """

    def __init__(self, text: str, seconds: float | None = None, *, exact: bool = False) -> None:
        plain = _ESCAPED.sub("", text)
        self.exact = exact or plain != plain.lower()
        self._flags = re.MULTILINE | (0 if self.exact else re.IGNORECASE)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                re.compile(text, self._flags)
        except (re.error, OverflowError, RecursionError) as error:
            raise InvalidPattern(str(error)) from None
        self._text = text
        needs = needs_of(text, exact=self.exact)
        self._sieve = None if needs is None else Sieve.for_any(needs)
        self._seconds = SECONDS if seconds is None else seconds
        self._process: Popen[bytes] | None = None
        self._closed = False
        self._lock = Lock()

    @property
    def sieve(self) -> Sieve | None:
        """What tells early that a text cannot match: literal text in the pattern."""
        return self._sieve

    def count(self, text: str, shown: Callable[[], tuple[str, ...]], /) -> int:
        """How often it stands in ``text``; 1 where only a line that is ``shown`` has it."""
        with self._lock:
            found = self._ask(COUNT, text, "\n".join(shown()), 0)
        return found[0]

    def places(self, text: str, /) -> Sequence[tuple[int, int]]:
        """Where it stands in ``text``, one place not overlapping the next."""
        with self._lock:
            found = self._ask(PLACES, text, "", 2)
        return list(zip(found[1::2], found[2::2], strict=True))

    def close(self) -> None:
        """End its process. What is asked of it after that finds nothing."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()  # whoever waits for an answer is told that it has ended
        with self._lock:
            self._end()

    def _ask(self, kind: bytes, text: str, shown: str, each: int) -> list[int]:
        """The number that is answered, and ``each`` times as many behind it."""
        if self._closed:
            return [0]
        try:
            if self._process is None:
                self._process = self._begin()
                self._tell_pattern(self._process)
            numbers = self._exchange(self._process, kind + packed(text) + packed(shown), each)
        except OSError:
            numbers = None
        if numbers is not None:
            return numbers
        self._end()
        if self._closed:
            return [0]
        raise TooSlow

    @staticmethod
    def _begin() -> Popen[bytes]:
        script = pattern_child.__file__
        return Popen([sys.executable, "-I", "-S", script], stdin=PIPE, stdout=PIPE, stderr=DEVNULL)

    def _tell_pattern(self, process: Popen[bytes]) -> None:
        assert process.stdin is not None
        head = packed(self._text) + packed(str(int(self._flags))) + packed(str(MOST_MATCHES))
        process.stdin.write(head + BUDGET.pack(self._seconds))

    @staticmethod
    def _exchange(process: Popen[bytes], asked: bytes, each: int) -> list[int] | None:
        """What the process answers; None where it has ended."""
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(asked)
        process.stdin.flush()
        head = process.stdout.read(NUMBER.size)
        if len(head) < NUMBER.size:
            return None
        (count,) = NUMBER.unpack(head)
        body = process.stdout.read(each * count * NUMBER.size)
        if len(body) < each * count * NUMBER.size:
            return None
        return [count, *(number for (number,) in NUMBER.iter_unpack(body))]

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            try:
                if stream is not None:
                    stream.close()
            except OSError:  # what was still to be written has nobody to read it
                continue
