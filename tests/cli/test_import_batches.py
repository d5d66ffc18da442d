"""Imports as batches: written piece by piece, listed, taken back, held against known names."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mast_tui.exchange import apply, merge_files, undo_import
from mast_tui.labels import PassKind, ReviewAnswer, VerdictValue
from mast_tui.workspace import NewEvent, Workspace
from mast_tui.workspace.events.types import (
    Fact,
    LabelChanged,
    PassFinished,
    PassStarted,
    PassUnfinished,
    ReviewGiven,
    ReviewSet,
    VerdictSet,
)
from tests.cli.conftest import Cli
from tests.cli.test_labels_in_and_out import CODES, TWO_PEOPLE, wide
from tests.exchange.words import MAST, SLUGS
from tests.workspace.listening import Listening

AT_ONCE = 100
TRACES = 40
A_WORK = len(CODES) + 3
DATABASE = Path(".mast-tui/workspace.db")


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (apply, merge_files):
        monkeypatch.setattr(module, "EVENTS_AT_ONCE", AT_ONCE)


def many(folder: Path, name: str = "many.csv", annotator: str = "alice") -> Path:
    cells = {(f"t{n}", annotator): "1" + "0" * 13 for n in range(TRACES)}
    return wide(folder, cells, name)


def between(monkeypatch: pytest.MonkeyPatch, do: Callable[[int], object]) -> None:
    """Do something, told how often it was done before, wherever others may write."""
    calls = 0

    def called(*_: object) -> None:
        nonlocal calls
        calls += 1
        do(calls)

    for module in (apply, merge_files):
        monkeypatch.setattr(module, "let_others_write", called)


def break_off(monkeypatch: pytest.MonkeyPatch, *, at: int) -> None:
    """Interrupt the import at one of its calls."""

    def do(call: int) -> None:
        if call == at:
            raise KeyboardInterrupt

    between(monkeypatch, do)


def verdicts(cli: Cli) -> list[dict[str, str]]:
    assert cli("export", "--format", "csv-wide", "-o", "out.csv", "--force").code == 0
    with Path("out.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def listed(cli: Cli) -> list[dict[str, Any]]:
    done = cli("import", "--list", "--json")
    assert done.code == 0
    found: list[dict[str, Any]] = done.json["imports"]
    return found


def event_count() -> int:
    with closing(Workspace.open(DATABASE)) as workspace:
        return workspace.event_count()


# Batches


def test_others_can_write_between_batches(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = [0]

    def write(call: int) -> None:
        with closing(sqlite3.connect(DATABASE, timeout=0)) as other, other:
            other.execute("INSERT INTO settings VALUES (?, '')", (f"call {call}",))
            counts.append(other.execute("SELECT count(*) FROM events").fetchone()[0])

    between(monkeypatch, write)
    done = cli("import", many(tmp_path), "--format", "csv-wide", "--json")
    assert done.code == 0
    counts.append(done.json["events"]["new"])
    assert counts[-1] == TRACES * (1 + len(CODES) + 1)
    assert max(b - a for a, b in pairwise(counts)) <= AT_ONCE


def test_an_import_that_was_broken_off_goes_on(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = many(tmp_path)
    break_off(monkeypatch, at=4)
    assert cli("import", file, "--format", "csv-wide").code != 0
    (half,) = listed(cli)
    assert (half["state"], half["finished"]) == ("not finished", None)
    assert 0 < half["traces"] < TRACES
    with closing(Workspace.open(DATABASE)) as workspace:
        passes = workspace.passes()
        assert len(passes) == half["traces"]
        assert all(labelling.finished for labelling in passes), "what is there of a trace is whole"
        assert len(workspace.verdicts()) == len(CODES) * half["traces"]
    assert "not finished" in cli("import", "--list").out
    between(monkeypatch, lambda _: None)
    done = cli("import", file, "--format", "csv-wide", "--json")
    assert done.code == 0
    assert done.json["events"]["known"] == half["events"]
    (whole,) = listed(cli)
    assert (whole["id"], whole["state"], whole["traces"]) == (half["id"], "finished", TRACES)
    assert len(verdicts(cli)) == TRACES


def test_a_whole_workspace_that_was_broken_off_goes_on(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("import", many(tmp_path), "--format", "csv-wide", "--workspace", "other.db")
    cli("export", "--format", "jsonl", "-o", "all.jsonl", "--workspace", "other.db")
    break_off(monkeypatch, at=4)
    assert cli("import", "all.jsonl", "--format", "jsonl").code != 0
    (half,) = listed(cli)
    assert half["state"] == "not finished"
    assert 0 < half["events"] == event_count() < TRACES * A_WORK
    between(monkeypatch, lambda _: None)
    done = cli("import", "all.jsonl", "--format", "jsonl", "--json")
    assert done.code == 0
    assert done.json["events"]["known"] == half["events"]
    (whole,) = listed(cli)
    assert (whole["state"], whole["events"]) == ("finished", event_count())
    cli("export", "--format", "jsonl", "-o", "again.jsonl")
    assert Path("again.jsonl").read_bytes() == Path("all.jsonl").read_bytes()


def test_a_reopened_pass_does_not_keep_a_whole_workspace_from_going_on(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stood when the import was broken off is none of the person's last words."""
    cli("import", many(tmp_path), "--format", "csv-wide", "--workspace", "other.db")
    with closing(Workspace.open("other.db")) as other:
        for n in range(TRACES):
            where = ("alice", f"t{n}", MAST.ref, 1)
            (finished,) = (
                event.fact
                for event in other.events(trace_id=f"t{n}")
                if isinstance(event.fact, PassFinished)
            )
            other.append([NewEvent(*where, fact=PassUnfinished(finished))])
    cli("export", "--format", "jsonl", "-o", "all.jsonl", "--workspace", "other.db")
    break_off(monkeypatch, at=5)
    assert cli("import", "all.jsonl", "--format", "jsonl").code != 0
    with closing(Workspace.open(DATABASE)) as workspace:
        assert any(labelling.finished for labelling in workspace.passes())
    between(monkeypatch, lambda _: None)
    assert cli("import", "all.jsonl", "--format", "jsonl").code == 0
    with closing(Workspace.open(DATABASE)) as workspace:
        assert not any(labelling.finished for labelling in workspace.passes())


