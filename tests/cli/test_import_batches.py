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
from tests.cli.conftest import Cli, opened
from tests.cli.test_import import CODES, TWO_PEOPLE, wide
from tests.exchange.words import MAST, SLUGS

AT_ONCE = 100
TRACES = 40
A_WORK = len(CODES) + 3
DATABASE = Path(".mast-tui/workspace.db")


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (apply, merge_files, undo_import):
        monkeypatch.setattr(module, "EVENTS_AT_ONCE", AT_ONCE)


def many(folder: Path) -> Path:
    cells = {(f"t{n}", "alice"): "1" + "0" * 13 for n in range(TRACES)}
    return wide(folder, cells, "many.csv")


def between(monkeypatch: pytest.MonkeyPatch, do: Callable[[int], object]) -> None:
    """Call a function with the number of its call wherever others may write."""
    numbers = count(1)
    for module in (apply, merge_files, undo_import):
        monkeypatch.setattr(module, "let_others_write", lambda *_: do(next(numbers)))


def break_off(monkeypatch: pytest.MonkeyPatch, *, at: int) -> None:
    """Interrupt the import at one of its calls."""

    def interrupt(call: int) -> None:
        if call == at:
            raise KeyboardInterrupt

    between(monkeypatch, interrupt)


def verdicts(cli: Cli) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(cli.export("csv-wide"), newline="")))


def listed(cli: Cli) -> list[dict[str, Any]]:
    imports: list[dict[str, Any]] = cli.json("import", "--list")["imports"]
    return imports


def event_count() -> int:
    with opened() as workspace:
        return workspace.event_count()


def append(name: str, trace: str, *facts: Fact, number: int = 1) -> None:
    """Append events of an annotator on a trace."""
    with opened() as workspace:
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

    between(monkeypatch, write)
    done = cli.ok("import", many(tmp_path), "--format", "csv-wide", "--json")
    counts.append(done.json["events"]["new"])
    assert counts[-1] == TRACES * (1 + len(CODES) + 1)
    assert max(b - a for a, b in pairwise(counts)) <= AT_ONCE


