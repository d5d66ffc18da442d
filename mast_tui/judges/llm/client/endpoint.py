"""The endpoint of a server with the OpenAI API: its address and key.

Requests go only to allowed hosts. The key is removed from all texts.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import sys
from array import array
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, Literal
from urllib.parse import SplitResult, urlsplit

from mast_tui.configuration import TIMEOUT
from mast_tui.judges.llm.request import RunStops
from mast_tui.safe_text import one_line

AZURE_HOSTS: Final = (
    ".openai.azure.com",
    ".cognitiveservices.azure.com",
    ".services.ai.azure.com",
)
"""The suffixes of the names of Azure's servers (learn.microsoft.com, November 2026)."""


def is_azure(base_url: str) -> bool:
    """Check whether an address belongs to Azure."""
    parts = _split_address(base_url)
    return parts is not None and (parts.hostname or "").endswith(AZURE_HOSTS)


def host_of(base_url: str) -> str:
    """Return the host and port of a web address, or the text on one line if it is none."""
    parts = _split_address(base_url)
    if parts is None:
        return one_line(base_url, 80)
    _, _, host = parts.netloc.rpartition("@")
    return one_line(host, 80)


def is_this_machine(base_url: str) -> bool:
    """Check whether an address is on the loopback device: localhost, 127.x.x.x or ::1.

    Names are not resolved.
    """
    parts = _split_address(base_url)
    if parts is None:
        return False
    name = (parts.hostname or "").rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def check_address(base_url: str, *, allow_http: bool = False) -> None:
    """Raise an error if traces and a key must not be sent to an address.

    Args:
        base_url: The address.
        allow_http: True to allow unencrypted requests to another machine.

    Raises:
        RunStops: The address is no web address, contains a password, or belongs to another machine
            and is unencrypted.
    """
    parts = _split_address(base_url)
    if parts is None:
        address = one_line(base_url, 80)
        raise RunStops(
            f"“{address}” is not the address of a server; use one such as https://api.openai.com/v1"
        )
    if "@" in parts.netloc:
        raise RunStops(
            f"the address of {host_of(base_url)} contains a name or a password; put the key "
            "into the environment instead"
        )
    if parts.scheme == "http" and not allow_http and not is_this_machine(base_url):
        raise RunStops(
            f"{host_of(base_url)} uses http, so others on the network can read the traces and "
            "the key; use https, or allow http for this server"
        )


def _split_address(base_url: str) -> SplitResult | None:
    """Split a web address; None for other texts."""
    try:
        parts = urlsplit(base_url.strip())
        name = parts.hostname or ""
        _ = parts.port, name.encode("idna")  # both raise for invalid values
    except ValueError:
        return None
    is_valid_name = name and name.isprintable() and " " not in name
    return parts if is_valid_name and parts.scheme in ("http", "https") else None


DEFAULT_VARIABLE: Final = "OPENAI_API_KEY"

NO_KEY: Final = "none"
"""The key for a server on this machine without one."""

HIDDEN: Final = "[key]"

SHORTEST: Final = 4
"""The fewest characters of a key that is removed. A shorter key may occur in ordinary words."""

SHORTEST_ENCODED: Final = 8
"""The fewest characters of a key that is removed in hexadecimal and base64."""

LEAST_PART: Final = 12
"""The fewest consecutive characters of a key that are removed."""


def find_key(base_url: str, variable: str = DEFAULT_VARIABLE) -> str:
    """Return the key in the environment, or ``NO_KEY`` for a server on this machine without one.

    Args:
        base_url: The address of the server.
        variable: The name of the environment variable.

    Raises:
        RunStops: A server on another machine has no key, or the value cannot be a key.
    """
    key = os.environ.get(variable, "").strip()
    if not key:
        if is_this_machine(base_url):
            return NO_KEY
        raise RunStops(f"there is no key for {host_of(base_url)}; set {variable}")
    if not all("!" <= char <= "~" for char in key):
        raise RunStops(f"{variable} is not a key: it has spaces or other unusual characters")
    return key


