"""Attacks of members with SQL, alone and in transactions that are rolled back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import psycopg
import pytest
from psycopg import sql
from psycopg.pq import TransactionStatus

from mast_tui.workspace import WorkspaceError, schema
from mast_tui.workspace.database import driver_of
from mast_tui.workspace.records import TeamRole, TraceRecord
from tests.postgres import PostgresServer
from tests.waiting import PATIENCE
from tests.workspace.test_sight_by_server import (
    IMPORTED,
    JUDGE,
    SECOND,
    SECRET,
    TABLES,
    Team,
    append_sql,
    everybody_works,
    new_event_id,
    reply,
    work,
)

pytestmark = pytest.mark.slow

Sql = psycopg.Connection[Any]
ME: Final = "mira"
HIDDEN: Final = (SECRET, JUDGE, "'bob'", "'carol'", IMPORTED)
"""Texts that no row may hold that mira reads."""
READ_ALL: Final = [
    *(f"SELECT * FROM seen.{name}" for name in TABLES),
    *("SELECT * FROM seen.runs", "SELECT * FROM seen.asked", "SELECT * FROM seen.settings"),
]
LABELS_AS_TEXT: Final = "(SELECT string_agg(l::text, ' ') FROM seen.labels l)"


def payload(kind: str) -> str:
    """Return the payload of a valid event of a kind."""
    label = {"id": "of-mira", "mode": "step_repetition", "target": {"first": "k0"}}
    return json.dumps(
        {
            "pass_started": {"kind": "blind"},
            "pass_finished": {"open_modes": "leave"},
            "revealed": {"what": "others"},
            "label_added": {"label": label},
            "spans_read": {"keys": ["k0"]},
        }[kind]
    )


def event(kind: str, **values: Any) -> sql.Composed:
    return append_sql(ME, kind, values.pop("payload", None) or payload(kind), **values)


def reveal(*, trace: str = "run-2", pass_number: int | None = 1) -> list[sql.Composed]:
    """Return the events that begin, finish and reveal a pass."""
    kinds = ("pass_started", "pass_finished", "revealed")
    return [event(kind, trace=trace, pass_number=pass_number) for kind in kinds]


@pytest.fixture(scope="module")
def team(postgres: PostgresServer) -> Team:
    """A team in which all have worked; mira has labelled one trace and finished none."""
    team = Team(postgres)
    everybody_works(team)
    work(team, ME, finish=False, note="of mira")
    return team


def rows_of_others(team: Team) -> dict[str, set[str]]:
    """Return all rows that are not mira's, by table."""
    rows: dict[str, set[str]] = {}
    with team.sql("postgres") as owner:
        for table in schema.metadata.sorted_tables:
            condition = f"WHERE annotator <> '{ME}'" if "annotator" in table.c else ""
            query = f"SELECT t::text FROM public.{table.name} t {condition}"
            rows[table.name] = {row[0] for row in owner.execute(query.encode())}
        rows["members"] = {row[0] for row in owner.execute("SELECT m::text FROM team.members m")}
    return rows


def check_nothing_is_seen(mira: Sql, *answers: str) -> None:
    for answer in (*answers, *(reply(mira, query) for query in READ_ALL)):
        for hidden in HIDDEN:
            assert hidden not in answer, (hidden, answer)


@contextmanager
def other_members(team: Team) -> Iterator[tuple[Sql, Sql]]:
    """Connect as an annotator and a lead, with a limit for their waits on locks."""
    with team.sql("bob") as bob, team.sql("lea") as lea:
        for connection in (bob, lea):
            connection.execute(f"SET lock_timeout = '{PATIENCE:g}s'".encode())
        yield bob, lea


def check_can_work(bob: Sql, lea: Sql) -> None:
    """Check that others read and write without waiting for a lock of the annotator."""
    for connection in (bob, lea):
        connection.execute("BEGIN")
    second_look = append_sql("bob", "pass_started", '{"kind": "second_look"}', pass_number=2)
    assert "SELECT 1" in reply(bob, second_look)
    assert "SELECT 1" in reply(bob, f"SELECT seen.register_trace({KNOWN_TRACE})")
    for statement in (
        "SELECT public.take_turns(ARRAY['', 'lea'])",
        "SELECT count(*) FROM public.labels",
        "SELECT seen.put_taxonomies(t) FROM public.taxonomies t",
        "SELECT seen.put_traces(t) FROM public.traces t WHERE t.id = 'run-1'",
    ):
        assert "SELECT 1" in reply(lea, statement)
    for connection in (bob, lea):
        connection.execute("ROLLBACK")


