"""The rules for keys, tokens, passwords and addresses that are redacted by default."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from mast_tui.errors import MastError


class RedactionError(MastError):
    """Redaction cannot be done; the message says why."""


SecretRanges = Callable[[str], Iterator[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class SecretRule:
    """A rule for one kind of secret.

    ``needs`` and ``sign`` save time: a text without them is not searched.

    Attributes:
        name: The replacement of a secret.
        ranges: Yields the start and end of the secrets in a text, in code points, in any order.
        needs: Texts in lower case, of which a text with a secret has at least one, in any case.
        pattern: The regular expression; empty for other rules.
        sign: A character that each text with a secret has.
        is_own: True if the rule is from the user's file.
    """

    name: str
    ranges: SecretRanges
    needs: tuple[str, ...] = ()
    pattern: str = ""
    sign: str = ""
    is_own: bool = False


SECRET_GROUP: Final = "secret"
"""The name of a pattern's group for the secret; without it, the whole match is a secret."""


def pattern_rule(
    name: str, pattern: str, *needs: str, flags: int = 0, sign: str = ""
) -> SecretRule:
    """Make a rule of a built-in pattern, which Python's engine matches.

    RE2 lacks look-behind, which these patterns need. Python's engine can be slow, so each pattern
    must take time linear in the text.

    Args:
        name: The replacement of a secret.
        pattern: The regular expression.
        needs: Texts in lower case; each secret contains one of them.
        flags: The flags of the regular expression.
        sign: A character that each secret contains; empty for none.
    """
    compiled = re.compile(pattern, flags)
    group = compiled.groupindex.get(SECRET_GROUP, 0)

    def ranges(text: str) -> Iterator[tuple[int, int]]:
        for match in compiled.finditer(text):
            start, end = match.span(group)
            if start < end:
                yield start, end

    return SecretRule(name, ranges, needs, pattern, sign)


_LOCAL: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._%+-"
_AT_DOMAIN: Final = re.compile(
    r"@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])"
)
_LONGEST_LOCAL: Final = 64
_ESCAPE: Final = re.compile(r"\\[nrt]")


def email_ranges(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of e-mail addresses.

    The search begins at each ``@`` with a domain, so that other text costs little.
    """
    for match in _AT_DOMAIN.finditer(text):
        at_offset = match.start()
        preceding = text[max(0, at_offset - _LONGEST_LOCAL) : at_offset]
        local_length = len(preceding) - len(preceding.rstrip(_LOCAL))
        if _ESCAPE.match(preceding, max(0, len(preceding) - local_length - 1)):
            local_length -= 1  # the letter belongs to an escape before the address
        if local_length:
            yield at_offset - local_length, match.end()


_WORD_START: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
"""The start of a word, also after the letter of an escape such as ``\\n`` in JSON."""

_BETWEEN_LINES: Final = (
    r"(?:[\s\"'+,|>\u2192]|-(?!-)|\\{1,4}[nrt]|[0-9]{1,6}(?=[\s|:\u2192])|(?<=[0-9]):"
    r"|(?<=\n)[\w./-]{1,60}:(?! ))*+"
)
"""The text that may be between the lines of a private key: the signs of code, quotations, tables
and diffs, escapes, line numbers, and the file names that a search puts before each line."""

# The time is linear: each quantifier is possessive, or does not overlap what follows it.
DEFAULT_RULES: Final[tuple[SecretRule, ...]] = (
    pattern_rule(
        "private key",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        rf"(?:{_BETWEEN_LINES}(?:[A-Za-z-]{{1,30}}: [^\n\\]{{0,120}}|[A-Za-z0-9+/=]{{16,}}+))++"
        rf"(?:{_BETWEEN_LINES}[A-Za-z0-9+/=]{{1,15}}(?![^\s\"'|\\]))?+"
        rf"(?:{_BETWEEN_LINES}-{{5,6}}END [A-Z0-9 ]{{0,60}}-----)?+",
        "private key",
        sign="-",
    ),
    pattern_rule(
        "API key",
        _WORD_START + r"(?<![_-])(?:sk|rk|pk)-(?=[A-Za-z_-]*+[0-9])[A-Za-z0-9_-]{20,}+",
        "sk-",
        "rk-",
        "pk-",
        sign="-",
    ),
    pattern_rule(
        "API key",
        _WORD_START + r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}+",
        "_live_",
        "_test_",
        sign="_",
    ),
    pattern_rule("API key", _WORD_START + r"(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Z])", "akia", "asia"),
    pattern_rule(
        "API key",
        r"aws_?secret_?(?:access_?)?key[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?P<secret>[A-Za-z0-9/+=]{30,})",
        "secret",
        flags=re.IGNORECASE,
    ),
    pattern_rule(
        "API key",
        _WORD_START + r"(?:gh[opsur]_[A-Za-z0-9]{30,}+|github_pat_[A-Za-z0-9_]{22,}+)",
        "gho_",
        "ghp_",
        "ghs_",
        "ghu_",
        "ghr_",
        "github_pat_",
        sign="_",
    ),
    pattern_rule("API key", _WORD_START + r"glpat-[A-Za-z0-9_.-]{20,}+", "glpat-", sign="-"),
    pattern_rule(
        "API key",
        _WORD_START + r"(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,}+",
        "xox",
        "xapp-",
        sign="-",
    ),
    pattern_rule("API key", _WORD_START + r"AIza[0-9A-Za-z_-]{35}", "aiza"),
    pattern_rule("API key", _WORD_START + r"hf_[A-Za-z0-9]{30,}+", "hf_", sign="_"),
    pattern_rule("API key", _WORD_START + r"gsk_[A-Za-z0-9]{30,}+", "gsk_", sign="_"),
    pattern_rule("API key", _WORD_START + r"npm_[A-Za-z0-9]{36}", "npm_", sign="_"),
    pattern_rule(
        "token",
        _WORD_START + r"(?<![_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*+",
        "eyj",
        sign=".",
    ),
    pattern_rule(
        "token",
        _WORD_START
        + r"bearer\s{1,4}(?P<secret>(?=[A-Za-z._~+/-]*+[0-9])[A-Za-z0-9._~+/-]{16,}+=*+)",
        "bearer",
        flags=re.IGNORECASE,
    ),
    pattern_rule(
        "token",
        _WORD_START
        + r"authorization[\"'\\]{0,3}\s{0,4}[:=]\s{0,4}[\"'\\]{0,3}(?:[a-z]{4,10}\s{1,4})?"
        r"(?P<secret>[A-Za-z0-9._~+/=:-]{12,}+)",
        "authorization",
        flags=re.IGNORECASE,
    ),
    pattern_rule(
        "token",
        _WORD_START + r"(?:x-)?api[-_]?key[\"'\\]{0,3}\s{0,4}[:=]\s{0,4}[\"'\\]{0,3}"
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
    SecretRule("e-mail", email_ranges, ("@",)),
)
