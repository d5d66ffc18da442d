"""No file changes, unasked, what people have finished, decided or work by."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from mast_tui.exchange.jsonl import merge_content, read_jsonl, workspace_lines
from mast_tui.labels import Label, PassKind, Target, VerdictValue
from mast_tui.study import Study
from mast_tui.traces.library import samples_folder
from mast_tui.workspace import NewEvent, PersonChanges, Workspace
from mast_tui.workspace.events.types import (
    Fact,
    LabelAdded,
    LabelRemoved,
    PassFinished,
    PassStarted,
    PassUnfinished,
    SightSet,
    SpansRead,
    StudySet,
    VerdictSet,
)
from mast_tui.workspace.records import HistoryRelation, MergeRefused
from tests.cli.conftest import Cli
from tests.exchange.words import MAST, SLUGS

SAMPLES: Final = samples_folder() / "workspace.jsonl"
HEAD: Final = {"record": "workspace", "format": "mast-tui-workspace", "version": 3}

Line = dict[str, Any]


def lines_of(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def write(path: Path, lines: list[Line]) -> Path:
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
    """Each of mira's labels as its removal, each of her decisions as none."""
    found = []
    for number, line in enumerate(events_of(lines, "mira", "label_added", "decided"), first):
        one = line | {"id": f"forged-{number}", "seq": number}
        one.pop("chain", None)
        if line["kind"] == "label_added":
            one["kind"] = "label_removed"
        else:
            said = line["payload"]
            one["payload"] = {"item": said["item"], "before": said["after"], "after": None}
        found.append(one)
    return found


def event(name: str, seq: int, kind: str, payload: Line, trace: str | None = None) -> Line:
    """Return a forged event as a line of an export."""
    trace_fields = {} if trace is None else {"trace_id": trace, "taxonomy": MAST.ref, "pass": 1}
    return {
        "record": "event",
        "id": f"forged-{name}-{seq}",
        "annotator": name,
        "seq": seq,
        "at": "2026-11-22T10:00:00.000000Z",
        "kind": kind,
        **trace_fields,
        "action": f"forged-{seq}",
        "payload": payload,
    }


@pytest.fixture
def office() -> Iterator[Workspace]:
    """Mira, bob and their work: mira has finished t1, bob has begun it, both are blind."""
    with closing(Workspace.open(":memory:")) as workspace:
        for name in ("mira", "bob"):
            workspace.append([NewEvent(name, None, None, None, SightSet(None, True))])
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


def refused(workspace: Workspace, path: Path, **options: Any) -> dict[str, PersonChanges]:
    """By name, why a file is refused; and nothing of it was written."""
    before = text(workspace)
    with pytest.raises(MergeRefused) as error:
        merge_content(read_jsonl(path), workspace, **options)
    assert text(workspace) == before
    return {changes.annotator: changes for changes in error.value.people}


# What was seen


def test_labels_and_decisions_are_not_erased_by_a_file(cli: Cli, tmp_path: Path) -> None:
    assert cli("import", SAMPLES, "--format", "jsonl").code == 0
    file = write(tmp_path / "forged.jsonl", [HEAD, *forged(lines_of(SAMPLES))])
    cli("export", "--format", "jsonl", "-o", "before.jsonl")
    done = cli("import", file, "--format", "jsonl")
    assert (done.code, done.out) == (1, "")
    assert (
        "forged.jsonl was edited, or would replace work that is here: "
        "mira: 69 labels removed, 14 finished passes changed, 42 decisions taken back. Nothing"
    ) in done.err
    assert "--replace mira" in done.err
    told = cli("import", file, "--format", "jsonl", "--json")
    assert (told.code, told.json["written"]) == (1, False)
    assert [problem["place"] for problem in told.json["problems"]] == ["mira"]
    (mira,) = told.json["people"]
    assert (mira["labels_removed"], mira["decisions_taken_back"]) == (69, 42)
    assert (mira["history"], mira["refused"], mira["replaced"]) == ("apart", True, False)
    cli("export", "--format", "jsonl", "-o", "after.jsonl")
    assert (tmp_path / "after.jsonl").read_bytes() == (tmp_path / "before.jsonl").read_bytes()


