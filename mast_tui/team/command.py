"""``mast-tui team``: list, add and remove the members of a workspace on a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.common import open_workspace, print_json, print_line, print_table, say
from mast_tui.cli.shared.options import OptionRule
from mast_tui.cli.workspace import WHOLE_REFUSAL
from mast_tui.columns import TableColumn
from mast_tui.workspace.paths import url_with_user
from mast_tui.workspace.records import Member, TeamRole

_ASSISTED_REFUSAL: Final = "it is a setting of one annotator: team add NAME --assisted"


@click.group()
def team_command() -> None:
    """Manage the members of a workspace on a server, and their roles.

    The server then enforces what each member may see, in any program. This needs the user who
    created the workspace, with the right to create roles.

    Example: mast-tui team add alice --role annotator
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamAddRequest:
    """The options of ``mast-tui team add``."""

    name: str = options.argument(metavar="NAME")
    role: str = options.option(
        "--role",
        type=click.Choice([role.value for role in TeamRole]),
        required=True,
        help="The role of the member. An annotator sees others' labels on a trace after finishing "
        "it, on request.",
    )
    common: CommonOptions = options.common(
        annotator=WHOLE_REFUSAL, taxonomy=WHOLE_REFUSAL, blind=WHOLE_REFUSAL
    )
    as_json: bool = options.as_json()


_ADD_RULES: Final = (
    OptionRule[TeamAddRequest](
        "--assisted is for annotators; all others see judges' suggestions",
        options=("--assisted",),
        when=lambda request: request.role != TeamRole.ANNOTATOR,
    ),
)


@team_command.command("add")
@options.takes(TeamAddRequest, _ADD_RULES)
def add_command(request: TeamAddRequest) -> None:
    """Add NAME to the team, or give a member another role.

    Prints the line for the member's password file (~/.pgpass), once: it is stored nowhere. With
    --assisted an annotator sees judges' suggestions before finishing a trace.

    Example: mast-tui team add alice --role annotator
    """
    workspace = open_workspace(request.common)
    is_first = not workspace.team()
    password = workspace.add_member(
        request.name, TeamRole(request.role), assisted=request.common.assisted
    )
    address = url_with_user(workspace.name, request.name)
    password_line = None if password is None else password_line_of(address, request.name, password)
    if is_first and workspace.shows_who_is_connected():
        say(
            "Members can see who is connected: only a superuser of the server can hide that, by "
            "running mast-tui team add (docs/team.md)."
        )
    if request.as_json:
        print_json(
            {
                "name": request.name,
                "role": request.role,
                "assisted": request.common.assisted,
                "address": address,
                "password_line": password_line,
            }
        )
        return
    if password_line is not None:
        click.echo(password_line)
        say("Add this line to their ~/.pgpass (chmod 600); it is not shown again.")
    else:
        say(f"{request.name} has a password on this server already; it stays valid.")
    article = "an" if request.role[0] == "a" else "a"
    say(f"{request.name} is {article} {request.role} now: mast-tui --workspace {address}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamListRequest:
    """The options of ``mast-tui team list``."""

    common: CommonOptions = options.common(
        annotator=WHOLE_REFUSAL,
        taxonomy=WHOLE_REFUSAL,
        blind=WHOLE_REFUSAL,
        assisted=_ASSISTED_REFUSAL,
    )
    as_json: bool = options.as_json()


@team_command.command("list")
@options.takes(TeamListRequest)
def list_command(request: TeamListRequest) -> None:
    """List the members of the team.

    Example: mast-tui team list
    """
    members = open_workspace(request.common).team()
    if request.as_json:
        print_json({"members": [member._asdict() for member in members]})
    elif not members:
        click.echo("The team has no members; add one with: team add NAME --role ROLE")
    else:
        columns: tuple[TableColumn[Member], ...] = (
            TableColumn("name", lambda member: member.name),
            TableColumn("role", lambda member: member.role.value),
            TableColumn("assisted", lambda member: "yes" if member.assisted else ""),
        )
        print_table(columns, members)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamRemoveRequest:
    """The options of ``mast-tui team remove``."""

    name: str = options.argument(metavar="NAME")
    common: CommonOptions = options.common(
        annotator=WHOLE_REFUSAL,
        taxonomy=WHOLE_REFUSAL,
        blind=WHOLE_REFUSAL,
        assisted=_ASSISTED_REFUSAL,
    )


@team_command.command("remove")
@options.takes(TeamRemoveRequest)
def remove_command(request: TeamRemoveRequest) -> None:
    """Remove NAME from the team; their labels stay.

    The server no longer shows them anything.

    Example: mast-tui team remove alice
    """
    role_dropped = open_workspace(request.common).remove_member(request.name)
    reason = "; the role stays, as it was created elsewhere or is needed elsewhere"
    print_line(f"{request.name} was removed from the team{'' if role_dropped else reason}")


def password_line_of(address: str, name: str, password: str) -> str:
    """Return the line for a member in libpq's password file.

    Args:
        address: The URL of the workspace.
        name: The member.
        password: The password of the member.
    """
    parts = urlsplit(address)
    if (
        "," in parts.netloc
    ):  # libpq looks up each of several hosts separately, so ``*`` stands for any
        parts = parts._replace(netloc="")
    host = (parts.hostname or "*").replace(":", "\\:")
    fields = (str(parts.port or "*"), unquote(parts.path.lstrip("/")) or "*", name)
    escaped = (field.replace("\\", "\\\\").replace(":", "\\:") for field in fields)
    return ":".join([host, *escaped, password])
