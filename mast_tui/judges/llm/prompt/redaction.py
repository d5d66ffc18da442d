"""Taking secrets and addresses out of what is sent, with a way back to the places in the text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from mast_tui.judges.llm.prompt.redaction_file import file_rule, read_rules
from mast_tui.judges.llm.prompt.redaction_rules import DEFAULT_RULES, Rule
from mast_tui.traces.search.pattern import compile_pattern

SHORTEST_SECRET: Final = 8
"""A literal secret of fewer characters is left alone: words such as ``none`` stand everywhere."""


class Numbers:
    """Which value has which number, from 1 in each rule, in the order in which they were seen."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], int] = {}
        self._last: dict[str, int] = {}

    def of(self, name: str, value: str) -> int:
        """The number of what a rule found, a new one where the value is new."""
        number = self._known.get((name, value))
        if number is None:
            number = self._last[name] = self._last.get(name, 0) + 1
            self._known[name, value] = number
        return number


@dataclass(frozen=True, slots=True)
class Cut:
    """A stretch ``start`` to ``end`` of a text that stands for another, all ends exclusive.

    In the redacted text it is ``shown_start`` to ``shown_end``.
    """

    start: int
    end: int
    shown_start: int
    shown_end: int


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text with its secrets replaced, and where they stood; offsets are code points."""

    text: str
    cuts: tuple[Cut, ...] = ()

    def to_original(self, start: int, end: int) -> tuple[int, int]:
        """Where ``text[start:end]`` stands in the original.

        A place that touches what stands for a secret covers all of the secret.
        """
        first = self._start(start)
        return first, max(first, self._end(end))

    def _start(self, at: int) -> int:
        shift = 0
        for cut in self.cuts:
            if at < cut.shown_start:
                break
            if at < cut.shown_end:
                return cut.start
            shift = cut.end - cut.shown_end
        return at + shift

    def _end(self, at: int) -> int:
        shift = 0
        for cut in self.cuts:
            if at <= cut.shown_start:
                break
            if at <= cut.shown_end:
                return cut.end
            shift = cut.end - cut.shown_end
        return at + shift


@dataclass(frozen=True, slots=True)
class Redaction:
    """What is taken out of every text that is sent: what rules find, and literal secrets."""

    rules: tuple[Rule, ...] = ()
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def __reduce__(self) -> tuple[Callable[..., Redaction], tuple[object, ...]]:
        """For other processes: without the secrets, each of which has them itself."""
        ours = len(DEFAULT_RULES) if self.rules[: len(DEFAULT_RULES)] == DEFAULT_RULES else 0
        own = tuple((rule.name, rule.pattern) for rule in self.rules[ours:])
        return _made_again, (ours > 0, own)

    @classmethod
    def none(cls) -> Redaction:
        """Takes nothing out."""
        return cls()

    @classmethod
    def default(cls) -> Redaction:
        """Takes out keys of the common vendors, tokens, private keys, passwords, addresses."""
        return cls(DEFAULT_RULES)

    @property
    def identity(self) -> str:
        """By which it is told apart from others: ``none``, ``default``, or a hash of its patterns.

        Literal secrets are no part of it.
        """
        if not self.rules:
            return "none"
        if self.rules == DEFAULT_RULES:
            return "default"
        said = json.dumps([(rule.name, rule.pattern) for rule in self.rules])
        return hashlib.sha256(said.encode()).hexdigest()[:8]

    def with_file(self, path: Path) -> Redaction:
        """The same with the patterns of a file, one a line.

        Raises:
            RedactionError: the file cannot be read or a line is no usable pattern, in words.
        """
        return replace(self, rules=(*self.rules, *read_rules(path)))

    def with_secret(self, secret: str) -> Redaction:
        """The same with a secret that is taken out wherever it stands.

        One shorter than ``SHORTEST_SECRET`` changes nothing.
        """
        if len(secret) < SHORTEST_SECRET:
            return self
        return replace(self, secrets=(*self.secrets, secret))

    def apply(self, text: str, numbers: Numbers | None = None) -> Redacted:
        """The text without its secrets.

        ``numbers`` holds which value has which number; new values are added to it, so that the
        same value gets the same number in all texts of a trace.
        """
        found = list(self._found(text))
        if not found:
            return Redacted(text)
        return _replaced(text, found, Numbers() if numbers is None else numbers)

    def _found(self, text: str) -> Iterator[tuple[int, int, str]]:
        for secret in self.secrets:
            at = text.find(secret)
            while at >= 0:
                yield at, at + len(secret), "key"
                at = text.find(secret, at + len(secret))
        lowered = text.lower()
        for rule in self.rules:
            if _is_needed(rule, lowered):
                for start, end in rule.places(text):
                    yield start, end, rule.name


def _made_again(default: bool, own: Iterable[tuple[str, str]]) -> Redaction:
    rules = (file_rule(name, pattern, compile_pattern(pattern, "m")) for name, pattern in own)
    return Redaction((*(DEFAULT_RULES if default else ()), *rules))


def _is_needed(rule: Rule, lowered: str) -> bool:
    if rule.sign and rule.sign not in lowered:
        return False
    # A plain loop: this runs for every rule and text, and most texts are short.
    for need in rule.needs:
        if need in lowered:
            return True
    return not rule.needs


def _replaced(text: str, found: list[tuple[int, int, str]], numbers: Numbers) -> Redacted:
    parts: list[str] = []
    cuts: list[Cut] = []
    done = shown = 0
    for start, end, name in _apart(found):
        word = f"[redacted {name} {numbers.of(name, text[start:end])}]"
        shown += start - done
        parts += (text[done:start], word)
        cuts.append(Cut(start, end, shown, shown + len(word)))
        shown += len(word)
        done = end
    parts.append(text[done:])
    return Redacted("".join(parts), tuple(cuts))


def _apart(found: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """The places in order; those that overlap are one, under the name of the first."""
    merged: list[tuple[int, int, str]] = []
    for start, end, name in sorted(found, key=lambda place: (place[0], -place[1])):
        if merged and start < merged[-1][1]:
            before = merged[-1]
            merged[-1] = (before[0], max(end, before[1]), before[2])
        else:
            merged.append((start, end, name))
    return merged
