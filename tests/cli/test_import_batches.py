"""Imports in batches: how they continue, how they are undone, and misspelt names."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mast_tui.exchange import apply, merge_files, undo_import
from mast_tui.exchange.import_batch import lasting_ids, undone_id
from mast_tui.labels import PassKind, ReviewAnswer, VerdictValue
from mast_tui.workspace import NewEvent, Workspace
from mast_tui.workspace.events.types import (
    Fact,
    LabelChanged,
    PassFinished,
    PassStarted,
    PassUnfinished,
    PassWithdrawn,
    ReviewGiven,
    ReviewSet,
    VerdictSet,
)
from tests.cli.conftest import Cli, open_workspace
from tests.cli.test_import import CODES, TWO_PEOPLE, write_wide
from tests.exchange.strategies import MAST, SLUGS

BATCH_SIZE = 100
TRACES = 40
EVENTS_PER_TRACE = len(CODES) + 3
DATABASE = Path(".mast-tui/workspace.db")


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (apply, merge_files, undo_import):
        monkeypatch.setattr(module, "EVENTS_AT_ONCE", BATCH_SIZE)


def write_many(folder: Path) -> Path:
    cells = {(f"t{n}", "alice"): "1" + "0" * 13 for n in range(TRACES)}
    return write_wide(folder, cells, "many.csv")


def between_batches(monkeypatch: pytest.MonkeyPatch, function: Callable[[int], object]) -> None:
    """Call a function with the number of its call wherever others may write."""
    numbers = count(1)
    for module in (apply, merge_files, undo_import):
        monkeypatch.setattr(module, "let_others_write", lambda *_: function(next(numbers)))


def interrupt_at(monkeypatch: pytest.MonkeyPatch, *, call: int) -> None:
    """Interrupt the import at one of its calls."""

    def interrupt(number: int) -> None:
        if number == call:
            raise KeyboardInterrupt

    between_batches(monkeypatch, interrupt)


def verdict_rows(cli: Cli) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(cli.export("csv-wide"), newline="")))


def listed_imports(cli: Cli) -> list[dict[str, Any]]:
    imports: list[dict[str, Any]] = cli.json("import", "--list")["imports"]
    return imports


def event_count() -> int:
    with open_workspace() as workspace:
        return workspace.event_count()


def append(name: str, trace: str, *facts: Fact, number: int = 1) -> None:
    with open_workspace() as workspace:
        workspace.append([NewEvent(name, trace, MAST.ref, number, fact) for fact in facts])


def other_workspace(cli: Cli, file: Path) -> None:
    """Import a table into another workspace, and export that as ``all.jsonl``."""
    cli.ok("import", file, "--format", "csv-wide", "--workspace", "other.db")
    cli.ok("export", "--format", "jsonl", "-o", "all.jsonl", "--workspace", "other.db")


def test_other_processes_can_write_between_batches(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = [0]

    def write(call: int) -> None:
        with closing(sqlite3.connect(DATABASE, timeout=0)) as other, other:
            other.execute("INSERT INTO settings VALUES (?, '')", (f"call {call}",))
            counts.append(other.execute("SELECT count(*) FROM events").fetchone()[0])

    between_batches(monkeypatch, write)
    result = cli.ok("import", write_many(tmp_path), "--format", "csv-wide", "--json")
    counts.append(result.json["events"]["new"])
    assert counts[-1] == TRACES * (1 + len(CODES) + 1)
    assert max(later - earlier for earlier, later in pairwise(counts)) <= BATCH_SIZE


def test_a_broken_import_of_a_table_continues(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_many(tmp_path)
    interrupt_at(monkeypatch, call=4)
    assert cli("import", file, "--format", "csv-wide").code != 0
    (begun,) = listed_imports(cli)
    assert (begun["state"], begun["finished"]) == ("not finished", None)
    assert 0 < begun["traces"] < TRACES
    with open_workspace() as workspace:
        passes = workspace.passes()
        assert len(passes) == begun["traces"]
        assert all(labelling.finished for labelling in passes), "each imported trace is complete"
        assert len(workspace.verdicts()) == len(CODES) * begun["traces"]
    assert "not finished" in cli("import", "--list").out
    between_batches(monkeypatch, lambda _: None)
    assert cli.json("import", file, "--format", "csv-wide")["events"]["known"] == begun["events"]
    (final,) = listed_imports(cli)
    assert (final["id"], final["state"], final["traces"]) == (begun["id"], "finished", TRACES)
    assert len(verdict_rows(cli)) == TRACES


def test_a_broken_import_of_a_workspace_continues(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_workspace(cli, write_many(tmp_path))
    interrupt_at(monkeypatch, call=4)
    assert cli("import", "all.jsonl", "--format", "jsonl").code != 0
    (begun,) = listed_imports(cli)
    assert begun["state"] == "not finished"
    assert 0 < begun["events"] == event_count() < TRACES * EVENTS_PER_TRACE
    between_batches(monkeypatch, lambda _: None)
    events = cli.json("import", "all.jsonl", "--format", "jsonl")["events"]
    assert events["known"] == begun["events"]
    (final,) = listed_imports(cli)
    assert (final["state"], final["events"]) == ("finished", event_count())
    assert cli.export("jsonl") == Path("all.jsonl").read_text("utf-8")


def test_a_broken_import_of_reopened_passes_continues(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the interruption, some passes are finished that later lines of the file reopen."""
    other_workspace(cli, write_many(tmp_path))
    with closing(Workspace.open("other.db")) as other:
        for n in range(TRACES):
            facts = [event.fact for event in other.events(trace_id=f"t{n}")]
            (finished,) = (fact for fact in facts if isinstance(fact, PassFinished))
            fact = PassUnfinished(finished)
            other.append([NewEvent("alice", f"t{n}", MAST.ref, 1, fact)])
    cli.ok("export", "--format", "jsonl", "-o", "all.jsonl", "--workspace", "other.db")
    interrupt_at(monkeypatch, call=5)
    assert cli("import", "all.jsonl", "--format", "jsonl").code != 0
    with open_workspace() as workspace:
        assert any(labelling.finished for labelling in workspace.passes())
    between_batches(monkeypatch, lambda _: None)
    cli.ok("import", "all.jsonl", "--format", "jsonl")
    with open_workspace() as workspace:
        assert not any(labelling.finished for labelling in workspace.passes())