def scrub(text: str, key: str) -> str:
    """Replace a key, or a long part of it, in a text by ``HIDDEN``.

    Encoded forms are replaced too: escapes of URLs, JSON, HTML and source code; hexadecimal and
    base64; any case; invisible characters in between.

    Args:
        text: A text of a server or a library.
        key: The key; ``NO_KEY`` and very short keys are not replaced.
    """
    if key == NO_KEY or len(key) < SHORTEST:
        return text
    text = text.replace(key, HIDDEN)
    visible_text = _INVISIBLE.sub("", _ESCAPE.sub(_unescape_match, text))
    # A needle is a form of the key. A view is the text in the form for some needles.
    views = _searched_views(visible_text)
    ranges: list[tuple[int, int]] = []
    for view_name, needle, least in _encoded_forms(key):
        ranges += _find_key_fragments(views[view_name], needle, least)
    if not ranges:
        return text
    # A unit is a character or an escape in the text; it stands for one character of a view.
    units = _UNIT.findall(text)
    offsets = array("Q", accumulate(map(len, units), initial=0))
    is_visible = {unit: not _INVISIBLE.match(_unescape_unit(unit)) for unit in set(units)}
    visible_units = array("Q", (number for number, unit in enumerate(units) if is_visible[unit]))
    parts: list[str] = []
    copied_end = 0
    for start, end in _merge_ranges(ranges):
        parts += (text[copied_end : offsets[visible_units[start]]], HIDDEN)
        copied_end = offsets[visible_units[end - 1] + 1]
    return "".join((*parts, text[copied_end:]))


View = Literal["folded", "base64"]

_ESCAPE: Final = re.compile(
    r"%[0-9A-Fa-f]{2}|\\+(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[bfnrtv])|\\[\"'\\/]"
    r"|&#(?:[0-9]{2,7}|[xX][0-9A-Fa-f]{2,6});"
)
_UNIT: Final = re.compile(f"{_ESCAPE.pattern}|(?s:.)")
_INVISIBLE: Final = re.compile(
    r"[\s\x00-\x20\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    r"\U000e0000-\U000e0fff]"
)
"""White space, control characters, and other invisible characters."""


def _unescape_match(escape: re.Match[str]) -> str:
    return _unescape_unit(escape[0])


def _unescape_unit(unit: str) -> str:
    """Return the character of a unit: of an escape, or the character itself."""
    if len(unit) == 1:
        return unit
    if unit[0] == "&":
        digits = unit[2:-1]  # as in ``&#65;`` or ``&#x41;``
        code = int(digits[1:], 16) if digits[0] in "xX" else int(digits)
        return chr(code) if code <= sys.maxunicode else "�"
    code_text = unit.lstrip("%\\")
    if unit[0] == "%" or (code_text[:1] in ("u", "x") and len(code_text) > 1):
        return chr(int(code_text.lstrip("ux"), 16))
    # All control characters are invisible, so one stands for all.
    return "\n" if code_text in tuple("bfnrtv") else unit[-1]


def _searched_views(visible_text: str) -> Mapping[View, str]:
    """Return the views of a text in which a key is searched; all have the length of the text."""
    return {
        "folded": visible_text.replace("İ", "i").lower(),  # the lower case of İ has two characters
        "base64": visible_text.replace("-", "+").replace("_", "/"),
    }