def test_a_refused_import_writes_nothing_at_all(cli: Cli, tmp_path: Path) -> None:
    last = wide(tmp_path, {(f"t{TRACES - 1}", "alice"): "0" * 14}, "last.csv")
    assert cli("import", last, "--format", "csv-wide").code == 0
    before = DATABASE.with_name("before.db")
    cli("workspace", "backup", before)
    refused = cli("import", many(tmp_path), "--format", "csv-wide", "--allow-new", "--json")
    assert refused.code == 1
    assert "has finished this trace here" in refused.json["problems"][0]["reason"]
    with closing(Workspace.open(DATABASE)) as here, closing(Workspace.open(before)) as there:
        assert here.traces() == there.traces()
        assert list(here.events()) == list(there.events())
        assert here.imports() == there.imports()


def test_who_goes_on_working_meanwhile_keeps_their_word(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = f"t{TRACES - 1}"

    def work(call: int) -> None:
        if call == 2:
            with closing(Workspace.open(DATABASE)) as app:
                facts: list[Fact] = [
                    PassStarted(PassKind.BLIND),
                    VerdictSet(SLUGS[0], None, VerdictValue.ABSENT),
                    PassFinished(),
                ]
                app.append([NewEvent("alice", trace, MAST.ref, 1, fact) for fact in facts])

    between(monkeypatch, work)
    done = cli("import", many(tmp_path), "--format", "csv-wide", "--json")
    assert done.code == 1
    (problem,) = done.json["problems"]
    assert problem["place"] == f"alice on {trace}"
    assert "the import is not finished" in done.err
    assert listed(cli)[0]["state"] == "not finished"
    with closing(Workspace.open(DATABASE)) as workspace:
        assert len(workspace.verdicts(trace_id=trace)) == 1
        assert len(workspace.passes()) == TRACES


# Taking back


def test_an_import_is_taken_back_and_comes_again(cli: Cli, tmp_path: Path) -> None:
    first = wide(tmp_path, TWO_PEOPLE)
    cli("import", first, "--format", "csv-wide")
    before = verdicts(cli)
    second = wide(tmp_path, {("t2", "carol"): "1?" + "0" * 12, ("t4", "bob"): "1" * 14}, "b.csv")
    assert cli("import", second, "--format", "csv-wide", "--allow-new").code == 0
    after = verdicts(cli)
    assert after != before
    known = event_count()
    undone = cli("import", "--undo", "--json")
    assert undone.code == 0
    assert undone.json["undone"] is True
    assert undone.json["import"] == listed(cli)[1]["id"]
    assert verdicts(cli) == before
    assert event_count() > known, "nothing is erased"
    assert [one["state"] for one in listed(cli)] == ["finished", "taken back"]
    with closing(Workspace.open(DATABASE)) as workspace:
        assert "t4" in {record.trace_id for record in workspace.traces()}
        workspace.rebuild()
        assert workspace.edited_histories() == ()
    assert verdicts(cli) == before
    second_run = cli("import", second, "--format", "csv-wide", "--json", "--allow-new")
    assert second_run.json["events"]["known"] == 0
    assert verdicts(cli) == after
    assert cli("import", second, "--format", "csv-wide", "--json").json["events"]["new"] == 0
    assert len(listed(cli)) == 3
    assert cli("import", "--undo").code == 0
    assert verdicts(cli) == before


def test_what_joined_somebodys_open_work_goes_and_the_rest_stays(cli: Cli, tmp_path: Path) -> None:
    with closing(Workspace.open(DATABASE)) as workspace:
        own: list[Fact] = [
            PassStarted(PassKind.BLIND),
            VerdictSet(SLUGS[0], None, VerdictValue.UNSURE),
        ]
        workspace.append([NewEvent("alice", "t1", MAST.ref, 1, fact) for fact in own])
    rows = "trace_id,annotator,mode,value\nt1,alice,1.3,present\nt1,alice,,finished\n"
    (tmp_path / "more.csv").write_text(rows)
    assert cli("import", "more.csv", "--format", "csv-long", "--allow-new").code == 0
    assert cli("import", "--undo").code == 0
    with closing(Workspace.open(DATABASE)) as workspace:
        (left,) = workspace.passes()
        assert not left.finished
        assert workspace.labels() == ()
        assert [verdict.value for verdict in workspace.verdicts()] == [VerdictValue.UNSURE]


def changed_label(workspace: Workspace) -> None:
    label = workspace.labels(annotator="alice", trace_id="t1")[0]
    fact = LabelChanged(label, replace(label, note="on second thoughts"))
    workspace.append([NewEvent("alice", "t1", MAST.ref, 1, fact)])


def second_pass(workspace: Workspace) -> None:
    facts: list[Fact] = [PassStarted(PassKind.SECOND_LOOK, 1), PassFinished()]
    workspace.append([NewEvent("alice", "t1", MAST.ref, 2, fact) for fact in facts])


def reviewed(workspace: Workspace) -> None:
    """Append a review that rejects the first label of alice."""
    label = workspace.labels(annotator="alice", trace_id="t1")[0]
    facts: list[Fact] = [
        PassStarted(PassKind.ASSISTED),
        ReviewSet(label.id, None, ReviewGiven(ReviewAnswer.REJECT)),
    ]
    workspace.append([NewEvent("dora", "t1", MAST.ref, 1, fact) for fact in facts])


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (changed_label, "alice on t1: labels changed since"),
        (second_pass, "alice on t1: a pass begun, a pass finished since"),
        (reviewed, "alice on t1: dora has reviewed suggestions of it (1)"),
    ],
)
def test_what_was_built_on_an_import_keeps_it(
    cli: Cli, tmp_path: Path, build: Callable[[Workspace], None], told: str
) -> None:
    cli("import", wide(tmp_path, TWO_PEOPLE), "--format", "csv-wide")
    with closing(Workspace.open(DATABASE)) as workspace:
        build(workspace)
    count = event_count()
    refused = cli("import", "--undo", "--json")
    assert (refused.code, refused.json["undone"]) == (1, False)
    assert refused.json["built_on"] == [told]
    assert told in refused.err
    assert event_count() == count
    assert listed(cli)[0]["state"] == "finished"


