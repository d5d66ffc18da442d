"""User, password and query of the URLs of traces: kept in memory, never part of a path.

A path of a trace is stored, printed and exported. So it holds only what names the file: scheme,
host and path. What a server asks for beyond that is remembered here while the process runs, and
added when the file is read. Two signed URLs of one object are one path; the newest one is used.
"""

from __future__ import annotations

import os
import re
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote

ENVIRONMENT: Final = "MAST_TUI_ADDRESSES"
"""The variable in which a process that this one starts finds whole URLs, one a line. Unlike the
arguments of a command, other users of the machine cannot list it."""

_URL: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)", re.DOTALL)
_WEB: Final = frozenset({"http", "https"})
_PLAIN: Final = frozenset({"file", "local", "memory"})
"""Schemes of this machine, in whose names ``?`` and ``@`` are letters like any other."""

_NAMES_BEFORE_AT: Final = frozenset(
    {"abfs", "abfss", "wasb", "wasbs", "adl", "github", "git", "hf"}
)
"""Schemes that write a container or a repository before the ``@``, and no user."""

_NO_USER: Final = frozenset({"s3", "s3a", "gs", "gcs", "oss", "oci"})
"""Schemes whose libraries take keys from elsewhere, and a key in a URL for the bucket's name."""

_USER: Final = re.compile(r"(?P<user>[^/]*|[^/@]*:(?!\d*(?:/|\Z))[^@]*)@", re.DOTALL)
"""A user, or user and password; keys of S3 may hold a ``/``."""

_NO_PORT: Final = re.compile(r"(?P<host>[^/:]*):(?!\d*(?:/|\Z))[^/]*")
"""A host and what is no port: the first half of a password with an unquoted ``?`` or ``#``."""

_QUERY: Final = re.compile(r"\?[^/?]*=.*", re.DOTALL)
_WEB_QUERY: Final = re.compile(r"[?#].*", re.DOTALL)

_IN_TEXT: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<slashes>//?)(?P<rest>[^\s'\"<>]+)"
)
_SECRET_IN_TEXT: Final = re.compile(r"\?[^/?]*=[^\s,;:)\]]*|#[^\s/]*=[^\s,;:)\]]*")
_DATABASE: Final = re.compile(r"postgres(ql)?\Z", re.IGNORECASE)
_DATABASE_PASSWORD: Final = re.compile(r"(?<=[?&])(\w*password)=[^&\s:,;]*", re.IGNORECASE)

_SIGNING: Final = re.compile(
    r"(x-amz-|x-goog-).*|awsaccesskeyid|googleaccessid|signature|expires|policy|key-pair-id"
    r"|sig|s[eiprtv]|spr|sip|sk[estv]|skt?oid|sktid|.*token|(api|access)_?key",
    re.IGNORECASE,
)
"""Names of parameters that say who may read an object, not which object it is."""


class SplitUrl(NamedTuple):
    """A URL in parts: the user and the query are what is not kept."""

    scheme: str
    user: str
    location: str
    query: str

    @property
    def public(self) -> str:
        """The URL without user and query."""
        return f"{self.scheme}://{self.location}"

    @property
    def origin(self) -> str:
        """Scheme and host."""
        return f"{self.scheme}://{self.location.partition('/')[0]}"

    @property
    def whole(self) -> str:
        """The URL with all its parts."""
        user_part = f"{self.user}@" if self.user else ""
        return f"{self.scheme}://{user_part}{self.location}{self.query}"


