"""The command ``team``: who works in a workspace on a server, and as what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote, urlsplit

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.common import open_workspace, print_json, print_line, print_table, say
from mast_tui.cli.shared.options import OptionRule
from mast_tui.cli.workspace import WHOLE_REFUSAL
from mast_tui.columns import TableColumn
from mast_tui.workspace.records import Member, Role

_ASSISTED = "it is said of one annotator: team add NAME --assisted"


@click.group()
def team_command() -> None:
    """Say who works in a workspace on a server, and as what.

    The server then keeps to who may see what, whatever program somebody uses. It takes who made
    the workspace, and may make roles there.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamAddRequest:
    """The options of ``mast-tui team add``."""

    name: str = options.argument(metavar="NAME")
    role: str = options.option(
        "--role",
        type=click.Choice([role.value for role in Role]),
        required=True,
        help="What they do. An annotator sees what others say of a trace once they have finished "
        "it and asked for that.",
    )
    common: CommonOptions = options.common(
        annotator=WHOLE_REFUSAL, taxonomy=WHOLE_REFUSAL, blind=WHOLE_REFUSAL
    )
    as_json: bool = options.as_json()


_ADD_RULES: Final = (
    OptionRule[TeamAddRequest](
        "--assisted is for annotators; all others see what judges say",
        options=("--assisted",),
        when=lambda request: request.role != Role.ANNOTATOR,
    ),
)


@team_command.command("add")
@options.takes(TeamAddRequest, _ADD_RULES)
def add_command(request: TeamAddRequest) -> None:
    """Take NAME into the team, or give a member another role.

    Prints the line for their file of passwords (~/.pgpass), once: nobody keeps it. With
    --assisted an annotator sees what judges say before they have finished a trace.
    """
    place = open_workspace(request.common)
    is_first = not place.team()
    password = place.add_member(request.name, Role(request.role), assisted=request.common.assisted)
    address = _address(place.name, request.name)
    line = None if password is None else _password_line(address, request.name, password)
    if is_first and place.shows_who_is_connected():
        say(
            "Members can see who is connected: only a superuser of the server can keep that from "
            "them, by running mast-tui team add (docs/team.md)."
        )
    if request.as_json:
        print_json(
            {
                "name": request.name,
                "role": request.role,
                "assisted": request.common.assisted,
                "address": address,
                "password_line": line,
            }
        )
        return
    if line is not None:
        click.echo(line)
        say("This line belongs into ~/.pgpass of theirs (chmod 600); it is not shown again.")
    else:
        say(f"{request.name} has a password on this server already, and keeps it.")
    article = "an" if request.role[0] == "a" else "a"
    say(f"{request.name} is {article} {request.role} now: mast-tui --workspace {address}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamListRequest:
    """The options of ``mast-tui team list``."""

    common: CommonOptions = options.common(
        annotator=WHOLE_REFUSAL, taxonomy=WHOLE_REFUSAL, blind=WHOLE_REFUSAL, assisted=_ASSISTED
    )
    as_json: bool = options.as_json()


@team_command.command("list")
@options.takes(TeamListRequest)
def list_command(request: TeamListRequest) -> None:
    """List who is in the team."""
    members = open_workspace(request.common).team()
    if request.as_json:
        print_json({"members": [one._asdict() for one in members]})
    elif not members:
        click.echo("Nobody is in the team; take somebody in with: team add NAME --role ROLE")
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
        annotator=WHOLE_REFUSAL, taxonomy=WHOLE_REFUSAL, blind=WHOLE_REFUSAL, assisted=_ASSISTED
    )


@team_command.command("remove")
@options.takes(TeamRemoveRequest)
def remove_command(request: TeamRemoveRequest) -> None:
    """Take NAME out of the team: the server shows them nothing any more. What they said stays."""
    gone = open_workspace(request.common).remove_member(request.name)
    beside = "" if gone else "; the role stays, as it was not made here or is needed elsewhere"
    print_line(f"{request.name} is out of the team{beside}")


def _address(url: str, name: str) -> str:
    """The address of a workspace for somebody else."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{quote(name, safe='')}@{host}").geturl()


def _password_line(address: str, name: str, password: str) -> str:
    """A line of libpq's file of passwords."""
    parts = urlsplit(address)
    host = (parts.hostname or "*").replace(":", "\\:")
    fields = (str(parts.port or "*"), unquote(parts.path.lstrip("/")) or "*", name)
    escaped = (field.replace("\\", "\\\\").replace(":", "\\:") for field in fields)
    return ":".join([host, *escaped, password])
