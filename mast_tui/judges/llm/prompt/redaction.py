"""Taking secrets and addresses out of what is sent, with a way back to the places in the text.

What is taken out unless somebody says otherwise are keys, tokens, passwords and addresses. Patterns
of one's own, a regular expression a line of a file, are matched by RE2, which reads a text once
whatever the pattern is, where Python's own engine can take longer than anyone lives.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import re2

from mast_tui.errors import MastError
from mast_tui.judges.llm.errors import TraceFails
from mast_tui.safe_text import one_line
from mast_tui.traces.search.pattern import InvalidPattern, compile_pattern, encodable_text

Places = Callable[[str], Iterator[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class SecretRule:
    """Finds one kind of secret: ``name`` stands in its place, ``places`` tells where it is.

    Places are code points, end exclusive, and may be in any order. ``needs`` are texts in lower
    case: where none of them stands in a text, whatever its case, there is no place. Neither is
    there one where ``sign`` does not stand in it, which is looked for sooner than a word.
    ``pattern`` is the regular expression behind it, empty where there is none.
    """

    name: str
    places: Places
    needs: tuple[str, ...] = ()
    pattern: str = ""
    sign: str = ""


SECRET_GROUP: Final = "secret"
"""What a pattern's group of this name matches is taken out, else all that it matches."""


def pattern_rule(
    name: str, pattern: str, *needs: str, flags: int = 0, sign: str = ""
) -> SecretRule:
    """A rule for a regular expression of ours, matched by Python's engine.

    RE2, which is linear with any pattern, knows no look behind, and these need it: a key begins
    where no word goes on. So each must be linear by itself.
    """
    compiled = re.compile(pattern, flags)
    group = compiled.groupindex.get(SECRET_GROUP, 0)

    def places(text: str) -> Iterator[tuple[int, int]]:
        for match in compiled.finditer(text):
            start, end = match.span(group)
            if start < end:
                yield start, end

    return SecretRule(name, places, needs, pattern, sign)


_LOCAL: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._%+-"
_AT_DOMAIN: Final = re.compile(
    r"@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])"
)
_LONGEST_LOCAL: Final = 64
_ESCAPE: Final = re.compile(r"\\[nrt]")


def _addresses(text: str) -> Iterator[tuple[int, int]]:
    """E-mail addresses, looked for from the ``@``, so that other text costs next to nothing."""
    for match in _AT_DOMAIN.finditer(text):
        at = match.start()
        before = text[max(0, at - _LONGEST_LOCAL) : at]
        local = len(before) - len(before.rstrip(_LOCAL))
        if _ESCAPE.match(before, max(0, len(before) - local - 1)):
            local -= 1  # the letter belongs to an escape before the address
        if local:
            yield at - local, match.end()


_BEGIN: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
"""Not within a word; the letter of an escape such as ``\\n``, as JSON has it, is none."""

