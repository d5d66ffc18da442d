"""Patterns of one's own for what is taken out: a regular expression a line, matched by RE2.

RE2 reads a text once whatever the pattern is, where Python's own engine can take longer than
anyone lives. What it writes otherwise than Python is put into its words here, so that ``\\w``,
``\\d`` and ``\\s`` mean the same letters, digits and spaces as there.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import re2

from mast_tui.errors import MastError
from mast_tui.judges.llm.errors import TraceFails
from mast_tui.judges.llm.prompt.redaction_rules import SECRET_GROUP, Rule
from mast_tui.safe_text import one_line

MOST_BYTES: Final = 1 << 20
"""How long a file of patterns may be."""

MOST_RULES: Final = 500
MOST_STEPS: Final = 1_000_000
"""How many patterns a file may have, and how large all of them may be, in RE2's instructions."""

LONGEST: Final = 30.0
"""Seconds for one pattern on one text. One search is linear, but each of many matches can need a
look at all of the text behind it."""

_NAMED: Final = re.compile(r"([A-Za-z][A-Za-z0-9 _-]{0,39}?)\s+=\s+(?=\S)")
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


class RedactionError(MastError, ValueError):
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
        try:
            text.encode()
        except UnicodeEncodeError:
            text = _SURROGATES.sub("�", text)
        until = now() + LONGEST
        for match in compiled.finditer(text):
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
    options = re2.Options()
    options.log_errors = False
    reason = _unlike(pattern)
    if reason is None:
        try:
            compiled = re2.compile(f"(?m){in_re2(pattern)}", options)
        except re2.error as error:
            reason = _reason(error.args[0].decode("utf-8", "replace"), pattern)
        else:
            if compiled.fullmatch("") is None:
                return compiled
            reason = "it matches an empty text; make it ask for something"
    raise RedactionError(f"{place}: this expression cannot be used: {reason}")


def _reason(said: str, pattern: str) -> str:
    """Why RE2 does not take a pattern, for a person."""
    part = said.rpartition(": ")[2]
    if part == "(?P" and "(?P=" in pattern:
        part = "(?P="
    if part.startswith(("(?=", "(?!", "(?<=", "(?<!")):
        return f"“{part}” looks around, and the time for that has no bound"
    if part == "(?P=" or re.fullmatch(r"\\[1-9]", part):
        return f"“{part}” refers back to a group, and the time for that has no bound"
    return one_line(said, 200)


_ESCAPE: Final = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\."
_OUTSIDE: Final = re.compile(rf"{_ESCAPE}|\{{,\d*\}}|\[\^?\]?|.", re.DOTALL)
_WITHIN: Final = re.compile(rf"{_ESCAPE}|\[:\^?[a-z]+:\]|.", re.DOTALL)
"""The parts of a pattern, and of a set of characters within it."""


def in_re2(pattern: str) -> str:
    """Write a pattern of Python's in the words of RE2, as far as those differ.

    Args:
        pattern: as Python takes it.

    Returns:
        The same for RE2. What neither takes stays as it is.
    """
    parts: list[str] = []
    at, within = 0, False
    while match := (_WITHIN if within else _OUTSIDE).match(pattern, at):
        at, part = match.end(), match[0]
        if part in (r"\d", r"\D", r"\w", r"\W", r"\s", r"\S"):
            parts.append(_set_of(part) if within else f"[{_set_of(part)}]")
        elif part[0] == "\\":
            parts.append(_escape(part))
        elif part.startswith("{,"):
            parts.append("*" if part == "{,}" else f"{{0{part[1:]}")
        else:
            parts.append(part)
            within = part != "]" if within else part[0] == "["
    return "".join(parts)


def _escape(part: str) -> str:
    if part[1:2] in ("u", "U") and len(part) > 2:
        return f"\\x{{{part[2:]}}}"
    if part == r"\Z":
        return r"\z"
    return part if part.isascii() else part[1]


@cache
def _set_of(escape: str) -> str:
    """The characters that an escape means in Python, as ranges."""
    there = "".join(map(chr, (*range(0xD800), *range(0xE000, sys.maxunicode + 1))))
    runs = (match[0] for match in re.finditer(f"{escape}+", there))
    return "".join(f"\\x{{{ord(run[0]):x}}}-\\x{{{ord(run[-1]):x}}}" for run in runs)


def _unlike(pattern: str) -> str | None:
    """What of a pattern RE2 takes in another meaning than anybody who writes it here."""
    escapes = re.findall(r"\\(.)", pattern, re.DOTALL)
    if "C" in escapes or "Q" in escapes:
        return "“\\C” and “\\Q” are no part of it"
    if not pattern.isascii() and ("b" in escapes or "B" in escapes):
        return "“\\b” and “\\B” know the letters a to z only; say what may stand around instead"
    return None