def test_of_several_files_none_is_taken_where_one_is_refused(cli: Cli, tmp_path: Path) -> None:
    cli("import", SAMPLES, "--format", "jsonl")
    bad = write(tmp_path / "bad.jsonl", [HEAD, *forged(lines_of(SAMPLES))])
    start = event("zoe", 1, "pass_started", {"kind": "blind"}, "t9")
    good = write(tmp_path / "good.jsonl", [HEAD, start])
    done = cli("import", good, bad, "--format", "jsonl", "--allow-new", "--json")
    assert (done.code, [p["annotator"] for p in done.json["people"]]) == (1, ["mira"])
    assert "zoe" not in cli("export", "--format", "jsonl", "-o", "x.jsonl").out
    assert "zoe" not in (tmp_path / "x.jsonl").read_text("utf-8")
    done = cli("import", good, "--format", "jsonl", "--allow-new")
    assert (
        "1 new event. The file contains 0 labels and 0 verdicts by zoe on 1 trace (mast@3)"
        in done.out
    )
    assert "zoe: 1 pass begun" in done.out


@pytest.mark.parametrize(
    ("name", "kind", "payload", "words"),
    [
        ("bob", "sight_set", {"before": True, "blind": False}, {"sight": False}),
        ("bob", "pass_finished", {"open_modes": "leave"}, {"passes_finished": 1}),
        ("mira", "pass_unfinished", {"was": {"open_modes": "leave"}}, {"passes_reopened": 1}),
        ("mira", "pass_withdrawn", {"kind": "blind"}, {"passes_reopened": 1}),
        ("mira", "pass_kind_set", {"before": "blind", "after": "assisted"}, {"passes_changed": 1}),
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
def test_nobodys_sight_or_finish_is_set_by_a_file(
    office: Workspace, tmp_path: Path, name: str, kind: str, payload: Line, words: Line
) -> None:
    trace = None if kind == "sight_set" else "t1"
    file = write(tmp_path / "x.jsonl", [HEAD, event(name, 10**5, kind, payload, trace)])
    people = refused(office, file)
    assert list(people) == [name]
    assert {field: getattr(people[name], field) for field in words} == words


@pytest.mark.parametrize("counter", [1, 2, 4, 10**5])
def test_no_counter_helps(office: Workspace, tmp_path: Path, counter: int) -> None:
    said = {"mode": SLUGS[3], "before": None, "after": "unsure"}
    one = event("mira", counter, "verdict_set", said, "t1")
    told = refused(office, write(tmp_path / "x.jsonl", [HEAD, one]))["mira"]
    assert (told.passes_changed, told.verdicts_added) == (1, 1)


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("pass_finished", {"open_modes": "leave"}),
        ("label_removed", {"label": {"id": "later", "mode": SLUGS[0], "target": {}}}),
        ("verdict_set", {"mode": SLUGS[0], "before": None, "after": None}),
    ],
)
def test_nothing_lies_in_wait_for_what_comes_later(
    office: Workspace, tmp_path: Path, kind: str, payload: Line
) -> None:
    """With a counter after all others it would undo what its owner does on another machine."""
    assert "mira" in refused(
        office, write(tmp_path / "x.jsonl", [HEAD, event("mira", 10**5, kind, payload, "t7")])
    )
    real = tmp_path / "real.jsonl"
    real.write_text(text(office), encoding="utf-8")
    both = [*lines_of(real), event("mira", 10**5, kind, payload, "t7")]
    assert "mira" in refused(office, write(tmp_path / "x.jsonl", both))


def test_a_second_look_is_not_begun_for_somebody_else(office: Workspace, tmp_path: Path) -> None:
    look = event("mira", 10**5, "pass_started", {"kind": "second_look"}, "t1") | {"pass": 2}
    assert refused(office, write(tmp_path / "x.jsonl", [HEAD, look]))["mira"].passes_added == 1


