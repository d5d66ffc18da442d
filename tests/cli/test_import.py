"""Imports of labels: what is added, what is refused, and what their messages say."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from mast_tui.judges.rules import RULES, RulesJudge
from mast_tui.labels import AnnotatorKind, Label, Origin, PassKind, Target, VerdictValue
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import samples_folder
from mast_tui.workspace import NewEvent
from mast_tui.workspace.events.types import Fact, LabelAdded, PassFinished, PassStarted, VerdictSet
from mast_tui.workspace.paths import find_workspace
from tests.cli.conftest import COLUMNS, Cli, CliResult, open_workspace

MAST: Final = load_mast()
CODES: Final = [mode.code for mode in MAST.modes]
SAMPLES: Final = samples_folder()
JUDGE: Final = RulesJudge(RULES).name
OLD_JUDGE: Final = "judge:rules@2+all"
SPAN_COLUMNS: Final = "span_first,span_last,quote,char_start,char_end,note"

TWO_PEOPLE: Final = {
    ("t1", "alice"): "10000000000000",
    ("t1", "bob"): "10000000000000",
    ("t2", "alice"): "01?00000000001",
    ("t2", "bob"): "00000000000001",
    ("t3", "alice"): "----------0000",
}


def write_wide(folder: Path, rows: dict[tuple[str, str], str], name: str = "labels.csv") -> Path:
    """Write a csv-wide table: a text of 14 cells (``-`` is empty) per trace and annotator."""
    lines = [",".join(["trace_id", "annotator", "system", "model", "benchmark", "outcome", *CODES])]
    for (trace, annotator), cells in rows.items():
        values = ["" if cell == "-" else cell for cell in cells]
        lines.append(",".join([trace, annotator, "crew", "m", "b", "failed", *values]))
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def write_long(*rows: str, name: str = "l.csv", columns: str = COLUMNS) -> Path:
    """Write a csv-long table into the current directory."""
    path = Path(name)
    path.write_text("\n".join([columns, *rows]) + "\n")
    return path


def test_import_of_a_known_file_or_an_own_export_changes_nothing(cli: Cli, tmp_path: Path) -> None:
    arguments = ("import", write_wide(tmp_path, TWO_PEOPLE), "--format", "csv-wide")
    first = cli.json(*arguments)
    assert first["annotators"] == ["alice", "bob"]
    assert (first["labels"], first["finished"], first["events"]["known"]) == (5, 5, 0)
    exported = cli.export("jsonl")
    assert cli.json(*arguments)["events"] == {"new": 0, "known": first["events"]["new"]}
    assert cli.export("jsonl") == exported

    # Labels written by the app are known in a table, before and after the trace is finished.
    label = Label("one", "dora", "t1", MAST.ref, MAST.modes[2].slug, Target("/0", "/3"), note="🚀")
    whole = Label("two", "dora", "t1", MAST.ref, MAST.modes[2].slug, Target(), note="🚀")
    unsure = VerdictSet(MAST.modes[0].slug, None, VerdictValue.UNSURE)
    steps: list[list[Fact]] = [
        [PassStarted(PassKind.BLIND), LabelAdded(label), LabelAdded(whole), unsure],
        [PassFinished()],
    ]
    for facts in steps:
        with open_workspace() as workspace:
            workspace.append([NewEvent("dora", "t1", MAST.ref, 1, fact) for fact in facts])
        table = cli.export("csv-long", "--labels", "all")
        report = cli.json("import", "exported", "--format", "csv-long")
        assert (report["events"]["new"], report["notes"]) == (0, [])
        assert cli.export("csv-long", "--labels", "all") == table


def test_a_bad_row_refuses_the_file_unless_it_is_skipped(cli: Cli, tmp_path: Path) -> None:
    file = write_wide(tmp_path, {("t1", "alice"): "1" * 14, ("t2", "alice"): "2" * 14})
    arguments = ("import", file, "--format", "csv-wide", "--json")
    report = cli.refused(*arguments, says="labels.csv: line 3: 1.1 is '2'").json
    assert (report["written"], report["problems"][0]["place"]) == (False, "line 3")
    assert cli.json("status")["traces"] == 0
    report = cli.ok(*arguments, "--skip-errors").json
    assert (report["written"], len(report["problems"])) == (True, 1)
    assert cli.json("status")["annotators"] == [
        {"name": "alice", "kind": "human", "finished": 1, "open": 0, "conflicts": 0}
    ]
    # Another file does not change the trace that alice has finished.
    other = write_wide(tmp_path, {("t1", "alice"): "0" * 14}, "other.csv")
    (problem,) = cli.refused("import", other, "--format", "csv-wide", "--json").json["problems"]
    assert "has finished this trace here" in problem["reason"]
    assert problem["place"] == "alice on t1"


def test_rows_are_added_to_an_open_trace_unless_they_contradict(cli: Cli) -> None:
    columns = f"{COLUMNS},span_first,note"
    cli.label("t,alice,1.3,present,k1,first", "t,alice,1.4,absent,,", columns=columns)
    rows = ("t,alice,1.3,present,k1,other", "t,alice,1.3,present,k2,", "t,alice,,finished,,")
    notes = cli.label(*rows, columns=columns, options=["--json"]).json["notes"]
    assert any("1 label is already in the workspace with other details" in note for note in notes)
    assert [(row["mode"], row["value"], row["span_first"], row["note"]) for row in cli.rows()] == [
        ("1.3", "present", "k1", "first"),
        ("1.3", "present", "k2", ""),
        ("1.4", "absent", "", ""),
        ("", "finished", "", ""),
    ]
    cli.label("u,alice,1.4,absent")
    file = write_long("u,alice,1.4,present")
    message = "absent here and present in the file"
    cli.refused("import", file, "--format", "csv-long", says=message)


def test_figures_for_an_annotator_count_what_they_have_finished(cli: Cli, tmp_path: Path) -> None:
    rows = TWO_PEOPLE | {("t3", "bob"): "0" * 14, ("t4", "bob"): "1" * 14}
    cli.ok("import", write_wide(tmp_path, rows), "--format", "csv-wide")
    cli.label("t1,carol,1.1,absent", "t1,carol,,finished")
    seen = cli.json("agree", "--annotator", "carol")["traces"]
    assert seen == {"finished_by_all": 1, "finished_by_two": 1, "only_seen_by": "carol"}
    assert cli.json("status", "--annotator", "carol")["conflicts"]["left"] == 1
    assert cli.json("agree", "--annotator", "dave")["annotators"] == []
    # An adjudicator who labels nothing has a status of their own alone.
    with open_workspace() as workspace:
        workspace.add_annotator("dee", AnnotatorKind.HUMAN)
    cli.ok("study", "set", "--annotators", "alice,bob", "--adjudicators", "dee")
    assert "dee" not in [row["name"] for row in cli.json("status")["annotators"]]
    (row,) = cli.json("status", "--annotator", "dee")["annotators"]
    assert (row["name"], row["finished"], row["open"]) == ("dee", 0, 0)
    assert "no annotator 'eve'" in cli("status", "--annotator", "eve").err


def test_the_disputed_spans_of_a_mode_are_one_conflict(cli: Cli) -> None:
    spans = {"alice": ("k1", "k4"), "bob": ("k2",), "carol": ("k1", "k2", "k3")}
    rows = [f"t,{name},1.3,present,{key}" for name, keys in spans.items() for key in keys]
    rows += [f"t,{name},1.1,{'absent' if name == 'bob' else 'unsure'}," for name in spans]
    rows += [f"t,{name},,finished," for name in spans]
    cli.label(*rows, columns=f"{COLUMNS},span_first")
    status = cli.json("status")
    assert status["conflicts"] == {"left": 2, "verdicts": 1, "places": 1, "unordered": 0}
    assert [annotator["conflicts"] for annotator in status["annotators"]] == [2, 2, 2]
    assert "2 conflicts left" in cli("status").out
    assert cli.json("export", "--format", "gold", "-o", "gold.json")["unresolved"] == 2
    (trace,) = cli.gold()["traces"]
    # In the file each span is separate, since each has its own decision.
    assert [conflict["kind"] for conflict in trace["unresolved"]] == ["verdict", *["place"] * 4]


def test_gold_has_sources_sides_and_figures(cli: Cli, tmp_path: Path) -> None:
    cli.ok("import", write_wide(tmp_path, TWO_PEOPLE), "--format", "csv-wide")
    gold = cli.gold()
    assert [trace["trace_id"] for trace in gold["traces"]] == ["t1", "t2", "t3"]
    first, second, third = gold["traces"]
    assert first["verdicts"]["1.1"] | {"reason": ""} == {
        "slug": "disobey_task_specification", "value": "present", "source": "unanimous",
        "sides": {"alice": "present", "bob": "present"}, "judge_seen": False,
        "decided_by": None, "decided_at": None, "reason": "", "changed": False,
    }  # fmt: skip
    labels = [(label["mode"], label["target"]["whole_trace"]) for label in first["labels"]]
    assert labels == [("1.1", True)]
    unresolved = second["verdicts"]["1.2"]
    assert (unresolved["source"], unresolved["value"]) == ("unresolved", None)
    assert second["verdicts"]["1.3"]["sides"] == {"alice": "unsure", "bob": "absent"}
    assert {label["mode"] for label in second["unresolved"]} == {"1.2", "1.3"}
    assert third["verdicts"]["3.3"]["source"] == "single"
    missing = third["verdicts"]["1.1"]
    assert (missing["value"], missing["source"]) == (None, "unresolved")
    assert [side["name"] for side in second["annotators"]] == ["alice", "bob"]
    assert second["annotators"][0]["verdicts"]["1.3"] == "unsure"
    report = cli.json("agree")
    assert gold["taxonomy"]["revisions"] == report.pop("revisions")
    assert {**gold["agreement"], "spans": 0} == report | {"spans": 0}

    records = {record["trace_id"]: record for record in json.loads(cli.export("mast-data"))}
    numbers = records["t2"]["mast_annotation"]
    assert (numbers["1.2"], numbers["1.3"], numbers["1.4"], numbers["3.3"]) == (None, None, 0, 1)
    assert records["t3"]["mast_annotation"]["1.1"] is None
    assert (records["t1"]["mas_name"], records["t1"]["llm_name"]) == ("crew", "m")


def test_a_crosswalk_turns_labels_into_labels_of_mast(cli: Cli) -> None:
    messages = [{"role": "user", "content": "Do it."}, {"role": "Worker", "content": "No."}]
    run = {"history": messages, "mistake_agent": "Worker", "mistake_step": "1"}
    Path("run.json").write_text(json.dumps(run | {"mistake_reason": "It refused."}))
    Path("links.csv").write_text("from,to\ndecisive_error,3.1\n")
    arguments = ("import", "run.json", "--format", "who-and-when", "--annotator", "experts")
    assert cli.json(*arguments, "--crosswalk", "links.csv")["taxonomies"] == ["mast@3"]
    table = cli.export("csv-long", "--labels", "experts")
    assert ",experts,3.1,present,/history/1,/history/1," in table
    cli.refused(*arguments, "--crosswalk", "nowhere.csv", says="nowhere.csv")

    # Crosswalks of the package have names.
    errors = [
        {"category": "Goal Deviation", "location": "s1", "evidence": "so", "impact": "HIGH"},
        {"category": "Formatting Error", "location": "s2", "impact": "LOW"},
    ]
    Path("trace-1.json").write_text(json.dumps({"errors": errors, "scores": []}))
    trail = ("import", "trace-1.json", "--format", "trail", "--allow-new")
    report = cli.json(*trail)
    assert (report["taxonomies"], report["labels"]) == (["trail@1"], 2)
    report = cli.json(*trail, "--crosswalk", "trail-to-mast")
    assert (report["taxonomies"], report["labels"]) == (["mast@3"], 1)
    assert any("left out: 1 label of modes without a link" in note for note in report["notes"])
    cli.refused(*trail, "--crosswalk", "trail-to-most", says="trail-to-mast")


def test_commands_without_a_workspace_create_none(cli: Cli, tmp_path: Path) -> None:
    for command in ("status", "agree", "export --format gold -o x"):
        result = cli.refused(*command.split(), says="there is no workspace")
        assert result.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_errors_have_an_exit_code_and_one_line(cli: Cli, tmp_path: Path) -> None:
    cli.ok("import", write_wide(tmp_path, {("t1", "alice"): "1" * 14}), "--format", "csv-wide")
    for command, code in (
        ("export --format cake -o x", 2),
        ("inspect", 2),
        ("convert x", 2),
        ("export --format gold", 2),
        ("export --format huggingface --labels all -o x", 2),
        ("export --format jsonl -o x --labels alice", 2),
        ("export --format gold -o x --labels alice", 2),
        ("export --format csv-long -o x --labels carol", 1),
        ("export --format csv-long -o no/folder/x", 1),
        ("import nowhere.csv --format csv-wide", 1),
        ("import labels.csv", 2),
        ("import labels.csv --format jsonl", 1),
        ("import labels.csv --format csv-long", 1),
        ("import labels.csv --format csv-wide --annotator a|b", 1),
        ("import labels.csv --format csv-wide --taxonomy nowhere.toml", 1),
        ("agree --taxonomy own@1", 1),
        ("status --annotator carol", 1),
        ("status --blind --assisted", 2),
        ("status --workspace labels.csv", 1),
        ("status --workspace mysql://host/db", 1),
    ):
        result = cli.refused(*command.split(), code=code)
        assert "Traceback" not in result.err
        if code == 1:
            assert result.err.startswith(f"mast-tui {command.split()[0]}: ")
            assert len(result.err.splitlines()) == 1


def test_equal_problems_are_one_line_with_their_number(cli: Cli) -> None:
    file = write_long(*(f"t{n},gold,1.1,present" for n in range(40)), "t,ada,9.9,present")
    result = cli.refused("import", file, "--format", "csv-long")
    gold, other, advice = result.err.splitlines()
    assert gold == (
        f'mast-tui import: {file}: "gold" is reserved; import under another name with '
        "--annotator NAME (40 times: line 2, line 3, line 4 and 37 more)"
    )
    assert other.startswith(f"mast-tui import: {file}: line 42: mode '9.9' is not in")
    assert advice == "mast-tui import: nothing was written. Fix the rows"
    problems = cli("import", file, "--format", "csv-long", "--json").json["problems"]
    assert len(problems) == 41  # a script gets each of them


@pytest.mark.parametrize(
    ("rows", "advice"),
    [
        (["t,gold,1.1,present"], ""),
        (
            ["t,gold,1.1,present", "t,ada,1.1,present"],
            ". Use --skip-errors to import the other rows",
        ),
        (["t,ada,9.9,present"], ". Fix the rows"),
        (
            ["t,ada,9.9,present", "t,ada,1.1,present"],
            ". Fix the rows. Use --skip-errors to import the other rows",
        ),
        (["other,ada,1.1,present"], ". Use --allow-new to accept new traces and annotators"),
        (["t,zoe,1.1,absent"], ". Use --allow-new to accept new traces and annotators"),
    ],
)
def test_a_refused_import_advises_what_helps(cli: Cli, rows: list[str], advice: str) -> None:
    cli.label("t,ada,1.2,present")
    result = cli.refused("import", write_long(*rows), "--format", "csv-long")
    assert result.err.splitlines()[-1] == f"mast-tui import: nothing was written{advice}"


def test_an_own_gold_export_is_imported_under_another_name(cli: Cli) -> None:
    cli.ok("import", SAMPLES / "workspace.jsonl", "--format", "jsonl")
    cli.export("mast-data")
    arguments = ("import", "exported", "--format", "mast-data")
    reserved = '"gold" is reserved; import under another name with --annotator NAME ('
    assert len(cli.refused(*arguments, says=reserved).err.splitlines()) == 2
    cli.ok(*arguments, "--annotator", "experts", "--allow-new")


def test_import_and_export_count_the_contents_of_the_file(cli: Cli) -> None:
    file = write_long("t,ada,1.1,present", "t,ada,1.2,absent", "t,ada,,finished")
    first = cli("import", file, "--format", "csv-long").out.splitlines()
    content = "The file contains 1 label and 1 verdict by ada on 1 trace (mast@3)"
    assert first[0] == f"Imported as 4 events. {content}"
    nothing_new = "Nothing is new: 4 events were already in the workspace. "
    assert cli("import", file, "--format", "csv-long").out == f"{nothing_new}{content}\n"
    cli.ok("import", "--undo")
    cli.ok("import", file, "--format", "csv-long")
    cli.export("jsonl")
    out = cli("import", "exported", "--format", "jsonl", "--workspace", "other.db").out
    assert out.startswith(f"Imported as 12 events. {content}\n")
    for file_format, unit in (("csv-wide", "row"), ("mast-data", "record")):
        arguments = ("export", "--format", file_format, "--labels", "ada", "-o", "out", "--force")
        assert cli(*arguments).out == f"out: 1 trace, 1 {unit}\n"
        counts = cli.json(*arguments)
        assert (counts["labels"], counts["traces"], counts[f"{unit}s"]) == (0, 1, 1)


def test_an_imported_study_is_reported_and_a_different_one_needs_replace(cli: Cli) -> None:
    Path("run.json").write_text(json.dumps([{"role": "assistant", "content": "Let me look."}]))
    for name, seed in (("a.db", "1"), ("b.db", "2")):
        people = ("--annotators", "alice,bob", "--annotator", name[0], "--seed", seed)
        cli.ok("study", "set", "run.json", *people, "--workspace", name)
        cli.ok("export", "--format", "jsonl", "-o", f"{name}.jsonl", "--workspace", name)
    out = cli("import", "a.db.jsonl", "--format", "jsonl").out
    assert "a: 1 study set up or changed" in out.splitlines()

    def study_notes(source: str, database: str, *options: str) -> list[str]:
        report = cli.json("import", source, "--format", "jsonl", "--workspace", database, *options)
        return [note for note in report["notes"] if "study" in note]

    assert study_notes("a.db.jsonl", "fresh.db") == study_notes("a.db.jsonl", "a.db") == []
    own_work = write_long("t,ada,1.1,present", "t,ada,,finished")
    cli.ok("import", own_work, "--format", "csv-long", "--allow-new", "--workspace", "mine.db")
    (outside,) = study_notes("a.db.jsonl", "mine.db", "--allow-new")
    assert outside.startswith("Work outside the study counts in no figure and no gold: ada 1")
    message = "1 study of a replaced. Nothing was written"
    cli.refused("import", "b.db.jsonl", "--format", "jsonl", "--workspace", "a.db", says=message)
    replace = ("--replace", "a", "--annotator", "a")
    notes = study_notes("b.db.jsonl", "a.db", *replace)
    later, replaced = sorted(notes, key=lambda note: "replaced, as requested" in note)
    assert "applies from now on" in later
    assert "1 study of a replaced" in replaced
    assert study_notes("b.db.jsonl", "a.db") == []
    (earlier,) = study_notes("a.db.jsonl", "b.db")
    assert "the study here stays" in earlier
    studies = [cli.json("study", "show", "--workspace", f"{name}.db")["study"] for name in "ab"]
    assert studies[0] == studies[1]


def test_inspect_sums_up_and_joins_equal_problems(cli: Cli) -> None:
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "gone"}]
    Path("run.json").write_text(json.dumps({"messages": messages}))
    assert cli("inspect", "run.json").out.splitlines()[-1] == "1 trace, 1 format, 0 problems"
    files = cli.json("inspect", SAMPLES)["files"]
    traces = sum(len(file["traces"]) for file in files)
    formats = len({file["format"] for file in files if file["traces"]})
    problems = sum(len(file["problems"]) for file in files)
    last = cli("inspect", SAMPLES).out.splitlines()[-1]
    assert last == f"{traces} traces, {formats} formats, {problems} problems"

    good = json.dumps({"type": "user", "uuid": "a", "message": {"role": "user", "content": "go"}})
    later = good.replace("go", "on").replace('"a"', '"b"')
    Path("run.jsonl").write_text(f"{good}\n" + "{broken\n" * 5 + f"{later}\n")
    listed = cli.json("inspect", "run.jsonl")["files"][0]["problems"]
    different = len({problem["message"] for problem in listed})
    assert different < len(listed)
    out = cli("inspect", "run.jsonl").out
    lines = out.partition("problems\n")[2].strip().splitlines()
    assert len([line for line in lines if "run.jsonl" in line]) == different
    assert "(5 times: line 2, line 3, line 4 and 2 more)" in out


# Labels on spans


@pytest.fixture
def trace(cli: Cli) -> dict[str, Any]:
    """A trace of three messages that the workspace knows, as ``inspect --spans`` shows it."""
    texts = ("Restart the pod, please.", "I restart the 🚀 pod.", "Thank you.")
    roles = ("user", "assistant", "user")
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
    Path("run.json").write_text(json.dumps({"messages": messages}))
    cli.ok("judge", "run.json", "--judge", "rules", "--quiet")
    (file,) = cli.json("inspect", "run.json", "--spans")["files"]
    (document,) = file["traces"]
    return dict(document)


def import_rows(cli: Cli, trace: str, *rows: str, options: tuple[str, ...] = ()) -> CliResult:
    """Import rows of ada, written from the mode on."""
    file = write_long(*(f"{trace},ada,{row}" for row in rows), columns=f"{COLUMNS},{SPAN_COLUMNS}")
    return cli("import", file, "--format", "csv-long", "--allow-new", "--json", *options)


def test_a_label_on_a_span_outside_its_trace_is_a_bad_row(cli: Cli, trace: dict[str, Any]) -> None:
    key = trace["span_list"][1]["key"]
    unknown = "is not in the trace"
    moved = "the quote '{}' is not at characters {} of span KEY, but"
    for row, reason in (
        ("1.1,present,82,,,,,", f"span '82' {unknown}, which has 3 spans, "),
        ("1.1,present,KEY,82,,,,", f"span '82' {unknown}"),
        ("1.1,present,#4,,,,,", f"span '#4' {unknown}, which has 3 spans"),
        ("1.1,present,#3,#1,,,,", "span_first '#3' comes after span_last '#1' in the trace"),
        ("1.1,present,#0,,,,,", f"span '#0' {unknown}"),
        (",note,82,,,,,why", f"span '82' {unknown}"),
        ("1.1,present,KEY,,I stop,,,", "the quote 'I stop' is not in the text of span"),
        ("1.1,present,KEY,,restart,0,7,", moved.format("restart", "0 to 7") + " at 2 to 9"),
        ("1.1,present,KEY,,pod,900,903,", moved.format("pod", "900 to 903") + " at 16 to 19"),
    ):
        rows = ("1.2,present,KEY,,,,,".replace("KEY", key), row.replace("KEY", key))
        result = import_rows(cli, trace["id"], *rows)
        assert (result.code, result.json["written"]) == (1, False)
        (problem,) = result.json["problems"]
        assert problem["place"] == "line 3"
        assert reason.replace("KEY", repr(key)) in problem["reason"]
        assert ("mast-tui inspect PATH --spans" in problem["reason"]) is (unknown in reason)
        result = import_rows(cli, trace["id"], *rows, options=("--skip-errors",))
        assert (result.code, result.json["labels"]) == (0, 1)


def test_a_file_of_bad_rows_alone_leaves_nothing(cli: Cli, trace: dict[str, Any]) -> None:
    row = "1.1,present,82,,,,,"
    result = import_rows(cli, trace["id"], row)
    assert (result.code, result.json["traces"]) == (1, 0)
    assert "--skip-errors" not in result.err
    result = import_rows(cli, trace["id"], row, options=("--skip-errors",))
    assert (result.code, result.json["events"]["new"]) == (0, 0)


def test_a_row_may_name_a_span_by_its_number(cli: Cli, trace: dict[str, Any]) -> None:
    keys = [span["key"] for span in trace["span_list"]]
    rows = (
        "1.1,present,#1,#3,,,,",
        f"1.1,present,{keys[0]},{keys[2]},,,,",
        "1.2,present,#2,,🚀,14,15,",
        "1.3,present,,,,,,",
        ",note,#3,,,,,thanks",
    )
    result = import_rows(cli, trace["id"], *rows)
    assert (result.code, result.json["labels"]) == (0, 3), result.json["problems"]
    fields = ("mode", "value", "span_first", "span_last")
    places = [tuple(row[field] for field in fields) for row in cli.rows(labels="ada")]
    assert ("1.1", "present", keys[0], keys[2]) in places
    assert ("1.2", "present", keys[1], keys[1]) in places
    assert ("", "note", keys[2], keys[2]) in places
    assert import_rows(cli, trace["id"], *rows).json["events"]["new"] == 0
    contradiction = ("1.4,present,#1,,,,,one", f"1.4,present,{keys[0]},,,,,other")
    (problem,) = import_rows(cli, trace["id"], *contradiction).json["problems"]
    assert problem["place"] == "line 3"
    assert "appears twice with different details" in problem["reason"]


@pytest.mark.parametrize("is_known", [False, True])
def test_without_its_file_a_trace_accepts_any_key_and_no_number(
    cli: Cli, trace: dict[str, Any], is_known: bool
) -> None:
    Path("run.json").unlink()
    name = trace["id"] if is_known else "elsewhere"
    assert import_rows(cli, name, "1.1,present,82,,,,,").code == 0
    (problem,) = import_rows(cli, name, "1.1,present,#2,,,,,").json["problems"]
    assert "the span is a number, and the trace's file is not available" in problem["reason"]


def test_spans_are_checked_in_other_formats_too(cli: Cli, trace: dict[str, Any]) -> None:
    import_rows(cli, trace["id"], f"1.1,present,{trace['span_list'][1]['key']},,,,,")
    (task,) = json.loads(cli.export("label-studio", "--labels", "ada"))
    task["data"]["spans"][1]["key"] = "elsewhere"
    for annotation in task["annotations"]:
        annotation["id"] = annotation["import_id"] = 77
        for result in annotation["result"]:
            result.pop("meta", None)
    Path("tasks.json").write_text(json.dumps([task]))
    error = {"category": "Goal Deviation", "location": "elsewhere"}
    Path("labels").mkdir()
    Path("labels/x.json").write_text(json.dumps({"trace_id": trace["id"], "errors": [error]}))
    for arguments, place in (
        (("tasks.json", "--format", "label-studio"), "task 1, annotation 1, result 1"),
        (("labels/x.json", "--format", "trail"), f"zoe on {trace['id']}"),
    ):
        options = ("--annotator", "zoe", "--allow-new", "--json")
        (problem,) = cli.refused("import", *arguments, *options).json["problems"]
        assert problem["place"] == place
        assert "span 'elsewhere' is not in the trace" in problem["reason"]


# Origins of labels


def older_export(judge: str = OLD_JUDGE) -> Path:
    """Write an export of a version in which labels of the judge say ``manual``."""
    text = (SAMPLES / "workspace.jsonl").read_text("utf-8")
    assert '"origin": "suggested"' in text
    text = text.replace('"origin": "suggested"', '"origin": "manual"').replace(JUDGE, judge)
    path = Path("older.jsonl")
    path.write_text(text, "utf-8")
    return path


def origins_of(value: Any, judge: str, annotator: str = "") -> set[str]:
    """Return every origin beneath the judge's name in a document."""
    if isinstance(value, list):
        return {origin for item in value for origin in origins_of(item, judge, annotator)}
    if not isinstance(value, dict):
        return set()
    annotator = str(value.get("name") or value.get("annotator") or annotator)
    origins = {str(value["origin"])} if "origin" in value and annotator == judge else set()
    return origins.union(*(origins_of(item, judge, annotator) for item in value.values()))


