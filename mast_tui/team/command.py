"""The command ``team``: who works in a workspace on a server, and as what."""

from __future__ import annotations

from urllib.parse import quote, unquote, urlsplit

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.common import open_workspace, print_json, print_line, print_table, say
from mast_tui.cli.workspace import WHOLE
from mast_tui.columns import TableColumn
from mast_tui.workspace.records import Member, Role

_ASSISTED = "it is said of one annotator: team add NAME --assisted"
_options = options.common(annotator=WHOLE, taxonomy=WHOLE, blind=WHOLE, assisted=_ASSISTED)


@click.group()
def team_command() -> None:
    """Say who works in a workspace on a server, and as what.

    The server then keeps to who may see what, whatever program somebody uses. It takes who made
    the workspace, and may make roles there.
    """


@team_command.command("add")
@click.argument("name", metavar="NAME")
@click.option(
    "--role",
    type=click.Choice([role.value for role in Role]),
    required=True,
    help="What they do. An annotator sees what others say of a trace once they have finished it "
    "and asked for that.",
)
@options.common(annotator=WHOLE, taxonomy=WHOLE, blind=WHOLE)
@options.as_json
def add_command(name: str, role: str, common: CommonOptions, as_json: bool) -> None:
    """Take NAME into the team, or give a member another role.

    Prints the line for their file of passwords (~/.pgpass), once: nobody keeps it. With
    --assisted an annotator sees what judges say before they have finished a trace.
    """
    if common.assisted and role != Role.ANNOTATOR:
        raise click.UsageError("--assisted is for annotators; all others see what judges say")
    place = open_workspace(common)
    is_first = not place.team()
    password = place.add_member(name, Role(role), assisted=common.assisted)
    address = _address(place.name, name)
    line = None if password is None else _password_line(address, name, password)
    if is_first and place.shows_who_is_connected():
        say(
            "Members can see who is connected: only a superuser of the server can keep that from "
            "them, by running mast-tui team add (docs/team.md)."
        )
    if as_json:
        print_json(
            {
                "name": name,
                "role": role,
                "assisted": common.assisted,
                "address": address,
                "password_line": line,
            }
        )
        return
    if line is not None:
        click.echo(line)
        say("This line belongs into ~/.pgpass of theirs (chmod 600); it is not shown again.")
    else:
        say(f"{name} has a password on this server already, and keeps it.")
    say(f"{name} is {'an' if role[0] == 'a' else 'a'} {role} now: mast-tui --workspace {address}")


@team_command.command("list")
@_options
@options.as_json
def list_command(common: CommonOptions, as_json: bool) -> None:
    """List who is in the team."""
    members = open_workspace(common).team()
    if as_json:
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


@team_command.command("remove")
@click.argument("name", metavar="NAME")
@_options
def remove_command(name: str, common: CommonOptions) -> None:
    """Take NAME out of the team: the server shows them nothing any more. What they said stays."""
    gone = open_workspace(common).remove_member(name)
    beside = "" if gone else "; the role stays, as it was not made here or is needed elsewhere"
    print_line(f"{name} is out of the team{beside}")


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
