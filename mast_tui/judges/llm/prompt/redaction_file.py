"""Patterns of one's own for what is taken out: a regular expression a line, matched by RE2.

RE2 reads a text once whatever the pattern is, where Python's own engine can take longer than
anyone lives.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import re2

from mast_tui.errors import MastError
from mast_tui.judges.llm.errors import TraceFails
from mast_tui.judges.llm.prompt.redaction_rules import SECRET_GROUP, Rule
from mast_tui.safe_text import one_line
from mast_tui.traces.search.pattern import InvalidPattern, compile_pattern, encodable

MOST_BYTES: Final = 1 << 20
"""How long a file of patterns may be."""

MOST_RULES: Final = 500
MOST_STEPS: Final = 1_000_000
"""How many patterns a file may have, and how large all of them may be, in RE2's instructions."""

LONGEST: Final = 30.0
"""Seconds for one pattern on one text. One search is linear, but each of many matches can need a
look at all of the text behind it."""

_NAMED: Final = re.compile(r"([A-Za-z][A-Za-z0-9 _-]{0,39}?)\s+=\s+(?=\S)")


class RedactionError(MastError):
    """A file of patterns cannot be used; the message says where and why."""


def read_rules(path: Path) -> tuple[Rule, ...]:
    """Read the rules of a file: a line is a pattern, or ``name = pattern``; ``#`` is a comment.

    Case counts where a pattern does not begin with ``(?i)``; ``^`` and ``$`` mean lines. A group
    named ``secret`` is what is taken out, else all that the pattern matches.

    Raises:
        RedactionError: the file cannot be read, or a line is no pattern that RE2 takes.
    """
    shown = one_line(str(path))
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise RedactionError(f"{shown}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise RedactionError(f"{shown}: not UTF-8; save the file as UTF-8") from None
    if len(data) > MOST_BYTES:
        raise RedactionError(f"{shown}: longer than 1 MB; is this a file of patterns?")
    rules: list[Rule] = []
    steps = 0
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        place = f"{shown}: line {number}"
        named = _NAMED.match(line)
        pattern = line if named is None else line[named.end() :]
        compiled = _compiled(pattern, place)
        steps += compiled.programsize
        if len(rules) == MOST_RULES or steps > MOST_STEPS:
            raise RedactionError(
                f"{place}: the patterns are too many or too large to be looked for"
            )
        rules.append(file_rule("text" if named is None else named[1], pattern, compiled))
    return tuple(rules)


def file_rule(
    name: str, pattern: str, compiled: re2._Regexp, *, now: Callable[[], float] = time.monotonic
) -> Rule:
    """Make a rule for a pattern of a file.

    Args:
        name: what stands in the place of what is found.
        pattern: the pattern as it was written.
        compiled: the same as RE2 has it.
        now: a clock, in seconds.

    Returns:
        The rule. Its ``places`` raise ``TraceFails`` where a text takes too long.
    """
    group = compiled.groupindex.get(SECRET_GROUP, 0)

    def places(text: str) -> Iterator[tuple[int, int]]:
        until = now() + LONGEST
        for match in compiled.finditer(encodable(text)):
            start, end = match.span(group)
            if start < end:
                yield start, end
            if now() > until:
                raise TraceFails(
                    f"the pattern “{one_line(pattern, 80)}” takes too long on a text of"
                    f" {len(text):,} characters; make it ask for less"
                )

    return Rule(name, places, pattern=pattern)


def _compiled(pattern: str, place: str) -> re2._Regexp:
    try:
        compiled = compile_pattern(pattern, "m")
    except InvalidPattern as error:
        raise RedactionError(
            f"{place}: this expression cannot be used: {one_line(str(error))}"
        ) from None
    if compiled.fullmatch("") is None:
        return compiled
    reason = "it matches an empty text; make it ask for something"
    raise RedactionError(f"{place}: this expression cannot be used: {reason}")