@pytest.mark.parametrize("is_older", [False, True], ids=["judged now", "older file"])
def test_a_judges_labels_are_suggested_in_every_export(cli: Cli, is_older: bool) -> None:
    judge = OLD_JUDGE if is_older else JUDGE
    if is_older:
        cli.ok("import", older_export(), "--format", "jsonl")
        with closing(sqlite3.connect(find_workspace(None))) as raw:
            query = "SELECT DISTINCT origin FROM labels WHERE annotator = ?"
            assert raw.execute(query, [OLD_JUDGE]).fetchall() == [("manual",)]
        sides = ("--annotators", f"mira,{judge}")
        assert origins_of(cli.gold(*sides), judge) == {"suggested"}
        cli.ok("export", "--format", "huggingface", "-o", "set", *sides)
        lines = Path("set", "data", "labels.jsonl").read_text().splitlines()
        assert origins_of([json.loads(line) for line in lines], judge) == {"suggested"}
    else:
        cli.ok("judge", SAMPLES, "--judge", "rules", "--rules", "all", "--quiet")
    rows = [row for row in cli.rows(labels=judge) if row["value"] == "present"]
    assert {row["origin"] for row in rows} == {"suggested"}
    tasks = json.loads(cli.export("label-studio", "--labels", judge))
    assert origins_of(tasks, judge) == {"suggested"}


