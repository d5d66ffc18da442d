"""The address of the web server: the names of this machine, and the one that visitors type."""

from __future__ import annotations

from typing import Final
from urllib.parse import SplitResult, urlsplit

from mast_tui.errors import MastError

HERE: Final[frozenset[str | None]] = frozenset({"localhost", "127.0.0.1", "::1"})
"""This machine's own names for itself."""


def checked_url(url: str) -> SplitResult:
    """Return the parts of the address that visitors type.

    Raises:
        MastError: It is no address, or has more than scheme and host.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path not in ("", "/"):
        raise MastError(f"--url {url}: wants an address such as https://labels.example.org")
    return parts