def check_others_can_work(team: Team) -> None:
    with other_members(team) as others:
        check_can_work(*others)


@contextmanager
def in_transaction(mira: Sql) -> Iterator[None]:
    mira.execute("BEGIN")
    yield
    mira.execute("ROLLBACK")


@contextmanager
def in_released_savepoint(mira: Sql) -> Iterator[None]:
    mira.execute("BEGIN")
    mira.execute("SAVEPOINT a")
    mira.execute("SAVEPOINT b")
    with ExitStack() as stack:
        stack.callback(mira.execute, "ROLLBACK")
        yield


@contextmanager
def in_rolled_back_savepoint(mira: Sql) -> Iterator[None]:
    mira.execute("BEGIN")
    mira.execute("SAVEPOINT a")
    yield
    mira.execute("ROLLBACK TO a")
    check_nothing_is_seen(mira)
    mira.execute("COMMIT")


REVEALS: Final = {
    "pass 1": reveal(),
    "pass 0": reveal(pass_number=0),
    "pass -1": reveal(pass_number=-1),
    "pass 2": reveal(pass_number=2),
    "no pass": reveal(pass_number=None),
    "both traces": [*reveal(), event("pass_finished"), event("revealed")],
}


@pytest.mark.parametrize(
    "transaction", [in_transaction, in_released_savepoint, in_rolled_back_savepoint]
)
@pytest.mark.parametrize("name", REVEALS)
def test_rolled_back_reveal_shows_nothing(team: Team, name: str, transaction: Any) -> None:
    rows_before = rows_of_others(team)
    with team.sql(ME) as mira:
        with transaction(mira):
            answers = []
            for number, statement in enumerate(REVEALS[name]):
                mira.execute(f"SAVEPOINT s{number}")  # a refused statement does not end it all
                answer = reply(mira, statement)
                answers.append(answer)
                ending = "RELEASE" if answer.startswith("SELECT") else "ROLLBACK TO"
                mira.execute(f"{ending} s{number}".encode())
            if name == "pass 1":
                assert all(answer.startswith("SELECT 1") for answer in answers)
            check_nothing_is_seen(mira, *answers)
            cursor = "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM seen.labels, seen.events"
            check_nothing_is_seen(mira, reply(mira, cursor), reply(mira, "FETCH ALL FROM c"))
            check_others_can_work(team)
        check_nothing_is_seen(mira)
    assert rows_of_others(team) == rows_before
    with team.sql("postgres") as owner:
        assert owner.execute(
            "SELECT count(*) FROM team.revealed WHERE annotator = 'mira'"
        ).fetchone() == (0,)


EXCEPTION_BLOCKS: Final = {
    "read in the block": "DO $$ BEGIN {reveal} RAISE EXCEPTION 'seen %', {labels}; END $$",
    "read in the handler": (
        "DO $$ BEGIN {reveal} RAISE EXCEPTION 'back'; EXCEPTION WHEN OTHERS THEN "
        "RAISE EXCEPTION 'seen % %', SQLERRM, {labels}; END $$"
    ),
    "read behind an inner block": (
        "DO $$ BEGIN BEGIN {reveal} EXCEPTION WHEN OTHERS THEN NULL; END; "
        "RAISE EXCEPTION 'seen %', {labels}; END $$"
    ),
    "read in an inner block": (
        "DO $$ BEGIN {reveal} BEGIN RAISE EXCEPTION 'seen %', {labels}; "
        "EXCEPTION WHEN division_by_zero THEN NULL; END; END $$"
    ),
    "read by a function of one's own": (
        "CREATE FUNCTION pg_temp.peek() RETURNS text LANGUAGE sql VOLATILE AS $$ "
        "SELECT string_agg(l::text, ' ') FROM seen.labels l $$; "
        "DO $$ BEGIN {reveal} RAISE EXCEPTION 'seen %', pg_temp.peek(); END $$"
    ),
}


