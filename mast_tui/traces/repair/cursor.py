"""The place in a broken document up to which it is read, and what was wrong before it."""

from __future__ import annotations

import json
import re
from typing import Final

from mast_tui.traces.io.json_values import without_surrogates
from mast_tui.traces.model import Problem
from mast_tui.traces.repair.patterns import SPACE, Marks

MISSING: Final = object()
"""Stands for a value that cannot be read."""

_SCANS: Final = 24
"""How often the text may be gone over, on average, in attempts that fail."""

_WINDOW: Final = 1 << 16
_LOOKED_BACK: Final = 1 << 10
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")

_LISTED_PROBLEMS: Final = 200


class Complaints:
    """The problems of a text, one a line; of a text broken all over only the first are listed.

    Places are given as offsets into what is left of the text, and only ever grow.
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._line = 1
        self._counted = 0
        self._said_on = 0

    def add(self, text: str, pos: int, message: str, again: bool = False) -> None:
        """Note what is wrong at ``pos``; ``again`` where it must be said beside other things."""
        self._count(text, pos)
        if self._line == self._said_on and not again:
            return
        self._said_on = self._line
        if len(self.problems) < _LISTED_PROBLEMS or again:
            self.problems.append(Problem(f"line {self._line}", message))
        elif len(self.problems) == _LISTED_PROBLEMS:
            message = "from here on problems are not listed"
            self.problems.append(Problem(f"line {self._line}", message))

    def shift(self, text: str, dropped: int) -> None:
        """The first ``dropped`` characters of the text are going to be cut off."""
        self._count(text, dropped)
        self._counted = max(0, self._counted - dropped)

    def _count(self, text: str, pos: int) -> None:
        if pos > self._counted:
            self._line += text.count("\n", self._counted, pos)
            self._counted = pos


class Cursor:
    """A text with a place in it, its lines counted.

    Places count within ``text``, whose beginning is cut off now and then once it is read: the
    scanner's errors count all lines before them each time.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 0
        self.budget = _SCANS * len(text) + (1 << 20)
        """What attempts to read may cost yet, in characters."""
        self.marks = Marks()
        self._complaints = Complaints()
        self._slice = max(_WINDOW, len(text) >> 8)
        self._surrogates = _SURROGATE_ESCAPE.search(text) is not None
        self._decoder = json.JSONDecoder(strict=False)

    @property
    def problems(self) -> list[Problem]:
        """What was wrong so far."""
        return self._complaints.problems

    def complain(self, message: str, again: bool = False) -> None:
        """Note what is wrong here."""
        self._complaints.add(self.text, self.pos, message, again)

    def skip_space(self) -> None:
        """Go to what follows."""
        if space := SPACE.match(self.text, self.pos):
            self.pos = space.end()

    def scan(self) -> object:
        """The value that begins here, with the place behind it; ``MISSING`` leaves it."""
        start = self.pos
        try:
            value, self.pos = self._decoder.raw_decode(self.text, start)
            return without_surrogates(value) if self._surrogates else value
        except json.JSONDecodeError as error:
            open_end = error.msg.startswith("Unterminated")
            self.budget -= (len(self.text) if open_end else error.pos) - start
        except (ValueError, RecursionError):  # too many digits, nested too deeply
            pass
        self.budget -= _LOOKED_BACK + (start >> 3)  # the lines before it have been counted
        self.pos = start
        return MISSING

    def first_error(self) -> int:
        """Where the strict scanner finds something wrong with the text."""
        try:
            json.loads(self.text)
        except json.JSONDecodeError as error:
            return error.pos
        except (ValueError, RecursionError):
            pass
        return self.pos

    def forget(self) -> None:
        """Cut off what has been read, once it is much."""
        dropped = self.pos - _LOOKED_BACK
        if dropped < self._slice:
            return
        self._complaints.shift(self.text, dropped)
        self.marks.shift()
        self.text = self.text[dropped:]
        self.pos -= dropped
