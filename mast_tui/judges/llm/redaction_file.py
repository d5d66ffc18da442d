"""Patterns of one's own for what is taken out: a regular expression a line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from mast_tui.judges.llm.redaction_rules import Rule, pattern_rule
from mast_tui.safe_text import one_line
from mast_tui.traces.pattern import InvalidPattern, Pattern
from mast_tui.traces.text_search import TooSlow

MOST_BYTES: Final = 1 << 20
"""How long a file of patterns may be."""

_NAMED: Final = re.compile(r"([A-Za-z][A-Za-z0-9 _-]{0,39}?)\s+=\s+(?=\S)")
_SECONDS: Final = 0.5


class RedactionError(ValueError):
    """A file of patterns cannot be used; the message says where and why."""


def read_rules(path: Path) -> tuple[Rule, ...]:
    """The rules of a file: a line is a pattern, or ``name = pattern``; ``#`` begins a comment.

    Case counts where a pattern does not begin with ``(?i)``; ``^`` and ``$`` mean lines. A group
    named ``secret`` is what is taken out, else all that the pattern matches.

    Raises:
        RedactionError: the file cannot be read, or a line is no pattern, or one that takes too
            long on texts that were made to be hard for it.
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
    rules = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        rules.append(_rule(line, f"{shown}: line {number}"))
    return tuple(rules)


def _rule(line: str, place: str) -> Rule:
    named = _NAMED.match(line)
    name = "text" if named is None else named[1]
    pattern = line if named is None else line[named.end() :]
    try:
        probe = Pattern(pattern, _SECONDS)
    except InvalidPattern as error:
        raise RedactionError(
            f"{place}: no regular expression: {one_line(str(error), 200)}"
        ) from None
    try:
        _refuse_slow(probe, pattern, place)
    finally:
        probe.close()
    if re.fullmatch(pattern, "", re.MULTILINE) is not None:
        raise RedactionError(
            f"{place}: the pattern matches an empty text; make it ask for something"
        )
    return pattern_rule(name, pattern, flags=re.MULTILINE)


def _refuse_slow(probe: Pattern, pattern: str, place: str) -> None:
    """Try the pattern on texts of its own characters, repeated and then broken off."""
    characters = sorted({char for char in pattern if char.isalnum() or char in "-_.:/@= "})[:24]
    units = [*"a0A -", "ab", "a0", "a.", *characters, "".join(characters)]
    for unit in filter(None, dict.fromkeys(units)):
        text = unit * (5_000 // len(unit) + 1)
        for probed in (text + "\n!", f"x{text}§"):
            try:
                probe.places(probed)
            except TooSlow:
                raise RedactionError(
                    f"{place}: the pattern takes too long on some texts; "
                    "avoid a repetition inside a repetition, as in (a+)+"
                ) from None