@pytest.mark.parametrize("name", EXCEPTION_BLOCKS)
def test_reveal_rolled_back_by_an_exception_shows_nothing(team: Team, name: str) -> None:
    rows_before = rows_of_others(team)
    with team.sql(ME) as mira:
        performed = " ".join(
            statement.as_string(mira).replace("SELECT seen.append", "PERFORM seen.append", 1) + ";"
            for statement in REVEALS["pass 1"]
        )
        block = EXCEPTION_BLOCKS[name].format(reveal=performed, labels=LABELS_AS_TEXT)
        answer = reply(mira, block)
        assert "seen" in answer
        check_nothing_is_seen(mira, answer)
    assert rows_of_others(team) == rows_before


def test_reveal_within_one_statement_shows_nothing(team: Team) -> None:
    rows_before = rows_of_others(team)
    with team.sql(ME) as mira:
        mira.execute("BEGIN")
        for statement in REVEALS["pass 1"][:2]:
            mira.execute(statement)
        last = REVEALS["pass 1"][2].as_string(mira).removeprefix("SELECT ")
        combined = f"WITH r AS MATERIALIZED (SELECT {last}) SELECT l.* FROM r, seen.labels l"
        check_nothing_is_seen(mira, reply(mira, combined), reply(mira, "SELECT * FROM seen.labels"))
        mira.execute("ROLLBACK")
    assert rows_of_others(team) == rows_before


# Single statements

KNOWN_TRACE: Final = (
    "ROW('run-1', 'run-1', NULL, NULL, NULL, NULL, false, '/etc/passwd', NULL, NULL, NULL, NULL, "
    "NULL, 'succeeded', NULL, NULL, NULL, NULL, NULL, NULL)::public.traces"
)
NO_TRACE: Final = KNOWN_TRACE.replace("'run-1'", "'new'").replace("succeeded", "nonsense")
STATEMENTS: Final = [
    # Other changes of tables need a right, which no member has
    # Rows that only the lead changes
    "UPDATE public.traces SET outcome = 'succeeded', path = '/etc/passwd'",
    f"SELECT seen.register_trace({KNOWN_TRACE})",
    f"SELECT seen.register_trace({NO_TRACE})",
    "SELECT seen.keep_span_index(ROW('run-1', 'k0', 7, 1)::public.span_indices)",
    "SELECT seen.keep_span_index(ROW('run-1', 'k0', -7, NULL)::public.span_indices)",
    "SELECT seen.set_setting(ROW('open_codes.tags:mast:bob', '[]')::public.settings)",
    "SELECT seen.set_setting(ROW('open_codes.tags:mast:mira', '[1]')::public.settings)",
    "SELECT seen.set_setting(ROW('open_codes.tags:mast:mira', 'x')::public.settings)",
    "UPDATE public.workspace_version SET schema_version = 99",
    # The team
    "SELECT * FROM team.revealed",
    "SELECT * FROM seen.committed_reveals",
    "SELECT * FROM team.settings",
    "GRANT lea TO mira",
    # State without events
    "INSERT INTO seen.events SELECT * FROM seen.events LIMIT 1",
    "SELECT seen.put_label(ROW('x', 'mira', 1, '', '', 'run-1', 'mast@3', 1, '', '', '', NULL, "
    "NULL, NULL)::public.events, '{}')",
    # Locks
    "SELECT pg_advisory_lock(1296126804)",
    "SELECT pg_advisory_xact_lock(1296126804)",
    "SELECT pg_advisory_lock(1296126804, 1)",
    "SELECT public.take_turns(ARRAY[''])",
    "SELECT public.take_turns(ARRAY['bob'])",
    "SELECT public.take_turns(ARRAY['mira', 'bob', ''])",
    "SELECT public.take_turns(ARRAY['mira'])",
    "SELECT * FROM public.turns FOR UPDATE",
    "SELECT * FROM public.traces FOR SHARE",
    "SELECT * FROM public.taxonomies FOR KEY SHARE",
    "SELECT * FROM team.members FOR UPDATE",
    "LOCK TABLE public.labels IN ACCESS EXCLUSIVE MODE",
    "LOCK TABLE public.traces IN SHARE MODE",
    "LOCK TABLE public.events",
    "LOCK TABLE seen.labels IN EXCLUSIVE MODE",
    # Circumvention of the checks
    "SET ROLE postgres",
    "SET SESSION AUTHORIZATION bob",
    "CREATE FUNCTION seen.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE TABLE public.mine (id int)",
    "ALTER TABLE public.labels DISABLE ROW LEVEL SECURITY",
    "DROP SCHEMA seen CASCADE",
    "SET search_path = pg_temp, seen; CREATE TEMP TABLE members AS SELECT 'mira' AS name, true AS "
    "assisted; SELECT * FROM seen.labels",
]
LABEL: Final = {"id": "x", "mode": "m", "target": {}}