def split_url(url: str) -> SplitUrl | None:
    """Split one URL that is no chain; None for a path of this machine."""
    matched = _URL.fullmatch(url)
    if matched is None:
        return None
    scheme = matched["scheme"].lower()
    remainder = matched["rest"]
    if scheme in _PLAIN:
        return SplitUrl(scheme, "", remainder, "")
    query = (_WEB_QUERY if scheme in _WEB else _QUERY).search(remainder)
    if query is not None:
        remainder = remainder[: query.start()]
    user = _USER.match(remainder)
    if user is not None and scheme in _NAMES_BEFORE_AT:
        user = None
    location = remainder[user.end() :] if user else remainder
    if scheme in _WEB and query is not None and "@" in query[0]:
        location = _NO_PORT.sub(r"\g<host>", location, count=1)
    return SplitUrl(scheme, user["user"] if user else "", location, query[0] if query else "")


def object_in_query(query: str) -> tuple[tuple[str, str], ...]:
    """Return the parameters of a query that may name the object, without signatures."""
    parameters = parse_qsl(query.lstrip("?").partition("#")[0], keep_blank_values=True)
    return tuple((name, value) for name, value in parameters if not _SIGNING.fullmatch(name))


class AddressBook:
    """The whole URLs that this process was given, by what is public of them."""

    def __init__(self, inherited: str = "") -> None:
        """Begin with the URLs of the process that has started this one.

        Args:
            inherited: Whole URLs, one a line.
        """
        self._queries: dict[str, str] = {}
        self._users: dict[str, str] = {}
        for url in inherited.splitlines():
            self.public(url)

    def public(self, url: str) -> str:
        """Remember a URL, and return what of it may be stored and shown.

        Args:
            url: A URL, or several that are chained by ``::``, of which the last one is a server's.
        """
        chain, separator, last = url.rpartition("::")
        parts = split_url(last)
        if parts is None:
            return url
        if parts.query:
            self._queries[parts.public] = parts.query
        if parts.user and parts.scheme not in _NO_USER:
            self._users[parts.origin] = parts.user
        return f"{chain}{separator}{parts.public}"

    def whole(self, url: str) -> str:
        """Return a public URL with the user and query that were remembered, if any.

        Args:
            url: A result of ``public``, or a URL below it.
        """
        chain, separator, last = url.rpartition("::")
        parts = split_url(last)
        if parts is None:
            return url
        whole = parts._replace(
            user=parts.user or self._users.get(parts.origin, ""),
            query=parts.query or self._queries.get(parts.public, ""),
        ).whole
        return f"{chain}{separator}{whole}"

    def query(self, url: str) -> str:
        """Return the query that was remembered for a public URL, empty without one."""
        return self._queries.get(url.rpartition("::")[2], "")

    def without_secrets(self, text: str) -> str:
        """Return a message without the secrets of the URLs in it, and of those remembered.

        Args:
            text: Such as the error of a library.
        """
        text = _IN_TEXT.sub(_safe_url, text)
        for user in self._users.values():
            password = user.partition(":")[2]
            for secret in (user, password, unquote(password)):
                if len(secret) >= _SHORTEST_SECRET:
                    text = text.replace(secret, "…")
        for query in self._queries.values():
            if len(query) > _SHORTEST_SECRET:
                text = text.replace(query, "").replace(query[1:], "…")
        return text


_SHORTEST_SECRET: Final = 4
"""A shorter text is not looked for in messages: it would be found in words."""

ADDRESSES: Final = AddressBook(os.environ.get(ENVIRONMENT, ""))
"""The URLs of this process."""


def _safe_url(matched: re.Match[str]) -> str:
    scheme = matched["scheme"]
    remainder = matched["rest"]
    user = _USER.match(remainder)
    if _DATABASE.match(scheme):
        if user is not None and ":" in user["user"]:
            remainder = f"{user['user'].partition(':')[0]}@{remainder[user.end() :]}"
        remainder = _DATABASE_PASSWORD.sub(r"\1=…", remainder)
    else:
        if user is not None and scheme.lower() not in _NAMES_BEFORE_AT | _PLAIN:
            remainder = remainder[user.end() :]
        remainder = _SECRET_IN_TEXT.sub("", remainder)
    return f"{scheme}:{matched['slashes']}{remainder}"
