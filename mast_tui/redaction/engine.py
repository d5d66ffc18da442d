"""Redaction of secrets and addresses in texts, with a conversion of offsets.

Keys, tokens, passwords and e-mail addresses are redacted by default. A file may hold the user's own
regular expressions. RE2 matches these in linear time, while Python's engine may need exponential
time.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import re2

from mast_tui.redaction.filled_masks import filled_mask
from mast_tui.redaction.rules import (
    DEFAULT_RULES,
    SECRET_GROUP,
    RedactionError,
    SecretRule,
    personal_rules,
)
from mast_tui.safe_text import one_line
from mast_tui.traces.search.pattern import InvalidPattern, compile_pattern, encodable_text

MOST_BYTES: Final = 1 << 20
"""The most bytes of a file of patterns."""

MOST_RULES: Final = 500
"""The most patterns of a file."""

MOST_STEPS: Final = 1_000_000
"""The most instructions of RE2 for all patterns of a file together."""

LONGEST: Final = 30.0
"""The most seconds for one pattern on one text. Each match may read the rest of the text."""

_RULE_NAME: Final = re.compile(r"([A-Za-z][A-Za-z0-9 _-]{0,39}?)\s+=\s+(?=\S)")


class RedactionTooSlow(RedactionError):
    """A pattern that takes too long on a text."""


def read_rules(path: Path) -> tuple[SecretRule, ...]:
    """Read the rules of a file with one ``pattern``, ``name = pattern`` or ``# comment`` a line.

    Case counts unless a pattern begins with ``(?i)``. ``^`` and ``$`` match at the ends of lines.
    The group ``secret``, or else the whole match, is redacted.

    Raises:
        RedactionError: The file cannot be read, or a line is no pattern of RE2.
    """
    file_name = one_line(str(path))
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise RedactionError(f"{file_name}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise RedactionError(f"{file_name}: not UTF-8; save the file as UTF-8") from None
    if len(data) > MOST_BYTES:
        raise RedactionError(f"{file_name}: longer than 1 MB; is this a file of patterns?")
    return rules_of_lines(text.splitlines(), file_name)


def rules_of_lines(lines: Iterable[str], file_name: str) -> tuple[SecretRule, ...]:
    """Compile the lines of a file of patterns.

    Args:
        lines: The lines.
        file_name: The name of the file, for messages.

    Raises:
        RedactionError: A line is no pattern of RE2.
    """
    rules: list[SecretRule] = []
    instruction_count = 0
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        location = f"{file_name}: line {number}"
        name_match = _RULE_NAME.match(line)
        name = "text" if name_match is None else name_match[1]
        pattern = line if name_match is None else line[name_match.end() :]
        compiled = _compile_line(pattern, location)
        instruction_count += compiled.programsize
        if len(rules) == MOST_RULES or instruction_count > MOST_STEPS:
            raise RedactionError(
                f"{location}: the patterns are too many or too large to search for"
            )
        rules.append(file_rule(name, pattern, compiled))
    return tuple(rules)


def file_rule(
    name: str, pattern: str, compiled: re2._Regexp, *, now: Callable[[], float] = time.monotonic
) -> SecretRule:
    """Make a rule for a pattern of a file.

    Args:
        name: The name of the rule, which replaces a secret.
        pattern: The pattern as it is in the file.
        compiled: The compiled pattern.
        now: Returns the time in seconds.

    Returns:
        The rule. Its ``ranges`` raise ``RedactionTooSlow`` if a text takes too long.
    """
    group = compiled.groupindex.get(SECRET_GROUP, 0)

    def ranges(text: str) -> Iterator[tuple[int, int]]:
        deadline = now() + LONGEST
        for match in compiled.finditer(encodable_text(text)):
            start, end = match.span(group)
            if start < end:
                yield start, end
            if now() > deadline:
                raise RedactionTooSlow(
                    f"the pattern “{one_line(pattern, 80)}” takes too long on a text of "
                    f"{len(text):,} characters; make it simpler"
                )

    return SecretRule(name, ranges, pattern=pattern, is_own=True)


def _compile_line(pattern: str, location: str) -> re2._Regexp:
    """Compile a pattern of a file; ``location`` is its file and line, for messages.

    Raises:
        RedactionError: RE2 does not support the pattern, or it matches an empty text.
    """
    try:
        compiled = compile_pattern(pattern, "m")
    except InvalidPattern as error:
        raise RedactionError(
            f"{location}: this expression cannot be used: {one_line(str(error))}"
        ) from None
    if compiled.fullmatch("") is None:
        return compiled
    reason = "it matches an empty text; make it match at least one character"
    raise RedactionError(f"{location}: this expression cannot be used: {reason}")


SHORTEST_SECRET: Final = 8
"""The fewest characters of a literal secret. Shorter secrets may be words, such as ``none``."""


class SecretNumbering(Protocol):
    """A numbering of secrets: equal secrets have equal numbers or codes."""

    def number(self, name: str, secret: str) -> int | str:
        """Return the number or code of a secret.

        Args:
            name: The name of the rule.
            secret: The secret.
        """


class SecretNumbers:
    """A numbering of secrets from 1 for each rule, in the order of their first occurrence."""

    def __init__(self) -> None:
        self._numbers_by_rule: defaultdict[str, dict[str, int]] = defaultdict(dict)

    def number(self, name: str, secret: str) -> int:
        """Return the number of a secret, a new one at its first occurrence.

        Args:
            name: The name of the rule.
            secret: The secret.
        """
        numbers = self._numbers_by_rule[name]
        return numbers.setdefault(secret, len(numbers) + 1)


@dataclass(frozen=True, slots=True)
class Cut:
    """A secret that was replaced; offsets are code points.

    Attributes:
        original: The range of the secret in the original text.
        shown: The range of its replacement in the redacted text.
    """

    original: range
    shown: range


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text with its secrets replaced, and their ranges; offsets are code points."""

    text: str
    cuts: tuple[Cut, ...] = ()

    def to_shown(self, start: int, end: int) -> tuple[int, int]:
        """Convert a range of the original text to a range of the redacted text.

        A range that touches a secret is extended to the whole replacement.

        Args:
            start: The first code point of the range.
            end: The code point after the range.
        """
        pairs = [(cut.original, cut.shown) for cut in self.cuts]
        shown_start = _moved_offset(start, pairs, is_end=False)
        return shown_start, max(shown_start, _moved_offset(end, pairs, is_end=True))

    def to_original(self, start: int, end: int) -> tuple[int, int]:
        """Convert a range of the redacted text to a range of the original text.

        A range that touches a replacement is extended to the whole secret.

        Args:
            start: The first code point of the range.
            end: The code point after the range.
        """
        pairs = [(cut.shown, cut.original) for cut in self.cuts]
        original_start = _moved_offset(start, pairs, is_end=False)
        return original_start, max(original_start, _moved_offset(end, pairs, is_end=True))