def false_label(**fields: Any) -> dict[str, Any]:
    return {"kind": "label_added", "payload": json.dumps({"label": LABEL | fields})}


FALSE_EVENTS: Final[list[tuple[str, dict[str, Any]]]] = [
    ("seq -1", {"seq": -1}),
    ("seq far ahead", {"seq": 9223372036854775807}),
    ("seq again", {"seq": 1}),
    ("kind", {"payload": "{}"}),
    ("payload no JSON", {"payload": "not json"}),
    ("payload a list", {"payload": "[]"}),
    ("payload with a bare NUL", {"payload": '{"keys": ["\\u0000", 5]}'}),
    ("label a number", {"kind": "label_added", "payload": '{"label": 5}'}),
    ("label without a target", {"kind": "label_added", "payload": '{"label": {"id": "x"}}'}),
    ("severity", false_label(severity="worst")),
    ("confidence", false_label(confidence=7)),
    ("quote without a span", false_label(target={"quote": "q"})),
    ("replaces", {"replaces": "x"}),
    ("replaces no texts", {"replaces": "[5]"}),
    ("trace", {"trace": "nowhere"}),
    ("pass 0", {"pass_number": 0}),
    ("pass that has not begun", {"pass_number": 7}),
    ("no pass", {"pass_number": None}),
    ("id that is no id", {"event_id": "x"}),
    ("id of an import", {"event_id": IMPORTED}),
    ("id with SQL", {"event_id": "'; DROP TABLE labels; --"}),
]
FALSE_KINDS: Final = ("nonsense", "decided", "judged", "study_set", "guideline_set", "")
SINGLE: Final = [
    *((text, sql.SQL(text)) for text in STATEMENTS),
    *((name, event(**{"kind": "spans_read"} | values)) for name, values in FALSE_EVENTS),
    *((f"kind {kind!r}", append_sql(ME, kind)) for kind in FALSE_KINDS),
    ("in bob's name", append_sql("bob", "spans_read", '{"keys": []}')),
]


def test_single_statements_change_and_show_nothing(team: Team) -> None:
    assert len(SINGLE) >= 40
    rows_before = rows_of_others(team)
    with other_members(team) as others:
        for _, statement in SINGLE:
            with team.sql(ME) as mira:
                check_nothing_is_seen(mira, reply(mira, statement))
            with team.sql(ME) as mira:
                mira.execute("BEGIN")
                answer = reply(mira, statement)
                check_can_work(*others)
                mira.execute("ROLLBACK")
                check_nothing_is_seen(mira, answer)
    assert rows_of_others(team) == rows_before
    with team.workspace("lea") as lea:
        assert not lea.differences()
        assert not lea.edited_histories()
        assert list(lea.events())
        assert lea.taxonomies()


def test_unreadable_events_and_ids_of_others_are_refused(team: Team) -> None:
    with team.sql("postgres") as owner:
        (bobs,) = owner.execute(
            "SELECT id FROM public.events WHERE annotator = 'bob' LIMIT 1"
        ).fetchone() or ("",)
    with team.sql(ME) as mira:
        events_before = reply(mira, "SELECT * FROM seen.events")
        for name, statement in SINGLE[len(STATEMENTS) :]:
            assert not reply(mira, statement).startswith("SELECT 1"), name
        # Files hold an event under its id alone, so that no copy could be made.
        assert "an event of another" in reply(mira, event("spans_read", event_id=bobs))
        assert reply(mira, "SELECT * FROM seen.events") == events_before
        assert reply(mira, event("spans_read", event_id=new_event_id())).startswith("SELECT 1")


def test_open_transaction_does_not_block_changes_of_the_team(team: Team) -> None:
    with team.sql(ME) as mira, team.workspace("postgres") as owner:
        mira.execute("BEGIN")
        mira.execute(event("spans_read"))
        for query in READ_ALL:
            mira.execute(query.encode())
        driver_of(owner._database._writer).execute(f"SET lock_timeout = '{PATIENCE:g}s'")
        owner.add_member("zora", TeamRole.ANNOTATOR)
        owner.add_member(ME, TeamRole.ANNOTATOR, assisted=True)
        owner.add_member(ME, TeamRole.ANNOTATOR)
        owner.remove_member("zora")
        mira.execute("ROLLBACK")