def test_nobody_takes_over_an_event_of_somebody_else(office: Workspace, tmp_path: Path) -> None:
    before = text(office)
    (finish,) = (one for one in office.events(annotator="mira") if one.kind == "pass_finished")
    theirs = event("bob", 4, "spans_read", {"keys": ["k1"]}, "t1") | {"id": finish.id}
    file = write(tmp_path / "x.jsonl", [HEAD, theirs])
    assert refused(office, file)["bob"].edited == 1
    merge_content(read_jsonl(file), office, replacing=["bob"])
    assert text(office) == before


# What is one's own


def test_a_longer_history_is_taken_and_told(office: Workspace) -> None:
    with closing(copy_of(office)) as laptop:
        add(laptop, "bob", LabelAdded(label("bob", 2)), LabelRemoved(label("bob")))
        add(laptop, "bob", PassFinished(read=2, spans=2))
        add(laptop, "bob", PassStarted(PassKind.BLIND), trace="t2")
        report = office.merge_events(laptop.events())
        (told,) = report.people
        assert (told.annotator, told.history, told.events) == ("bob", HistoryRelation.LONGER, 4)
        assert (told.labels_added, told.labels_removed) == (1, 1)
        assert (told.passes_added, told.passes_finished, told.refused) == (1, 1, False)
        assert text(office) == text(laptop)
        assert office.merge_events(laptop.events()).people == ()


def test_a_longer_history_may_not_reopen_what_is_finished(office: Workspace) -> None:
    with closing(copy_of(office)) as laptop:
        add(laptop, "mira", PassUnfinished(PassFinished(read=1, spans=2)))
        add(laptop, "mira", LabelRemoved(label("mira")), PassFinished(read=2, spans=2))
        with pytest.raises(MergeRefused):
            office.merge_events(laptop.events())
        report = office.merge_events(laptop.events(), replacing=["mira"])
        assert (report.people[0].labels_removed, report.people[0].replaced) == (1, True)
        assert text(office) == text(laptop)


def test_two_branches_that_add_are_taken_with_a_word(office: Workspace) -> None:
    with closing(copy_of(office)) as laptop:
        add(laptop, "bob", LabelAdded(label("bob", 2)), PassFinished())
        add(office, "bob", SpansRead(("k1",)), PassStarted(PassKind.BLIND), trace="t2")
        report = office.merge_events(laptop.events())
        (told,) = report.people
        assert (told.history, told.labels_added, told.passes_joined) == (
            HistoryRelation.FORKED,
            1,
            1,
        )
        laptop.merge_events(office.events())
        assert text(office) == text(laptop)
        assert office.edited_histories() == ()
        add(laptop, "bob", SpansRead(("k2",)), trace="t2")
        assert office.merge_events(laptop.events()).people[0].history is HistoryRelation.LONGER
        assert text(office) == text(laptop)
        assert office.edited_histories() == ()


def test_a_branch_that_takes_away_is_refused(office: Workspace) -> None:
    with closing(copy_of(office)) as laptop:
        add(laptop, "bob", LabelRemoved(label("bob")))
        add(office, "bob", VerdictSet(SLUGS[4], None, VerdictValue.UNSURE))
        with pytest.raises(MergeRefused):
            office.merge_events(laptop.events())
        office.merge_events(laptop.events(), replacing=["bob"])
        assert office.labels(annotator="bob") == ()
        assert len(office.verdicts(annotator="bob")) == 1


def test_who_began_on_two_machines_brings_both_together(office: Workspace, tmp_path: Path) -> None:
    begun = event("bob", 1, "pass_started", {"kind": "blind"}, "t5")
    added = event("bob", 2, "label_added", {"label": {"id": "n", "mode": SLUGS[0]}}, "t1")
    added["payload"]["label"]["target"] = {}
    report = merge_content(read_jsonl(write(tmp_path / "x.jsonl", [HEAD, begun, added])), office)
    (told,) = report.people
    assert (told.history, told.passes_added, told.passes_joined) == (HistoryRelation.APART, 1, 1)


