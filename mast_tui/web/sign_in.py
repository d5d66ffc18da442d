"""The sign-in of team members, whose passwords the database checks, and the limit on guesses."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from typing import Final
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from mast_tui.errors import MastError, ServerAway, WorkspaceError
from mast_tui.labels import checked_person
from mast_tui.session import outside_study_text
from mast_tui.workspace import Workspace

_WAIT_SECONDS: Final = 1.0
"""Seconds that a wrong password or token blocks the next sign-in of its address."""

_CHECKS_AT_ONCE: Final = 4
"""The most sign-ins that are checked at once, from all addresses together."""

_WAITING: Final = 20
"""The most sign-ins of one address that wait; a team behind one proxy may come all at once."""

_IPV6_HOST_BITS: Final = 64
"""The bits of an IPv6 address that its owner can choose."""


class WrongSecret(Exception):
    """A password or token that is wrong."""


class TooManySignIns(Exception):
    """More sign-ins of one address than may wait."""


class GuessLimit:
    """The queue in which sign-ins wait for their check.

    Sign-ins of one address are checked one after another, and at most ``_CHECKS_AT_ONCE`` of all
    addresses at once. A wrong sign-in blocks its address for a second, so parallel guesses are not
    faster than guesses one after another.

    Args:
        wait: Waits after a wrong sign-in, None for a wait of ``_WAIT_SECONDS``.
    """

    def __init__(self, wait: Callable[[], Awaitable[object]] | None = None) -> None:
        self._wait_after_guess = wait or _wait_after_wrong
        self._checks = asyncio.Semaphore(_CHECKS_AT_ONCE)
        self._locks: dict[str, asyncio.Lock] = {}
        self._waiting_counts: Counter[str] = Counter()

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[None]:
        """Wait until no other sign-in from the address's network is checked, then run the block.

        The block checks the sign-in.

        Args:
            address: The client's address.

        Raises:
            TooManySignIns: Too many sign-ins from the network of the address are waiting.
            WrongSecret: The block raised it; it is raised again after a wait that slows guessing.
        """
        network = _network_of(address)
        if self._waiting_counts[network] >= _WAITING:
            raise TooManySignIns
        self._waiting_counts[network] += 1
        try:
            async with self._locks.setdefault(network, asyncio.Lock()), self._checks:
                try:
                    yield
                except WrongSecret:
                    await self._wait_after_guess()
                    raise
        finally:
            self._waiting_counts[network] -= 1
            if not self._waiting_counts[network]:
                del self._waiting_counts[network]
                self._locks.pop(network, None)


async def _wait_after_wrong() -> None:
    await asyncio.sleep(_WAIT_SECONDS)


def _network_of(address: str) -> str:
    """Return the part of a client's address that the client cannot choose.

    This is an IPv4 address, or the network of an IPv6 address.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address) or parsed.ipv4_mapped is not None:
        return str(getattr(parsed, "ipv4_mapped", None) or parsed)
    return f"{int(parsed) >> _IPV6_HOST_BITS:x}::"


_LONGEST_PASSWORD: Final = 1024
"""The most characters of a password, so that it fits into a pipe."""


@dataclass(frozen=True)
class Visitor:
    """A visitor who has signed in.

    Attributes:
        name: The name under which the visitor labels.
        workspace: The path or URL of the workspace of the visitor's apps, None for the nearest.
        password: The password of the member; None if libpq looks for one.
    """

    name: str
    workspace: str | None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class SignedIn:
    """A visitor with a right password or token, and a warning that they must confirm."""

    visitor: Visitor
    outside: str | None
    """The warning that the visitor has no part in the study, None if they have."""


