"""The host of an address, and the check that requests to it are allowed."""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import SplitResult, urlsplit

from mast_tui.judges.llm.errors import RunStops
from mast_tui.safe_text import one_line

AZURE_HOSTS: Final = (
    ".openai.azure.com",
    ".cognitiveservices.azure.com",
    ".services.ai.azure.com",
)
"""The suffixes of the names of Azure's servers (learn.microsoft.com, November 2026)."""


def is_azure(base_url: str) -> bool:
    """Check whether an address is of Azure, which expects the key in a header ``api-key``."""
    parts = _split_address(base_url)
    return parts is not None and (parts.hostname or "").endswith(AZURE_HOSTS)


def host_of(base_url: str) -> str:
    """Return the host and port of an address, safe for display.

    An address without a host is returned on one line.
    """
    parts = _split_address(base_url)
    if parts is None:
        return one_line(base_url, 80)
    _, _, host = parts.netloc.rpartition("@")
    return one_line(host, 80)


def is_this_machine(base_url: str) -> bool:
    """Check whether an address is of the loopback device: localhost, 127.x.x.x or ::1.

    Names are not resolved, so any other name is of another machine.
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
        RunStops: The address is no web address, contains a password, or is unencrypted and of
            another machine.
    """
    parts = _split_address(base_url)
    if parts is None:
        address = one_line(base_url, 80)
        raise RunStops(f"“{address}” is no address of a server; such as https://api.openai.com/v1")
    if "@" in parts.netloc:
        raise RunStops(
            f"the address of {host_of(base_url)} has a name or a password in it;"
            " put the key into the environment instead"
        )
    if parts.scheme == "http" and not allow_http and not is_this_machine(base_url):
        raise RunStops(
            f"{host_of(base_url)} would be asked over http, where anybody on the way can read the"
            " traces and the key; use https, or allow http for this server"
        )


def _split_address(base_url: str) -> SplitResult | None:
    """Split a web address; None for any other text."""
    try:
        parts = urlsplit(base_url.strip())
        name = parts.hostname or ""
        _ = parts.port, name.encode("idna")  # both raise for invalid values
    except ValueError:
        return None
    is_valid_name = name and name.isprintable() and " " not in name
    return parts if is_valid_name and parts.scheme in ("http", "https") else None
