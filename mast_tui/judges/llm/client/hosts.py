"""Which server an address names, whether that is this machine, and whether it may be asked."""

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
"""The ends of the names of Azure's servers (learn.microsoft.com, November 2026)."""


def is_azure(base_url: str) -> bool:
    """Return whether an address is one of Azure, which wants the key in a header ``api-key``."""
    parts = _split(base_url)
    return parts is not None and (parts.hostname or "").endswith(AZURE_HOSTS)


def host_of(base_url: str) -> str:
    """The host of an address, with its port where one is given, fit for display.

    Without a user name or a path. An address that names no host is given back on one line.
    """
    parts = _split(base_url)
    if parts is None:
        return one_line(base_url, 80)
    name = parts.netloc.rpartition("@")[2]
    return one_line(name, 80)


def is_this_machine(base_url: str) -> bool:
    """Whether an address names the loopback device: localhost, 127.x.x.x or ::1.

    No name is looked up, so every other name counts as another machine.
    """
    parts = _split(base_url)
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
    """See that traces and a key may be sent to an address.

    Raises:
        RunStops: it is no web address, carries a password, or would send the traces and the key
            in the clear to another machine (which ``allow_http`` permits).
    """
    parts = _split(base_url)
    if parts is None:
        shown = one_line(base_url, 80)
        raise RunStops(f"“{shown}” is no address of a server; such as https://api.openai.com/v1")
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


def _split(base_url: str) -> SplitResult | None:
    """The parts of a web address, None for everything else."""
    try:
        parts = urlsplit(base_url.strip())
        named = parts.hostname or ""
        _ = parts.port, named.encode("idna")  # raise where they are no port and no name
    except ValueError:
        return None
    readable = named and named.isprintable() and " " not in named
    return parts if readable and parts.scheme in ("http", "https") else None