class TeamSignIn:
    """The check of a visitor's name and password by the team's database.

    Args:
        url: The URL of the workspace. Its user is replaced by each visitor.
        taxonomy: The visitors' taxonomy as ``id@version``; its study names the annotators.
        trusts_database: True to accept members of whom the database needs no password. It must
            be false if other machines reach the web server.

    Raises:
        MastError: The URL cannot be read, or has a password.
    """

    def __init__(self, url: str, taxonomy: str, *, trusts_database: bool) -> None:
        self._parts = _checked_parts(url)
        self._taxonomy = taxonomy
        self._trusts_database = trusts_database
        self._asked_for_password: set[str] = set()
        """The members of whom the database is known to ask a password."""

    @property
    def url_user(self) -> str:
        """The user in the URL, empty if it has none."""
        return unquote(self._parts.netloc.rpartition("@")[0])

    def member_url(self, name: str) -> str:
        """Return the URL of the workspace with a member as its user."""
        _, _, host = self._parts.netloc.rpartition("@")
        options = [
            option
            for option in self._parts.query.split("&")
            if unquote(option.partition("=")[0]) != "user"
        ]
        netloc = f"{quote(name, safe='')}@{host}"
        return urlunsplit(self._parts._replace(netloc=netloc, query="&".join(options)))

    def check(self, name: str, password: str) -> SignedIn:
        """Check a name and a password by opening the workspace as that member.

        Args:
            name: The name that the visitor typed.
            password: The password that the visitor typed.

        Raises:
            WrongSecret: The database refuses the member, or the password is missing.
            MastError: The name cannot be one, the database does not answer, the user is no
                member, or the database accepts the member without a password.
        """
        name = checked_person(name)
        if "\0" in password or len(password) > _LONGEST_PASSWORD:
            raise WrongSecret(f"A password has at most {_LONGEST_PASSWORD} characters, and no NUL.")
        # Without a password libpq would use the password of the user who runs the server.
        typed = password or secrets.token_urlsafe()
        try:
            signed_in = self._opened_sign_in(name, typed)
        except ServerAway:
            raise
        except WorkspaceError as error:
            if not password:
                raise WrongSecret(f"The password of {name} is missing.") from None
            reason = str(error).removeprefix(f"{self.member_url(name)}: ")
            raise WrongSecret(f"The database does not let {name} in: {reason}.") from None
        if not self._trusts_database and not (password and self._asks_for_password(name)):
            raise MastError(
                f"the database accepts {name} without a password, so anyone could sign in under "
                "this name; it must ask for one (scram-sha-256 in its pg_hba.conf)"
            )
        return signed_in

    def check_annotator(self, name: str) -> Visitor:
        """Return the visitor of a server that was started for one member.

        libpq finds the password of the user who runs the server.

        Raises:
            MastError: The workspace cannot be opened as this member.
        """
        return self._opened_sign_in(name, None).visitor

    def _opened_sign_in(self, name: str, password: str | None) -> SignedIn:
        """Open the workspace as a member to check the password, and return the sign-in.

        Raises:
            MastError: The password is wrong, or the name is not that of a member.
        """
        url = self.member_url(name)
        with closing(Workspace.open(url, password=password)) as workspace:
            if workspace.member is None or workspace.member.name != name:
                raise MastError(
                    f"{name} is not in the team of this workspace, and only members sign in here; "
                    "who made the workspace adds members with mast-tui team add"
                )
            outside = outside_study_text(name, workspace.study(self._taxonomy))
        return SignedIn(Visitor(name, url, password), outside)

    def _asks_for_password(self, name: str) -> bool:
        """Check by a wrong password whether the database asks a member for one.

        Raises:
            ServerAway: The database cannot be reached.
        """
        # Only True is remembered: the server may begin to ask for passwords later.
        if name not in self._asked_for_password:
            try:
                Workspace.open(self.member_url(name), password=secrets.token_urlsafe()).close()
            except ServerAway:
                raise
            except WorkspaceError:
                self._asked_for_password.add(name)
        return name in self._asked_for_password


def _checked_parts(url: str) -> SplitResult:
    """Return the parts of a workspace's URL.

    Raises:
        MastError: The URL is not valid or has a password.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise MastError(
            "--workspace: this is no address of a PostgreSQL database; write "
            "postgresql://USER@HOST/DATABASE, without a password"
        ) from None
    names = {unquote(option.partition("=")[0]) for option in parts.query.split("&")}
    if ":" in parts.netloc.rpartition("@")[0] or names & {"password", "sslpassword"}:
        raise MastError(
            "--workspace: a password in an address is shown to everybody who lists processes; "
            "leave it out: each visitor types the password of their own member"
        )
    return parts
