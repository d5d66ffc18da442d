"""What is wrong with the lines of a file that has one JSON record a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mast_tui.traces.io.json_values import InvalidJSON, load_json
from mast_tui.traces.model import Problem
from mast_tui.traces.readers.base import CUT_OFF
from mast_tui.traces.readers.json_fields import Fields

_LISTED_PROBLEMS: Final = 200


class LineProblems:
    """The problems of a file of lines; of one that is broken all over only the first are listed."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def add(self, line: int, message: str) -> None:
        """Note a problem on this line."""
        if len(self.found) < _LISTED_PROBLEMS:
            self.found.append(Problem(f"line {line}", message))
        elif len(self.found) == _LISTED_PROBLEMS:
            self.found.append(Problem(f"line {line}", "from here on problems are not listed"))

    def record_of(self, line: bytes, number: int, cut_off: bool) -> Fields | None:
        """The JSON object on a line; None, with a problem noted, where there is none."""
        try:
            value = load_json(line)
        except InvalidJSON as error:
            self.add(number, CUT_OFF if cut_off else f"not JSON, left out: {error}")
            return None
        if not isinstance(value, Mapping):
            self.add(number, "not a JSON object, left out")
            return None
        return value
