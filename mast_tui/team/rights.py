"""The members of a team on a server, and the rights that the server enforces for each of them.

The user who created the workspace owns the tables and has all rights. A member is a role of the
server; the schema ``team`` lists the members. No member may change a table directly. Members call
functions that check the caller and the row (``team_functions.sql``).

Annotators have no right to the tables with labels. Row policies would not be safe: ``EXPLAIN
ANALYZE`` counts the rows that a policy removed. So the schema ``seen`` is first in their search
path and has a view in place of each table. The rows of a view come from functions that return only
visible rows (``team_views.sql``).

Others' labels on a trace are visible once ``revealed`` is recorded for it, which needs a finish.
After that, the server refuses further events for that pass. A reveal counts only after its
transaction is committed, because otherwise it could be read and rolled back.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Iterator, Mapping
from importlib.resources import files
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import sql
from sqlalchemy import Connection, Table

from mast_tui.errors import WorkspaceError
from mast_tui.labels import JUDGE_PREFIX
from mast_tui.workspace import schema
from mast_tui.workspace.database import driver_of
from mast_tui.workspace.records import Member, TeamRole
from mast_tui.workspace.registers.tags import SETTING as TAGS

_MAX_ROLE_BYTES: Final = 63
"""The most bytes of a role's name on a server."""

_ROLE_COMMENT: Final = "a member of a team of mast-tui"
"""The comment on a role that a team created. Only such roles are dropped."""

_LABEL_TABLES: Final = (schema.events, *schema.STATE_TABLES)
_SHARED_TABLES: Final = (
    schema.taxonomies,
    schema.taxonomy_revisions,
    schema.traces,
    schema.annotators,
)
"""The registers that all members read."""

_AS_OWNER: Final = "SECURITY DEFINER SET search_path = pg_catalog, pg_temp"
_ALL_RIGHTS: Final = (
    "ALL ON ALL TABLES IN SCHEMA public, seen, team",
    "ALL ON ALL SEQUENCES IN SCHEMA public, seen, team",
    "ALL ON ALL FUNCTIONS IN SCHEMA public, seen, team",
    "ALL ON SCHEMA public, seen, team",
)
AT_CONNECT: Final = "SET search_path = seen, public"
"""The first statement of an annotator's connection."""


def members(connection: Connection) -> tuple[Member, ...]:
    """Return all members, by name."""
    driver = driver_of(connection)
    if driver.execute("SELECT to_regnamespace('team')").fetchone()[0] is None:
        return ()
    rows = driver.execute("SELECT name, role, assisted FROM team.members ORDER BY name")
    return tuple(Member(name, TeamRole(role), assisted) for name, role, assisted in rows)


def member(connection: Connection) -> Member | None:
    """Return the member of this connection; None for the owner, or without a team."""
    (name,) = driver_of(connection).execute("SELECT session_user::text").fetchone()
    return next((candidate for candidate in members(connection) if candidate.name == name), None)


def add(connection: Connection, new: Member) -> str | None:
    """Add a person to the team, or give a member another role.

    Args:
        connection: The owner's connection, in a transaction.
        new: The member.

    Returns:
        The password of a new role; None if the server had the role already.

    Raises:
        WorkspaceError: The name cannot be a role's, or belongs to a role with more rights.
    """
    if len(new.name.encode()) > _MAX_ROLE_BYTES or new.name.startswith("pg_"):
        raise WorkspaceError(
            f"{new.name!r}: cannot be the name of a role on a server; choose one of at most "
            f"{_MAX_ROLE_BYTES} bytes that does not begin with pg_"
        )
    install_rules(connection)
    driver = driver_of(connection)
    password = None
    if all(team_member.name != new.name for team_member in members(connection)):
        password = _make_role(driver, new.name)
    # Every role has the rights of PUBLIC too, which would undo the limits of a member.
    driver.execute("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC")
    _revoke_rights(driver, new.name)
    driver.execute(
        "INSERT INTO team.members VALUES (%s, %s, %s) ON CONFLICT (name) DO UPDATE "
        "SET role = excluded.role, assisted = excluded.assisted",
        new,
    )
    _grant_rights(driver, new)
    return password


