"""The members of a team on a server, and what the server lets each of them see and write.

Whoever made the workspace owns its tables, and nothing here binds them. The schema ``team`` keeps
the members; a member is a role of the server with the same name. No member has a right to change
any table: they call functions that check who calls and what is written. The functions for events
and what annotators register are in ``team_functions.sql``; each register has one more, which is
made here from its columns. All members but annotators read the tables themselves.

Row policies do not do for annotators: ``EXPLAIN ANALYZE`` counts the rows that one left out, for
any condition that an index answers. So annotators have no right to the tables of what people say.
The schema ``seen``, in which theirs are looked for first, has a view in the place of each table: it
gets its rows from functions that run as the owner and return only what may be seen.

Others are seen on a trace once ``revealed`` is recorded of it, which takes a finish; from then on
the server takes nothing more for that pass. A reveal counts once its transaction is committed: in
the same transaction it could be read and taken back.
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
from mast_tui.workspace.events.model import IMPORT_PREFIX
from mast_tui.workspace.events.types import KIND_OF, Revealed
from mast_tui.workspace.records import Member, Role
from mast_tui.workspace.registers.hold_out import SETTING as SET_ASIDE
from mast_tui.workspace.registers.imports import MIGRATION
from mast_tui.workspace.registers.tags import SETTING as TAGS

_LONGEST: Final = 63
"""Bytes of a role's name on a server."""

_MADE_HERE: Final = "a member of a team of mast-tui"
"""The comment on a role that a team made, which a team may drop again."""

_OF_PEOPLE: Final = (schema.events, *schema.STATE_TABLES)
_SHARED: Final = (schema.taxonomies, schema.taxonomy_revisions, schema.traces, schema.annotators)
"""Registers that all members read."""

_AS_OWNER: Final = "SECURITY DEFINER SET search_path = pg_catalog, pg_temp"
AT_CONNECT: Final = "SET search_path = seen, public"
"""What an annotator's connection begins with."""

_ME: Final = "session_user::text"  # as a name it finds no index of texts
_QUIET: Final = (
    r"^pg_(stat_|lock_status|current_wal|last_wal|notification_queue|blocking_pids|safe_snapshot|"
    r"prepared_xact|(total_)?relation_size|(table|indexes|database|tablespace)_size)"
)
"""Functions of the server that tell who does what at the moment, or how much there is in all."""

_COUNTED: Final = (
    "reltuples",
    "relpages",
    "relallvisible",
    "relallfrozen",
    "relfrozenxid",
    "relminmxid",
)


# The team


def members(connection: Connection) -> tuple[Member, ...]:
    """All members, by name."""
    driver = driver_of(connection)
    if driver.execute("SELECT to_regnamespace('team')").fetchone()[0] is None:
        return ()
    rows = driver.execute("SELECT name, role, assisted FROM team.members ORDER BY name")
    return tuple(Member(name, Role(role), assisted) for name, role, assisted in rows)


def member(connection: Connection) -> Member | None:
    """The member whose connection this is; None for an owner, and where there is no team."""
    (name,) = driver_of(connection).execute("SELECT session_user::text").fetchone()
    return next((one for one in members(connection) if one.name == name), None)


def add(connection: Connection, new: Member) -> str | None:
    """Take somebody into the team, or give a member another role.

    Args:
        connection: The owner's, in a transaction.
        new: Who, and as what.

    Returns:
        The password of a role that was made for them, None where the server had it already.

    Raises:
        WorkspaceError: The name cannot be a role's, or is one of somebody else.
    """
    if len(new.name.encode()) > _LONGEST or new.name.startswith("pg_"):
        raise WorkspaceError(
            f"{new.name!r}: no role of a server can have this name; take one of at most {_LONGEST} "
            "bytes that does not begin with pg_"
        )
    keep(connection)
    driver = driver_of(connection)
    password = None
    if all(one.name != new.name for one in members(connection)):
        password = _make_role(driver, new.name)
    # What anybody may have been given before, too.
    driver.execute("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC")
    _take_rights(driver, new.name)
    driver.execute(
        "INSERT INTO team.members VALUES (%s, %s, %s) ON CONFLICT (name) DO UPDATE "
        "SET role = excluded.role, assisted = excluded.assisted",
        new,
    )
    _give_rights(driver, new)
    return password