def _moved_offset(offset: int, pairs: Iterable[tuple[range, range]], *, is_end: bool) -> int:
    """Convert the start or end of a range from one text to another.

    An offset inside a differing part becomes the start or end of that part in the other text.
    ``pairs`` holds the ranges of the differing parts in both texts, in order.
    """
    shift = 0
    edge_offset = offset - 1 if is_end else offset
    for part, other_part in pairs:
        if edge_offset < part.start:
            break
        if edge_offset < part.stop:
            return other_part.stop if is_end else other_part.start
        shift = other_part.stop - part.stop
    return offset + shift


class _Secret(NamedTuple):
    """The range of a secret in a text, in code points, and the name of its rule."""

    start: int
    end: int
    name: str


MASK_FORM: Final = "[{name} {number}]"
"""The mask of a secret for people. The mask for a model has the word ``redacted``."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """The redaction of texts by rules, and of literal secrets.

    Attributes:
        rules: The rules that find secrets.
        secrets: The literal secrets.
        form: The replacement of a secret, with its ``name`` and ``number``.
    """

    rules: tuple[SecretRule, ...] = ()
    secrets: tuple[str, ...] = field(default=(), repr=False)
    form: str = "[redacted {name} {number}]"
    base: str = "none"
    """The name of the built-in rules: ``none``, ``default`` or ``personal``."""
    keeps_length: bool = False
    """True if masks are as long as their secrets, so that no offset changes. Then ``form`` is not
    used."""

    def __reduce__(self) -> tuple[Callable[..., Redaction], tuple[object, ...]]:
        """Pickle without the literal secrets, which other processes have from their environment."""
        own_rules = tuple((rule.name, rule.pattern) for rule in self.rules if rule.is_own)
        return _restore_redaction, (self.base, own_rules, self.keeps_length)

    @classmethod
    def none(cls) -> Redaction:
        """Return a redaction without rules."""
        return cls()

    @classmethod
    def default(cls) -> Redaction:
        """Return the redaction of vendors' keys, tokens, private keys, passwords and addresses."""
        return cls(DEFAULT_RULES, base="default")

    @classmethod
    def personal(cls) -> Redaction:
        """Return the redaction of personal data and of all secrets with a recognisable form.

        Raises:
            RedactionError: A required library is not installed.
        """
        return cls(personal_rules(), form=MASK_FORM, base="personal")

    @property
    def identity(self) -> str:
        """The identity of the rules: ``none``, ``default``, or a hash of the patterns.

        Literal secrets are not a part of it.
        """
        if not self.rules:
            return "none"
        if self.rules == DEFAULT_RULES:
            return "default"
        patterns = json.dumps([(rule.name, rule.pattern) for rule in self.rules])
        return hashlib.sha256(patterns.encode()).hexdigest()[:8]

    def with_file(self, path: Path) -> Redaction:
        """Return a redaction with the patterns of a file added.

        Raises:
            RedactionError: The file cannot be read, or a line is no usable pattern.
        """
        return self.with_rules(read_rules(path))

    def with_rules(self, rules: Iterable[SecretRule]) -> Redaction:
        """Return a redaction with rules added."""
        return replace(self, rules=(*self.rules, *rules))

    def with_secret(self, secret: str) -> Redaction:
        """Return a redaction with a literal secret added, unless the secret is too short."""
        if len(secret) < SHORTEST_SECRET:
            return self
        return replace(self, secrets=(*self.secrets, secret))

    def apply(self, text: str, numbering: SecretNumbering | None = None) -> Redacted:
        """Replace the secrets in a text.

        Args:
            text: The text.
            numbering: The numbering of secrets, which may be shared by several texts; None to
                number the secrets of this text alone.
        """
        secrets = list(self._find_secrets(text))
        if not secrets:
            return Redacted(text)
        if numbering is None:
            numbering = SecretNumbers()
        form = None if self.keeps_length else self.form  # None: each mask is as long as its secret
        return _replace_secrets(text, secrets, numbering, form)

    def _find_secrets(self, text: str) -> Iterator[_Secret]:
        """Yield the secrets in a text, which may overlap.

        Built-in rules search the text as people read it. The user's patterns search both forms.
        """
        for secret in self.secrets:
            start = text.find(secret)
            while start >= 0:
                yield _Secret(start, start + len(secret), "key")
                start = text.find(secret, start + len(secret))
        decoded = _DecodedText(text)
        lowered = decoded.text.lower()
        for rule in self.rules:
            if _may_match(rule, lowered):
                for start, end in rule.ranges(decoded.text):
                    yield _Secret(decoded.to_original(start), decoded.to_original(end), rule.name)
            if rule.is_own and decoded.text != text:
                for start, end in rule.ranges(text):
                    yield _Secret(start, end, rule.name)


