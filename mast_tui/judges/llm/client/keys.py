"""The key to a server: where it comes from, and how it stays out of every text."""

from __future__ import annotations

import logging
import os
import re
import sys
from array import array
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Final, Literal

from mast_tui.judges.llm.client.hosts import host_of, is_this_machine
from mast_tui.judges.llm.errors import RunStops

DEFAULT_VARIABLE: Final = "OPENAI_API_KEY"

NO_KEY: Final = "none"
"""What is sent to a server on this machine that wants no key."""

HIDDEN: Final = "[key]"

SHORTEST: Final = 4
"""A shorter key is found in ordinary words, and keeps nobody out."""

SHORTEST_ENCODED: Final = 8
"""So is a shorter one in hexadecimal digits or base64."""

LEAST_PART: Final = 12
"""So many characters of a key that follow each other are taken out like the whole."""


def find_key(base_url: str, variable: str = DEFAULT_VARIABLE) -> str:
    """The key that the environment holds; ``NO_KEY`` where there is none and none is needed.

    Raises:
        RunStops: another machine is to be asked and the variable is not set, or what it holds
            can be no key.
    """
    key = os.environ.get(variable, "").strip()
    if not key:
        if is_this_machine(base_url):
            return NO_KEY
        raise RunStops(f"there is no key for {host_of(base_url)}: set {variable} to one")
    if not all("!" <= char <= "~" for char in key):
        raise RunStops(f"what {variable} holds is no key: it has spaces or other odd characters")
    return key


def scrub(text: str, key: str) -> str:
    """Take a key out of a text, also where it is disguised.

    It is found in either case, with escapes as of URLs, JSON, HTML and source code, in hexadecimal
    digits and in base64, with white space or invisible characters within; and of each of these
    every part that stands for ``LEAST_PART`` characters or more of the key.

    Args:
        text: what a server or a library said.
        key: the key; ``NO_KEY``, or one shorter than ``SHORTEST``, is in no text.

    Returns:
        The text with ``HIDDEN`` in all of these places.
    """
    if key == NO_KEY or len(key) < SHORTEST:
        return text
    text = text.replace(key, HIDDEN)
    shown = _UNSEEN.sub("", _ESCAPE.sub(_undone, text))
    views = _views(shown)
    found = [
        place
        for view, needle, least in _disguises(key)
        for place in _parts(views[view], needle, least)
    ]
    if not found:
        return text
    units = _UNIT.findall(text)
    offsets = array("Q", accumulate(map(len, units), initial=0))
    is_shown = {unit: not _UNSEEN.match(_undone_unit(unit)) for unit in set(units)}
    places = array("Q", (place for place, unit in enumerate(units) if is_shown[unit]))
    parts: list[str] = []
    done = 0
    for start, end in _joined(found):
        parts += (text[done : offsets[places[start]]], HIDDEN)
        done = offsets[places[end - 1] + 1]
    return "".join((*parts, text[done:]))


View = Literal["folded", "base64"]

_ESCAPE: Final = re.compile(
    r"%[0-9A-Fa-f]{2}|\\+(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[bfnrtv])|\\[\"'\\/]"
    r"|&#(?:[0-9]{2,7}|[xX][0-9A-Fa-f]{2,6});"
)
_UNIT: Final = re.compile(f"{_ESCAPE.pattern}|(?s:.)")
_UNSEEN: Final = re.compile(
    r"[\s\x00-\x20\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    r"\U000e0000-\U000e0fff]"
)
"""White space, controls, and what is invisible on a screen."""


def _undone(escape: re.Match[str]) -> str:
    return _undone_unit(escape[0])


def _undone_unit(unit: str) -> str:
    """The character that an escape stands for; any other stands for itself."""
    if len(unit) == 1:
        return unit
    if unit[0] == "&":
        digits = unit[2:-1]
        code = int(digits[1:], 16) if digits[0] in "xX" else int(digits)
        return chr(code) if code <= sys.maxunicode else "�"
    bare = unit.lstrip("%\\")
    if unit[0] == "%" or (bare[:1] in ("u", "x") and len(bare) > 1):
        return chr(int(bare.lstrip("ux"), 16))
    return "\n" if bare in tuple("bfnrtv") else unit[-1]


def _views(shown: str) -> Mapping[View, str]:
    """The text as it is compared, with a character for each of its own."""
    return {
        "folded": shown.replace("İ", "i").lower(),
        "base64": shown.replace("-", "+").replace("_", "/"),
    }


def _disguises(key: str) -> Iterator[tuple[View, str, int]]:
    """In which view a form of the key stands, and how much of it is enough to know it by."""
    part = min(LEAST_PART, len(key))
    for plain in {key, _UNSEEN.sub("", _ESCAPE.sub(_undone, key))}:
        yield "folded", plain.lower(), min(part, len(plain))
    if len(key) < SHORTEST_ENCODED:
        return
    for written in {key, key.lower(), key.upper()}:
        data = written.encode()
        yield "folded", data.hex(), 2 * part
        yield "folded", data.hex(":"), 3 * part - 1
        for before in range(3):
            # What the bytes of the key alone decide, whatever stands before and behind them.
            first, last = -(-8 * before // 6), 8 * (before + len(data)) // 6
            encoded = b64encode(bytes(before) + data).decode()[first:last]
            yield "base64", encoded, min(len(encoded), 8 * part // 6 - 1)


def _parts(view: str, needle: str, least: int) -> Iterator[tuple[int, int]]:
    """Where ``least`` characters or more stand that follow each other in the needle.

    Whatever is so long holds one of the blocks into which the needle is cut.
    """
    block = (least + 1) // 2
    for cut in range(0, len(needle) - block + 1, block):
        at = view.find(needle[cut : cut + block])
        while at >= 0:
            before, behind = cut, cut + block
            start, end = at, at + block
            while before and start and view[start - 1] == needle[before - 1]:
                before, start = before - 1, start - 1
            while behind < len(needle) and end < len(view) and view[end] == needle[behind]:
                behind, end = behind + 1, end + 1
            if end - start >= least:
                yield start, end
            at = view.find(needle[cut : cut + block], at + 1)


def _joined(places: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The places in order; those that touch are one."""
    before: tuple[int, int] | None = None
    for start, end in sorted(places):
        if before is not None and start <= before[1]:
            before = before[0], max(before[1], end)
            continue
        if before is not None:
            yield before
        before = start, end
    if before is not None:
        yield before


_LOGGERS: Final = (
    "httpx2",
    *(f"httpcore2.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")),
)
"""The logs of the HTTP library, which tell what headers a server sends back."""


class KeyFilter(logging.Filter):
    """Takes a key out of what the HTTP library logs, from ``watch`` until ``leave``."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self._key = key

    def watch(self) -> None:
        """See to all records from now on."""
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self)

    def leave(self) -> None:
        """See to no more of them."""
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Let the record pass, without the key."""
        said = record.getMessage()
        cleaned = scrub(said, self._key)
        if cleaned != said:
            record.msg, record.args = cleaned, ()
        return True