def remove(connection: Connection, name: str) -> bool:
    """Take somebody out of the team; what they said stays.

    Args:
        connection: The owner's, in a transaction.
        name: Who.

    Returns:
        Whether their role is gone from the server, too.

    Raises:
        WorkspaceError: Nobody in the team has this name.
    """
    if all(one.name != name for one in members(connection)):
        raise WorkspaceError(f"{name!r} is not in the team")
    driver = driver_of(connection)
    _take_rights(driver, name)
    driver.execute("DELETE FROM team.members WHERE name = %s", [name])
    made = driver.execute(
        "SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = %s", [name]
    ).fetchone()
    if made is None or made[0] != _MADE_HERE:
        return made is None
    try:
        with driver.transaction():
            driver.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))
    except psycopg.errors.DependentObjectsStillExist:
        return False  # it is in the team of another database
    return True


def _make_role(driver: Any, name: str) -> str | None:
    """A role to log in with; the password reaches the server, and its log, as a verifier only."""
    known = driver.execute(
        "SELECT rolcanlogin AND NOT (rolsuper OR rolbypassrls OR rolcreaterole OR rolreplication "
        "OR rolname = current_user OR EXISTS (SELECT FROM pg_auth_members WHERE member = oid)) "
        "FROM pg_roles WHERE rolname = %s",
        [name],
    ).fetchone()
    if known is not None:
        if not known[0]:
            raise WorkspaceError(
                f"{name!r} is a role of the server that may do more than a member, or cannot "
                "log in; take another name"
            )
        return None
    password = secrets.token_urlsafe(18)
    verifier = driver.pgconn.encrypt_password(password.encode(), name.encode()).decode()
    role = sql.Identifier(name)
    driver.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(role, sql.Literal(verifier)))
    driver.execute(sql.SQL("COMMENT ON ROLE {} IS {}").format(role, sql.Literal(_MADE_HERE)))
    return password


def _give_rights(driver: Any, to: Member) -> None:
    role, database = sql.Identifier(to.name), sql.Identifier(driver.info.dbname)
    for right in _rights(to.role):
        driver.execute(sql.SQL("GRANT " + right + " TO {}").format(role))
    driver.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, role))


def _take_rights(driver: Any, name: str) -> None:
    role, database = sql.Identifier(name), sql.Identifier(driver.info.dbname)
    for where in ("public", "seen", "team"):
        for what in ("TABLES", "SEQUENCES", "FUNCTIONS"):
            driver.execute(
                sql.SQL(f"REVOKE ALL ON ALL {what} IN SCHEMA {where} FROM {{}}").format(role)
            )
        driver.execute(sql.SQL(f"REVOKE ALL ON SCHEMA {where} FROM {{}}").format(role))
    driver.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM {}").format(database, role))


def _rights(role: Role) -> Iterator[str]:
    """Yield the rights of a role; functions may be called by all who may use their schema."""
    yield "USAGE ON SCHEMA public, team, seen"
    yield f"SELECT ON public.workspace_version, team.members, {_names(_SHARED)}"
    yield "EXECUTE ON FUNCTION public.take_turns(text[])"
    if role is Role.ANNOTATOR:
        yield f"SELECT ON {_names(_hidden(), 'seen')}"
        return
    yield f"SELECT ON {_names(schema.metadata.sorted_tables)}"


def _names(tables: Collection[Table], where: str = "public") -> str:
    return ", ".join(f"{where}.{table.name}" for table in tables)


def _hidden() -> list[Table]:
    return [table for table in schema.metadata.sorted_tables if table not in _SHARED]


# What the server does for it