def remove(connection: Connection, name: str) -> bool:
    """Remove a member from the team; their labels stay.

    Args:
        connection: The owner's connection, in a transaction.
        name: The member.

    Returns:
        True if the server no longer has a role of this name.

    Raises:
        WorkspaceError: The team has no such member.
    """
    if all(team_member.name != name for team_member in members(connection)):
        raise WorkspaceError(f"{name!r} is not in the team")
    driver = driver_of(connection)
    _revoke_rights(driver, name)
    driver.execute("DELETE FROM team.members WHERE name = %s", [name])
    return _drop_own_role(driver, name)


def _drop_own_role(driver: Any, name: str) -> bool:
    """Drop a role that a team created; return False if the role stays."""
    comment = driver.execute(
        "SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = %s", [name]
    ).fetchone()
    if comment is None:
        return True
    if comment[0] != _ROLE_COMMENT:
        return False
    try:
        with driver.transaction():
            driver.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))
    except psycopg.errors.DependentObjectsStillExist:
        return False  # the role is also in the team of another database
    return True


_IS_PLAIN_ROLE: Final = """
SELECT rolcanlogin AND NOT (
    rolsuper OR rolbypassrls OR rolcreaterole OR rolreplication OR rolname = current_user
    OR EXISTS (
        SELECT FROM pg_roles AS other
        WHERE other.oid <> login.oid AND pg_has_role(login.oid, other.oid, 'MEMBER') AND (
            other.rolsuper OR other.rolbypassrls OR other.rolcreaterole OR other.rolreplication
            OR other.rolname = current_user OR starts_with(other.rolname, 'pg_')
            OR EXISTS (SELECT FROM team.members WHERE name = other.rolname)
            OR EXISTS (
                SELECT FROM pg_class LEFT JOIN aclexplode(relacl) AS acl ON true
                WHERE other.oid IN (relowner, acl.grantee)
            )
        )
    )
)
FROM pg_roles AS login WHERE rolname = %s
"""
"""The query for a role that can log in and has no more rights than a member. It may belong to roles
without rights in this database, such as a group of logins."""


def _make_role(driver: Any, name: str) -> str | None:
    """Create a role, and return its password; None if the server has the role already.

    The server and its log get only a hash of the password (a SCRAM verifier).

    Raises:
        WorkspaceError: The existing role has more rights than a member, or cannot log in.
    """
    existing = driver.execute(_IS_PLAIN_ROLE, [name]).fetchone()
    if existing is not None:
        (is_plain_role,) = existing
        if not is_plain_role:
            raise WorkspaceError(
                f"{name!r} is a role of the server with more rights than a member, or without "
                "login; choose another name"
            )
        return None
    password = secrets.token_urlsafe(18)
    verifier = driver.pgconn.encrypt_password(password.encode(), name.encode()).decode()
    role = sql.Identifier(name)
    driver.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(role, sql.Literal(verifier)))
    driver.execute(sql.SQL("COMMENT ON ROLE {} IS {}").format(role, sql.Literal(_ROLE_COMMENT)))
    return password


def _grant_rights(driver: Any, new_member: Member) -> None:
    role = sql.Identifier(new_member.name)
    database = sql.Identifier(driver.info.dbname)
    for right in _rights_of_role(new_member.role):
        driver.execute(sql.SQL("GRANT {} TO {}").format(sql.SQL(right), role))
    driver.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, role))


def _revoke_rights(driver: Any, name: str) -> None:
    role = sql.Identifier(name)
    database = sql.Identifier(driver.info.dbname)
    for right in _ALL_RIGHTS:
        driver.execute(sql.SQL("REVOKE {} FROM {}").format(sql.SQL(right), role))
    driver.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM {}").format(database, role))


def _rights_of_role(role: TeamRole) -> Iterator[str]:
    """Yield the rights of a role in SQL; ``USAGE`` of a schema lets members call its functions."""
    yield "USAGE ON SCHEMA public, team, seen"
    yield f"SELECT ON public.workspace_version, team.members, {_table_names(_SHARED_TABLES)}"
    yield "EXECUTE ON FUNCTION public.take_turns(text[])"
    if role is TeamRole.ANNOTATOR:
        yield f"SELECT ON {_table_names(_hidden_tables(), 'seen')}"
        return
    yield f"SELECT ON {_table_names(schema.metadata.sorted_tables)}"