# Chains

Edit = Callable[[list[Line]], None]


def say_otherwise(lines: list[Line]) -> None:
    events_of(lines, "bob", "label_added")[0]["payload"]["label"]["note"] = "other"


def say_later(lines: list[Line]) -> None:
    events_of(lines, "bob", "label_added")[0]["at"] = "2030-01-01T00:00:00.000000Z"


def leave_out(lines: list[Line]) -> None:
    lines.remove(events_of(lines, "bob", "pass_started")[0])


def swap(lines: list[Line]) -> None:
    first, second = events_of(lines, "bob")[:2]
    first["seq"], second["seq"] = second["seq"], first["seq"]


def say_twice(lines: list[Line]) -> None:
    one = events_of(lines, "bob", "label_added")[0]
    lines.append(json.loads(json.dumps(one).replace('"bob-1"', '"bob-9"')))


def put_in(lines: list[Line]) -> None:
    one = events_of(lines, "bob", "label_added")[0]
    lines.append(one | {"id": "another", "chain": "0" * 32})


@pytest.mark.parametrize("edit", [say_otherwise, say_later, leave_out, swap, say_twice, put_in])
@pytest.mark.parametrize("known", [True, False])
def test_an_edited_history_is_refused(
    office: Workspace, tmp_path: Path, edit: Edit, known: bool
) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(text(office), encoding="utf-8")
    lines = lines_of(file)
    edit(lines)
    write(file, lines)
    with closing(Workspace.open(":memory:")) as fresh:
        place = office if known else fresh
        people = refused(place, file)
        assert list(people) == ["bob"]
        assert people["bob"].broken is not None
        merge_content(read_jsonl(file), place, replacing=["bob"])
        assert place.edited_histories() == ()


def test_an_edited_event_is_told_also_where_its_chain_was_made_anew(
    office: Workspace, tmp_path: Path
) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(text(office), encoding="utf-8")
    lines = lines_of(file)
    say_otherwise(lines)
    for line in events_of(lines):
        line.pop("chain", None)
    write(file, lines)
    told = refused(office, file)["bob"]
    assert (told.edited, told.broken, told.labels_changed) == (1, None, 0)
    merge_content(read_jsonl(file), office, replacing=["bob"])
    assert [one.note for one in office.labels(annotator="bob")] == ["other"]
    assert office.edited_histories() == ()


def test_what_was_edited_in_the_file_of_a_workspace_is_told(cli: Cli, tmp_path: Path) -> None:
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
    done = cli("import", "x.jsonl", "--format", "jsonl", "--workspace", "other.db")
    assert done.code == 1
    assert "bob: the history in the file was edited at or before step 2" in done.err


# Who may say so


@pytest.fixture
def studied(office: Workspace, tmp_path: Path) -> Path:
    """The office with a study that carol has set up, as a file."""
    study = Study(MAST.ref, ("mira", "bob"))
    office.append([NewEvent("carol", None, MAST.ref, None, StudySet(None, study))])
    path = tmp_path / "office.jsonl"
    path.write_text(text(office), encoding="utf-8")
    return path