def keep(connection: Connection) -> None:
    """Have the server keep to this, in the transaction of an owner that runs."""
    driver = driver_of(connection)
    script = "\n".join(_script())
    stamp = hashlib.sha256(script.encode()).hexdigest()[:16]
    may_hush: bool = driver.execute("SHOW is_superuser").fetchone()[0] == "on"
    if may_hush and shows_who_is_connected(connection):
        driver.execute(_hush())
    there = driver.execute(
        "SELECT obj_description(to_regnamespace('seen'), 'pg_namespace')"
    ).fetchone()
    if there is not None and there[0] == stamp:
        return
    driver.execute("\n".join(_tables()))
    driver.execute(script)
    driver.execute(f"COMMENT ON SCHEMA seen IS '{stamp}'")
    for one in members(connection):
        _take_rights(driver, one.name)
        _give_rights(driver, one)


def lift(connection: Connection) -> bool:
    """Take away what hangs on the tables, so that they can be changed; nobody sees anything until
    it is kept again. Returns whether there was a team."""
    driver = driver_of(connection)
    if driver.execute("SELECT to_regnamespace('team')").fetchone()[0] is None:
        return False
    driver.execute("DROP SCHEMA IF EXISTS seen CASCADE")
    return True


def _tables() -> Iterator[str]:
    yield "CREATE SCHEMA IF NOT EXISTS team;"
    yield 'CREATE TABLE IF NOT EXISTS team.members (name TEXT COLLATE "C" PRIMARY KEY,'
    yield "role TEXT NOT NULL, assisted BOOLEAN NOT NULL);"
    yield 'CREATE TABLE IF NOT EXISTS team.revealed (annotator TEXT COLLATE "C",'
    yield 'trace_id TEXT COLLATE "C", taxonomy TEXT COLLATE "C", pass_number BIGINT,'
    yield "PRIMARY KEY (annotator, trace_id, taxonomy, pass_number));"
    # The id of the transaction that revealed it, also within a savepoint.
    yield "ALTER TABLE team.revealed ADD COLUMN IF NOT EXISTS"
    yield "revealed_in xid8 NOT NULL DEFAULT pg_current_xact_id();"
    yield 'CREATE TABLE IF NOT EXISTS team.settings (name TEXT COLLATE "C",'
    yield 'key TEXT COLLATE "C", value TEXT NOT NULL, PRIMARY KEY (name, key));'
    # Until version 10 a pass could have any number, so that one could be revealed before the first.
    yield "DELETE FROM team.revealed WHERE pass_number < 1;"
    yield "INSERT INTO team.revealed SELECT DISTINCT annotator, trace_id, taxonomy, pass_number"
    yield f"FROM public.events WHERE kind = '{KIND_OF[Revealed]}'"
    yield "AND trace_id IS NOT NULL AND taxonomy IS NOT NULL AND pass_number >= 1"
    yield "ON CONFLICT DO NOTHING;"
    yield "WITH mine AS (DELETE FROM team.settings WHERE"
    yield f"{_is_tags_of('name', 'key')} RETURNING key, value)"
    yield "INSERT INTO public.settings SELECT * FROM mine ON CONFLICT DO NOTHING;"
    # No key of one person may collide with another's, as that would tell of it.
    yield "ALTER TABLE public.events DROP CONSTRAINT events_pkey, ADD PRIMARY KEY (id, annotator);"


def _script() -> Iterator[str]:
    yield "DROP SCHEMA IF EXISTS seen CASCADE; CREATE SCHEMA seen;"
    yield "REVOKE CREATE ON SCHEMA public FROM PUBLIC;"
    yield _MAY_WRITE
    for table in (*_OF_PEOPLE, schema.annotators):  # until version 10 policies were there
        yield f"ALTER TABLE public.{table.name} DISABLE ROW LEVEL SECURITY;"
        yield f"DROP POLICY IF EXISTS sees ON public.{table.name};"
    yield _COMMITTED_REVEALS
    yield _SEES_JUDGES + _EVENTS_BESIDE + _LAST_EVENT
    for table in _hidden():
        yield from _view(table)
    yield files("mast_tui.team").joinpath("team_functions.sql").read_text("utf-8")
    for table, register in _REGISTERS.items():
        yield _put_function(table, register)