def _table_names(tables: Collection[Table], schema_name: str = "public") -> str:
    return ", ".join(f"{schema_name}.{table.name}" for table in tables)


def _hidden_tables() -> list[Table]:
    return [table for table in schema.metadata.sorted_tables if table not in _SHARED_TABLES]


def install_rules(connection: Connection) -> None:
    """Install the rules on the server, unless it has this version of them.

    ``connection`` is the owner's, in a transaction.
    """
    driver = driver_of(connection)
    script = "\n".join(_rule_statements())
    version = hashlib.sha256(script.encode()).hexdigest()[:16]
    is_superuser: bool = driver.execute("SHOW is_superuser").fetchone()[0] == "on"
    if is_superuser and shows_who_is_connected(connection):
        driver.execute(_script("hide_activity.sql"))
    # The version of the rules is the comment on their schema.
    installed = driver.execute(
        "SELECT obj_description(to_regnamespace('seen'), 'pg_namespace')"
    ).fetchone()
    if installed is not None and installed[0] == version:
        return
    driver.execute(_script("team_tables.sql"))
    driver.execute(script)
    driver.execute(f"COMMENT ON SCHEMA seen IS '{version}'")
    for existing in members(connection):
        _revoke_rights(driver, existing.name)
        _grant_rights(driver, existing)


def remove_rules(connection: Connection) -> bool:
    """Remove the views through which members read, so that their tables can be changed.

    Members read nothing until ``install_rules`` creates the views again. Return False if there is
    no team.
    """
    driver = driver_of(connection)
    if driver.execute("SELECT to_regnamespace('team')").fetchone()[0] is None:
        return False
    driver.execute("DROP SCHEMA IF EXISTS seen CASCADE")
    return True


def _script(name: str) -> str:
    return files("mast_tui.team").joinpath(name).read_text("utf-8")


def _rule_statements() -> Iterator[str]:
    """Yield the SQL that makes the schema ``seen`` anew: the functions and views for members."""
    yield "DROP SCHEMA IF EXISTS seen CASCADE; CREATE SCHEMA seen;"
    yield "REVOKE CREATE ON SCHEMA public FROM PUBLIC;"
    for table in (*_LABEL_TABLES, schema.annotators):  # policies existed until version 10
        yield f"ALTER TABLE public.{table.name} DISABLE ROW LEVEL SECURITY;"
        yield f"DROP POLICY IF EXISTS sees ON public.{table.name};"
    yield _script("team_views.sql")
    yield from map(_view_statement, _hidden_tables())
    yield _script("team_functions.sql")
    for table, register in _REGISTERS.items():
        yield _put_function(table, register)


class _Register(NamedTuple):
    """The roles that write a register, and the condition that each row must meet."""

    roles: tuple[TeamRole, ...]
    condition: str = "true"


_LEAD: Final = _Register((TeamRole.LEAD,))
_RUNS_JUDGES: Final = _Register((TeamRole.LEAD, TeamRole.JUDGE))
_REGISTERS: Final[Mapping[Table, _Register]] = {
    schema.taxonomies: _LEAD,
    schema.taxonomy_revisions: _LEAD,
    schema.traces: _LEAD,
    schema.imports: _LEAD,
    schema.imported_events: _LEAD,
    schema.runs: _RUNS_JUDGES,
    schema.run_traces: _RUNS_JUDGES,
    schema.asked: _RUNS_JUDGES,
    schema.annotators: _Register(
        (TeamRole.ADJUDICATOR, TeamRole.LEAD, TeamRole.JUDGE),
        f"(new_row.kind = 'judge') = starts_with(new_row.name, '{JUDGE_PREFIX}') AND "
        f"(seen.may_write(new_row.name) OR seen.is_lead())",
    ),
    # Tags belong to the person who added them.
    schema.settings: _Register(
        (TeamRole.ADJUDICATOR, TeamRole.LEAD, TeamRole.JUDGE),
        f"NOT starts_with(new_row.key, '{TAGS}:') OR seen.may_write(substr(new_row.key, "
        f"length('{TAGS}:' || split_part(new_row.key, ':', 2) || ':') + 1))",
    ),
}