def test_under_a_study_its_lead_alone_lets_a_file_replace(
    cli: Cli, tmp_path: Path, studied: Path
) -> None:
    cli("import", studied, "--format", "jsonl")
    reopen = event("mira", 10**5, "pass_unfinished", {"was": {"open_modes": "leave"}}, "t1")
    file = write(tmp_path / "x.jsonl", [HEAD, reopen])
    asked = ("import", file, "--format", "jsonl", "--replace", "mira")
    for who in ((), ("--annotator", "bob"), ("--annotator", "mira")):
        done = cli(*asked, *who)
        assert done.code == 1
        assert "only carol, who set it up, may say --replace" in done.err
        assert ("--annotator carol" if not who else f"you are {who[1]} here") in done.err
    other = ("import", file, "--format", "jsonl", "--replace", "bob", "--annotator", "carol")
    assert cli(*other).code == 1
    done = cli(*asked, "--annotator", "carol", "--json")
    assert (done.code, done.json["people"][0]["passes_reopened"]) == (0, 1)
    assert done.json["people"][0]["replaced"] is True
    assert any("replaced as asked: mira: 1 finished pass reopened" in n for n in done.json["notes"])
    with closing(sqlite3.connect(tmp_path / ".mast-tui" / "workspace.db")) as raw:
        rows = raw.execute("SELECT value FROM settings WHERE key LIKE 'replaced:%'").fetchall()
    (kept,) = (json.loads(value) for (value,) in rows)
    assert (kept["by"], kept["file"]) == ("carol", str(file))
    assert (kept["changes"]["annotator"], kept["changes"]["passes_reopened"]) == ("mira", 1)


def test_without_a_study_whoever_imports_may_say_so(
    cli: Cli, tmp_path: Path, office: Workspace
) -> None:
    (tmp_path / "office.jsonl").write_text(text(office), encoding="utf-8")
    cli("import", "office.jsonl", "--format", "jsonl")
    reopen = event("mira", 10**5, "pass_unfinished", {"was": {"open_modes": "leave"}}, "t1")
    file = write(tmp_path / "x.jsonl", [HEAD, reopen])
    assert cli("import", file, "--format", "jsonl").code == 1
    assert cli("import", file, "--format", "jsonl", "--replace", "mira").code == 0
    assert cli("import", file, "--format", "csv-long", "--replace", "mira").code == 2


# Other formats


def test_what_joins_anothers_work_by_another_format_is_told(cli: Cli, tmp_path: Path) -> None:
    head = "trace_id,annotator,mode,value,span_first\n"
    (tmp_path / "a.csv").write_text(f"{head}t,bob,1.3,present,k1\n")
    first = cli("import", "a.csv", "--format", "csv-long", "--json").json["people"]
    assert [(one["annotator"], one["history"]) for one in first] == [("bob", "new")]
    rows = "t,bob,1.3,present,k2\nt,bob,1.1,absent,\nt,bob,,finished,\nu,bob,1.1,present,k1\n"
    (tmp_path / "b.csv").write_text(head + rows)
    done = cli("import", "b.csv", "--format", "csv-long", "--allow-new")
    assert (
        "bob: 2 labels added, 1 verdict added, 1 pass begun, 1 open pass added to, 1 pass finished"
        in done.out
    )
    second_document = cli("import", "b.csv", "--format", "csv-long", "--json").json
    assert (second_document["people"], second_document["events"]["new"]) == ([], 0)


# Anything at all


def frozen_state(
    workspace: Workspace,
) -> tuple[
    dict[Any, Any], set[tuple[str, str]], dict[Any, Any], dict[str, bool], set[tuple[str, str]]
]:
    """All that no file may change: finished passes with what is in them, decisions, sight.

    The last are the decisions in force, whoever made them.
    """
    finished = {
        (labelling.annotator, labelling.trace_id, labelling.number): (
            labelling.finished_at,
            labelling.kind,
            labelling.judge_seen,
        )
        for labelling in workspace.passes()
        if labelling.finished and not labelling.annotator.startswith("judge:")
    }
    return (
        finished,
        {
            (type(one).__name__, repr(one))
            for found in (workspace.labels, workspace.verdicts, workspace.reviews)
            for one in found(pass_number=None)
            if (one.annotator, one.trace_id, one.pass_number) in finished
        },
        {
            (trace, one.item): one
            for trace, made in workspace.all_decisions(MAST.ref, annotator="mira").items()
            for one in made
        },
        {info.name: bool(info.blind) for info in workspace.annotators()},
        {
            (trace, repr(decision))
            for trace, decisions in workspace.all_decisions(MAST.ref).items()
            for decision in decisions
        },
    )


