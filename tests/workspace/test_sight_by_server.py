"""Visibility on a server, tested with SQL and the passwords of members."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import psycopg
import pytest
from msgspec.structs import replace
from psycopg import sql
from sqlalchemy import func, select

from mast_tui.adjudication import Adjudication, GuidelineBook, take_on
from mast_tui.adjudication.conflicts import ABSENT_CHOICE
from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from mast_tui.errors import SessionError
from mast_tui.labels import AnnotatorKind, Finding, Label, PassKind, Target, VerdictValue
from mast_tui.session import Session, resolve_blind, working_person
from mast_tui.session.open_codes import OpenCode, toggle_tag
from mast_tui.study import Study
from mast_tui.team.command import password_line_of
from mast_tui.traces.model import Outcome
from mast_tui.workspace import (
    NewEvent,
    RunTrace,
    Workspace,
    WorkspaceError,
    schema,
    store_judgement,
)
from mast_tui.workspace.events.model import IdSource, NewChange
from mast_tui.workspace.events.types import (
    LabelAdded,
    PassFinished,
    PassStarted,
    StudySet,
    VerdictSet,
)
from mast_tui.workspace.records import Asked, SpanIndex, TeamRole, TraceRecord
from mast_tui.workspace.registers.tags import all_tags
from mast_tui.workspace.schema import STATE_TABLES, guidelines, passes, studies
from tests.postgres import ASKED, PostgresServer
from tests.workspace.build import MAST, MODES, TRACE, label, start_pass, trace_of

pytestmark = pytest.mark.slow

SECRET: Final = "bob said so"
ELSEWHERE: Final = "elsewhere"
"""An annotator whose labels the lead imports."""
JUDGE: Final = "judge:rules@1"
IMPORTED: Final = "00000000-0000-5000-8000-000000000000"
"""The id of an event that anyone can compute."""
TEAM: Final = {
    "mira": TeamRole.ANNOTATOR,
    "bob": TeamRole.ANNOTATOR,
    "noa": TeamRole.ANNOTATOR,
    "omar": TeamRole.ANNOTATOR,
    "carol": TeamRole.ADJUDICATOR,
    "lea": TeamRole.LEAD,
    "runner": TeamRole.JUDGE,
}
FIRST = trace_of("one", "two")
SECOND = trace_of("three", trace_id="run-2")
STUDY: Final = Study(MAST.ref, ("mira", "bob"), ("carol",), ((TRACE, "run-2"),))
TABLES: Final = [table.name for table in (schema.events, schema.span_indices, *schema.STATE_TABLES)]


class Team:
    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.database = server.new_database()
        with closing(Workspace.create_on_server(server.url(self.database))) as owner:
            owner.add_taxonomy(MAST)
            for trace in (FIRST, SECOND):
                Session.open(owner, trace, MAST, "bob", blind=True)
            owner.add_annotator(ELSEWHERE, AnnotatorKind.IMPORTED)
            owner.add_annotator(JUDGE, AnnotatorKind.JUDGE)
            for name, role in TEAM.items():
                owner.add_member(name, role)

    def url(self, name: str) -> str:
        return self.server.url(self.database, user=name)

    @contextmanager
    def workspace(self, name: str) -> Iterator[Workspace]:
        with closing(Workspace.open(self.url(name))) as opened:
            yield opened

    @contextmanager
    def session(self, name: str, trace: Any = FIRST) -> Iterator[Session]:
        """Open a session like the app."""
        with self.workspace(name) as opened:
            blind = resolve_blind(opened, name, taxonomy=MAST.ref)
            yield Session.open(opened, trace, MAST, name, blind=blind)

    @contextmanager
    def sql(self, name: str) -> Iterator[psycopg.Connection[Any]]:
        """Connect like ``psql``."""
        with psycopg.connect(self.url(name), autocommit=True) as connection:
            connection.prepare_threshold = None
            if TEAM.get(name) is TeamRole.ANNOTATOR:
                connection.execute("SET search_path = seen, public")
            reply(connection, "SELECT seen.check_writer()")  # loads the language
            yield connection


@pytest.fixture
def team(postgres: PostgresServer) -> Team:
    return Team(postgres)


@pytest.fixture(scope="module")
def at_work(postgres: PostgresServer) -> Team:
    """A team in which all but mira, noa and omar have worked; each of these is used by one test."""
    team = Team(postgres)
    with team.workspace("lea") as lea:
        lea.append([NewEvent("lea", None, MAST.ref, None, StudySet(None, STUDY))])
    everybody_works(team)
    return team


def work(
    team: Team, name: str, trace: Any = FIRST, *, finish: bool = True, note: str = SECRET
) -> None:
    """Label, answer, note, and finish."""
    with team.session(name, trace) as session:
        session.toggle_label(MODES[0], Target("k0", "k0"), suggestions_on_screen=False)
        (added,) = session.labels
        session.edit_label(added.id, note=note)
        session.set_verdict(MODES[1], VerdictValue.UNSURE)
        session.note_span("k0", note)
        if finish:
            session.finish(open_modes="absent")


def tag(workspace: Workspace, author: str) -> None:
    """Tag the labels of bob on both traces."""
    for trace_id in (TRACE, "run-2"):
        code = OpenCode("bob", trace_id, Target("k0", "k0", "a \0 quote"), "", is_label=True)
        toggle_tag(workspace, MAST.id, author, [code], f"{author}-tagged")


def of_second(workspace: Workspace, name: str) -> Label:
    return label(workspace, annotator=name, trace_id="run-2")


def everybody_works(team: Team) -> None:
    """Let all members do all that they can on both traces."""
    for trace in (FIRST, SECOND):
        work(team, "bob", trace)
    with team.workspace("runner") as runner:
        run_id = runner.start_run(JUDGE, MAST.ref, note=SECRET)
        for trace_id in (TRACE, "run-2"):
            store_judgement(
                runner,
                judge=JUDGE,
                taxonomy=MAST.ref,
                trace_id=trace_id,
                looks_at=MODES[:3],
                findings=[Finding(MODES[2], "k0", "k0", SECRET, 0.5)],
                run_id=run_id,
                trace=RunTrace(trace_id, 1),
            )
        runner.record_asked(Asked(run_id, TRACE, "key", SECRET, "stop", "form", 1, 1, usable=True))
        runner.finish_run(run_id)
    with team.session("bob") as session:
        session.reveal()
        session.reload()
        (suggestion,) = session.suggestions
        session.reject(suggestion.id, SECRET)
        tag(session.workspace, "bob")
    with team.workspace("lea") as lea:
        for trace_id in (TRACE, "run-2"):
            imported = label(lea, MODES[5], annotator=ELSEWHERE, trace_id=trace_id, note=SECRET)
            facts = (
                PassStarted(PassKind.BLIND),
                LabelAdded(imported),
                VerdictSet(MODES[0], None, VerdictValue.ABSENT),
                PassFinished(),
            )
            new = [NewEvent(ELSEWHERE, trace_id, MAST.ref, 1, fact) for fact in facts]
            if trace_id == TRACE:
                new[0] = new[0]._replace(id=IMPORTED)
            lea.append(new, action="import:csv-long:1")
    with team.workspace("carol") as carol:
        for trace_id in (TRACE, "run-2"):
            take_on(carol, MAST, "carol", [trace_id])
            work_ = Adjudication(carol, MAST, trace_id, "carol")
            for conflict in work_.gold.conflicts:
                work_.decide(conflict, ABSENT_CHOICE, reason=SECRET)
        tag(carol, "carol")
    with team.sql("postgres") as owner:
        owner.execute(f"ANALYZE {', '.join(f'public.{name}' for name in TABLES)}")


RELATIONS: Final = (
    "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c "
    "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'v', 'm', 'S', 'p') "
    "AND n.nspname NOT IN ('pg_toast', 'information_schema') AND c.relname <> 'pg_timezone_names' "
    "ORDER BY 1"
)
FUNCTIONS: Final = (
    "SELECT p.proname, p.pronargs FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace "
    "WHERE n.nspname = 'seen' AND p.prorettype <> 'trigger'::regtype ORDER BY 1"
)
ACTIVITY: Final = (
    "SELECT * FROM pg_stat_activity",
    "SELECT * FROM pg_locks",
    "SELECT pg_stat_get_tuples_inserted('public.labels'::regclass)",
    "SELECT pg_stat_get_live_tuples('public.events'::regclass)",
    "SELECT reltuples FROM pg_class",
    "SELECT relpages FROM pg_class",
    "SELECT * FROM pg_class",
    "SELECT pg_relation_size('public.events')",
    "SELECT pg_total_relation_size('public.events')",
    "SELECT pg_database_size(current_database())",
    "SELECT pg_current_wal_lsn()",
    "SELECT last_value FROM public.asked_id_seq",
    "SELECT nextval('public.asked_id_seq')",
    "SELECT pg_sequence_last_value('public.asked_id_seq'::regclass)",
    "SELECT * FROM pg_sequences",
    "SELECT * FROM pg_stats WHERE tablename = ANY('{events,labels,verdicts,passes}')",
    "SELECT * FROM pg_statistic",
    "SELECT * FROM team.revealed",
    "SET ROLE postgres",
    "SET SESSION AUTHORIZATION bob",
    "SET LOCAL row_security = off; SELECT * FROM public.annotators",
    "SET LOCAL row_security = off; SELECT * FROM seen.labels",
    "SET LOCAL search_path = public; SELECT * FROM labels",
)
APPEND: Final = (
    "SELECT seen.append_event(ROW(%(id)s, %(annotator)s, coalesce(%(seq)s::bigint, (SELECT seq + 1 "
    "FROM seen.last_event(NULL, NULL)), 1), '2026-11-28T00:00:00Z', %(kind)s, %(trace)s, 'mast@3', "
    "%(pass_number)s::bigint, %(payload)s, %(replaces)s, 'a', NULL, NULL, "
    "'0123456789abcdef0123456789abcdef')::public.events)"
)
"""A statement that appends an event; by default it has the next counter."""


def append_sql(
    name: str,
    kind: str,
    payload: str = "{}",
    *,
    trace: str = TRACE,
    pass_number: int | None = 1,
    seq: int | None = None,
    event_id: str | None = None,
    replaces: str = "[]",
) -> sql.Composed:
    values = {
        "id": event_id or new_event_id(),
        "annotator": name,
        "seq": seq,
        "kind": kind,
        "trace": trace,
        "pass_number": pass_number,
        "payload": payload,
        "replaces": replaces,
    }
    template = re.sub(r"%[(](\w+)[)]s", r"{\1}", APPEND)
    return sql.SQL(template).format(**{key: sql.Literal(value) for key, value in values.items()})


def new_event_id() -> str:
    return IdSource().new()


WRITES: Final = (
    "SELECT seen.append_event(ROW(%(id)s, %(me)s, 900, '2026-11-28T00:00:00Z', 'spans_read', "
    "'run-1', 'mast@3', 1, '{}', '[]', 'a', NULL, NULL, NULL)::public.events)",
    "SELECT seen.register_trace(ROW(%(me)s, 'x', NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, "
    "NULL, NULL, NULL, 'unknown', NULL, NULL, NULL, NULL)::public.traces)",
    "SELECT seen.keep_span_index(ROW('run-1', 'k0', 7, NULL)::public.span_indices)",
    "SELECT seen.set_setting(ROW('open_codes.tags:mast:' || %(me)s, '[]')::public.settings)",
    "SELECT public.take_turns(ARRAY[%(me)s])",
    "INSERT INTO seen.verdicts VALUES (%(me)s, 'run-1', 'mast@3', 1, 'a-mode', 'absent')",
    "UPDATE seen.labels SET note = 'x' WHERE annotator = 'bob' OR trace_id = 'run-2'",
    "INSERT INTO public.annotators VALUES ('bob', 'human')",
    "SELECT 1 FROM public.labels",
    "TRUNCATE public.labels",
)


def reply(connection: psycopg.Connection[Any], statement: Any, *values: Any) -> str:
    """Return the rows or the error of a statement."""
    try:
        cursor = connection.execute(statement, *values)
        rows = cursor.fetchall() if cursor.description is not None else []
        return f"{cursor.statusmessage}: {sorted(map(repr, rows))}"
    except psycopg.Error as error:
        diag = error.diag
        return f"{diag.sqlstate} {diag.message_primary} {diag.message_detail} {diag.message_hint}"


def all_answers(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """Return the answers of the server to many statements of a blind annotator."""
    relations = [row[0] for row in connection.execute(RELATIONS)]
    answers = {}
    for name in relations:
        rows = f"SELECT * FROM {name}"
        if name.startswith("pg_catalog."):  # they are long
            rows = f"SELECT md5(string_agg(row::text, ' ' ORDER BY row::text)) FROM {name} row"
        answers[name] = reply(connection, rows)
    for name, arguments in connection.execute(FUNCTIONS).fetchall():
        for keys in ((TRACE, MAST.ref), ("run-2", MAST.ref), ("bob", "decider")):
            values = [*keys, "mast@3", 1][:arguments]
            call = sql.SQL("SELECT * FROM seen.{}({})").format(
                sql.Identifier(name), sql.SQL(", ").join(map(sql.Literal, values))
            )
            answers[call.as_string(connection)] = reply(connection, call)
    for statement in ACTIVITY:
        answers[statement] = reply(connection, statement)
    for table in TABLES:
        conditions = (
            "annotator = 'bob'",
            "annotator = 'bob' AND taxonomy = 'mast@3' AND trace_id = 'run-1'",
        )
        if table == schema.span_indices.name:
            conditions = ("span_key = 'k0'", "trace_id = 'run-1' AND span_key = 'k0'")
        for condition in ("true", *conditions, "trace_id = 'run-2'"):
            for flags in ("", "ANALYZE, TIMING OFF, BUFFERS OFF, SUMMARY OFF, "):
                statement = f"EXPLAIN ({flags}VERBOSE) SELECT * FROM seen.{table} WHERE {condition}"
                answers[statement] = reply(connection, statement)
        statement = f"EXPLAIN SELECT * FROM public.{table}"
        answers[statement] = reply(connection, statement)
    for isolation in ("READ COMMITTED", "SERIALIZABLE"):
        for statement in WRITES:
            for me in ("mira", "bob"):
                connection.execute(f"BEGIN ISOLATION LEVEL {isolation}")
                answer = reply(connection, statement, {"id": IMPORTED, "me": me})
                answers[f"{isolation} {me} {statement}"] = answer
                connection.execute("ROLLBACK")
    return answers


def test_answers_to_a_blind_annotator_do_not_depend_on_others(team: Team) -> None:
    work(team, "mira", FIRST, finish=False)
    work(team, "mira", SECOND)  # finished but not revealed
    with team.sql("mira") as mira:
        old_answers = all_answers(mira)
        everybody_works(team)
        new_answers = all_answers(mira)
    assert old_answers.keys() == new_answers.keys()
    assert {query for query in new_answers if old_answers[query] != new_answers[query]} == set()
    # Her own rows are there, and the owner sees the others.
    assert "mira" in new_answers["seen.labels"]
    assert "-tagged" not in "".join(new_answers.values())
    with team.sql("postgres") as owner:
        assert "bob-tagged" in reply(owner, "SELECT * FROM public.settings")
        for table in ("labels", "span_notes", "decisions", "runs", "asked", "events"):
            assert SECRET in reply(owner, f"SELECT * FROM public.{table}")
    assert all(IMPORTED not in answer for answer in new_answers.values())


def test_revealed_trace_is_visible_and_its_labels_are_final(team: Team) -> None:
    everybody_works(team)
    work(team, "mira", SECOND)
    with team.session("mira", SECOND) as session:
        assert not session.others
        session.undo()  # the finish can still be taken back
        session.redo()
        session.reveal()
        session.reload()
        assert {entry.annotator for entry in session.others} == {"bob", ELSEWHERE}
        assert {entry.trace_id for entry in session.workspace.labels()} == {"run-2"}
        assert {JUDGE} == {entry.judge for entry in session.workspace.judgements()}
        assert session.workspace.all_decisions(MAST.ref).keys() == {"run-2"}
        assert tags_seen(session.workspace) == {("bob", "run-2"), ("carol", "run-2")}
        tag(session.workspace, "mira")
        assert ("mira", TRACE) in tags_seen(session.workspace)
        with pytest.raises(SessionError, match="the finish cannot be undone"):
            session.undo()
        (own_label,) = session.labels
        late = label(session.workspace, MODES[3], annotator="mira", trace_id="run-2")
        with pytest.raises(WorkspaceError, match="your work from before you saw"):
            session.workspace.append([NewEvent("mira", "run-2", MAST.ref, 1, LabelAdded(late))])
    with team.sql("mira") as mira:
        facts: dict[str, dict[str, Any]] = {
            "label_added": {"label": {"id": "new", "mode": "m", "target": {}}},
            "label_removed": {"label": {"id": own_label.id, "mode": "m", "target": {}}},
            "verdict_set": {"mode": "m", "before": None, "after": "absent"},
            "pass_unfinished": {"was": {"open_modes": "leave"}},
            "pass_withdrawn": {"kind": "blind"},
        }
        for kind, fact in facts.items():
            statement = append_sql("mira", kind, json.dumps(fact), trace="run-2")
            assert "your work from before you saw" in reply(mira, statement), kind
        # A second look cannot move them either, and it is no blind pass.
        blind = '{"kind": "blind"}'
        began = append_sql("mira", "pass_started", blind, trace="run-2", pass_number=2)
        assert "must be a second look" in reply(mira, began)
        mira.execute("BEGIN")
        second_look = '{"kind": "second_look"}'
        mira.execute(append_sql("mira", "pass_started", second_look, trace="run-2", pass_number=2))
        same_id = json.dumps({"label": {"id": own_label.id, "mode": "m", "target": {}}})
        moved = append_sql("mira", "label_added", same_id, trace="run-2", pass_number=2)
        assert "a label of another pass has this id" in reply(mira, moved)
        mira.execute("ROLLBACK")
    with team.session("mira", SECOND) as session:
        session.toggle_label(MODES[4], Target("k0", "k0"), suggestions_on_screen=False)
        assert [entry.kind for entry in session.workspace.passes(annotator="mira")] == [
            PassKind.BLIND,
            PassKind.SECOND_LOOK,
        ]
    with team.workspace("lea") as lea:
        assert len(tags_seen(lea)) == 6
        assert not lea.differences()
        assert not lea.edited_histories()


def tags_seen(workspace: Workspace) -> set[tuple[str, str]]:
    """Return the visible tags as pairs of annotator and trace."""
    return {(author, code[1]) for _, author, tags in all_tags(workspace) for code in tags}


def test_unfinished_pass_cannot_be_revealed(at_work: Team) -> None:
    work(at_work, "noa", finish=False)
    with at_work.sql("noa") as noa:
        for pass_number, refusal in (
            (1, "once you have finished"),
            (0, "a pass must start before"),
            (-1, "a pass must start before"),
            (2, "a pass must start before"),
            (None, "a pass must start before"),
        ):
            reveal = append_sql("noa", "revealed", '{"what": "all"}', pass_number=pass_number)
            assert refusal in reply(noa, reveal), pass_number
        assert "bob" not in reply(noa, "SELECT annotator FROM labels")


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(split_command(list(arguments)))
    out, err = capsys.readouterr()
    return code, out, err


def test_members_use_the_app_and_commands_within_their_rights(
    at_work: Team, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_as(name: str, *arguments: str) -> tuple[int, str, str]:
        return command(capsys, *arguments, "--workspace", at_work.url(name))

    work(at_work, "mira")
    with at_work.workspace("carol") as carol:
        book = GuidelineBook(carol, MAST, "carol")
        book.write(MODES[0], "what we agreed on", trace_id=TRACE, item=MODES[0])
    for name in ("lea", "carol", "runner"):
        with at_work.workspace(name) as opened:
            assert len(opened.labels(annotator="bob")) == 2
            assert not opened.edited_histories()
    agreement = json.loads(run_as("lea", "agree", "--rounds", "0", "--json")[1])
    assert agreement["traces"]["finished_by_all"] == 1
    for name, code in (("lea", 0), ("mira", 1)):
        for arguments in (
            ("export", "--format", "jsonl", "-o", str(tmp_path / f"{name}.jsonl")),
            ("workspace", "backup", str(tmp_path / f"{name}.db")),
            ("workspace", "check"),
        ):
            exit_code, _, error = run_as(name, *arguments)
            assert exit_code == code, error
            assert code == 0 or "only their own work" in error
    assert not (tmp_path / "mira.db").exists()
    status = json.loads(run_as("mira", "status", "--json")[1])
    assert status["annotators"]
    assert status["workspace"] == at_work.url("mira")
    file = tmp_path / "own.csv"
    assert (
        run_as("mira", "export", "--format", "csv-long", "--labels", "all", "-o", str(file))[0] == 0
    )
    assert "mira" in file.read_text()
    assert ",bob," not in file.read_text()
    with at_work.session("mira") as session:
        assert session.workspace.study(MAST.ref) == STUDY
        (guideline,) = session.workspace.guidelines(MAST.ref)
        assert (guideline.text, guideline.trace_id) == ("what we agreed on", None)
        with pytest.raises(WorkspaceError, match="an annotator cannot do that"):
            session.workspace.append(
                [NewEvent("mira", None, MAST.ref, None, StudySet(STUDY, None))]
            )
        with pytest.raises(WorkspaceError, match="annotators may not do that on a server"):
            session.workspace.start_run(JUDGE, MAST.ref)
        with pytest.raises(SessionError, match="hides judges' suggestions from you"):
            resolve_blind(session.workspace, "mira", assisted=True, taxonomy=MAST.ref)
        # Changes that waited for the server are sent.
        workspace = session.workspace
        workspace.open_outbox(tmp_path, "mira")
        assert workspace.outbox is not None
        workspace.read_ahead(everybody=True)
        with workspace.outbox.local_copy.reading() as copy:
            for table in STATE_TABLES:
                if table not in (studies, guidelines):
                    assert set(copy.execute(select(table.c.annotator)).scalars()) <= {"mira"}
            assert copy.execute(select(func.count()).select_from(passes)).scalar()
        facts = (PassStarted(PassKind.BLIND), LabelAdded(of_second(workspace, "mira")))
        new = [NewEvent("mira", "run-2", MAST.ref, 1, fact) for fact in facts]
        workspace.outbox.put(NewChange(new, workspace.new_id(), known_seq=0), workspace.new_id)
        assert workspace.send_waiting() == ()
        assert [label.trace_id for label in workspace.labels()] == [TRACE, "run-2"]
        # The owner of the password is the annotator, even if another one is named.
        assert working_person(session.workspace, "bob") == "mira"
    for names in ("shown", "hidden"):
        assert run_as("lea", "study", "set", "--names", names)[0] == 0
    with at_work.workspace("lea") as lea:
        assert lea.study_leads() == {MAST.ref: "lea"}
    assert "only the workspace's owner" in run_as("lea", "taxonomy", "migrate", "--undo")[2]


def test_assisted_annotator_sees_only_judges(at_work: Team) -> None:
    with at_work.workspace("postgres") as owner:
        assert owner.add_member("omar", TeamRole.ANNOTATOR, assisted=True) is None
    with at_work.session("omar") as session:
        assert len(session.suggestions) == 1
        session.accept(session.suggestions[0].id)
        assert {entry.annotator for entry in session.workspace.labels()} == {JUDGE, "omar"}
        assert {entry.annotator for entry in session.workspace.passes()} == {JUDGE, "omar"}
        assert not session.workspace.all_decisions(MAST.ref)
        assert [entry.judge for entry in session.workspace.runs()] == [JUDGE]


def test_span_indices_do_not_reveal_labels_of_others(team: Team) -> None:
    work(team, "bob")
    with team.session("bob") as session:
        session.toggle_label(MODES[2], Target("k1", "k1"), suggestions_on_screen=False)
    with team.session("mira") as session:
        assert session.workspace.span_indices() == {}
        session.toggle_label(MODES[0], Target("k0", "k0"), suggestions_on_screen=False)
        own_indices = {TRACE: {"k0": SpanIndex(0)}}
        assert session.workspace.span_indices() == own_indices
        session.finish(open_modes="absent")
        assert session.workspace.span_indices() == own_indices
        session.reveal()
        assert session.workspace.span_indices()[TRACE].keys() == {"k0", "k1"}


def test_member_gets_a_password_that_is_not_stored(
    postgres: PostgresServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner is no superuser, and the log of the server has all statements."""
    name = 'Zoë "Z" O\'Neil: %s'
    postgres.run("CREATE ROLE boss LOGIN CREATEDB CREATEROLE")
    postgres.run("ALTER ROLE boss SET log_statement = 'all'")
    url = postgres.url("of%20a%20team", user="boss")
    postgres.run("CREATE ROLE known LOGIN")
    team = ("team", "add", name, "--role", "annotator", "--workspace", url)
    assert command(capsys, "workspace", "create", url)[0] == 0
    code, line, message = command(capsys, *team)
    assert code == 0, message
    password = line.strip().rpartition(":")[2]
    assert len(password) >= 24
    assert "see who is connected" in message
    assert password not in message
    assert password not in postgres.log()
    role = '"' + name.replace('"', '""') + '"'
    postgres.run(f"GRANT {ASKED} TO {role}")  # the server asks for it
    address = url.replace("boss@", quote(name, safe="") + "@")
    assert address in message
    monkeypatch.setenv("PGPASSWORD", password)
    with closing(Workspace.open(address)) as workspace:
        assert workspace.member == (name, TeamRole.ANNOTATOR, False)
        workspace.register_trace(TraceRecord(TRACE))
        start_pass(workspace, label(workspace, annotator=name), annotator=name)
        with pytest.raises(WorkspaceError, match="only the user who created the workspace"):
            workspace.add_member("eve", TeamRole.LEAD)
        monkeypatch.setenv("PGPASSWORD", "wrong")
        with pytest.raises(WorkspaceError, match="refuses the user or the password"):
            Workspace.open(address)
        postgres.run(f"REVOKE {ASKED} FROM {role}")
        # A role can change, and a removed member sees nothing.
        lead = command(capsys, *team[:4], "lead", *team[5:], "--json")
        assert lead[0] == 0, lead
        assert "see who is connected" not in lead[2]
        assert json.loads(lead[1])["password_line"] is None
        listed = json.loads(command(capsys, "team", "list", *team[5:], "--json")[1])
        assert listed == {"members": [{"name": name, "role": "lead", "assisted": False}]}
        assert command(capsys, "team", "remove", name, *team[5:])[0] == 0
        with pytest.raises(WorkspaceError):
            workspace.labels()
    assert command(capsys, "team", "remove", name, *team[5:])[0] == 1
    # An existing role keeps its password and loses its rights.
    in_team = {"database": "of%20a%20team"}
    postgres.run("GRANT ALL ON ALL TABLES IN SCHEMA public TO known, PUBLIC", **in_team)
    code, line, message = command(capsys, *team[:2], "known", *team[3:])
    assert (code, line) == (0, "")
    assert "it stays valid" in message
    with closing(Workspace.open(url.replace("boss@", "known@"))) as workspace:
        assert not workspace.labels()
    with psycopg.connect(url.replace("boss@", "known@")) as connection:
        assert "permission denied" in reply(connection, "SELECT * FROM public.labels")
    # A superuser lets the server hide who is connected.
    address = postgres.url("of%20a%20team")
    assert command(capsys, *team[:2], "known", *team[3:-1], address)[0] == 0
    with closing(Workspace.open(address)) as workspace:
        assert not workspace.shows_who_is_connected()
    assert command(capsys, "team", "remove", "known", *team[5:])[1].endswith("elsewhere\n")
    for right in (
        "SUPERUSER",
        "BYPASSRLS",
        "CREATEROLE",
        "REPLICATION",
        "IN ROLE with_createrole",
        "IN ROLE boss",
        "IN ROLE pg_read_all_data",
        "NOLOGIN",
    ):
        strong = f"with_{right.replace(' ', '_').lower()}"
        login = "" if right == "NOLOGIN" else "LOGIN"
        postgres.run(f"CREATE ROLE {strong} {login} {right}")
        code, _, message = command(capsys, *team[:2], strong, *team[3:])
        assert code == 1, right
        assert "with more rights than a member, or without login" in message, right
    postgres.run("CREATE ROLE in_a_group LOGIN IN ROLE known")
    assert command(capsys, *team[:2], "in_a_group", *team[3:])[0] == 0
    postgres.run("GRANT SELECT ON public.labels TO known", **in_team)
    assert command(capsys, *team[:2], "in_a_group", *team[3:])[0] == 0  # a member already
    assert command(capsys, "team", "remove", "in_a_group", *team[5:])[0] == 0
    assert command(capsys, *team[:2], "in_a_group", *team[3:])[0] == 1
    for other in ("pg_x", "ä" * 40, "judge:x"):
        code, _, message = command(capsys, *team[:2], other, *team[3:])
        assert (code, "Traceback" in message) == (1, False), other
    with closing(Workspace.open(url)) as workspace:
        assert [entry.annotator for entry in workspace.passes()] == [name]
        assert workspace.team() == ()