_MAY_WRITE: Final = f"""
CREATE FUNCTION seen.may_write(whose text) RETURNS boolean LANGUAGE sql STABLE {_AS_OWNER} AS $$
  SELECT EXISTS (SELECT FROM team.members me WHERE me.name = {_ME} AND CASE me.role
    WHEN '{Role.JUDGE}' THEN starts_with(whose, '{JUDGE_PREFIX}')
    WHEN '{Role.LEAD}' THEN whose = {_ME}
      OR NOT EXISTS (SELECT FROM team.members m WHERE m.name = whose)
    ELSE whose = {_ME} END)
$$;
"""
"""All write in their own name; leads also in the names of judges and of those who are not in the
team, whose labels they import."""


# What members write in registers


class _Register(NamedTuple):
    """A register that members with these roles write, as far as a condition holds for the row."""

    roles: tuple[Role, ...]
    condition: str = "true"


_LEAD: Final = _Register((Role.LEAD,))
_RUNS_JUDGES: Final = _Register((Role.LEAD, Role.JUDGE))
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
        (Role.ADJUDICATOR, Role.LEAD, Role.JUDGE),
        f"(new_row.kind = 'judge') = starts_with(new_row.name, '{JUDGE_PREFIX}') AND "
        f"(seen.may_write(new_row.name) OR seen.is_lead())",
    ),
    # The tags that somebody gives are theirs.
    schema.settings: _Register(
        (Role.ADJUDICATOR, Role.LEAD, Role.JUDGE),
        f"NOT starts_with(new_row.key, '{TAGS}:') OR seen.may_write(substr(new_row.key, "
        f"length('{TAGS}:' || split_part(new_row.key, ':', 2) || ':') + 1))",
    ),
}


def _put_function(table: Table, register: _Register) -> str:
    """Return the function that puts a row in the place of the one with the same key."""
    keys = ", ".join(f'"{column.name}"' for column in table.primary_key)
    changed = ", ".join(
        f'"{column.name}" = excluded."{column.name}"'
        for column in table.columns
        if not column.primary_key
    )
    number = "new_row.id := coalesce(new_row.id, nextval('public.asked_id_seq'));"
    return f"""
CREATE FUNCTION seen.put_{table.name}(new_row public.{table.name}) RETURNS void
LANGUAGE plpgsql {_AS_OWNER} AS $$
BEGIN
  PERFORM seen.check_role({", ".join(f"'{role}'" for role in register.roles)});
  IF ({register.condition}) IS NOT TRUE THEN
    RAISE 'you write in your own name alone, which is %', session_user USING ERRCODE = 'MAST1';
  END IF;
  {number if table is schema.asked else ""}
  INSERT INTO public.{table.name} VALUES (new_row.*)
    ON CONFLICT ({keys}) DO {f"UPDATE SET {changed}" if changed else "NOTHING"};
END $$;"""


# What annotators see

_COMMITTED_REVEALS: Final = """
CREATE VIEW seen.committed_reveals AS SELECT annotator, trace_id, taxonomy FROM team.revealed
  WHERE revealed_in IS DISTINCT FROM pg_current_xact_id_if_assigned();
"""
"""The works on which others were shown. A reveal of another transaction is in it once that is
committed; one of this transaction can still be taken back, also by a savepoint, and is not."""

_NAMES: Final = f"""
  (SELECT CASE
    WHEN EXISTS (SELECT FROM seen.committed_reveals v
      WHERE v.annotator = me.name AND v.trace_id = trace AND v.taxonomy = under)
    THEN ARRAY(SELECT a.name FROM public.annotators a)
    WHEN me.assisted
    THEN ARRAY(SELECT a.name FROM public.annotators a
      WHERE a.name = me.name OR starts_with(a.name, '{JUDGE_PREFIX}'))
    ELSE ARRAY[me.name] END
  FROM team.members me WHERE me.name = {_ME})
"""
"""Whose rows about a trace may be seen."""