def test_a_change_that_was_undone_itself_is_not_in_the_way(cli: Cli, tmp_path: Path) -> None:
    cli("import", wide(tmp_path, TWO_PEOPLE), "--format", "csv-wide")
    with closing(Workspace.open(DATABASE)) as workspace:
        label = workspace.labels(annotator="alice", trace_id="t1")[0]
        other = replace(label, note="on second thoughts")
        where = ("alice", "t1", MAST.ref, 1)
        change = NewEvent(*where, fact=LabelChanged(label, other))
        back = NewEvent(*where, fact=LabelChanged(other, label))
        workspace.append([change], action="a")
        workspace.append([back], action="b", undoes="a")
    assert cli("import", "--undo").code == 0
    assert verdicts(cli) == []


def test_an_undo_that_was_broken_off_goes_on(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = many(tmp_path)
    cli("import", file, "--format", "csv-wide")
    monkeypatch.setattr(undo_import, "EVENTS_AT_ONCE", AT_ONCE)

    def stop() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(undo_import, "let_others_write", stop)
        assert cli("import", "--undo").code != 0
    (half,) = listed(cli)
    assert half["state"] == "being taken back"
    refused = cli("import", file, "--format", "csv-wide")
    assert refused.code == 1
    assert f"mast-tui import --undo {half['id']}" in refused.err
    assert cli("import", "--undo", half["id"]).code == 0
    assert verdicts(cli) == []


def test_a_judges_run_is_taken_back(cli: Cli, tmp_path: Path) -> None:
    judge = "judge:m-1@0123abcd"
    rows = f"trace_id,annotator,mode,value\nt1,{judge},1.3,present\nt1,{judge},1.4,absent\n"
    (tmp_path / "judge.csv").write_text(rows)
    assert cli("import", "judge.csv", "--format", "csv-long").code == 0

    def stands() -> tuple[int, ...]:
        """Return the numbers of judgements, labels and verdicts; a rebuild keeps them."""
        with closing(Workspace.open(DATABASE)) as workspace:
            state = workspace.judgements(), workspace.labels(), workspace.verdicts()
            workspace.rebuild()
            assert state == (workspace.judgements(), workspace.labels(), workspace.verdicts())
            return tuple(map(len, state))

    assert stands() == (1, 1, 2)
    assert cli("import", "--undo").code == 0
    assert stands() == (0, 0, 0)
    assert cli("import", "judge.csv", "--format", "csv-long").code == 0
    assert stands() == (1, 1, 2)


def test_a_whole_workspace_is_taken_back(cli: Cli, tmp_path: Path) -> None:
    cli("import", wide(tmp_path, TWO_PEOPLE), "--format", "csv-wide")
    before = verdicts(cli)
    other = wide(tmp_path, {("t1", "dora"): "1" * 14, ("t9", "dora"): "0" * 14}, "other.csv")
    cli("import", other, "--format", "csv-wide", "--workspace", "other.db")
    cli("export", "--format", "jsonl", "-o", "all.jsonl", "--workspace", "other.db")
    assert cli("import", "all.jsonl", "--format", "jsonl").code == 0
    assert listed(cli)[1]["annotators"] == ["dora"]
    assert verdicts(cli) != before
    assert cli("import", "--undo", listed(cli)[1]["id"][-8:]).code == 0
    assert verdicts(cli) == before
    second_run = cli("import", "all.jsonl", "--format", "jsonl", "--json")
    assert any("were taken back here" in note for note in second_run.json["notes"])
    assert verdicts(cli) == before


def test_one_can_work_where_an_import_was_taken_back(cli: Cli, tmp_path: Path) -> None:
    cli("import", wide(tmp_path, TWO_PEOPLE), "--format", "csv-wide")
    cli("import", "--undo")
    with closing(Workspace.open(DATABASE)) as workspace:
        assert workspace.passes() == ()
        workspace.append([NewEvent("alice", "t1", MAST.ref, 1, PassStarted(PassKind.BLIND))])
        (own,) = workspace.passes()
        assert (own.number, own.finished) == (1, False)


def test_taking_back_asks_no_more_for_more_traces(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = {}
    for traces in (20, 200):
        folder = tmp_path / str(traces)
        folder.mkdir()
        monkeypatch.chdir(folder)
        cells = {(f"t{n}", "alice"): "1" + "0" * 13 for n in range(traces)}
        assert cli("import", wide(folder, cells, "x.csv"), "--format", "csv-wide").code == 0
        with monkeypatch.context() as patched:
            listening = Listening(patched)
            with listening.during() as statements:
                assert cli("import", "--undo").code == 0
            sent[traces] = sum(
                statement.startswith(("SELECT", "BEGIN")) for statement in statements
            )
            if traces == 200:
                plans = [step for step, one in listening.plans(DATABASE) if "trace_id IN" in one]
        with closing(sqlite3.connect(DATABASE)) as database:
            for table in ("labels", "verdicts"):
                assert database.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    assert sent[200] <= sent[20] + 10
    assert any("events_of_work" in step for step in plans), plans
    assert not any("events_in_order" in step for step in plans), plans


def test_list_and_undo_stand_alone(cli: Cli, tmp_path: Path) -> None:
    file = wide(tmp_path, TWO_PEOPLE)
    assert cli("import").code == 2
    assert cli("import", file).code == 2
    assert cli("import", file, "--list").code == 2
    cli("import", file, "--format", "csv-wide")
    assert cli("import", "--undo", "nonsense").code == 1
    assert cli("import", "--undo").code == 0
    done = cli("import", "--undo")
    assert done.code == 1
    assert "no import here that could be taken back" in done.err
    assert cli("import", "--undo", listed(cli)[0]["id"]).code == 1


# Names that are not known


def test_a_slip_in_a_trace_id_is_told(cli: Cli, tmp_path: Path) -> None:
    known = wide(tmp_path, {("43-4cae5e3e", "alice"): "0" * 14, ("17-aaaa0000", "alice"): "1" * 14})
    assert cli("import", known, "--format", "csv-wide").code == 0
    count = event_count()
    slip = wide(tmp_path, {("43-4cae5e3E", "alice"): "0" * 14}, "slip.csv")
    refused = cli("import", slip, "--format", "csv-wide", "--json")
    assert (refused.code, refused.json["written"]) == (1, False)
    assert "43-4cae5e3E: did you mean 43-4cae5e3e?" in refused.err
    assert "--allow-new" in refused.err
    assert refused.json["problems"][0]["place"] == "43-4cae5e3E"
    assert event_count() == count
    assert cli("import", slip, "--format", "csv-wide", "--allow-new").code == 0
    assert event_count() > count


def test_a_slip_in_a_name_is_told(cli: Cli, tmp_path: Path) -> None:
    cli("import", wide(tmp_path, TWO_PEOPLE), "--format", "csv-wide")
    slip = wide(tmp_path, {("t1", "alicia"): "0" * 14, ("t3", "bob"): "0" * 14}, "slip.csv")
    refused = cli("import", slip, "--format", "csv-wide")
    assert refused.code == 1
    assert "alicia: did you mean alice?" in refused.err
    skipped = cli("import", slip, "--format", "csv-wide", "--skip-errors", "--json")
    assert (skipped.code, skipped.json["annotators"]) == (0, ["bob"])
    assert cli("import", slip, "--format", "csv-wide", "--allow-new").code == 0


def test_whom_annotator_names_is_asked_for(cli: Cli, tmp_path: Path) -> None:
    cli("import", wide(tmp_path, TWO_PEOPLE), "--format", "csv-wide")
    other = wide(tmp_path, {("t1", "x"): "0" * 14}, "other.csv")
    assert cli("import", other, "--format", "csv-wide").code == 1
    assert cli("import", other, "--format", "csv-wide", "--annotator", "zoe").code == 0


def test_a_whole_workspace_brings_its_own_register(cli: Cli, tmp_path: Path) -> None:
    cli("import", wide(tmp_path, TWO_PEOPLE), "--format", "csv-wide")
    other = wide(tmp_path, {("t8", "dora"): "0" * 14}, "other.csv")
    cli("import", other, "--format", "csv-wide", "--workspace", "other.db")
    cli("export", "--format", "jsonl", "-o", "all.jsonl", "--workspace", "other.db")
    lines = [json.loads(line) for line in Path("all.jsonl").read_text().splitlines()]
    kept = [line for line in lines if line["record"] != "annotator"]
    Path("cut.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept))
    refused = cli("import", "cut.jsonl", "--format", "jsonl", "--json")
    assert (refused.code, refused.json["written"]) == (1, False)
    assert refused.json["problems"][0]["place"] == "dora"
    assert len(listed(cli)) == 1
    assert cli("import", "all.jsonl", "--format", "jsonl").code == 0