# No quantifier of these overlaps what follows it, or it is possessive: the time is linear.
DEFAULT_RULES: Final[tuple[SecretRule, ...]] = (
    pattern_rule(
        "private key",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:[\s\"'+,]|\\[nrt])*+(?:[A-Za-z-]{1,30}: [^\n\\]{0,120}|[A-Za-z0-9+/=]{16,}+))++"
        r"(?:(?:\s|\\[nrt])*+[A-Za-z0-9+/=]{1,15})?+"
        r"(?:(?:[\s\"'+,]|\\[nrt])*+-----END [A-Z0-9 ]{0,60}-----)?+",
        "private key",
        sign="-",
    ),
    pattern_rule(
        "API key",
        _BEGIN + r"(?<![_-])(?:sk|rk|pk)-(?=[A-Za-z_-]*+[0-9])[A-Za-z0-9_-]{20,}+",
        "sk-",
        "rk-",
        "pk-",
        sign="-",
    ),
    pattern_rule(
        "API key",
        _BEGIN + r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}+",
        "_live_",
        "_test_",
        sign="_",
    ),
    pattern_rule("API key", _BEGIN + r"(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Z])", "akia", "asia"),
    pattern_rule(
        "API key",
        r"aws_?secret_?(?:access_?)?key[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?P<secret>[A-Za-z0-9/+=]{30,})",
        "secret",
        flags=re.IGNORECASE,
    ),
    pattern_rule(
        "API key",
        _BEGIN + r"(?:gh[opsur]_[A-Za-z0-9]{30,}+|github_pat_[A-Za-z0-9_]{22,}+)",
        "gho_",
        "ghp_",
        "ghs_",
        "ghu_",
        "ghr_",
        "github_pat_",
        sign="_",
    ),
    pattern_rule("API key", _BEGIN + r"glpat-[A-Za-z0-9_.-]{20,}+", "glpat-", sign="-"),
    pattern_rule(
        "API key",
        _BEGIN + r"(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,}+",
        "xox",
        "xapp-",
        sign="-",
    ),
    pattern_rule("API key", _BEGIN + r"AIza[0-9A-Za-z_-]{35}", "aiza"),
    pattern_rule("API key", _BEGIN + r"hf_[A-Za-z0-9]{30,}+", "hf_", sign="_"),
    pattern_rule("API key", _BEGIN + r"gsk_[A-Za-z0-9]{30,}+", "gsk_", sign="_"),
    pattern_rule("API key", _BEGIN + r"npm_[A-Za-z0-9]{36}", "npm_", sign="_"),
    pattern_rule(
        "token",
        _BEGIN + r"(?<![_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*+",
        "eyj",
        sign=".",
    ),
    pattern_rule(
        "token",
        _BEGIN + r"bearer\s{1,4}(?P<secret>(?=[A-Za-z._~+/-]*+[0-9])[A-Za-z0-9._~+/-]{16,}+=*+)",
        "bearer",
        flags=re.IGNORECASE,
    ),
    pattern_rule(
        "token",
        _BEGIN + r"authorization[\"'\\]{0,3}\s{0,4}[:=]\s{0,4}[\"'\\]{0,3}(?:[a-z]{4,10}\s{1,4})?"
        r"(?P<secret>[A-Za-z0-9._~+/=:-]{12,}+)",
        "authorization",
        flags=re.IGNORECASE,
    ),
    pattern_rule(
        "token",
        _BEGIN + r"(?:x-)?api[-_]?key[\"'\\]{0,3}\s{0,4}[:=]\s{0,4}[\"'\\]{0,3}"
        r"(?P<secret>(?=[A-Za-z._~+/-]*+[0-9])[A-Za-z0-9._~+/=-]{16,}+)",
        "api-key",
        "api_key",
        "apikey",
        flags=re.IGNORECASE,
    ),
    pattern_rule(
        "password",
        r"://[^\s/:@\"'<>\\]{0,100}:(?P<secret>[^\s/@\"'<>\\]{1,200})@",
        "://",
        sign=":",
    ),
    SecretRule("e-mail", _addresses, ("@",)),
)


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


def read_rules(path: Path) -> tuple[SecretRule, ...]:
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
    rules: list[SecretRule] = []
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
) -> SecretRule:
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
        for match in compiled.finditer(encodable_text(text)):
            start, end = match.span(group)
            if start < end:
                yield start, end
            if now() > until:
                raise TraceFails(
                    f"the pattern “{one_line(pattern, 80)}” takes too long on a text of"
                    f" {len(text):,} characters; make it ask for less"
                )

    return SecretRule(name, places, pattern=pattern)


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
        first = self._original(start, is_end=False)
        return first, max(first, self._original(end, is_end=True))

    def _original(self, at: int, *, is_end: bool) -> int:
        shift = 0
        for cut in self.cuts:
            if at < cut.shown_start + is_end:
                break
            if at < cut.shown_end + is_end:
                return cut.end if is_end else cut.start
            shift = cut.end - cut.shown_end
        return at + shift


@dataclass(frozen=True, slots=True)
class Redaction:
    """What is taken out of every text that is sent: what rules find, and literal secrets."""

    rules: tuple[SecretRule, ...] = ()
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


def _is_needed(rule: SecretRule, lowered: str) -> bool:
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