def _encoded_forms(key: str) -> Iterator[tuple[View, str, int]]:
    """Yield the forms in which a key may occur in a text: plain, hexadecimal and base64.

    Yields:
        The view to search, the form, and the fewest consecutive characters that count.
    """
    least = min(LEAST_PART, len(key))
    for plain_key in {key, _INVISIBLE.sub("", _ESCAPE.sub(_unescape_match, key))}:
        yield "folded", plain_key.lower(), min(least, len(plain_key))
    if len(key) < SHORTEST_ENCODED:
        return
    for cased_key in {key, key.lower(), key.upper()}:
        data = cased_key.encode()
        yield "folded", data.hex(), 2 * least
        yield "folded", data.hex(":"), 3 * least - 1  # a colon between two bytes
        for preceding_bytes in range(3):
            # Keep only the characters (of 6 bits) that do not depend on bytes around the key.
            start = -(-8 * preceding_bytes // 6)
            end = 8 * (preceding_bytes + len(data)) // 6
            encoded = b64encode(bytes(preceding_bytes) + data).decode()[start:end]
            # The two outer characters of a part depend on bytes outside the part.
            yield "base64", encoded, min(len(encoded), 8 * least // 6 - 1)


def _find_key_fragments(view: str, needle: str, least: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of ``view`` that equal at least ``least`` characters of ``needle``.

    Each such range contains a whole block of half this length, so only blocks are searched.
    """
    block_length = (least + 1) // 2
    for block_start in range(0, len(needle) - block_length + 1, block_length):
        block = needle[block_start : block_start + block_length]
        match_start = view.find(block)
        while match_start >= 0:
            start, end = _extend_match(view, needle, match_start, block_start, block_length)
            if end - start >= least:
                yield start, end
            match_start = view.find(block, match_start + 1)


def _extend_match(
    view: str, needle: str, match_start: int, block_start: int, block_length: int
) -> tuple[int, int]:
    """Extend a match of a block of the needle in both directions, and return its range in the view.

    ``match_start`` is the block's offset in the view, and ``block_start`` its offset in the needle.
    """
    start = match_start
    needle_start = block_start
    while needle_start and start and view[start - 1] == needle[needle_start - 1]:
        needle_start -= 1
        start -= 1
    end = match_start + block_length
    needle_end = block_start + block_length
    while needle_end < len(needle) and end < len(view) and view[end] == needle[needle_end]:
        needle_end += 1
        end += 1
    return start, end


def _merge_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges sorted by start; ranges that overlap or touch are merged."""
    merged_ranges: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        last_start, last_end = merged_ranges[-1] if merged_ranges else (-1, -1)
        if start <= last_end:
            merged_ranges[-1] = (last_start, max(last_end, end))
        else:
            merged_ranges.append((start, end))
    return merged_ranges


_LOGGERS: Final = (
    "httpx2",
    *(f"httpcore2.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")),
)
"""The loggers of the HTTP library that log headers of responses."""


class KeyFilter(logging.Filter):
    """A filter that removes a key from the logs of the HTTP library while it is active."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self._key = key

    def watch(self) -> None:
        """Start filtering."""
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self)

    def leave(self) -> None:
        """Stop filtering."""
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Remove the key from a record, and accept the record."""
        message = record.getMessage()
        cleaned = scrub(message, self._key)
        if cleaned != message:
            record.msg = cleaned
            record.args = ()
        return True


MOST_PROBLEM_CHARS: Final = 300
"""The most code points of a server's text in a message."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a server, the key, and the settings of requests.

    Attributes:
        base_url: The address, such as ``https://api.openai.com/v1``. Its query is added to each
            request.
        api_key: The key, which is sent to this address only: redirects are not followed.
        key_variable: The environment variable of the key, for messages.
        timeout: The most seconds for a whole answer.
        allow_http: True to allow unencrypted requests to another machine.
        headers: Further headers of each request.

    Raises:
        RunStops: The address is not allowed; the message says why.
    """

    base_url: str
    api_key: str = field(repr=False)
    key_variable: str = DEFAULT_VARIABLE
    timeout: float = TIMEOUT
    allow_http: bool = False
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        check_address(self.base_url, allow_http=self.allow_http)

    @property
    def host(self) -> str:
        """The host and port of the server, for messages."""
        return host_of(self.base_url)

    def clean(self, text: str) -> str:
        """Remove the key from a text of the server or the SDK, and shorten it for a message."""
        return one_line(scrub(text, self.api_key).strip().rstrip("."), MOST_PROBLEM_CHARS)