def test_a_broken_import_of_a_table_continues(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = many(tmp_path)
    break_off(monkeypatch, at=4)
    assert cli("import", file, "--format", "csv-wide").code != 0
    (half,) = listed(cli)
    assert (half["state"], half["finished"]) == ("not finished", None)
    assert 0 < half["traces"] < TRACES
    with opened() as workspace:
        passes = workspace.passes()
        assert len(passes) == half["traces"]
        assert all(labelling.finished for labelling in passes), "each imported trace is complete"
        assert len(workspace.verdicts()) == len(CODES) * half["traces"]
    assert "not finished" in cli("import", "--list").out
    between(monkeypatch, lambda _: None)
    assert cli.json("import", file, "--format", "csv-wide")["events"]["known"] == half["events"]
    (whole,) = listed(cli)
    assert (whole["id"], whole["state"], whole["traces"]) == (half["id"], "finished", TRACES)
    assert len(verdicts(cli)) == TRACES


def test_a_broken_import_of_a_workspace_continues(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_workspace(cli, many(tmp_path))
    break_off(monkeypatch, at=4)
    assert cli("import", "all.jsonl", "--format", "jsonl").code != 0
    (half,) = listed(cli)
    assert half["state"] == "not finished"
    assert 0 < half["events"] == event_count() < TRACES * A_WORK
    between(monkeypatch, lambda _: None)
    assert cli.json("import", "all.jsonl", "--format", "jsonl")["events"]["known"] == half["events"]
    (whole,) = listed(cli)
    assert (whole["state"], whole["events"]) == ("finished", event_count())
    assert cli.export("jsonl") == Path("all.jsonl").read_text("utf-8")


def test_a_broken_import_of_reopened_passes_continues(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the interruption, passes are finished that the rest of the file reopens."""
    other_workspace(cli, many(tmp_path))
    with closing(Workspace.open("other.db")) as other:
        for n in range(TRACES):
            facts = [event.fact for event in other.events(trace_id=f"t{n}")]
            (finished,) = (fact for fact in facts if isinstance(fact, PassFinished))
            fact = PassUnfinished(finished)
            other.append([NewEvent("alice", f"t{n}", MAST.ref, 1, fact)])
    cli.ok("export", "--format", "jsonl", "-o", "all.jsonl", "--workspace", "other.db")
    break_off(monkeypatch, at=5)
    assert cli("import", "all.jsonl", "--format", "jsonl").code != 0
    with opened() as workspace:
        assert any(labelling.finished for labelling in workspace.passes())
    between(monkeypatch, lambda _: None)
    cli.ok("import", "all.jsonl", "--format", "jsonl")
    with opened() as workspace:
        assert not any(labelling.finished for labelling in workspace.passes())


def test_a_refused_import_writes_nothing(cli: Cli, tmp_path: Path) -> None:
    last = wide(tmp_path, {(f"t{TRACES - 1}", "alice"): "0" * 14}, "last.csv")
    cli.ok("import", last, "--format", "csv-wide")
    before = DATABASE.with_name("before.db")
    cli.ok("workspace", "backup", before)
    arguments = ("import", many(tmp_path), "--format", "csv-wide", "--allow-new", "--json")
    (problem,) = cli.refused(*arguments).json["problems"]
    assert "has finished this trace here" in problem["reason"]
    with opened() as here, closing(Workspace.open(before)) as there:
        assert here.traces() == there.traces()
        assert list(here.events()) == list(there.events())
        assert here.imports() == there.imports()


def test_work_done_during_an_import_is_kept(
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
            with opened() as workspace:
                workspace.append([NewEvent(*undone_work, 1, facts[id], id=id) for id in facts])

    between(monkeypatch, work)
    arguments = ("import", many(tmp_path), "--format", "csv-wide", "--json")
    done = cli.refused(*arguments, says="the import is not finished")
    (problem,) = done.json["problems"]
    assert problem["place"] == f"alice on {trace}"
    assert listed(cli)[0]["state"] == "not finished"
    with opened() as workspace:
        assert len(workspace.verdicts(trace_id=trace)) == 1
        assert len(workspace.passes()) == TRACES


def test_an_import_is_undone_and_repeated(cli: Cli, tmp_path: Path) -> None:
    cli.ok("import", wide(tmp_path, TWO_PEOPLE), "--format", "csv-wide")
    before = verdicts(cli)
    second = wide(tmp_path, {("t2", "carol"): "1?" + "0" * 12, ("t4", "bob"): "1" * 14}, "b.csv")
    arguments = ("import", second, "--format", "csv-wide", "--allow-new")
    cli.ok(*arguments)
    after = verdicts(cli)
    assert after != before
    known = event_count()
    undone = cli.json("import", "--undo")
    assert (undone["undone"], undone["import"]) == (True, listed(cli)[1]["id"])
    assert verdicts(cli) == before
    assert event_count() > known, "nothing is erased"
    assert [one["state"] for one in listed(cli)] == ["finished", "taken back"]
    with opened() as workspace:
        assert "t4" in {record.trace_id for record in workspace.traces()}
        workspace.rebuild()
        assert workspace.edited_histories() == ()
    assert verdicts(cli) == before
    assert cli.json(*arguments)["events"]["known"] == 0
    assert verdicts(cli) == after
    assert cli.json(*arguments)["events"]["new"] == 0
    assert len(listed(cli)) == 3
    cli.ok("import", "--undo")
    assert verdicts(cli) == before


def test_undo_leaves_the_annotators_own_open_work(cli: Cli, tmp_path: Path) -> None:
    unsure = VerdictSet(SLUGS[0], None, VerdictValue.UNSURE)
    append("alice", "t1", PassStarted(PassKind.BLIND), unsure)
    cli.label("t1,alice,1.3,present", "t1,alice,,finished")
    cli.ok("import", "--undo")
    with opened() as workspace:
        (left,) = workspace.passes()
        assert not left.finished
        assert workspace.labels() == ()
        assert [verdict.value for verdict in workspace.verdicts()] == [VerdictValue.UNSURE]
    # A trace without work is free again.
    cli.ok(
        "import", wide(tmp_path, {("t9", "alice"): "0" * 14}), "--format", "csv-wide", "--allow-new"
    )
    cli.ok("import", "--undo")
    append("alice", "t9", PassStarted(PassKind.BLIND))
    with opened() as workspace:
        (own,) = workspace.passes(trace_id="t9")
        assert (own.number, own.finished) == (1, False)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("label", "alice on t1: labels changed since"),
        ("pass", "alice on t1: a pass started, a pass finished since"),
        ("review", "alice on t1: dora has reviewed suggestions of it (1)"),
    ],
)
def test_an_import_is_not_undone_once_work_depends_on_it(
    cli: Cli, tmp_path: Path, kind: str, reason: str
) -> None:
    cli.ok("import", wide(tmp_path, TWO_PEOPLE), "--format", "csv-wide")
    with opened() as workspace:
        label = workspace.labels(annotator="alice", trace_id="t1")[0]
    if kind == "label":
        append("alice", "t1", LabelChanged(label, replace(label, note="on second thoughts")))
    elif kind == "pass":
        append("alice", "t1", PassStarted(PassKind.SECOND_LOOK, 1), PassFinished(), number=2)
    else:
        rejection = ReviewSet(label.id, None, ReviewGiven(ReviewAnswer.REJECT))
        append("dora", "t1", PassStarted(PassKind.ASSISTED), rejection)
    before = event_count()
    refused = cli.refused("import", "--undo", "--json", says=reason)
    assert (refused.json["undone"], refused.json["built_on"]) == (False, [reason])
    assert event_count() == before
    assert listed(cli)[0]["state"] == "finished"


def test_an_import_with_a_change_that_was_undone_can_be_undone(cli: Cli, tmp_path: Path) -> None:
    cli.ok("import", wide(tmp_path, TWO_PEOPLE), "--format", "csv-wide")
    with opened() as workspace:
        label = workspace.labels(annotator="alice", trace_id="t1")[0]
        other = replace(label, note="on second thoughts")
        trace = ("alice", "t1", MAST.ref, 1)
        workspace.append([NewEvent(*trace, fact=LabelChanged(label, other))], action="a")
        back = NewEvent(*trace, fact=LabelChanged(other, label))
        workspace.append([back], action="b", undoes="a")
    cli.ok("import", "--undo")
    assert verdicts(cli) == []


def test_a_broken_undo_continues(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = many(tmp_path)
    cli.ok("import", file, "--format", "csv-wide")
    break_off(monkeypatch, at=1)
    assert cli("import", "--undo").code != 0
    between(monkeypatch, lambda _: None)
    (half,) = listed(cli)
    assert half["state"] == "being taken back"
    undo = ("import", "--undo", half["id"])
    cli.refused("import", file, "--format", "csv-wide", says=f"mast-tui {' '.join(undo)}")
    cli.ok(*undo)
    assert verdicts(cli) == []


def test_an_import_of_a_judges_labels_is_undone(cli: Cli) -> None:
    judge = "judge:m-1@0123abcd"
    rows = (f"t1,{judge},1.3,present", f"t1,{judge},1.4,absent")

    def counts() -> tuple[int, ...]:
        """Return the numbers of judgements, labels and verdicts, which a rebuild keeps."""
        with opened() as workspace:
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
    cli.ok("import", wide(tmp_path, TWO_PEOPLE), "--format", "csv-wide")
    before = verdicts(cli)
    cells = {("t1", "dora"): "1" * 14, ("t9", "dora"): "0" * 14}
    other_workspace(cli, wide(tmp_path, cells, "other.csv"))
    # An annotator that the file does not register is unknown.
    lines = Path("all.jsonl").read_text().splitlines(keepends=True)
    cut = [line for line in lines if json.loads(line)["record"] != "annotator"]
    Path("cut.jsonl").write_text("".join(cut))
    refused = cli.refused("import", "cut.jsonl", "--format", "jsonl", "--json").json
    assert (refused["written"], refused["problems"][0]["place"]) == (False, "dora")
    assert len(listed(cli)) == 1
    cli.ok("import", "all.jsonl", "--format", "jsonl")
    assert listed(cli)[1]["annotators"] == ["dora"]
    assert verdicts(cli) != before
    cli.ok("import", "--undo", listed(cli)[1]["id"][-8:])
    assert verdicts(cli) == before
    notes = cli.json("import", "all.jsonl", "--format", "jsonl")["notes"]
    assert any("were undone here" in note for note in notes)
    assert verdicts(cli) == before


def test_list_and_undo_go_without_a_file(cli: Cli, tmp_path: Path) -> None:
    file = wide(tmp_path, TWO_PEOPLE)
    for options in ((), (file,), (file, "--list")):
        cli.refused("import", *options, code=2)
    cli.ok("import", file, "--format", "csv-wide")
    cli.refused("import", "--undo", "nonsense")
    cli.ok("import", "--undo")
    cli.refused("import", "--undo", says="this workspace has no import to undo")
    cli.refused("import", "--undo", listed(cli)[0]["id"])


def test_unknown_traces_and_names_need_allow_new(cli: Cli, tmp_path: Path) -> None:
    known = {("43-4cae5e3e", "alice"): "0" * 14, ("17-aaaa0000", "alice"): "1" * 14}
    cli.ok("import", wide(tmp_path, known | TWO_PEOPLE), "--format", "csv-wide")
    before = event_count()
    wrong_id = wide(tmp_path, {("43-4cae5e3E", "alice"): "0" * 14}, "id.csv")
    says = ("43-4cae5e3E: did you mean 43-4cae5e3e?", "--allow-new")
    refused = cli.refused("import", wrong_id, "--format", "csv-wide", "--json", says=says)
    assert refused.json["written"] is False
    assert refused.json["problems"][0]["place"] == "43-4cae5e3E"
    assert event_count() == before
    cli.ok("import", wrong_id, "--format", "csv-wide", "--allow-new")
    assert event_count() > before

    cells = {("t1", "alicia"): "0" * 14, ("t3", "bob"): "0" * 14}
    wrong_name = ("import", wide(tmp_path, cells, "name.csv"), "--format", "csv-wide")
    cli.refused(*wrong_name, says="alicia: did you mean alice?")
    assert cli.json(*wrong_name, "--skip-errors")["annotators"] == ["bob"]
    cli.ok(*wrong_name, "--allow-new")
    # A name that the command line gives is not asked about.
    other = ("import", wide(tmp_path, {("t1", "x"): "0" * 14}), "--format", "csv-wide")
    cli.refused(*other)
    cli.ok(*other, "--annotator", "zoe")