_SEES_JUDGES: Final = f"""
CREATE FUNCTION seen.sees_judges() RETURNS boolean LANGUAGE sql STABLE {_AS_OWNER} AS $$
  SELECT EXISTS (SELECT FROM team.members WHERE name = {_ME} AND assisted)
$$;
"""
_REVEALED_TRACES: Final = f"SELECT trace_id FROM seen.committed_reveals WHERE annotator = {_ME}"
_OF_JUDGES: Final = f"seen.sees_judges() OR r.trace_id IN ({_REVEALED_TRACES})"


def _is_tags_of(who: str, key: str) -> str:
    """Whether a setting keeps the tags that somebody gives."""
    return f"{key} = '{TAGS}:' || split_part({key}, ':', 2) || ':' || {who}"


_TAGS_OF_OTHERS: Final = f"""
  SELECT s.key, (SELECT json_agg(one)::text FROM json_array_elements(s.value::json) one
    WHERE (SELECT two::text FROM json_array_elements(one) WITH ORDINALITY AS of_it(two, number)
      WHERE number = 2) IN (SELECT to_json(v.trace_id)::text FROM seen.committed_reveals v
      WHERE v.annotator = {_ME}
      AND starts_with(v.taxonomy, split_part(s.key, ':', 2) || '@'))) AS tags
  FROM public.settings s
  WHERE starts_with(s.key, '{TAGS}:') AND NOT ({_is_tags_of(_ME, "s.key")})
"""
"""Of the tags that others gave those about traces of which others may be seen."""

_ROWS: Final[Mapping[str, str]] = {
    "sights": f"r.annotator = {_ME}",
    "studies": "true",
    "guidelines": "true",
    "runs": "seen.sees_judges() OR r.id IN (SELECT t.run FROM public.run_traces t "
    f"WHERE t.trace_id IN ({_REVEALED_TRACES}))",
    "run_traces": _OF_JUDGES,
    "asked": _OF_JUDGES,
    "imports": f"r.format = '{MIGRATION}'",
    "imported_events": "false",
    "settings": f"r.key = '{SET_ASIDE}' OR {_is_tags_of(_ME, 'r.key')} "
    f"UNION ALL SELECT key, value FROM team.settings WHERE name = {_ME} "
    f"UNION ALL SELECT key, tags FROM ({_TAGS_OF_OTHERS}) others WHERE tags IS NOT NULL",
    # That the index of a span is kept tells that somebody has marked it.
    "span_indices": f"r.trace_id IN ({_REVEALED_TRACES}) OR EXISTS (SELECT FROM public.labels l "
    f"WHERE l.annotator = {_ME} AND l.trace_id = r.trace_id "
    "AND r.span_key IN (l.first_key, l.last_key))",
}
"""Which rows may be seen of what is not about one trace of one person."""

_WITHOUT: Final[Mapping[str, str]] = {
    # By what a judge says of a trace, or on which one something was decided.
    "studies": "'draws'",
    "guidelines": "'trace_id', 'item'",
}
"""Fields of documents that tell of what is hidden."""


def _view(table: Table) -> Iterator[str]:
    name, columns = table.name, [f'"{column.name}"' for column in table.columns]
    if name in _ROWS:
        shown = [f"r.{column}" for column in columns]
        if name in _WITHOUT:
            shown[columns.index('"document"')] = (
                "(SELECT json_object_agg(f.key, f.value)::text FROM json_each(r.document::json) f "
                f"WHERE f.key NOT IN ({_WITHOUT[name]}))"
            )
        rows = f"SELECT {', '.join(shown)} FROM public.{name} r WHERE {_ROWS[name]}"
        yield f"CREATE FUNCTION seen.{name}_rows() RETURNS SETOF public.{name}"
        yield f"LANGUAGE sql STABLE {_AS_OWNER} AS $$ {rows} $$;"
        yield f"CREATE VIEW seen.{name} AS SELECT {', '.join(columns)} FROM seen.{name}_rows();"
        return
    # Trace and taxonomy are taken from what everybody may read, so that a condition on them is
    # known before the function is asked.
    taken = {'"trace_id"': "t.id", '"taxonomy"': "k.ref"}
    shown = [f"{taken.get(column, f'x.{column}')} AS {column}" for column in columns]
    yield f"CREATE FUNCTION seen.{name}_of(trace text, under text) RETURNS SETOF public.{name}"
    yield f"LANGUAGE sql STABLE ROWS 10 {_AS_OWNER} AS $$ SELECT r.* FROM public.{name} r WHERE"
    yield "r.trace_id = trace AND r.taxonomy = under"
    yield f"AND r.annotator = ANY({_NAMES}::text[])"
    yield f"$$; CREATE VIEW seen.{name} AS SELECT {', '.join(shown)}"
    yield "FROM public.traces t CROSS JOIN public.taxonomies k"
    yield f"CROSS JOIN LATERAL seen.{name}_of(t.id, k.ref) x"
    if table is schema.events:
        yield f"UNION ALL SELECT {', '.join(columns)} FROM seen.events_beside()"
    yield ";"