_ENCODED: Final = re.compile(
    r"\x1b\[[0-9;]*[mK]|[\u00ad\u200b-\u200f\u2060\ufeff]+"
    r"|(?<!\\)\\++(?:(?:u001[bB]|x1[bB]|033|e)\[[0-9;]*[mK]"
    r"|(?P<sign>[nrt\"'/])|u(?P<code>[0-9A-Fa-f]{4}))"
)
"""Escapes of JSON, perhaps doubled; colours of a terminal; invisible characters."""

_SIGNS: Final = {"n": "\n", "r": "\r", "t": "\t"}

_ASCII_FORMS: Final = {
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
    **{zero + digit: str(digit) for zero in (0x660, 0x6F0, 0x966) for digit in range(10)},
    **dict.fromkeys((0xA0, *range(0x2000, 0x200B), 0x202F, 0x3000), " "),
    **dict.fromkeys((*range(0x2010, 0x2016), 0x2212), "-"),
}
"""ASCII characters for other widths, digits, spaces and hyphens, by code point."""


class _DecodedText:
    """A text as people read it: without escapes and colours, and with ASCII digits.

    A secret after an escape such as ``\\n``, which ends in a letter, is thus at the start of a
    word.
    """

    def __init__(self, text: str) -> None:
        self._ends = [0]  # of the decoded parts, in ``text`` of this object
        self._original_ends = [0]
        parts = []
        if not text.isascii() or "\\" in text or "\x1b" in text:
            length = 0
            for match in _ENCODED.finditer(text):
                code = match["code"]
                sign = match["sign"] or ""
                before = text[self._original_ends[-1] : match.start()]
                decoded = chr(int(code, 16)) if code else _SIGNS.get(sign, sign)
                parts += [before, decoded]
                length += len(before) + len(decoded)
                self._ends.append(length)
                self._original_ends.append(match.end())
        parts.append(text[self._original_ends[-1] :])
        decoded_text = "".join(parts)
        is_plain = decoded_text.isascii()
        self.text: Final = decoded_text if is_plain else decoded_text.translate(_ASCII_FORMS)

    def to_original(self, offset: int) -> int:
        """Return the offset in the original text."""
        part = bisect_right(self._ends, offset) - 1
        return self._original_ends[part] + offset - self._ends[part]


