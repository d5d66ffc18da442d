"""The rules for secrets and personal data.

Keys, tokens, passwords and addresses are redacted by default. Personal data, and the secrets of
many vendors, are redacted on request. The libraries detect-secrets and libphonenumber provide some
of the patterns. Card numbers and IBANs count only with a valid check digit, so that most other
numbers stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from ipaddress import ip_address
from types import ModuleType
from typing import Any, Final
from urllib.parse import unquote

import re2

from mast_tui.errors import MastError
from mast_tui.traces.search.pattern import encodable_text


class RedactionError(MastError):
    """An error of redaction; the message says why."""


SecretRanges = Callable[[str], Iterator[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class SecretRule:
    """A rule for one kind of secret.

    ``keywords`` and ``required_char`` save time: a text without them is not searched.

    Attributes:
        name: The replacement of a secret.
        ranges: Yields the start and end of the secrets in a text, in code points, in any order.
        keywords: Texts in lower case; a text with a secret contains one of them, in any case.
        pattern: The regular expression; empty for other rules.
        required_char: A character in each text with a secret; empty for none.
        is_own: True if the rule is from the user's file.
    """

    name: str
    ranges: SecretRanges
    keywords: tuple[str, ...] = ()
    pattern: str = ""
    required_char: str = ""
    is_own: bool = False


SECRET_GROUP: Final = "secret"
"""The name of a pattern's group for the secret. Without it, the whole match is a secret."""


def pattern_rule(
    name: str, pattern: str, *keywords: str, flags: int = 0, required_char: str = ""
) -> SecretRule:
    """Make a rule of a built-in pattern.

    Python's engine matches it, because RE2 has no look-behind. Each pattern must take linear time,
    because this engine can be slow.

    Args:
        name: The name of the rule, which replaces a secret.
        pattern: The regular expression.
        keywords: Texts in lower case; each secret contains one of them.
        flags: The flags of the regular expression.
        required_char: A character in each secret; empty for none.
    """
    compiled = re.compile(pattern, flags | re.ASCII)
    group = compiled.groupindex.get(SECRET_GROUP, 0)

    def ranges(text: str) -> Iterator[tuple[int, int]]:
        for match in compiled.finditer(text):
            start, end = match.span(group)
            if start < end:
                yield start, end

    return SecretRule(name, ranges, keywords, pattern, required_char)


_LETTER: Final = "A-Za-z\u00c0-\u024f"
"""The Latin letters, also those with accents."""

_LOCAL: Final = re.compile(rf"[{_LETTER}0-9._%+-]*\Z")
_AT_DOMAIN: Final = re.compile(
    rf"(?:@|%40)(?:[{_LETTER}0-9](?:[{_LETTER}0-9-]{{0,61}}[{_LETTER}0-9])?\.){{1,8}}"
    rf"[{_LETTER}]{{2,24}}(?![{_LETTER}0-9])"
)
_LONGEST_LOCAL: Final = 64