def _put_function(table: Table, register: _Register) -> str:
    """Return the SQL function that inserts a row, or replaces the row with the same key."""
    keys = ", ".join(f'"{column.name}"' for column in table.primary_key)
    assignments = ", ".join(
        f'"{column.name}" = excluded."{column.name}"'
        for column in table.columns
        if not column.primary_key
    )
    # Only the server knows the next id of a model's answer.
    id_statement = "new_row.id := coalesce(new_row.id, nextval('public.asked_id_seq'));"
    return f"""
CREATE FUNCTION seen.put_{table.name}(new_row public.{table.name}) RETURNS void
LANGUAGE plpgsql {_AS_OWNER} AS $$
BEGIN
  PERFORM seen.check_role({", ".join(f"'{role}'" for role in register.roles)});
  IF ({register.condition}) IS NOT TRUE THEN
    RAISE 'you can write only in your own name, %', session_user USING ERRCODE = 'MAST1';
  END IF;
  {id_statement if table is schema.asked else ""}
  INSERT INTO public.{table.name} VALUES (new_row.*)
    ON CONFLICT ({keys}) DO {f"UPDATE SET {assignments}" if assignments else "NOTHING"};
END $$;"""


_TABLES_WITH_ROWS_FUNCTION: Final = (
    schema.runs,
    schema.run_traces,
    schema.asked,
    schema.studies,
    schema.guidelines,
    schema.sights,
    schema.settings,
    schema.span_indices,
    schema.imports,
    schema.imported_events,
)
"""The tables that are not about one trace of one person; ``team_views.sql`` selects their rows."""

_VISIBLE_NAMES: Final = f"""
  (SELECT CASE
    WHEN EXISTS (SELECT FROM seen.committed_reveals v
      WHERE v.annotator = me.name AND v.trace_id = trace AND v.taxonomy = under)
    THEN ARRAY(SELECT a.name FROM public.annotators a)
    WHEN me.assisted
    THEN ARRAY(SELECT a.name FROM public.annotators a
      WHERE a.name = me.name OR starts_with(a.name, '{JUDGE_PREFIX}'))
    ELSE ARRAY[me.name] END
  FROM team.members me WHERE me.name = session_user::text)
"""
"""The annotators whose rows about a trace are visible."""


def _view_statement(table: Table) -> str:
    """Return the SQL of the view that shows annotators the visible rows of a table."""
    columns = [f'"{column.name}"' for column in table.columns]
    if table in _TABLES_WITH_ROWS_FUNCTION:
        return (
            f"CREATE VIEW seen.{table.name} AS SELECT {', '.join(columns)} "
            f"FROM seen.{table.name}_rows();"
        )
    # The join of traces and taxonomies has no row for events without a trace.
    is_events = table is schema.events
    further_rows = f"UNION ALL SELECT {', '.join(columns)} FROM seen.events_beside()"
    # Trace and taxonomy come from tables that all members may read, so that the server applies
    # conditions on them before it calls the function.
    outer_columns = {'"trace_id"': "t.id", '"taxonomy"': "k.ref"}
    selected = [f"{outer_columns.get(column, f'x.{column}')} AS {column}" for column in columns]
    return f"""
CREATE FUNCTION seen.{table.name}_of(trace text, under text) RETURNS SETOF public.{table.name}
LANGUAGE sql STABLE ROWS 10 {_AS_OWNER} AS $$
  SELECT r.* FROM public.{table.name} r WHERE r.trace_id = trace AND r.taxonomy = under
    AND r.annotator = ANY({_VISIBLE_NAMES}::text[])
$$;
CREATE VIEW seen.{table.name} AS SELECT {", ".join(selected)}
  FROM public.traces t CROSS JOIN public.taxonomies k
  CROSS JOIN LATERAL seen.{table.name}_of(t.id, k.ref) x {further_rows if is_events else ""};
"""


def shows_who_is_connected(connection: Connection) -> bool:
    """Check whether all users may ask the server who is connected."""
    query = "SELECT has_function_privilege('public', 'pg_stat_get_activity(integer)', 'EXECUTE')"
    return bool(driver_of(connection).execute(query).fetchone()[0])