def test_a_refused_import_writes_nothing(cli: Cli, tmp_path: Path) -> None:
    last = write_wide(tmp_path, {(f"t{TRACES - 1}", "alice"): "0" * 14}, "last.csv")
    cli.ok("import", last, "--format", "csv-wide")
    backup = DATABASE.with_name("before.db")
    cli.ok("workspace", "backup", backup)
    arguments = ("import", write_many(tmp_path), "--format", "csv-wide", "--allow-new", "--json")
    (problem,) = cli.refused(*arguments).json["problems"]
    assert "has finished this trace here" in problem["reason"]
    with open_workspace() as current, closing(Workspace.open(backup)) as previous:
        assert current.traces() == previous.traces()
        assert list(current.events()) == list(previous.events())
        assert current.imports() == previous.imports()


def test_work_done_during_an_import_stays(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = f"t{TRACES - 1}"
    absent = VerdictSet(SLUGS[0], None, VerdictValue.ABSENT)
    # The same work on another trace is imported and undone meanwhile, so it counts as new.
    undone_work = ("alice", f"t{TRACES - 2}", MAST.ref)
    start = lasting_ids(*undone_work)("pass started")
    facts: dict[str, Fact] = {
        start: PassStarted(PassKind.BLIND),
        undone_id(start): PassWithdrawn(PassKind.BLIND),
    }

    def work(call: int) -> None:
        if call == 2:
            append("alice", trace, PassStarted(PassKind.BLIND), absent, PassFinished())
            with open_workspace() as workspace:
                workspace.append([NewEvent(*undone_work, 1, facts[id], id=id) for id in facts])

    between_batches(monkeypatch, work)
    arguments = ("import", write_many(tmp_path), "--format", "csv-wide", "--json")
    result = cli.refused(*arguments, says="the import is not finished")
    (problem,) = result.json["problems"]
    assert problem["place"] == f"alice on {trace}"
    assert listed_imports(cli)[0]["state"] == "not finished"
    with open_workspace() as workspace:
        assert len(workspace.verdicts(trace_id=trace)) == 1
        assert len(workspace.passes()) == TRACES


def test_an_import_is_undone_and_repeated(cli: Cli, tmp_path: Path) -> None:
    cli.ok("import", write_wide(tmp_path, TWO_PEOPLE), "--format", "csv-wide")
    original = verdict_rows(cli)
    cells = {("t2", "carol"): "1?" + "0" * 12, ("t4", "bob"): "1" * 14}
    second = write_wide(tmp_path, cells, "b.csv")
    arguments = ("import", second, "--format", "csv-wide", "--allow-new")
    cli.ok(*arguments)
    imported = verdict_rows(cli)
    assert imported != original
    events = event_count()
    undone = cli.json("import", "--undo")
    assert (undone["undone"], undone["import"]) == (True, listed_imports(cli)[1]["id"])
    assert verdict_rows(cli) == original
    assert event_count() > events, "nothing is erased"
    assert [entry["state"] for entry in listed_imports(cli)] == ["finished", "taken back"]
    with open_workspace() as workspace:
        assert "t4" in {record.trace_id for record in workspace.traces()}
        workspace.rebuild()
        assert workspace.edited_histories() == ()
    assert verdict_rows(cli) == original
    assert cli.json(*arguments)["events"]["known"] == 0
    assert verdict_rows(cli) == imported
    assert cli.json(*arguments)["events"]["new"] == 0
    assert len(listed_imports(cli)) == 3
    cli.ok("import", "--undo")
    assert verdict_rows(cli) == original


def test_undo_leaves_the_annotators_own_open_work(cli: Cli, tmp_path: Path) -> None:
    unsure = VerdictSet(SLUGS[0], None, VerdictValue.UNSURE)
    append("alice", "t1", PassStarted(PassKind.BLIND), unsure)
    cli.label("t1,alice,1.3,present", "t1,alice,,finished")
    cli.ok("import", "--undo")
    with open_workspace() as workspace:
        (left,) = workspace.passes()
        assert not left.finished
        assert workspace.labels() == ()
        assert [verdict.value for verdict in workspace.verdicts()] == [VerdictValue.UNSURE]
    # A trace without work is free again.
    file = write_wide(tmp_path, {("t9", "alice"): "0" * 14})
    cli.ok("import", file, "--format", "csv-wide", "--allow-new")
    cli.ok("import", "--undo")
    append("alice", "t9", PassStarted(PassKind.BLIND))
    with open_workspace() as workspace:
        (started,) = workspace.passes(trace_id="t9")
        assert (started.number, started.finished) == (1, False)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("label", "alice on t1: labels changed since"),
        ("pass", "alice on t1: the trace begun, the trace finished since"),
        ("review", "alice on t1: dora has reviewed 1 suggestion"),
    ],
)
def test_an_import_is_not_undone_once_work_depends_on_it(
    cli: Cli, tmp_path: Path, kind: str, reason: str
) -> None:
    cli.ok("import", write_wide(tmp_path, TWO_PEOPLE), "--format", "csv-wide")
    with open_workspace() as workspace:
        label = workspace.labels(annotator="alice", trace_id="t1")[0]
    if kind == "label":
        append("alice", "t1", LabelChanged(label, replace(label, note="on second thoughts")))
    elif kind == "pass":
        append("alice", "t1", PassStarted(PassKind.SECOND_LOOK, 1), PassFinished(), number=2)
    else:
        rejection = ReviewSet(label.id, None, ReviewGiven(ReviewAnswer.REJECT))
        append("dora", "t1", PassStarted(PassKind.ASSISTED), rejection)
    events = event_count()
    refused = cli.refused("import", "--undo", "--json", says=reason)
    assert (refused.json["undone"], refused.json["built_on"]) == (False, [reason])
    assert event_count() == events
    assert listed_imports(cli)[0]["state"] == "finished"


