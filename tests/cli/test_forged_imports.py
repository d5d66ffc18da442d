"""Imports of files that change finished work, decisions or settings of annotators."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

import pytest

from mast_tui.exchange.jsonl import merge_content, read_jsonl, workspace_lines
from mast_tui.labels import Label, PassKind, Target, VerdictValue
from mast_tui.study import Study
from mast_tui.traces.library import samples_folder
from mast_tui.workspace import NewEvent, PersonChanges, Workspace
from mast_tui.workspace.events.types import (
    BlindWorkSet,
    Fact,
    LabelAdded,
    LabelRemoved,
    PassFinished,
    PassStarted,
    PassUnfinished,
    SpansRead,
    StudySet,
    VerdictSet,
)
from mast_tui.workspace.paths import find_workspace
from mast_tui.workspace.records import HistoryRelation, MergeRefused, MergeReport
from tests.cli.conftest import Cli
from tests.exchange.strategies import MAST, SLUGS

SAMPLES: Final = samples_folder() / "workspace.jsonl"
HEAD: Final = {"record": "workspace", "format": "mast-tui-workspace", "version": 3}

Line = dict[str, Any]


def lines_of(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def write_lines(path: Path, lines: list[Line]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def events_of(lines: list[Line], annotator: str = "", *kinds: str) -> list[Line]:
    """Return the events of an annotator and of some kinds; by default all events."""
    return [
        line
        for line in lines
        if line["record"] == "event"
        and line["annotator"] == (annotator or line["annotator"])
        and (not kinds or line["kind"] in kinds)
    ]


def forged(lines: list[Line], *, first: int = 100_000) -> list[Line]:
    """Return events that remove each label and each decision of mira."""
    events = []
    for number, line in enumerate(events_of(lines, "mira", "label_added", "decided"), first):
        forged_event = line | {"id": f"forged-{number}", "seq": number}
        forged_event.pop("chain", None)
        payload = line["payload"]
        if line["kind"] == "label_added":
            forged_event["kind"] = "label_removed"
        else:
            forged_event["payload"] = payload | {"before": payload["after"], "after": None}
        events.append(forged_event)
    return events


def event(name: str, seq: int, kind: str, payload: Line, trace: str | None = None) -> Line:
    """Return a forged event as a line of an export."""
    number = 2 if payload.get("kind") == "second_look" else 1
    trace_fields = {"trace_id": trace, "taxonomy": MAST.ref, "pass": number} if trace else {}
    return {
        "record": "event", "id": f"forged-{name}-{seq}", "annotator": name, "seq": seq,
        "at": "2026-11-22T10:00:00.000000Z", "kind": kind, "action": f"forged-{seq}",
        "payload": payload, **trace_fields,
    }  # fmt: skip


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    """A workspace in which mira has finished t1 and bob has begun it, both blind."""
    with closing(Workspace.open(":memory:")) as workspace:
        for name in ("mira", "bob"):
            workspace.append([NewEvent(name, None, None, None, BlindWorkSet(None, True))])
            add(workspace, name, PassStarted(PassKind.BLIND), LabelAdded(label(name)))
        add(workspace, "mira", PassFinished(read=1, spans=2))
        yield workspace


def label(name: str, number: int = 1) -> Label:
    target = Target(f"k{number}", f"k{number}")
    return Label(f"{name}-{number}", name, "t1", MAST.ref, SLUGS[number], target)


def add(workspace: Workspace, name: str, *facts: Fact, trace: str = "t1", number: int = 1) -> None:
    workspace.append([NewEvent(name, trace, MAST.ref, number, fact) for fact in facts])


def copy_of(workspace: Workspace) -> Workspace:
    other = Workspace.open(":memory:")
    other.merge_events(workspace.events())
    return other


def text(workspace: Workspace) -> str:
    return "".join(workspace_lines(workspace))


def refused_changes(workspace: Workspace, *lines: Line) -> dict[str, PersonChanges]:
    """Return the changes by annotator for which a file is refused, and check that none is made."""
    previous = text(workspace)
    with pytest.raises(MergeRefused) as error:
        merge(workspace, *lines)
    assert text(workspace) == previous
    return {changes.annotator: changes for changes in error.value.people}


def merge(workspace: Workspace, *lines: Line, replacing: tuple[str, ...] = ()) -> MergeReport:
    """Merge an export with these lines; the head is added where it is missing."""
    head = [] if lines[0]["record"] == "workspace" else [HEAD]
    content = "".join(json.dumps(line) + "\n" for line in [*head, *lines])
    with NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        file.write(content)
        file.flush()
        return merge_content(read_jsonl(Path(file.name)), workspace, replacing=replacing)


def exported_lines(workspace: Workspace) -> list[Line]:
    return [json.loads(line) for line in workspace_lines(workspace)]


def test_import_refuses_all_files_if_one_erases_labels_and_decisions(
    cli: Cli, tmp_path: Path
) -> None:
    cli.ok("import", SAMPLES, "--format", "jsonl")
    bad = write_lines(tmp_path / "bad.jsonl", [HEAD, *forged(lines_of(SAMPLES))])
    start = event("zoe", 1, "pass_started", {"kind": "blind"}, "t9")
    good = write_lines(tmp_path / "good.jsonl", [HEAD, start])
    cli.ok("export", "--format", "jsonl", "-o", "before.jsonl")
    message = (
        "bad.jsonl was edited, or would replace work in this workspace: mira: 69 labels "
        "removed, 14 finished traces changed, 42 decisions undone. Nothing"
    )
    cli.refused("import", bad, "--format", "jsonl", says=(message, "--replace mira"))
    files = ("import", good, bad, "--format", "jsonl", "--allow-new")
    report = cli.refused(*files, "--json").json
    assert report["written"] is False
    assert [problem["place"] for problem in report["problems"]] == ["mira"]
    (mira,) = report["people"]
    assert (mira["annotator"], mira["history"]) == ("mira", "apart")
    assert (mira["labels_removed"], mira["decisions_taken_back"]) == (69, 42)
    assert (mira["refused"], mira["replaced"]) == (True, False)
    cli.ok("export", "--format", "jsonl", "-o", "after.jsonl")
    assert (tmp_path / "after.jsonl").read_bytes() == (tmp_path / "before.jsonl").read_bytes()
    out = cli.ok("import", good, "--format", "jsonl", "--allow-new").out
    assert (
        "Imported as 1 event. The file contains 0 labels and 0 verdicts by zoe on 1 trace (mast@3)"
        in out
    )
    assert "zoe: 1 start on a trace" in out


@pytest.mark.parametrize(
    ("name", "kind", "payload", "changes"),
    [
        ("bob", "sight_set", {"before": True, "blind": False}, {"blind": False}),
        ("bob", "pass_finished", {"open_modes": "leave"}, {"passes_finished": 1}),
        ("mira", "pass_unfinished", {"was": {"open_modes": "leave"}}, {"passes_reopened": 1}),
        ("mira", "pass_withdrawn", {"kind": "blind"}, {"passes_reopened": 1}),
        ("mira", "pass_kind_set", {"before": "blind", "after": "assisted"}, {"passes_changed": 1}),
        ("mira", "pass_started", {"kind": "second_look"}, {"passes_added": 1}),
        ("mira", "suggestions_seen", {}, {"passes_changed": 1}),
        ("bob", "suggestions_seen", {}, {}),
        ("mira", "judged", {"looks_at": [], "absent": []}, {"passes_changed": 1}),
        ("mira", "span_note_set", {"key": "k1", "before": "", "after": "x"}, {"passes_changed": 1}),
        (
            "mira",
            "verdict_set",
            {"mode": SLUGS[3], "before": None, "after": "absent"},
            {"passes_changed": 1, "verdicts_added": 1},
        ),
    ],
)
def test_import_refuses_events_on_visibility_and_finished_passes(
    workspace: Workspace, name: str, kind: str, payload: Line, changes: Line
) -> None:
    trace = None if kind == "sight_set" else "t1"
    # The result is the same for counters before and after those of the annotator's events.
    for counter in (1, 2, 4, 10**5) if kind == "verdict_set" else (10**5,):
        people = refused_changes(workspace, event(name, counter, kind, payload, trace))
        assert list(people) == [name]
        assert {field: getattr(people[name], field) for field in changes} == changes


def test_import_refuses_events_that_undo_later_work(workspace: Workspace) -> None:
    """With the highest counter, these events would undo later work on another machine."""
    for kind, payload in (
        ("pass_finished", {"open_modes": "leave"}),
        ("label_removed", {"label": {"id": "later", "mode": SLUGS[0], "target": {}}}),
        ("verdict_set", {"mode": SLUGS[0], "before": None, "after": None}),
    ):
        later = event("mira", 10**5, kind, payload, "t7")
        assert "mira" in refused_changes(workspace, later)
        assert "mira" in refused_changes(workspace, *exported_lines(workspace), later)


def test_import_refuses_the_id_of_another_annotators_event(workspace: Workspace) -> None:
    original = text(workspace)
    (finish,) = (e for e in workspace.events(annotator="mira") if e.kind == "pass_finished")
    duplicate = event("bob", 4, "spans_read", {"keys": ["k1"]}, "t1") | {"id": finish.id}
    assert refused_changes(workspace, duplicate)["bob"].edited == 1
    merge(workspace, duplicate, replacing=("bob",))
    assert text(workspace) == original


def test_import_of_a_longer_history_reports_its_changes(workspace: Workspace) -> None:
    with closing(copy_of(workspace)) as laptop:
        add(laptop, "bob", LabelAdded(label("bob", 2)), LabelRemoved(label("bob")))
        add(laptop, "bob", PassFinished(read=2, spans=2))
        add(laptop, "bob", PassStarted(PassKind.BLIND), trace="t2")
        (bob,) = workspace.merge_events(laptop.events()).people
        assert (bob.annotator, bob.history, bob.events) == ("bob", HistoryRelation.LONGER, 4)
        assert (bob.labels_added, bob.labels_removed) == (1, 1)
        assert (bob.passes_added, bob.passes_finished, bob.refused) == (1, 1, False)
        assert text(workspace) == text(laptop)
        assert workspace.merge_events(laptop.events()).people == ()


def test_a_longer_history_that_reopens_a_finished_pass_is_refused(workspace: Workspace) -> None:
    with closing(copy_of(workspace)) as laptop:
        add(laptop, "mira", PassUnfinished(PassFinished(read=1, spans=2)))
        add(laptop, "mira", LabelRemoved(label("mira")), PassFinished(read=2, spans=2))
        with pytest.raises(MergeRefused):
            workspace.merge_events(laptop.events())
        report = workspace.merge_events(laptop.events(), replacing=["mira"])
        assert (report.people[0].labels_removed, report.people[0].replaced) == (1, True)
        assert text(workspace) == text(laptop)


def test_histories_that_forked_and_only_add_are_joined(workspace: Workspace) -> None:
    with closing(copy_of(workspace)) as laptop:
        add(laptop, "bob", LabelAdded(label("bob", 2)), PassFinished())
        add(workspace, "bob", SpansRead(("k1",)), PassStarted(PassKind.BLIND), trace="t2")
        (bob,) = workspace.merge_events(laptop.events()).people
        assert (bob.history, bob.labels_added) == (HistoryRelation.FORKED, 1)
        assert bob.passes_joined == 1
        laptop.merge_events(workspace.events())
        assert text(workspace) == text(laptop)
        assert workspace.edited_histories() == ()
        add(laptop, "bob", SpansRead(("k2",)), trace="t2")
        assert workspace.merge_events(laptop.events()).people[0].history is HistoryRelation.LONGER
        assert text(workspace) == text(laptop)
        assert workspace.edited_histories() == ()


def test_histories_that_forked_and_remove_are_refused(workspace: Workspace) -> None:
    with closing(copy_of(workspace)) as laptop:
        add(laptop, "bob", LabelRemoved(label("bob")))
        add(workspace, "bob", VerdictSet(SLUGS[4], None, VerdictValue.UNSURE))
        with pytest.raises(MergeRefused):
            workspace.merge_events(laptop.events())
        workspace.merge_events(laptop.events(), replacing=["bob"])
        assert workspace.labels(annotator="bob") == ()
        assert len(workspace.verdicts(annotator="bob")) == 1


def test_separate_histories_of_one_annotator_are_joined(workspace: Workspace) -> None:
    begun = event("bob", 1, "pass_started", {"kind": "blind"}, "t5")
    payload = {"label": {"id": "n", "mode": SLUGS[0], "target": {}}}
    (bob,) = merge(workspace, begun, event("bob", 2, "label_added", payload, "t1")).people
    assert (bob.history, bob.passes_added, bob.passes_joined) == (HistoryRelation.APART, 1, 1)


def edit_history(lines: list[Line], edit: str) -> None:
    """Edit the events of bob in the lines of an export, in one of several ways."""
    label_added = events_of(lines, "bob", "label_added")[0]
    match edit:
        case "note":
            label_added["payload"]["label"]["note"] = "other"
        case "time":
            label_added["at"] = "2030-01-01T00:00:00.000000Z"
        case "removed":
            lines.remove(events_of(lines, "bob", "pass_started")[0])
        case "swapped":
            first, second = events_of(lines, "bob")[:2]
            first["seq"], second["seq"] = second["seq"], first["seq"]
        case "doubled":
            lines.append(json.loads(json.dumps(label_added).replace('"bob-1"', '"bob-9"')))
        case "inserted":
            lines.append(label_added | {"id": "another", "chain": "0" * 32})


@pytest.mark.parametrize("edit", ["note", "time", "removed", "swapped", "doubled", "inserted"])
def test_import_refuses_an_edited_history(workspace: Workspace, edit: str) -> None:
    lines = exported_lines(workspace)
    edit_history(lines, edit)
    with closing(Workspace.open(":memory:")) as fresh:
        for target in (workspace, fresh):
            people = refused_changes(target, *lines)
            assert list(people) == ["bob"]
            assert people["bob"].broken is not None
            merge(target, *lines, replacing=("bob",))
            assert target.edited_histories() == ()


def test_import_refuses_an_edited_event_without_its_chain(workspace: Workspace) -> None:
    lines = exported_lines(workspace)
    edit_history(lines, "note")
    for line in events_of(lines):
        line.pop("chain", None)
    bob = refused_changes(workspace, *lines)["bob"]
    assert (bob.edited, bob.broken, bob.labels_changed) == (1, None, 0)
    merge(workspace, *lines, replacing=("bob",))
    assert [stored.note for stored in workspace.labels(annotator="bob")] == ["other"]
    assert workspace.edited_histories() == ()


def test_export_and_import_report_an_edited_workspace_file(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "w.db"
    export = ("export", "--format", "jsonl", "-o", "x.jsonl", "--workspace", path)
    with closing(Workspace.open(path)) as workspace:
        add(workspace, "bob", PassStarted(PassKind.BLIND), LabelAdded(label("bob")))
        add(workspace, "bob", PassFinished())
        assert workspace.edited_histories() == ()
    assert cli(*export).err == ""
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE events SET payload = replace(payload, 'bob-1', 'bob-2') WHERE seq = 2")
    with closing(Workspace.open(path)) as workspace:
        assert [(e.annotator, e.seq) for e in workspace.edited_histories()] == [("bob", 2)]
    assert "bob's events were edited outside of mast-tui, at or before step 2" in cli(*export).err
    cli.refused(
        "import",
        "x.jsonl",
        "--format",
        "jsonl",
        "--workspace",
        "other.db",
        says="bob: the history in the file was edited at or before step 2",
    )


def test_replace_is_for_the_lead_of_a_study_and_for_all_without_one(
    cli: Cli, tmp_path: Path, workspace: Workspace
) -> None:
    reopen = event("mira", 10**5, "pass_unfinished", {"was": {"open_modes": "leave"}}, "t1")
    file = write_lines(tmp_path / "x.jsonl", [HEAD, reopen])
    replace_mira = ("import", file, "--format", "jsonl", "--replace", "mira")
    (tmp_path / "office.jsonl").write_text(text(workspace), encoding="utf-8")
    without_study = ("--workspace", "plain.db")
    cli.ok("import", "office.jsonl", "--format", "jsonl", *without_study)
    cli.refused("import", file, "--format", "jsonl", *without_study)
    cli.ok(*replace_mira, *without_study)
    cli.refused("import", file, "--format", "csv-long", "--replace", "mira", code=2)
    study = StudySet(None, Study(MAST.ref, ("mira", "bob")))
    workspace.append([NewEvent("carol", None, MAST.ref, None, study)])
    (tmp_path / "study.jsonl").write_text(text(workspace), encoding="utf-8")
    cli.ok("import", "study.jsonl", "--format", "jsonl")
    for user in ((), ("--annotator", "bob"), ("--annotator", "mira")):
        name = f"your name here is {user[1]}" if user else "--annotator carol"
        messages = ("only carol, who set it up, may use --replace", name)
        cli.refused(*replace_mira, *user, says=messages)
    cli.refused(*replace_mira[:-1], "bob", "--annotator", "carol")
    other_study = StudySet(None, Study("other@1", ("mira", "bob")))
    workspace.append([NewEvent("dave", None, "other@1", None, other_study)])
    (tmp_path / "both.jsonl").write_text(text(workspace), encoding="utf-8")
    cli.ok("import", "both.jsonl", "--format", "jsonl")
    cli.refused(*replace_mira, "--annotator", "dave", says="only carol, who set it up, may use")
    report = cli.json(*replace_mira, "--annotator", "carol")
    (mira,) = report["people"]
    assert (mira["passes_reopened"], mira["replaced"]) == (1, True)
    assert any("as requested: mira: 1 finished trace reopened" in note for note in report["notes"])
    with closing(sqlite3.connect(find_workspace(None))) as raw:
        rows = raw.execute("SELECT value FROM settings WHERE key LIKE 'replaced:%'").fetchall()
    (record,) = (json.loads(value) for (value,) in rows)
    assert (record["by"], record["file"]) == ("carol", str(file))
    assert (record["changes"]["annotator"], record["changes"]["passes_reopened"]) == ("mira", 1)


def test_import_of_csv_reports_additions_to_existing_work(cli: Cli, tmp_path: Path) -> None:
    head = "trace_id,annotator,mode,value,span_first\n"
    (tmp_path / "a.csv").write_text(f"{head}t,bob,1.3,present,k1\n")
    first = cli.json("import", "a.csv", "--format", "csv-long")["people"]
    assert [(changes["annotator"], changes["history"]) for changes in first] == [("bob", "new")]
    rows = "t,bob,1.3,present,k2\nt,bob,1.1,absent,\nt,bob,,finished,\nu,bob,1.1,present,k1\n"
    (tmp_path / "b.csv").write_text(head + rows)
    result = cli("import", "b.csv", "--format", "csv-long", "--allow-new")
    assert (
        "bob: 2 labels added, 1 verdict added, 1 start on a trace, 1 open trace added to, 1 fin"
        in result.out
    )
    second_document = cli.json("import", "b.csv", "--format", "csv-long")
    assert (second_document["people"], second_document["events"]["new"]) == ([], 0)
