"""The key to a server: where it comes from, and how it stays out of every text."""

from __future__ import annotations

import logging
import os
import re
from typing import Final
from urllib.parse import quote

from mast_tui.judges.llm.errors import RunStops
from mast_tui.judges.llm.hosts import host_of, is_this_machine

DEFAULT_VARIABLE: Final = "OPENAI_API_KEY"

NO_KEY: Final = "none"
"""What is sent to a server on this machine that wants no key."""

HIDDEN: Final = "[key]"

SHORTEST: Final = 4
"""A shorter key is found in ordinary words, and keeps nobody out."""


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
    """The text without the key, also where that was written as in a URL, or escaped as in JSON."""
    if key == NO_KEY or len(key) < SHORTEST:
        return text
    for form in {key, quote(key, safe="")}:
        if form in text:
            text = text.replace(form, HIDDEN)
    if "\\u" in text or "\\/" in text:
        text = re.sub("".join(map(_in_json, key)), HIDDEN, text)
    return text


def _in_json(char: str) -> str:
    """A pattern for a character of a key as it may stand within a text of JSON."""
    code = f"{ord(char):04x}"
    escaped = {f"\\u{code}", f"\\u{code.upper()}", *(["\\/"] if char == "/" else [])}
    return f"(?:{'|'.join(re.escape(form) for form in (char, *sorted(escaped)))})"


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