def test_an_import_with_a_change_that_was_undone_can_be_undone(cli: Cli, tmp_path: Path) -> None:
    cli.ok("import", write_wide(tmp_path, TWO_PEOPLE), "--format", "csv-wide")
    with open_workspace() as workspace:
        label = workspace.labels(annotator="alice", trace_id="t1")[0]
        changed = replace(label, note="on second thoughts")
        trace = ("alice", "t1", MAST.ref, 1)
        workspace.append([NewEvent(*trace, fact=LabelChanged(label, changed))], action="a")
        undoing = NewEvent(*trace, fact=LabelChanged(changed, label))
        workspace.append([undoing], action="b", undoes="a")
    cli.ok("import", "--undo")
    assert verdict_rows(cli) == []


def test_a_broken_undo_continues(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_many(tmp_path)
    cli.ok("import", file, "--format", "csv-wide")
    interrupt_at(monkeypatch, call=1)
    assert cli("import", "--undo").code != 0
    between_batches(monkeypatch, lambda _: None)
    (begun,) = listed_imports(cli)
    assert begun["state"] == "being taken back"
    undo = ("import", "--undo", begun["id"])
    cli.refused("import", file, "--format", "csv-wide", says=f"mast-tui {' '.join(undo)}")
    cli.ok(*undo)
    assert verdict_rows(cli) == []


def test_an_import_of_a_judges_labels_is_undone(cli: Cli) -> None:
    judge = "judge:m-1@0123abcd"
    rows = (f"t1,{judge},1.3,present", f"t1,{judge},1.4,absent")

    def counts() -> tuple[int, ...]:
        """Return the numbers of judgements, labels and verdicts, which a rebuild keeps."""
        with open_workspace() as workspace:
            state = workspace.judgements(), workspace.labels(), workspace.verdicts()
            workspace.rebuild()
            assert state == (workspace.judgements(), workspace.labels(), workspace.verdicts())
            return tuple(map(len, state))

    cli.label(*rows)
    assert counts() == (1, 1, 2)
    cli.ok("import", "--undo")
    assert counts() == (0, 0, 0)
    cli.label(*rows)
    assert counts() == (1, 1, 2)


def test_an_import_of_a_workspace_is_undone(cli: Cli, tmp_path: Path) -> None:
    cli.ok("import", write_wide(tmp_path, TWO_PEOPLE), "--format", "csv-wide")
    original = verdict_rows(cli)
    cells = {("t1", "dora"): "1" * 14, ("t9", "dora"): "0" * 14}
    other_workspace(cli, write_wide(tmp_path, cells, "other.csv"))
    # An annotator that the file does not register is unknown.
    lines = Path("all.jsonl").read_text().splitlines(keepends=True)
    cut = [line for line in lines if json.loads(line)["record"] != "annotator"]
    Path("cut.jsonl").write_text("".join(cut))
    refused = cli.refused("import", "cut.jsonl", "--format", "jsonl", "--json").json
    assert (refused["written"], refused["problems"][0]["place"]) == (False, "dora")
    assert len(listed_imports(cli)) == 1
    cli.ok("import", "all.jsonl", "--format", "jsonl")
    assert listed_imports(cli)[1]["annotators"] == ["dora"]
    assert verdict_rows(cli) != original
    cli.ok("import", "--undo", listed_imports(cli)[1]["id"][-8:])
    assert verdict_rows(cli) == original
    notes = cli.json("import", "all.jsonl", "--format", "jsonl")["notes"]
    assert any("were undone here" in note for note in notes)
    assert verdict_rows(cli) == original


def test_list_and_undo_accept_no_file(cli: Cli, tmp_path: Path) -> None:
    file = write_wide(tmp_path, TWO_PEOPLE)
    for options in ((), (file,), (file, "--list")):
        cli.refused("import", *options, code=2)
    cli.ok("import", file, "--format", "csv-wide")
    cli.refused("import", "--undo", "nonsense")
    cli.ok("import", "--undo")
    cli.refused("import", "--undo", says="this workspace has no import to undo")
    cli.refused("import", "--undo", listed_imports(cli)[0]["id"])


def test_unknown_traces_and_names_need_allow_new(cli: Cli, tmp_path: Path) -> None:
    existing = {("43-4cae5e3e", "alice"): "0" * 14, ("17-aaaa0000", "alice"): "1" * 14}
    cli.ok("import", write_wide(tmp_path, existing | TWO_PEOPLE), "--format", "csv-wide")
    events = event_count()
    wrong_id = write_wide(tmp_path, {("43-4cae5e3E", "alice"): "0" * 14}, "id.csv")
    messages = ("43-4cae5e3E: did you mean 43-4cae5e3e?", "--allow-new")
    refused = cli.refused("import", wrong_id, "--format", "csv-wide", "--json", says=messages)
    assert refused.json["written"] is False
    assert refused.json["problems"][0]["place"] == "43-4cae5e3E"
    assert event_count() == events
    cli.ok("import", wrong_id, "--format", "csv-wide", "--allow-new")
    assert event_count() > events

    cells = {("t1", "alicia"): "0" * 14, ("t3", "bob"): "0" * 14}
    wrong_name = ("import", write_wide(tmp_path, cells, "name.csv"), "--format", "csv-wide")
    cli.refused(*wrong_name, says="alicia: did you mean alice?")
    assert cli.json(*wrong_name, "--skip-errors")["annotators"] == ["bob"]
    cli.ok(*wrong_name, "--allow-new")
    # A name that the command line gives is not asked about.
    other = ("import", write_wide(tmp_path, {("t1", "x"): "0" * 14}), "--format", "csv-wide")
    cli.refused(*other)
    cli.ok(*other, "--annotator", "zoe")