def test_trace_that_another_registers_is_waited_for_shortly(team: Team) -> None:
    row = KNOWN_TRACE.replace("'run-1'", "'run-5'")
    with team.sql(ME) as mira:
        mira.execute("BEGIN")
        assert reply(mira, f"SELECT seen.register_trace({row})").startswith("SELECT 1")
        with team.workspace("bob") as bob, pytest.raises(WorkspaceError, match="another program"):
            bob.register_trace(TraceRecord("run-5"))
        check_others_can_work(team)
        mira.execute("ROLLBACK")
    with team.workspace("bob") as bob:
        assert bob.register_trace(TraceRecord("run-5")) == "run-5"


# Members who read everything

READERS: Final = ("carol", "runner", "lea")
BOBS: Final = "(SELECT e FROM public.events e WHERE e.annotator = 'bob' ORDER BY seq DESC LIMIT 1)"
LEAS: Final = "(SELECT e FROM public.events e WHERE e.annotator = 'lea' ORDER BY seq DESC LIMIT 1)"


def decision(decided_by: str) -> str:
    mode = "step_repetition"
    after = {
        "mode": mode,
        "item": mode,
        "value": "absent",
        "targets": [],
        "sides": [],
        "said": [],
        "decided_by": decided_by,
        "decided_at": "2026-11-28T00:00:00Z",
    }
    return json.dumps({"item": mode, "before": None, "after": after})


BY_ALL: Final[list[Any]] = [
    # In the name of another member
    append_sql("bob", "spans_read", '{"keys": []}', seq=900),
    append_sql("bob", "decided", decision("bob"), seq=900),
    append_sql("mira", "pass_started", '{"kind": "blind"}', seq=1),
    f"SELECT seen.insert_event({BOBS})",
    f"SELECT seen.replace_event({BOBS})",
    "SELECT seen.rebuild_state(ROW('bob', 'human')::public.annotators)",
    "SELECT seen.put_settings(ROW('open_codes.tags:mast:bob', '[]')::public.settings)",
    "SELECT seen.put_annotators(ROW('bob', 'judge')::public.annotators)",
    "SELECT public.take_turns(ARRAY['bob'])",
    # The team, and the definitions around the functions
    "GRANT bob TO CURRENT_USER",
    "ALTER TABLE public.events DISABLE TRIGGER ALL",
    "DROP SCHEMA seen CASCADE",
    "CREATE FUNCTION seen.may_write(whose varchar) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
    "SET search_path = pg_temp, seen; CREATE TEMP TABLE members AS SELECT session_user::text AS "
    "name, 'lead' AS role; SELECT seen.check_role('owner')",
    # Parts of functions, which check nothing themselves
    f"SELECT seen.follow_event({BOBS}, '{{}}', false)",
    f"SELECT seen.change_pass({BOBS}, '{{}}')",
    f"SELECT seen.begin_pass({BOBS}, 'blind', false)",
    f"SELECT seen.put_label({BOBS}, '{{}}', 'label', false)",
    f"SELECT seen.remove_label({BOBS}, 'x', false)",
    f"SELECT seen.put_document({BOBS}, '{{}}')",
    f"SELECT seen.finish_judgement({BOBS}, '{{}}')",
]
BY_ROLE: Final[dict[str, list[Any]]] = {
    "carol": [
        append_sql("carol", "decided", decision("bob")),
        append_sql("carol", "decided", '{"item": "x", "before": null, "after": {"mode": 5}}'),
        append_sql("carol", "study_set", '{"before": null, "after": null}'),
        append_sql("carol", "judged", '{"looks_at": [], "absent": []}'),
        append_sql(JUDGE, "judged", '{"looks_at": [], "absent": []}', seq=900),
        append_sql("carol", "label_added", '{"label": 5}'),
        append_sql("carol", "nonsense"),
        "SELECT seen.put_taxonomies(ROW('zz@1', 'h', '{}')::public.taxonomies)",
        "SELECT seen.put_traces(t) FROM public.traces t",
        "SELECT seen.put_runs(r) FROM public.runs r",
        "SELECT seen.put_asked(a) FROM public.asked a",
        "SELECT seen.put_annotators(ROW('eve', 'human')::public.annotators)",
        "SELECT seen.put_annotators(ROW('judge:mine', 'judge')::public.annotators)",
        "SELECT seen.drop_import(i) FROM public.imports i",
    ],
    "runner": [
        append_sql("runner", "spans_read", '{"keys": []}', seq=1),
        append_sql(JUDGE, "decided", decision(JUDGE)),
        append_sql(JUDGE, "study_set", '{"before": null, "after": null}', seq=900),
        "SELECT seen.put_taxonomies(ROW('zz@1', 'h', '{}')::public.taxonomies)",
        "SELECT seen.put_traces(t) FROM public.traces t",
        "SELECT seen.put_imports(i) FROM public.imports i",
        "SELECT seen.put_annotators(ROW('eve', 'human')::public.annotators)",
        "SELECT seen.put_annotators(ROW('judge:mine', 'human')::public.annotators)",
    ],
    "lea": [
        append_sql("lea", "decided", decision("carol")),
        append_sql("lea", "judged", '{"looks_at": [], "absent": []}'),
        append_sql("lea", "study_set", '{"before": null, "after": 5}'),
        "SELECT seen.put_annotators(ROW('eve', 'judge')::public.annotators)",
        f"SELECT seen.replace_event({LEAS})",
        f"SELECT seen.insert_event({LEAS})",
    ],
}