def test_origins_of_older_events_stay_as_they_were_written(cli: Cli) -> None:
    def labels(*options: str) -> list[dict[str, Any]]:
        lines = map(json.loads, cli.export("jsonl", *options).splitlines())
        return [line for line in lines if line.get("kind") == "label_added"]

    judge = ("judge", SAMPLES, "--judge", "rules", "--rules", "all", "--quiet")
    cli.ok("import", older_export(JUDGE), "--format", "jsonl")
    previous = labels()
    cli.ok(*judge)
    # The same judge makes the same labels, whatever the origin of the older ones.
    assert labels() == previous
    cli.ok("workspace", "check")
    other = ("--workspace", "other.db")
    cli.ok(*judge, *other)
    assert {line["payload"]["label"]["origin"] for line in labels(*other)} == {"suggested"}
    # Another machine has judged the same traces with the older version.
    text = cli.export("jsonl", *other).replace('"suggested"', '"manual"')
    older = [
        json.dumps(json.loads(line) | {"id": f"older-{number}"}) if '"event"' in line else line
        for number, line in enumerate(text.splitlines())
    ]
    Path("older.jsonl").write_text("\n".join(older))
    cli.ok("import", "older.jsonl", "--format", "jsonl", *other)


@pytest.mark.parametrize("origin", ["manual", "suggested", ""])
def test_imported_rows_get_the_origin_of_a_judge_or_an_annotator(cli: Cli, origin: str) -> None:
    time = "2025-01-02T03:04:05Z"
    rows = ["t,judge:x,1.2,absent,,"]
    for name in ("judge:x", "ada"):
        rows += [f"t,{name},1.1,present,{origin},", f"t,{name},,finished,,{time}"]
    columns = f"{COLUMNS},origin,created_at"
    for _ in range(2):
        report = cli.label(*rows, columns=columns, options=["--json"]).json
        assert report["notes"] == []
    with open_workspace() as workspace:
        passes = workspace.passes()
        assert [(one.started_at, one.finished_at) for one in passes] == [(time, time)] * 2
        origins = {label.annotator: label.origin for label in workspace.labels()}
    assert origins == {
        "judge:x": Origin.SUGGESTED if origin else Origin.IMPORTED,
        "ada": Origin.MANUAL if origin == "manual" else Origin.IMPORTED,
    }
