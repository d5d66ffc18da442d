"""The users, passwords and queries of the URLs of traces, kept in memory and out of paths.

Paths of traces are stored, printed and exported. So they have only scheme, host and path. This
module stores the other parts while the process runs, and adds them when a file is read. Two signed
URLs of one object are one path; the newest one is used.
"""

from __future__ import annotations

import os
import re
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote

ENVIRONMENT: Final = "MAST_TUI_ADDRESSES"
"""The environment variable with whole URLs, one a line, for a process that this process starts.
Other users of the machine can list the arguments of a command, but not its environment."""

_URL: Final = r"(?s)(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)"
_WEB_SCHEMES: Final = frozenset({"http", "https"})
_LOCAL_SCHEMES: Final = frozenset({"file", "local", "memory"})
"""The schemes of this machine, in which ``?`` and ``@`` are ordinary characters of names."""

_NAMES_BEFORE_AT: Final = frozenset(
    {"abfs", "abfss", "wasb", "wasbs", "adl", "github", "git", "hf"}
)
"""The schemes with a container or a repository before the ``@``, not a user."""

_NO_USER: Final = frozenset({"s3", "s3a", "gs", "gcs", "oss", "oci"})
"""The schemes with no user in their URLs, because their libraries take keys from elsewhere."""

_USER_PART: Final = r"(?s)(?P<user>[^/]*|[^/@]*:(?!\d*(?:/|\Z))[^@]*)@"
"""A user, or user and password; keys of S3 may have a ``/``."""

_PASSWORD_START: Final = r"(?P<host>[^/:]*):(?!\d*(?:/|\Z))[^/]*"
"""A host with the beginning of a password up to an unquoted ``?`` or ``#``, but not with a port."""

_QUERY: Final = r"(?s)\?[^/?]*=.*"
_WEB_QUERY: Final = r"(?s)[?#].*"

_URL_IN_TEXT: Final = r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<slashes>//?)(?P<rest>[^\s'\"<>]+)"
_SECRET_IN_TEXT: Final = r"\?[^/?]*=[^\s,;:)\]]*|#[^\s/]*=[^\s,;:)\]]*"
_DATABASE: Final = r"(?i)postgres(ql)?\Z"
_DATABASE_PASSWORD: Final = r"(?i)(?<=[?&])(\w*password)=[^&\s:,;]*"

_SIGNATURE_PARAMETER: Final = (
    r"(?i)(x-amz-|x-goog-).*|awsaccesskeyid|googleaccessid|signature|expires|policy|key-pair-id"
    r"|sig|s[eiprtv]|spr|sip|sk[estv]|skt?oid|sktid|.*token|(api|access)_?key"
)
"""The names of parameters that prove the right to read an object, and do not name the object."""


class SplitUrl(NamedTuple):
    """The parts of a URL; user and query are kept out of paths."""

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
        """The scheme and the host."""
        return f"{self.scheme}://{self.location.partition('/')[0]}"

    @property
    def whole(self) -> str:
        """The URL with all its parts."""
        user_part = f"{self.user}@" if self.user else ""
        return f"{self.scheme}://{user_part}{self.location}{self.query}"


def split_url(url: str) -> SplitUrl | None:
    """Return the parts of a URL that is no chain of URLs; None for a text that is no URL."""
    url_match = re.fullmatch(_URL, url)
    if url_match is None:
        return None
    scheme = url_match["scheme"].lower()
    location = url_match["rest"]
    if scheme in _LOCAL_SCHEMES:
        return SplitUrl(scheme, "", location, "")
    user = ""
    query = ""
    query_match = re.search(_WEB_QUERY if scheme in _WEB_SCHEMES else _QUERY, location)
    if query_match is not None:
        query = query_match[0]
        location = location[: query_match.start()]
    user_match = re.match(_USER_PART, location)
    if user_match is not None and scheme not in _NAMES_BEFORE_AT:
        user = user_match["user"]
        location = location[user_match.end() :]
    # A password with an unquoted ``?`` or ``#`` is split: its end is in the query.
    if scheme in _WEB_SCHEMES and "@" in query:
        location = re.sub(_PASSWORD_START, r"\g<host>", location, count=1)
    return SplitUrl(scheme, user, location, query)