def few_traces(lines: list[Line]) -> list[Line]:
    """What the people of the samples did on some traces, counted anew."""
    traces = {line["trace_id"] for line in events_of(lines, "mira", "decided")}
    chosen = sorted(traces)[:4]
    found = [HEAD]
    for name in ("mira", "tomas"):
        own = [line for line in events_of(lines, name) if line.get("trace_id") in chosen]
        for number, line in enumerate(own, 1):
            line.pop("chain", None)  # it is that of all events, of which these are some
            found.append(line | {"seq": number})
    return found


def test_no_forged_file_changes_what_is_frozen(tmp_path: Path) -> None:
    """60 files: real events of several people with fields mixed anew, some of each."""
    chance = random.Random(20261122)
    lines = few_traces(lines_of(SAMPLES))
    people = events_of(lines)
    kinds = [
        ("pass_unfinished", {"was": {"open_modes": "leave"}}),
        ("pass_finished", {"open_modes": "leave", "at": "2020-01-01T00:00:00Z"}),
        ("pass_withdrawn", {"kind": "blind"}),
        ("pass_started", {"kind": "assisted"}),
        ("pass_kind_set", {"before": "blind", "after": "assisted"}),
        ("judged", {"looks_at": [SLUGS[0]], "absent": [SLUGS[0]]}),
        ("suggestions_seen", {}),
    ]

    def forge(number: int) -> Line:
        """Return a random event of a person with some fields changed."""
        line: Line = json.loads(json.dumps(chance.choice(people)))
        line["id"] = f"forged-{number}" if chance.random() < 0.9 else line["id"]
        line["seq"] = chance.choice([1, line["seq"], 10**5 + number])
        line["annotator"] = chance.choice(["mira", "tomas", "zoe"])
        other_line = chance.choice(people)
        if chance.random() < 0.5 and "trace_id" in line and "trace_id" in other_line:
            line["trace_id"] = other_line["trace_id"]
        if chance.random() < 0.2:
            line["kind"], line["payload"] = chance.choice(kinds)
        elif line["kind"] == "label_added":
            line["kind"] = chance.choice(["label_added", "label_removed"])
            line["payload"]["label"]["note"] = "forged"
        elif line["kind"] == "decided" and chance.random() < 0.5:
            line["payload"]["after"] = None
        elif line["kind"] == "decided":
            line["payload"]["after"]["decided_by"] = line["annotator"]
            line["payload"]["after"]["decided_at"] = chance.choice(["2020-01-01", "2030-01-01"])
        elif line["kind"] == "verdict_set":
            line["payload"]["after"] = chance.choice([None, "absent", "unsure"])
        if line["kind"] != "decided":
            line.setdefault("pass", 1)
        return line

    taken = 0
    with closing(Workspace.open(":memory:")) as workspace:
        merge_content(read_jsonl(write(tmp_path / "x.jsonl", lines)), workspace)
        before = frozen_state(workspace)
        assert min(len(before[0]), len(before[2])) > 5
        for number in range(60):
            body = [forge(1000 * number + n) for n in range(chance.randint(1, 6))]
            kept = lines if chance.random() < 0.3 else [HEAD]
            file = write(tmp_path / "x.jsonl", [*kept, *body])
            try:
                merge_content(read_jsonl(file), workspace)
                taken += 1
            except MergeRefused:
                pass
            now = frozen_state(workspace)
            assert now[0].items() >= before[0].items()
            assert now[1] >= before[1]
            assert now[2].items() >= before[2].items()
            assert now[3].items() >= before[3].items()
            assert now[4] >= before[4]
            assert {e for e in now[1] - before[1] if touches(e, before[0])} == set()
    assert 2 < taken < 58


def touches(said: tuple[str, str], finished: dict[Any, Any]) -> bool:
    """Return whether an event is on a pass that was finished."""
    return any(
        f"annotator='{name}'" in said[1]
        and f"trace_id='{trace}'" in said[1]
        and f"pass_number={number}" in said[1]
        for name, trace, number in finished
    )
