"""``mast-tui web``: the app in a browser."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import SplitResult, urlsplit

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.common import load_taxonomy_or_mast, print_line
from mast_tui.cli.shared.options import OptionRule
from mast_tui.errors import MastError
from mast_tui.labels import checked_person
from mast_tui.safe_text import one_line

if TYPE_CHECKING:
    from mast_tui.web.server import WebServer

LOCAL_HOSTS: Final[frozenset[str | None]] = frozenset({"localhost", "127.0.0.1", "::1"})
"""This machine's names for itself."""


_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


def checked_url(url: str) -> SplitResult:
    """Return the address that visitors type, in the form of an origin that browsers send.

    Raises:
        MastError: The text is no URL of HTTP, or has more than a host and a port.
    """
    problem = f"--url {one_line(url)}: give an address such as https://labels.example.org"
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid host or port
        raise MastError(problem) from None
    default_port = _DEFAULT_PORTS.get(parts.scheme)
    path_and_query = parts._replace(scheme="", netloc="").geturl()
    if (
        default_port is None
        or not has_host
        or "@" in parts.netloc
        or path_and_query not in ("", "/")
    ):
        raise MastError(problem)
    # Browsers send hosts in lower case, without the port that the scheme implies.
    origin_host = parts.netloc.lower().removesuffix(":").removesuffix(default_port)
    return SplitResult(parts.scheme, origin_host, path="", query="", fragment="")


TOKEN_VARIABLE: Final = "MAST_TUI_WEB_TOKEN"
_SHORTEST_TOKEN: Final = 16
"""The fewest characters of a user's own token, so that it is hard to guess."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRequest:
    """The options of ``mast-tui web``."""

    paths: tuple[Path, ...] = options.paths(exist=True)
    host: str = options.option(
        "--host",
        default="localhost",
        metavar="ADDRESS",
        show_default=True,
        help="The address to listen on. Any address but this machine's own needs --token.",
    )
    port: int = options.option(
        "--port", default=8000, show_default=True, type=click.IntRange(0, 65535)
    )
    token: bool = options.option(
        "--token",
        is_flag=True,
        help=f"Require a token: the value of the variable {TOKEN_VARIABLE}, or a new one, which is "
        "printed.",
    )
    url: str | None = options.option(
        "--url",
        metavar="URL",
        help="The address that visitors type if there is a proxy, such as "
        "https://labels.example.org.",
    )
    common: CommonOptions = options.common()


_RULES: Final = (
    OptionRule[WebRequest](
        "--host {request.host} lets other machines in, who may then read and write files in your "
        "name; add --token",
        needs=("--token",),
        when=lambda request: request.host not in LOCAL_HOSTS,
    ),
)


@click.command()
@options.takes(WebRequest, _RULES)
def web_command(request: WebRequest) -> None:
    """Show the app in a browser, to yourself or to a team.

    Every visitor gets their own app on the same traces and the same workspace, and labels under
    the name that they give. On a team's database they sign in with the name and the password of a
    member. Visitors can do what the app can do here: read and write files in your name. Without
    --token only this machine has access.

    Example: mast-tui web runs/ --port 8000
    """
    if request.common.taxonomy is not None and not request.common.taxonomy.is_file():
        raise click.BadParameter(
            f"{request.common.taxonomy}: no such file", param_hint="--taxonomy"
        )
    module = _server_module()
    server: WebServer = module.WebServer(
        (sys.executable, "-m", "mast_tui", *_app_options(request.common)),
        tuple(str(path.absolute()) for path in request.paths),
        access=module.VisitorAccess(
            _required_token() if request.token else None,
            None if request.url is None else checked_url(request.url),
            only_this_machine=request.host in LOCAL_HOSTS and request.url is None,
        ),
        annotator=None
        if request.common.annotator is None
        else checked_person(request.common.annotator),
        workspace=request.common.workspace,
        taxonomy=load_taxonomy_or_mast(request.common.taxonomy).ref,
    )
    server.run(request.host, request.port, print_line)


def _server_module() -> Any:
    """Import the server, which needs the extra ``web``.

    Raises:
        MastError: A library of the extra is not installed.
    """
    try:
        return import_module("mast_tui.web.server")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("mast_tui"):
            raise
        raise MastError(
            f"{error.name} is missing; install it with: pip install 'mast-tui[web]'"
        ) from error


def _required_token() -> str:
    """Return the token in the environment, or a new one.

    Raises:
        MastError: The token in the environment is too short.
    """
    token = os.environ.get(TOKEN_VARIABLE)
    if token is None:
        return secrets.token_urlsafe(24)
    if len(token) < _SHORTEST_TOKEN:
        raise MastError(f"{TOKEN_VARIABLE} is too short; use at least {_SHORTEST_TOKEN} characters")
    return token


def _app_options(common: CommonOptions) -> Iterator[str]:
    """Yield the options that are the same for the apps of all visitors."""
    for name, value in common._asdict().items():
        if value and name not in ("annotator", "workspace"):
            yield f"--{name}"
            if value is not True:
                yield str(value)