_EVENTS_BESIDE: Final = f"""
CREATE FUNCTION seen.events_beside() RETURNS SETOF public.events LANGUAGE sql STABLE {_AS_OWNER}
AS $$ SELECT r.* FROM public.events r WHERE r.annotator = {_ME} AND r.trace_id IS NULL $$;
"""
"""One's own events that are about no trace."""

_LAST_EVENT: Final = f"""
CREATE FUNCTION seen.last_event(
  trace text, under text, OUT seq bigint, OUT chain text, OUT of_work bigint
) LANGUAGE plpgsql STABLE {_AS_OWNER} AS $$
DECLARE linked boolean;
BEGIN
  SELECT e.seq, e.chain, NOT starts_with(e.action, '{IMPORT_PREFIX}') INTO seq, chain, linked
    FROM public.events e WHERE e.annotator = {_ME} ORDER BY e.seq DESC, e.id DESC LIMIT 1;
  IF chain IS NULL OR NOT linked THEN
    SELECT e.chain INTO chain FROM public.events e WHERE e.annotator = {_ME}
      AND e.chain IS NOT NULL AND NOT starts_with(e.action, '{IMPORT_PREFIX}')
      ORDER BY e.seq DESC, e.id DESC LIMIT 1;
  END IF;
  IF trace IS NOT NULL THEN
    SELECT max(e.seq) INTO of_work FROM public.events e
      WHERE e.annotator = {_ME} AND e.trace_id = trace AND e.taxonomy = under;
  END IF;
END $$;
CREATE FUNCTION seen.own_events(ids text[]) RETURNS SETOF public.events
LANGUAGE sql STABLE {_AS_OWNER}
AS $$ SELECT e.* FROM public.events e WHERE e.annotator = {_ME} AND e.id = ANY(ids) $$;
"""
"""What one's next event follows; without a trace it is not told what was last on one."""

# What the server tells of itself


def shows_who_is_connected(connection: Connection) -> bool:
    """Whether everybody may ask who is connected."""
    asked = "SELECT has_function_privilege('public', 'pg_stat_get_activity(integer)', 'EXECUTE')"
    return bool(driver_of(connection).execute(asked).fetchone()[0])


def _hush() -> str:
    """Let the server tell members nothing of who is there, and how much in all.

    Programs that watch the server (``pg_monitor``) go on.
    """
    counted = ", ".join(f"'{name}'" for name in _COUNTED)
    return f"""
DO $$
DECLARE told record; shown text;
BEGIN
  FOR told IN SELECT oid::regprocedure AS named FROM pg_proc
    WHERE proname ~ '{_QUIET}' AND prokind = 'f'
  LOOP
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', told.named);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO pg_monitor', told.named);
  END LOOP;
  SELECT string_agg(attname, ', ') INTO shown FROM pg_attribute
    WHERE attrelid = 'pg_class'::regclass AND attnum > 0 AND attname NOT IN ({counted});
  REVOKE SELECT ON pg_class FROM PUBLIC;
  EXECUTE format('GRANT SELECT (%s) ON pg_class TO PUBLIC', shown);
  GRANT SELECT ON pg_class TO pg_monitor;
END $$;
"""