def email_ranges(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of e-mail addresses.

    For speed, the search begins at each ``@`` before a domain, and goes back to the start of the
    address. In a URL, ``@`` may be ``%40``.
    """
    for match in _AT_DOMAIN.finditer(text):
        at_offset = match.start()
        local = _LOCAL.search(text, max(0, at_offset - _LONGEST_LOCAL), at_offset)
        if local is not None and local[0]:
            yield local.start(), match.end()


_WORD_START: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
"""The start of a word, also after the letter of an escape such as ``\\n`` in JSON."""

_BETWEEN_LINES: Final = (
    r"(?:[\s\"'+,|>\u2192]|-(?!-)|\\{1,4}[nrt]|[0-9]{1,6}(?=[\s|:\u2192])|(?<=[0-9]):"
    r"|(?<=\n)[\w./-]{1,60}:(?! ))*+"
)
"""The text that may be between the lines of a private key: signs of code, quotations, tables and
diffs; escapes; line numbers; and file names that a search puts before each line."""

# The time is linear: each quantifier is possessive, or does not overlap the following pattern.
DEFAULT_RULES: Final[tuple[SecretRule, ...]] = (
    pattern_rule(
        "private key",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        rf"(?:{_BETWEEN_LINES}(?:[A-Za-z-]{{1,30}}: [^\n\\]{{0,120}}|[A-Za-z0-9+/=]{{16,}}+))++"
        rf"(?:{_BETWEEN_LINES}[A-Za-z0-9+/=]{{1,15}}(?![^\s\"'|\\]))?+"
        rf"(?:{_BETWEEN_LINES}-{{5,6}}END [A-Z0-9 ]{{0,60}}-----)?+",
        "private key",
        required_char="-",
    ),
    pattern_rule(
        "API key",
        _WORD_START + r"(?<![_-])(?:sk|rk|pk)-(?=[A-Za-z_-]*+[0-9])[A-Za-z0-9_-]{20,}+",
        "sk-",
        "rk-",
        "pk-",
        required_char="-",
    ),
    pattern_rule(
        "API key",
        _WORD_START + r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}+",
        "_live_",
        "_test_",
        required_char="_",
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
        required_char="_",
    ),
    pattern_rule(
        "API key", _WORD_START + r"glpat-[A-Za-z0-9_.-]{20,}+", "glpat-", required_char="-"
    ),
    pattern_rule(
        "API key",
        _WORD_START + r"(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,}+",
        "xox",
        "xapp-",
        required_char="-",
    ),
    pattern_rule("API key", _WORD_START + r"AIza[0-9A-Za-z_-]{35}", "aiza"),
    pattern_rule("API key", _WORD_START + r"hf_[A-Za-z0-9]{30,}+", "hf_", required_char="_"),
    pattern_rule("API key", _WORD_START + r"gsk_[A-Za-z0-9]{30,}+", "gsk_", required_char="_"),
    pattern_rule("API key", _WORD_START + r"npm_[A-Za-z0-9]{36}", "npm_", required_char="_"),
    pattern_rule(
        "token",
        _WORD_START + r"(?<![_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*+",
        "eyj",
        required_char=".",
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
        required_char=":",
    ),
    SecretRule("e-mail", email_ranges, ("@", "%40")),
)


_NEEDS_EXTRA: Final = (
    "masking personal data needs more packages; install them with: pip install 'mast-tui[redact]'"
)

Check = Callable[[str], bool]

_NUMBER_START: Final = r"(?:(?<![A-Za-z0-9.+-])|(?<=^[+-]))"
"""The start of a number, also after the sign of a line of a diff."""

_CARD: Final = re.compile(
    _NUMBER_START + r"[0-9](?:[ -]?[0-9]){11,18}(?![A-Za-z0-9-]|\.[0-9])", re.MULTILINE
)
_CARD_LENGTHS: Final = (
    (re.compile("4"), (13, 16, 19)),
    (re.compile("5[1-5]|2(?:2[2-9]|[3-6]|7[01]|720)"), (16,)),
    (re.compile("3[47]"), (15,)),
    (re.compile("6(?:011|5|4[4-9])"), (16, 19)),
    (re.compile("35"), (16, 19)),
    (re.compile("2131|1800"), (15,)),
    (re.compile("0604"), (12,)),
    (re.compile("3(?:0[0-5]|[689])"), (14,)),
    (re.compile("(?:50|5[6-9]|6[0-9])"), (12, 13, 14, 15, 16, 17, 18, 19)),
    (re.compile("62"), (16, 17, 18, 19)),
)
"""The first digits of the numbers of card issuers, with the lengths of their numbers."""

_IBAN: Final = re.compile(
    r"(?<![A-Za-z0-9])[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])"
)
_IPV4: Final = re.compile(
    r"(?:(?<![A-Za-z0-9.-])|(?<=^-))(?<!version )(?<!Version )"
    r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![A-Za-z0-9-]|\.[0-9])",
    re.MULTILINE,
)
_IPV6: Final = re.compile(
    r"(?<![A-Za-z0-9:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![A-Za-z0-9:]|\.[0-9])"
)
_PHONE: Final = re.compile(
    _NUMBER_START + r"(?:"
    r"(?:\+|%2B)[1-9](?:(?:[ ().\-/]|%20){0,2}[0-9]){6,14}"
    r"|(?<![:/])(?:(?:1[ .-]|001-)?\(?[2-9][0-9]{2}\)?[ .-][2-9][0-9]{2}[ .-][0-9]{4}"
    r"|\([2-9][0-9]{2}\)[2-9][0-9]{2}-?[0-9]{4}"
    r"|00[1-9](?:[ ().\-/]{0,2}[0-9]){7,13}"
    r"|\(?0[1-9](?:[ ()\-/]{0,2}[0-9]){6,11})"
    r")(?: ?(?:x|ext\.? ?)[0-9]{1,5})?(?![A-Za-z0-9-]|[.:/][0-9])",
    re.MULTILINE,
)
_KNOWN_REGIONS: Final = (
    "US",
    "GB",
    "DE",
    "FR",
    "IT",
    "ES",
    "NL",
    "CH",
    "AT",
    "JP",
    "AU",
    "IN",
    "BR",
)
"""The countries whose national numbers are found. Numbers with a + are found for all countries."""

_LENGTHS_WITHOUT_SEPARATOR: Final = (10, 11)
_SEPARATOR: Final = re.compile(r"[ ().\-/]")

_LEFT_TO_OTHER_RULES: Final = (
    "Public IP (ipv4)",
    "Private Key",
    "Basic Auth Credentials",
    "JSON Web Token",
)
"""The plugins of detect-secrets for secrets that other rules mark in full length."""

_LOOK_AROUND: Final = re.compile(r"\(\?:\(\?<=\\W\)\|\(\?<=\^\)\)|\(\?!(?:\\w|\[[^\]]*\])\)")
_SHORTEST_GROUP: Final = 12
"""The fewest characters of a group that is a whole secret."""


def personal_rules() -> tuple[SecretRule, ...]:
    """Return the rules for personal data and secrets.

    Raises:
        RedactionError: A required library is not installed.
    """
    return (
        *(rule for rule in DEFAULT_RULES if rule.name != "e-mail"),  # replaced by "email" below
        _library_rule(),
        *_OWN_KEY_RULES,
        SecretRule("email", _email_ranges, ("@", "%40")),
        _checked_pattern_rule("card", _CARD, _is_card),
        _checked_pattern_rule("IBAN", _IBAN, _is_iban),
        _checked_pattern_rule("IP", _IPV4, _is_address, required_char="."),
        _checked_pattern_rule("IP", _IPV6, _is_ipv6, required_char=":"),
        _checked_pattern_rule("phone", _PHONE, _phone_check()),
    )


_IS: Final = r"[\"'\\]{0,3}\s{0,3}[:=]\s{0,3}[\"'\\]{0,3}"
"""The signs between a name and its value in code, JSON and settings, with or without escapes."""

_MIXED_VALUE: Final = r"(?=[^\s\"'\\,;]{0,127}[0-9])(?=[^\s\"'\\,;]{0,127}[A-Za-z])[^\s\"'\\,;]"
"""The first sign of a value with a letter and a digit, so that words are no secrets."""

_TOKEN_CHAR: Final = r"[A-Za-z0-9_+/=~.%-]"
_TOKEN_VALUE: Final = (
    rf"(?P<secret>(?!/)(?![A-Za-z_.]{{1,127}}+[0-9]{{0,2}}+(?!{_TOKEN_CHAR}))"
    rf"(?={_TOKEN_CHAR}{{0,127}}[0-9])(?={_TOKEN_CHAR}{{0,127}}[A-Za-z])"
    rf"{_TOKEN_CHAR}{{16,4000}}+(?![\w(\[:]))"
)
"""The value of a token: no path, address or time, and no name or call in code."""

_OPTION_VALUE: Final = (
    r"[\"']?(?P<secret>(?![$<{(\[%-]|id=|type=)(?=[A-Za-z]{0,127}[^\sA-Za-z\"'\\])[^\s\"'\\]"
)
"""The first sign of an option's value: no variable or placeholder, and no word."""

_OWN_KEY_RULES: Final = (
    pattern_rule(
        "password",
        rf"(?:password|passwd|passphrase|pwd|secret){_IS}(?P<secret>{_MIXED_VALUE}{{8,128}}+)",
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "secret",
        flags=re.IGNORECASE,
    ),
    pattern_rule(
        "token",
        r"(?:(?<![A-Za-z0-9])|(?:access|auth|bearer|bot|id|refresh|security|session)[_-]?)token"
        rf"{_IS}{_TOKEN_VALUE}",
        "token",
        flags=re.IGNORECASE,
    ),
    pattern_rule(
        "API key",
        r"(?:access|account|auth|encryption|private|secret|signing)[_-]?key"
        rf"{_IS}{_TOKEN_VALUE}",
        "key",
        flags=re.IGNORECASE,
    ),
    pattern_rule(
        "token",
        r"(?<![A-Za-z0-9])cookie[\"'\\]{0,3}: {0,3}[\"'\\]{0,3}"
        r"(?P<secret>(?=[^\n\"'\\]{0,400}=[^\s;\"'\\]{8})[^\s=;\"'\\]{1,100}+=[^\s;\"'\\]{0,4000}+"
        r"(?:; ?[^\s=;\"'\\]{1,100}+(?:=[^\s;\"'\\]{0,4000}+)?+){0,50}+)",
        "cookie",
        flags=re.IGNORECASE,
    ),
    pattern_rule(
        "password",
        r"--(?:password|passwd|pwd|pass|token|secret|api-key)(?:=| {1,3})"
        rf"{_OPTION_VALUE}{{6,}}+)",
        "--pass",
        "--pwd",
        "--token",
        "--secret",
        "--api-key",
    ),
    pattern_rule(
        "password",
        r"(?<![\w-])(?:mysql(?:dump|admin)?\b[^\n|;]{0,120}? -p|sshpass\b[^\n|;]{0,40}? -p ?)"
        rf"{_OPTION_VALUE}{{4,}}+)",
        "mysql",
        "sshpass",
    ),
    pattern_rule(
        "password",
        r"(?<![\w-])(?:curl|wget)\b[^\n|;]{0,120}? (?:-u|--user) {1,3}[\"']?[^\s:\"'\\]{1,60}:"
        r"(?P<secret>(?![$<{])[^\s\"'\\]{3,}+)",
        "curl",
        "wget",
    ),
    pattern_rule(
        "phone",
        r"(?<![A-Za-z])(?:(?:(?:cell|tele)?phone|tel|fax)(?:[ _-]?(?:number|no\.?))?"
        r"|(?:cell|mobile)[ _-]?(?:phone|number|no\.?))"
        rf"{_IS}(?P<secret>(?!(?:19|20)[0-9]{{2}}-[0-9]{{2}}-[0-9]{{2}}(?![0-9]))"
        r"\+?[0-9(](?:[ ().\-/]{0,2}[0-9]){6,14}+(?!\w|[.:][0-9]))",
        "phone",
        "mobile",
        "tel",
        "cell",
        "fax",
        flags=re.IGNORECASE,
    ),
    pattern_rule("API key", r"(?<![A-Za-z0-9])[0-9]{8,10}:AA[0-9A-Za-z_-]{33}(?![\w-])", ":aa"),
    pattern_rule("API key", r"(?<![A-Za-z0-9])dop_v1_[0-9a-f]{64}", "dop_v1_"),
    pattern_rule("API key", r"(?<![A-Za-z0-9])shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}", "shp"),
    pattern_rule("API key", r"(?<![A-Za-z0-9])(?:SG|sg)\.[\w-]{16,32}\.[\w-]{16,64}", "sg."),
)
"""Keys and passwords that neither the default rules nor detect-secrets find."""


def _email_ranges(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of e-mail addresses, without ``git@``, the login of a Git server."""
    return ((start, end) for start, end in email_ranges(text) if text[start : start + 4] != "git@")


def _checked_pattern_rule(
    name: str, pattern: re.Pattern[str], check: Check, required_char: str = ""
) -> SecretRule:
    """Return a rule for numbers that match a pattern and pass a check, such as a check digit.

    A match may contain several numbers of a list. So its parts between separators are checked, the
    longest first.
    """

    def ranges(text: str) -> Iterator[tuple[int, int]]:
        for match in pattern.finditer(text):
            separators = _separator_offsets(match)
            starts = [match.start(), *(offset + 1 for offset in separators)]
            ends = [*separators, match.end()]
            last_end = match.start()
            for start in starts:
                if start < last_end:
                    continue
                for end in reversed(ends):
                    if end > start and check(text[start:end]):
                        yield start, end
                        last_end = end
                        break

    return SecretRule(name, ranges, pattern=pattern.pattern, required_char=required_char)


def _separator_offsets(match: re.Match[str]) -> list[int]:
    """Return the offsets in the text of the spaces and hyphens in a match."""
    return [match.start() + separator.start() for separator in re.finditer("[ -]", match[0])]


def _is_card(number: str) -> bool:
    """Check whether a number has the prefix, length and check digit of a payment card."""
    digits = re.sub(r"[ -]", "", number)
    has_issuer = any(
        len(digits) in lengths and prefix.match(digits) for prefix, lengths in _CARD_LENGTHS
    )
    return has_issuer and _has_luhn_digit(digits)


def _has_luhn_digit(digits: str) -> bool:
    """Check the last digit of a number by the algorithm of Luhn (ISO/IEC 7812-1).

    Every second digit from the right is doubled, and reduced to the sum of its digits.
    """
    total = 0
    for position, digit in enumerate(reversed(digits)):
        value = int(digit)
        if position % 2:
            value = 2 * value
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _is_iban(text: str) -> bool:
    """Check the two check digits of an IBAN (ISO 13616): the number is 1 modulo 97."""
    compact = text.replace(" ", "")
    if not 15 <= len(compact) <= 34:
        return False
    rearranged = compact[4:] + compact[:4]
    digits = "".join(str(int(character, 36)) for character in rearranged)
    return int(digits) % 97 == 1


def _is_address(text: str) -> bool:
    """Check whether a text is the address of a machine: no loopback, netmask or wildcard."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    is_special = address.is_loopback or address.is_unspecified or address.is_multicast
    return not (is_special or text.startswith("255.") or text.endswith(".0.0.0"))


def _is_ipv6(text: str) -> bool:
    """Check whether a text is an IPv6 address with at least three groups and a digit."""
    groups = [group for group in text.split(":") if group]
    return len(groups) >= 3 and any(map(str.isdigit, text)) and _is_address(text)


def _phone_check() -> Check:
    """Return a function that checks whether a text is a valid telephone number."""
    phonenumbers = _import_extra("phonenumbers")

    def is_phone(text: str) -> bool:
        """Check whether a text is a number of a known region, or an international number."""
        text = unquote(text)
        has_form = _SEPARATOR.search(text) or text.startswith(("+", "00"))
        is_plain_number = text.startswith("0") and len(text) in _LENGTHS_WITHOUT_SEPARATOR
        if not has_form and not is_plain_number:
            return False
        if text.startswith("00"):
            text = f"+{text[2:]}"
        regions = (None,) if text.startswith("+") else _KNOWN_REGIONS
        for region in regions:
            try:
                number = phonenumbers.parse(text, region)
            except phonenumbers.NumberParseException:
                continue
            # International numbers are checked less strictly, because new areas may be unknown.
            check = phonenumbers.is_valid_number if region else phonenumbers.is_possible_number
            if check(number):
                return True
        return False

    return is_phone


def _library_rule() -> SecretRule:
    """Return a rule for all patterns of detect-secrets, which are searched in one pass.

    RE2 matches the patterns, because some take quadratic time in Python's engine. RE2 has no
    look-around, so it is removed. The patterns use it only at word boundaries, so a little more is
    masked.
    """
    plugins: Any = _import_extra("detect_secrets.core.plugins.util")
    base: Any = _import_extra("detect_secrets.plugins.base")
    parts = []
    for kind, plugin in sorted(plugins.get_mapping_from_secret_type_to_class().items()):
        if kind in _LEFT_TO_OTHER_RULES or not issubclass(plugin, base.RegexBasedDetector):
            continue
        for pattern in plugin().denylist:
            text = _LOOK_AROUND.sub("", pattern.pattern)
            text = text.replace("{50,1024}", "{50,}")  # RE2 accepts at most 1,000 repetitions
            parts.append(f"(?i:{text})" if pattern.flags & re.IGNORECASE else f"(?:{text})")
    options = re2.Options()
    options.log_errors = False
    compiled = re2.compile(f"(?m){'|'.join(parts)}", options)

    def ranges(text: str) -> Iterator[tuple[int, int]]:
        """Yield the range of each match's longest group, or of the match if the group is short."""
        for match in compiled.finditer(encodable_text(text)):
            groups = (match.span(number) for number in range(1, compiled.groups + 1))
            start, end = max(groups, key=lambda span: span[1] - span[0], default=(0, 0))
            if end - start >= _SHORTEST_GROUP:
                yield start, end
            else:
                yield match.span()

    return SecretRule("API key", ranges, pattern="detect-secrets")


def _import_extra(name: str) -> ModuleType:
    """Import a module of the ``redact`` extra.

    Raises:
        RedactionError: The module is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        raise RedactionError(_NEEDS_EXTRA) from None