def test_no_member_has_a_right_to_change_a_table(team: Team) -> None:
    rights = ("INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
    with team.sql("postgres") as owner:
        tables = owner.execute(
            "SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname IN ('public', 'seen', 'team') AND c.relkind IN ('r', 'v', 'p')"
        ).fetchall()
        assert len(tables) > len(schema.metadata.tables)
        granted = owner.execute(
            "SELECT m.name, o.oid::regclass, r FROM team.members m, unnest(%s::oid[]) o(oid), "
            "unnest(%s::text[]) r WHERE has_table_privilege(m.name, o.oid, r) "
            "OR r IN ('INSERT', 'UPDATE') AND has_any_column_privilege(m.name, o.oid, r)",
            [[row[0] for row in tables], list(rights)],
        ).fetchall()
        assert granted == []


@pytest.mark.parametrize("name", READERS)
def test_members_who_read_everything_write_only_in_their_own_name(team: Team, name: str) -> None:
    rows_before = rows_of_others(team)
    for statement in (*BY_ALL, *BY_ROLE[name]):
        for beginning in ("", "BEGIN"):
            with team.sql(name) as member:
                if beginning:
                    member.execute(beginning.encode())
                answer = reply(member, statement)
                assert not answer.startswith("SELECT 1"), (statement, answer)
                if beginning:
                    member.execute("COMMIT")
    assert rows_of_others(team) == rows_before


KEEP_INDEX: Final = "SELECT seen.keep_span_index(ROW('run-1', 'k77', 7, 1)::public.span_indices)"
REGISTER: Final = f"SELECT seen.register_trace({KNOWN_TRACE})"
LOCKED: Final[dict[str, list[Any]]] = {
    "an event": [
        event("spans_read"),
        append_sql("bob", "spans_read", '{"keys": ["k1"]}', trace="run-2"),
    ],
    "the index of a span": [KEEP_INDEX, KEEP_INDEX],
    "a setting": [
        "SELECT seen.set_setting(ROW('open_codes.tags:mast:mira', '[]')::public.settings)",
        "SELECT seen.set_setting(ROW('open_codes.tags:mast:bob', '[]')::public.settings)",
    ],
    "a trace": [REGISTER, REGISTER],
}


@pytest.mark.parametrize("name", LOCKED)
def test_open_transaction_of_an_annotator_blocks_no_one(team: Team, name: str) -> None:
    first, second = LOCKED[name]
    with team.sql(ME) as mira, team.sql("bob") as bob:
        mira.execute("BEGIN")
        assert reply(mira, first).startswith("SELECT 1")
        bob.execute("BEGIN")
        assert reply(bob, second).startswith("SELECT 1")
        bob.execute("ROLLBACK")
        assert mira.info.transaction_status == TransactionStatus.INTRANS
        check_others_can_work(team)
        with team.session("bob", SECOND) as session:
            session.note_span("k0", f"while {name} is held")
        mira.execute("ROLLBACK")