def object_parameters(query: str) -> tuple[tuple[str, str], ...]:
    """Return the parameters of a query that may name the stored object: all but signatures."""
    parameters = parse_qsl(query.lstrip("?").partition("#")[0], keep_blank_values=True)
    return tuple(
        (name, value) for name, value in parameters if not re.fullmatch(_SIGNATURE_PARAMETER, name)
    )


class AddressBook:
    """The users and queries of the URLs that this process has seen, by their public URLs."""

    def __init__(self, inherited: str = "") -> None:
        """Create a book with the URLs of the process that started this one.

        Args:
            inherited: The whole URLs, one per line.
        """
        self._queries: dict[str, str] = {}
        self._users: dict[str, str] = {}
        for url in inherited.splitlines():
            self.remember(url)

    def remember(self, url: str) -> str:
        """Store the user and query of a URL, and return the URL without them.

        Args:
            url: A URL, or a chain of URLs with ``::``; only the last can have a user or query.
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

    def full_url(self, url: str) -> str:
        """Return a public URL with its stored user and query, if there are any.

        Args:
            url: A result of ``remember``, or a URL below it; the last URL of a chain is completed.
        """
        chain, separator, last = url.rpartition("::")
        parts = split_url(last)
        if parts is None:
            return url
        full_url = parts._replace(
            user=parts.user or self._users.get(parts.origin, ""),
            query=parts.query or self._queries.get(parts.public, ""),
        ).whole
        return f"{chain}{separator}{full_url}"

    def query_of(self, url: str) -> str:
        """Return the stored query of a public URL; empty if there is none."""
        return self._queries.get(url.rpartition("::")[2], "")

    def without_secrets(self, text: str) -> str:
        """Return a message without the secrets of URLs in it and of all stored URLs.

        Args:
            text: The message, such as the error of a library.
        """
        text = re.sub(_URL_IN_TEXT, _url_without_secrets, text)
        for credentials in self._users.values():
            password = credentials.partition(":")[2]  # ``user:password``
            for secret in (credentials, password, unquote(password)):
                if len(secret) >= _SHORTEST_SECRET:
                    text = text.replace(secret, "…")
        for query in self._queries.values():
            query_without_mark = query[1:]  # without ``?`` or ``#``
            if len(query_without_mark) >= _SHORTEST_SECRET:
                text = text.replace(query, "").replace(query_without_mark, "…")
        return text


_SHORTEST_SECRET: Final = 4
"""The least length of a secret that is removed from messages, since shorter ones occur in words."""

ADDRESSES: Final = AddressBook(os.environ.get(ENVIRONMENT, ""))
"""The URLs of this process."""


def _url_without_secrets(url_match: re.Match[str]) -> str:
    """Return the URL of a match without its user and other secrets.

    The URL of a database keeps the name of its user.
    """
    scheme = url_match["scheme"]
    location = url_match["rest"]
    user_match = re.match(_USER_PART, location)
    if re.match(_DATABASE, scheme):
        if user_match is not None and ":" in user_match["user"]:
            user_name = user_match["user"].partition(":")[0]
            location = f"{user_name}@{location[user_match.end() :]}"
        location = re.sub(_DATABASE_PASSWORD, r"\1=…", location)
    else:
        # In these schemes the text before an ``@`` is part of a name, not a user.
        schemes_without_user = _NAMES_BEFORE_AT | _LOCAL_SCHEMES
        if user_match is not None and scheme.lower() not in schemes_without_user:
            location = location[user_match.end() :]
        location = re.sub(_SECRET_IN_TEXT, "", location)
    return f"{scheme}:{url_match['slashes']}{location}"
