"""The owner of a server: the documented set-up, and updates of earlier versions."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Final

import psycopg
import pytest
import yaml
from psycopg import sql

from mast_tui.adjudication import Adjudication
from mast_tui.session import Session
from mast_tui.workspace import Workspace, WorkspaceError
from mast_tui.workspace.records import TeamRole
from mast_tui.workspace.schema import STATE_TABLES, metadata
from tests.postgres import PostgresServer
from tests.workspace.build import MAST, TRACE, trace_of
from tests.workspace.test_server import command
from tests.workspace.test_sight_by_server import (
    FIRST,
    SECOND,
    SECRET,
    TEAM,
    Team,
    everybody_works,
    reply,
    work,
)

pytestmark = pytest.mark.slow

EXAMPLE: Final = Path(__file__).parents[2] / "docs" / "examples" / "team.yaml"
EARLIER: Final = {
    version: Path(__file__).with_name(f"team_of_version_{version}.sql") for version in (9, 10)
}
"""The statements that earlier versions ran for a team after creating the tables."""
SHARED: Final = "public.taxonomies, public.taxonomy_revisions, public.traces, public.annotators"
WRITTEN: Final = ("labels", "verdicts", "reviews", "span_notes", "passes", "sights", "settings")


def test_owner_of_the_documented_example_works_and_makes_copies(
    postgres: PostgresServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = yaml.safe_load(EXAMPLE.read_text())["services"]["labels"]["environment"]
    owner = settings["POSTGRES_USER"]
    database = settings["POSTGRES_DB"]
    postgres.run(f"CREATE ROLE {owner} SUPERUSER LOGIN")
    url = postgres.url(database, user=owner)
    assert command("workspace", "create", url) == 0
    for name in ("mira", "bob"):
        assert command("team", "add", name, "--role", "annotator", "--workspace", url) == 0
    for name in ("mira", "bob"):
        with closing(Workspace.open(postgres.url(database, user=name))) as workspace:
            Session.open(workspace, trace_of("one"), MAST, name, blind=True)
            workspace.set_setting("place", name)
    with closing(Workspace.open(url)) as workspace:
        workspace.set_setting("place", "the owner's")
        assert workspace.get_setting("place") == "the owner's"
        Session.open(workspace, trace_of("one"), MAST, "owner", blind=True)
    for arguments in (
        ("backup", str(tmp_path / "b.db"), "--workspace", url),
        ("copy", url, str(tmp_path / "f.db")),
        ("check", "--workspace", url),
    ):
        assert command("workspace", *arguments) == 0, capsys.readouterr().err
    with closing(Workspace.open(tmp_path / "b.db", create=False)) as backup:
        assert [trace.trace_id for trace in backup.traces()] == [TRACE]
        assert backup.get_setting("place") == "the owner's"
    postgres.run(f"DROP DATABASE {database}")


def downgrade(team: Team, version: int) -> None:
    """Give a server the functions and rights that an earlier version gave it."""
    with team.sql("postgres") as owner:
        owner.execute("DROP SCHEMA seen CASCADE; DROP FUNCTION public.take_turns")
        if version < 10:
            owner.execute("DROP TABLE public.turns")
            owner.execute("ALTER TABLE team.revealed DROP COLUMN revealed_in")
        owner.execute("ALTER TABLE public.traces DROP COLUMN task_id, DROP COLUMN trial")
        owner.execute(EARLIER[version].read_text().encode())
        for name, role in TEAM.items():
            member = sql.Identifier(name)
            for right in rights_in(version, role):
                owner.execute(sql.SQL(f"GRANT {right} TO {{}}").format(member))
        owner.execute(f"UPDATE public.workspace_version SET schema_version = {version}".encode())


def rights_in(version: int, role: TeamRole) -> list[str]:
    """Return the rights that an earlier version gave a member, as far as tests use them."""
    views = ", ".join(f"seen.{table}" for table in WRITTEN)
    rights = ["USAGE ON SCHEMA public, team, seen", f"SELECT ON {SHARED}, team.members"]
    if version < 10:
        rights.append(f"INSERT, UPDATE ON {SHARED}")
    if role is TeamRole.ANNOTATOR:
        rights.append("SELECT ON ALL TABLES IN SCHEMA seen")
        if version < 10:
            rights.append("INSERT ON seen.events, seen.span_indices")
            rights.append(f"INSERT, UPDATE, DELETE ON {views}")
        return rights
    tables = ", ".join(f"public.{table.name}" for table in STATE_TABLES)
    return [
        *rights,
        "SELECT ON ALL TABLES IN SCHEMA public",
        "INSERT ON public.events",
        f"INSERT, UPDATE, DELETE ON {tables}",
    ]


def assert_update_is_needed(team: Team, name: str) -> None:
    with pytest.raises(WorkspaceError, match="the user who created it updates it with"):
        Workspace.open(team.url(name))


def assert_owner_updates(team: Team, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("team", "list", "--json", "--workspace", team.url("postgres")) == 0
    assert len(json.loads(capsys.readouterr().out)["members"]) == len(TEAM)


def test_owner_updates_a_server_of_version_10(
    postgres: PostgresServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """In version 10 all members but annotators changed state tables themselves."""
    team = Team(postgres)
    everybody_works(team)
    downgrade(team, 10)
    forged = "INSERT INTO public.verdicts VALUES ('carol', 'run-1', 'mast@3', 1, 'm', 'absent')"
    with team.sql("carol") as carol:
        assert "INSERT" in reply(carol, forged)
        assert "DELETE 1" in reply(carol, "DELETE FROM public.verdicts WHERE annotator = 'carol'")
    rows_before = rows_of_all(team)
    for name in ("mira", "carol", "lea"):
        assert_update_is_needed(team, name)
    assert_owner_updates(team, capsys)
    assert rows_of_all(team) == rows_before
    for name in TEAM:
        with team.sql(name) as member:
            assert reply(member, forged).startswith("42501 "), name
    with team.workspace("carol") as opened:
        work_ = Adjudication(opened, MAST, TRACE, "carol")
        work_.explain([row.item for row in work_.decisions], "after the upgrade")
    with team.workspace("lea") as lea:
        assert not lea.differences()
        assert not lea.edited_histories()


def rows_of_all(team: Team) -> dict[str, str]:
    """Return all rows by table, without columns that version 10 lacked."""
    with team.sql("postgres") as owner:
        rows = {}
        for table in metadata.sorted_tables:
            names = [c.name for c in table.columns if c.name not in ("task_id", "trial")]
            columns = ", ".join(f'"{name}"' for name in names)
            rows[table.name] = reply(owner, f"SELECT {columns} FROM public.{table.name}")
        return rows


def test_owner_updates_a_server_of_version_9(
    postgres: PostgresServer, capsys: pytest.CaptureFixture[str]
) -> None:
    team = Team(postgres)
    everybody_works(team)
    work(team, "mira", FIRST, finish=False, note="of mira")
    downgrade(team, 9)
    revealed = (
        "INSERT INTO events VALUES (gen_random_uuid()::text, 'mira', {seq}, '2026-11-28T00:00:00Z',"
        " '{kind}', 'run-2', 'mast@3', 0, '{payload}', '[]', 'a', NULL, NULL, NULL)"
    )
    with psycopg.connect(team.url("mira"), autocommit=True) as mira:
        mira.execute("SET search_path = seen, public")
        # Version 9 allowed this to an annotator.
        for seq, kind, payload in (
            (101, "pass_finished", '{"open_modes": "leave"}'),
            (102, "revealed", '{"what": "all"}'),
        ):
            mira.execute(revealed.format(seq=seq, kind=kind, payload=payload).encode())
        assert SECRET in reply(mira, "SELECT * FROM labels WHERE trace_id = 'run-2'")
        assert "UPDATE" in reply(mira, "UPDATE public.taxonomies SET document = document")
        mira.execute(
            "INSERT INTO events VALUES ('x', 'mira', -1, 'x', 'nonsense', 'run-1', 'mast@3', 1, "
            "'not json', 'x', 'a', NULL, NULL, NULL)"
        )
    assert_update_is_needed(team, "mira")
    assert_owner_updates(team, capsys)
    with team.sql("mira") as mira:
        assert SECRET not in reply(mira, "SELECT * FROM seen.labels")
        for statement in (
            "UPDATE public.taxonomies SET document = '{'",
            "UPDATE public.traces SET outcome = 'succeeded'",
            "DELETE FROM seen.labels",
            "INSERT INTO seen.events SELECT * FROM seen.events",
        ):
            assert reply(mira, statement).startswith(("42501 ", "55000 ")), statement
    with team.session("mira", FIRST) as session:
        assert [row.note for row in session.labels] == ["of mira"]
    work(team, "mira", SECOND, note="of mira")
    with team.session("bob", FIRST) as session:  # who was shown others' before
        assert session.others
    with team.workspace("lea") as lea:
        assert not lea.differences()
        damaged = lea.check_rows().damaged
        assert [row.name for row in damaged] == ["mira, step -1, x"]
    with closing(Workspace.open(team.url("postgres"))) as owner:
        assert owner.add_member("mira", TeamRole.ADJUDICATOR) is None
