"""The members of a team on a server, and what the server lets each of them see and write.

Whoever made the workspace owns its tables, and nothing here binds them. The schema ``team`` keeps
the members; a member is a role of the server with the same name. All but annotators read the tables
themselves, and policies let them write in their own name only.

Policies do not do for annotators: ``EXPLAIN ANALYZE`` counts the rows that one left out, for any
condition that an index answers. So annotators have no right to the tables of what people say. The
schema ``seen``, in which theirs are looked for first, has a view in the place of each table: it
gets its rows from functions that run as the owner and return only what may be seen. They write by
calling the functions in ``team_functions.sql``, which check each event and derive the state tables
from it.

Others are seen on a trace once ``revealed`` is recorded of it, which takes a finish; from then on
the server takes nothing more for that pass. A reveal counts once its transaction is committed: in
the same transaction it could be read and taken back.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Iterator, Mapping
from importlib.resources import files
from typing import Any, Final

import psycopg
from psycopg import sql
from sqlalchemy import Connection, Table

from mast_tui.errors import WorkspaceError
from mast_tui.labels import JUDGE_PREFIX
from mast_tui.workspace import schema
from mast_tui.workspace.database import driver_of
from mast_tui.workspace.events.model import IMPORT_PREFIX
from mast_tui.workspace.events.types import EventKind
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
"""What all members read, and the lead changes."""

_LEADS: Final = (EventKind.STUDY_SET,)
_ADJUDICATORS: Final = (*_LEADS, EventKind.DECIDED, EventKind.GUIDELINE_SET)
"""Events that are no annotator's."""

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
    """What a role may do, as far as policies and triggers let it."""
    yield "USAGE ON SCHEMA public, team, seen"
    yield f"SELECT ON public.workspace_version, team.members, {_names(_SHARED)}"
    yield "EXECUTE ON FUNCTION public.take_turns(text[])"
    if role is Role.ANNOTATOR:
        yield f"SELECT ON {_names(_hidden(), 'seen')}"
        return
    yield f"SELECT ON {_names(schema.metadata.sorted_tables)}"
    yield f"INSERT, UPDATE ON {_names((schema.settings, schema.span_indices))}"
    yield "INSERT ON public.events, public.annotators"
    yield f"INSERT, UPDATE, DELETE ON {_names(schema.STATE_TABLES)}"
    if role is not Role.ADJUDICATOR:
        yield f"INSERT, UPDATE ON {_names((schema.runs, schema.run_traces, schema.asked))}"
        yield "USAGE ON SEQUENCE public.asked_id_seq"
    if role is Role.LEAD:
        yield f"INSERT, UPDATE ON {_names(_SHARED)}"
        yield "UPDATE, DELETE ON public.events"
        yield f"INSERT, UPDATE, DELETE ON {_names((schema.imports, schema.imported_events))}"


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
    yield f"FROM public.events WHERE kind = '{EventKind.REVEALED.value}'"
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
    yield from _policies()
    yield _COMMITTED_REVEALS
    yield _SEES_JUDGES + _EVENTS_BESIDE + _LAST_EVENT
    for table in _hidden():
        yield from _view(table)
    yield files("mast_tui.workspace").joinpath("team_functions.sql").read_text("utf-8")


def _policies() -> Iterator[str]:
    """Who sees all writes in their own name; leads also in the names of judges and of those who
    are not in the team, whose labels they import."""
    yield f"""
CREATE FUNCTION seen.may_write(whose text) RETURNS boolean LANGUAGE sql STABLE {_AS_OWNER} AS $$
  SELECT EXISTS (SELECT FROM team.members me WHERE me.name = {_ME} AND CASE me.role
    WHEN '{Role.JUDGE}' THEN starts_with(whose, '{JUDGE_PREFIX}')
    WHEN '{Role.LEAD}' THEN whose = {_ME}
      OR NOT EXISTS (SELECT FROM team.members m WHERE m.name = whose)
    ELSE whose = {_ME} END)
$$;
CREATE FUNCTION seen.is_role(VARIADIC roles text[]) RETURNS boolean LANGUAGE sql STABLE {_AS_OWNER}
AS $$ SELECT EXISTS (SELECT FROM team.members WHERE name = {_ME} AND role = ANY(roles)) $$;
"""
    for table in (*_OF_PEOPLE, schema.annotators):
        name, whose = table.name, "annotator" if "annotator" in table.c else "name"
        may = f"seen.may_write({whose})"
        if table is schema.events:
            may += f" AND (seen.is_role('{Role.LEAD}') OR kind NOT IN ({_quoted(_LEADS)}))"
            may += (
                f" AND (seen.is_role('{Role.LEAD}', '{Role.ADJUDICATOR}') "
                f"OR kind NOT IN ({_quoted(_ADJUDICATORS)}))"
            )
        elif table is schema.studies:
            may += f" AND seen.is_role('{Role.LEAD}')"
        elif table in (schema.decisions, schema.guidelines):
            may += f" AND seen.is_role('{Role.LEAD}', '{Role.ADJUDICATOR}')"
        yield f"ALTER TABLE public.{name} ENABLE ROW LEVEL SECURITY;"
        yield f"DROP POLICY IF EXISTS sees ON public.{name};"  # the others went with the schema
        yield f"CREATE POLICY sees ON public.{name} FOR SELECT USING (true);"
        yield f"CREATE POLICY adds ON public.{name} FOR INSERT WITH CHECK ({may});"
        yield f"CREATE POLICY changes ON public.{name} FOR UPDATE USING ({may}) WITH CHECK ({may});"
        yield f"CREATE POLICY drops ON public.{name} FOR DELETE USING ({may});"


def _quoted(kinds: Collection[EventKind]) -> str:
    return ", ".join(f"'{kind.value}'" for kind in kinds)


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