def _restore_redaction(
    base: str, own_rules: Iterable[tuple[str, str]], keeps_length: bool
) -> Redaction:
    """Make a redaction from its pickled state.

    ``base`` names its built-in rules, and ``own_rules`` are the names and patterns of the user's
    rules.
    """
    make = {"none": Redaction.none, "default": Redaction.default, "personal": Redaction.personal}
    redaction = make[base]()
    rules = (file_rule(name, pattern, compile_pattern(pattern, "m")) for name, pattern in own_rules)
    return replace(redaction, rules=(*redaction.rules, *rules), keeps_length=keeps_length)


def _may_match(rule: SecretRule, lowered: str) -> bool:
    """Check quickly whether a rule may match a text, given in lower case."""
    if rule.required_char and rule.required_char not in lowered:
        return False
    # A plain loop is fastest: it runs for every rule and text, and most texts are short.
    for word in rule.keywords:
        if word in lowered:
            return True
    return not rule.keywords


def _replace_secrets(
    text: str, secrets: Iterable[_Secret], numbering: SecretNumbering, form: str | None
) -> Redacted:
    """Replace the secrets of a text; ``form`` is None for replacements of the same length."""
    parts: list[str] = []
    cuts: list[Cut] = []
    copied_end = 0
    shown_length = 0
    for secret in _merge_secrets(secrets):
        hidden_text = text[secret.start : secret.end]
        number = numbering.number(secret.name, _DecodedText(hidden_text).text)
        if form is None:
            replacement = filled_mask(secret.name, number, hidden_text)
        else:
            replacement = form.format(name=secret.name, number=number)
        shown_start = shown_length + secret.start - copied_end
        shown_length = shown_start + len(replacement)
        parts += (text[copied_end : secret.start], replacement)
        cuts.append(Cut(range(secret.start, secret.end), range(shown_start, shown_length)))
        copied_end = secret.end
    parts.append(text[copied_end:])
    return Redacted("".join(parts), tuple(cuts))


def _merge_secrets(secrets: Iterable[_Secret]) -> list[_Secret]:
    """Return the secrets in the order of their start, without overlaps.

    Overlapping secrets become one secret with the name of the first. If several begin at one
    offset, the longest is the first.
    """
    merged_secrets: list[_Secret] = []
    for secret in sorted(secrets, key=lambda secret: (secret.start, -secret.end)):
        last_secret = merged_secrets[-1] if merged_secrets else None
        if last_secret is not None and secret.start < last_secret.end:
            merged_secrets[-1] = last_secret._replace(end=max(secret.end, last_secret.end))
        else:
            merged_secrets.append(secret)
    return merged_secrets