def test_password_line_for_several_hosts_names_none() -> None:
    address = "postgresql://e%3Ave@a:5432,b:5433/labels"
    assert password_line_of(address, "e:ve", "secret") == r"*:*:labels:e\:ve:secret"


def test_file_has_no_team(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "w.db")
    Workspace.open(path).close()
    code, _, message = command(capsys, "team", "add", "mira", "--role", "lead", "--workspace", path)
    assert code == 1
    assert "is a file, which cannot have a team" in message


def test_only_the_lead_changes_traces_and_taxonomies(team: Team) -> None:
    other = replace(MAST, id="other")
    changed = TraceRecord(
        TRACE, FIRST.identity, Path("/elsewhere/run-1.json"), outcome=Outcome.SUCCEEDED, spans=99
    )
    new = TraceRecord("run-9", path=Path("/runs/run-9.json"), outcome=Outcome.FAILED)
    with team.workspace("lea") as lea:
        old = lea.traces()
        for name in ("mira", "carol", "runner"):
            with team.workspace(name) as member:
                assert member.register_trace(changed) == TRACE
                assert member.register_unknown_traces([changed, replace(new, trace_id=f"{name}-9")])
                with pytest.raises(WorkspaceError, match="is not in this workspace; ask the lead"):
                    member.add_taxonomy(other)
                member.add_taxonomy(replace(MAST, content_hash="another text"))
        assert [row for row in lea.traces() if row.trace_id in {TRACE, "run-2"}] == list(old)
        assert {record.trace_id for record in lea.traces()} >= {"mira-9", "carol-9", "runner-9"}
        assert lea.register_trace(changed) == TRACE
        assert lea.traces(TRACE)[0].outcome is Outcome.SUCCEEDED
        lea.add_taxonomy(other)
        assert {record.ref for record in lea.taxonomies()} == {MAST.ref, other.ref}


def test_new_workspace_has_the_taxonomy_of_the_program(postgres: PostgresServer) -> None:
    database = postgres.new_database()
    with closing(Workspace.create_on_server(postgres.url(database))) as owner:
        owner.add_member("mira", TeamRole.ANNOTATOR)
    with closing(Workspace.open(postgres.url(database, user="mira"))) as workspace:
        session = Session.open(workspace, FIRST, MAST, "mira", blind=True)
        session.toggle_label(MODES[0], Target("k0", "k0"), suggestions_on_screen=False)
        assert len(session.labels) == 1
