"""What is taken out unless somebody says otherwise: keys, tokens, passwords, addresses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

Places = Callable[[str], Iterator[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Rule:
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


def pattern_rule(name: str, pattern: str, *needs: str, flags: int = 0, sign: str = "") -> Rule:
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

    return Rule(name, places, needs, pattern, sign)


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
DEFAULT_RULES: Final[tuple[Rule, ...]] = (
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
    Rule("e-mail", _addresses, ("@",)),
)
