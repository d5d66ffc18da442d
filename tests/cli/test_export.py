"""Exports of labels and gold: contents, files beside them, and import of the exports."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.exporters.codebook import codebook_text
from mast_tui.exchange.exporters.datasheet import read_datasheet
from mast_tui.exchange.formats import FormatContent
from mast_tui.exchange.registry import EXPORT_FORMATS, FORMATS, IMPORT_FORMATS
from mast_tui.gold import Guideline
from mast_tui.judges.rules import RulesJudge
from mast_tui.taxonomy.loader import load_mast
from mast_tui.workspace import NewEvent
from mast_tui.workspace.events.types import GuidelineSet
from tests.cli.conftest import COLUMNS, Cli, open_workspace

MAST: Final = load_mast()
JUDGE: Final = RulesJudge().name
DOCS: Final = Path(__file__).resolve().parents[2] / "docs" / "exchange.md"
MESSAGES: Final = [
    {"role": "user", "content": "Start the 🚀 now."},
    {"role": "assistant", "content": "שלום, it is done."},
]
SPAN_COLUMNS: Final = f"{COLUMNS},span_first,span_last,quote,char_start,char_end,note,slug"


# Every format


@pytest.mark.parametrize("name", EXPORT_FORMATS)
def test_an_export_is_imported_into_another_workspace(cli: Cli, name: str) -> None:
    cells = ("1.3,present,k1,again", "1.1,absent,,", "1.2,unsure,,", ",finished,,")
    rows = [f"t1,{annotator},{cell}" for annotator in ("alice", "bob") for cell in cells]
    cli.label(*rows, columns=f"{COLUMNS},span_first,note")
    output = Path(EXPORT_FORMATS[name].file_name)
    has_labels = FORMATS[name].content in (FormatContent.LABELS, FormatContent.VERDICTS)
    options = ("--format", name, *(("--labels", "all") if has_labels else ()), "-o")
    cli.ok("export", *options, output)
    assert output.is_dir() is FORMATS[name].is_folder
    if name not in IMPORT_FORMATS:
        return
    other = ("--workspace", "other.db")
    report = cli.json("import", output, "--format", name, *other)
    assert (report["annotators"], report["traces"], report["finished"]) == (["alice", "bob"], 1, 2)
    if name.startswith("csv"):
        cli.ok("export", *options, "again", *other)
        assert Path("again").read_bytes() == output.read_bytes()


# Labels on a trace whose file exists


@pytest.fixture
def labelled(cli: Cli) -> dict[str, Any]:
    """A trace with labels and a note of alice, as ``inspect --spans`` shows it."""
    Path("run.json").write_text(json.dumps(MESSAGES), encoding="utf-8")
    (trace,) = cli.json("inspect", "run.json", "--spans")["files"][0]["traces"]
    first, last = (span["key"] for span in trace["span_list"])
    cli.ok("judge", "run.json", "--judge", "rules")
    rows = (
        f"1.3,present,{first},{first},🚀,10,11,see it,",
        f"2.3,present,{first},{last},,,,,",
        ",present,,,,,,whole,premature_termination",
        "1.1,absent,,,,,,,",
        "1.2,unsure,,,,,,,",
        f",note,{first},,,,,look here,",
        ",finished,,,,,,,",
    )
    cli.label(*(f"{trace['id']},alice,{row}" for row in rows), columns=SPAN_COLUMNS)
    return dict(trace)


def test_label_studio_tasks_have_texts_offsets_and_notes_and_are_imported(
    cli: Cli, labelled: dict[str, Any]
) -> None:
    report = cli.json("export", "--format", "label-studio", "--labels", "all", "-o", "tasks.json")
    assert (report["without_text"], report["beside"]) == (0, ["tasks.config.xml"])
    assert "<ParagraphLabels" in Path("tasks.config.xml").read_text("utf-8")
    (task,) = json.loads(Path("tasks.json").read_text("utf-8"))
    assert [span["text"] for span in task["data"]["spans"]] == [m["content"] for m in MESSAGES]
    offsets = [
        (value["start"], value["startOffset"], value["endOffset"])
        for result in task["annotations"][0]["result"]
        if "startOffset" in (value := result["value"])
    ]
    assert ("0", 10, 12) in offsets
    notes = [by.get("span_notes") for by in task["meta"]["mast_tui"]["by"].values()]
    assert {labelled["span_list"][0]["key"]: "look here"} in notes

    arguments = ("import", "tasks.json", "--format", "label-studio")
    same = cli.json(*arguments)
    assert same["events"] == {"new": 0, "known": 0}
    assert "unchanged, already in" in same["notes"][0]
    other = ("--workspace", "other.db")
    assert cli.json(*arguments, *other)["annotators"] == ["alice", JUDGE]
    assert cli.rows(*other, labels="alice") == cli.rows(labels="alice")
    assert cli.json(*arguments, *other)["events"]["new"] == 0


def test_gold_from_label_studio_becomes_no_annotator(cli: Cli, labelled: dict[str, Any]) -> None:
    (task,) = json.loads(cli.export("label-studio"))
    assert [annotation["ground_truth"] for annotation in task["annotations"]] == [True]
    arguments = ("import", "exported", "--format", "label-studio")
    assert cli.json(*arguments)["events"] == {"new": 0, "known": 0}
    other = ("--workspace", "o.db")
    cli.refused(*arguments, *other, says='"gold" is reserved')
    report = cli.json(*arguments, *other, "--annotator", "the experts")
    assert report["annotators"] == ["the experts"]
    status = cli.json("status", *other)
    assert [annotator["kind"] for annotator in status["annotators"]] == ["imported"]


def test_doccano_lines_have_the_labelled_texts_of_available_traces(
    cli: Cli, labelled: dict[str, Any]
) -> None:
    (line,) = cli.export("doccano", "--labels", "alice").splitlines()
    value = json.loads(line)
    assert "🚀" in {value["text"][start:end] for start, end, _ in value["label"]}
    assert value["cats"] == ["3.1 Premature termination"]
    assert value["trace_id"] == labelled["id"]
    Path("run.json").unlink()
    out = ("export", "--format", "doccano", "--labels", "alice", "-o", "exported")
    assert cli.json(*out)["without_text"] == 1
    assert "1 trace is not available" in cli(*out).err
    assert Path("exported").read_text("utf-8") == ""


def test_csv_long_has_slugs_and_notes_and_its_import_is_undone(
    cli: Cli, labelled: dict[str, Any]
) -> None:
    rows = cli.rows(labels="alice")
    slugs = {row["mode"]: row["slug"] for row in rows if row["mode"]}
    assert slugs["1.1"] == "disobey_task_specification"
    assert slugs["1.3"] == "step_repetition"
    (note,) = [row for row in rows if row["value"] == "note"]
    key = labelled["span_list"][0]["key"]
    assert (note["span_first"], note["note"], note["mode"]) == (key, "look here", "")
    arguments = ("import", "exported", "--format", "csv-long")
    assert cli.json(*arguments)["events"]["new"] == 0
    other = ("--workspace", "other.db")
    cli.ok(*arguments, *other)
    assert cli.rows(*other, labels="alice") == rows
    cli.ok("import", "--undo", *other)
    assert cli.rows(*other, labels="alice") == []
    (alice,) = cli.gold()["traces"][0]["annotators"]
    assert alice["span_notes"] == [{"key": key, "index": 0, "note": "look here"}]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("1.3,note,KEY,words,", "about a span; leave out the mode"),
        (",note,,words,", "needs one span in span_first"),
        (",note,KEY,,", "has an empty note"),
        ("1.3,present,,,premature_termination", "is step_repetition, but the slug says"),
        (",note,KEY,second,", "the note on span"),
    ],
)
def test_a_bad_note_or_slug_is_refused(
    cli: Cli, labelled: dict[str, Any], row: str, reason: str
) -> None:
    key = labelled["span_list"][0]["key"]
    columns = f"{COLUMNS},span_first,note,slug"
    start = f"{labelled['id']},bob,"
    cli.label(f"{start},note,{key},first,", columns=columns)
    Path("bad.csv").write_text(f"{columns}\n{start}{row.replace('KEY', key)}\n", "utf-8")
    cli.refused("import", "bad.csv", "--format", "csv-long", "--allow-new", says=reason)


def test_a_dataset_replaces_a_dataset_as_a_whole_and_nothing_else(
    cli: Cli, labelled: dict[str, Any]
) -> None:
    cli.label(*(f"{labelled['id']},bob,{row}" for row in ("2.3,absent", ",finished")))
    out = ("export", "--format", "huggingface", "-o")
    cli.ok(*out, "set")
    data = Path("set", "data")
    assert (data / "gold.jsonl").exists()
    assert (data / "annotator_bob.jsonl").exists()
    card = Path("set", "README.md").read_text("utf-8")
    assert card.startswith("---\n")
    assert "## Datasheet" in card
    cli.ok(*out, "set", "--annotators", "alice")
    assert not (data / "annotator_bob.jsonl").exists()
    Path("README.md").write_text("# My project", encoding="utf-8")
    cli.refused(*out, ".", says="not written by mast-tui")
    assert Path("README.md").read_text("utf-8") == "# My project"


def test_gold_and_its_datasheet_report_annotators_and_judges(
    cli: Cli, labelled: dict[str, Any]
) -> None:
    report = cli.json("export", "--format", "gold", "-o", "gold.json")
    assert report["beside"] == ["gold.datasheet.md"]
    sheet = Path("gold.datasheet.md").read_text("utf-8")
    assert "| alice | human | 1 |" in sheet
    assert f"| {JUDGE} | 1 |" in sheet
    gold = cli.gold()
    assert gold["agreement"]["spans"] is not None
    assert gold["left_out"]["judges"] == [JUDGE]
    assert gold["judges"][JUDGE]["against"] == "gold"


def test_an_annotator_in_two_copies_at_once_is_reported(cli: Cli) -> None:
    for name, mode in (("one", "1.3"), ("two", "2.1")):
        workspace = ("--workspace", f"{name}.db")
        cli.label(f"t,alice,{mode},present", options=workspace)
        cli.ok("export", "--format", "jsonl", "-o", f"{name}.jsonl", *workspace)
    merge = ("--workspace", "both.db", "import", "--format", "jsonl")
    err = cli.ok(*merge, "one.jsonl", "two.jsonl").err
    assert "alice worked in two copies at once: step 2 is" in err
    assert "'label step_repetition on t'" in err
    assert "'label conversation_reset on t'" in err
    quiet = cli.json(*merge, "two.jsonl", "one.jsonl")
    assert (quiet["events"]["new"], quiet["notes"]) == (0, [])
    # A taxonomy of the same version with other modes is refused.
    text = Path("one.jsonl").read_text("utf-8")
    Path("b.jsonl").write_text(text.replace("step_repetition", "step_repeated"))
    message = "b.jsonl: taxonomy mast@3 is already in this workspace with other modes"
    cli.refused(*merge, "b.jsonl", says=message)


# The datasheet


def documented_datasheet() -> str:
    example = re.search(r"## datasheet\.toml\n.*?```toml\n(.*?)```", DOCS.read_text("utf-8"), re.S)
    assert example is not None
    return example[1]


def test_the_datasheet_is_in_gold_the_card_and_the_citation(cli: Cli) -> None:
    labels = ("t,alice,1.1,absent", "t,alice,,finished")
    cli.label(*labels)
    Path(".mast-tui", "datasheet.toml").write_text(documented_datasheet(), encoding="utf-8")
    report = cli.json("export", "--format", "gold", "-o", "gold.json")
    assert report["beside"] == ["gold.datasheet.md", "gold.CITATION.cff"]
    gold = json.loads(Path("gold.json").read_text("utf-8"))
    assert gold["datasheet"]["people"]["pay"] == "20 euros an hour"
    sheet = Path("gold.datasheet.md").read_text("utf-8")
    assert "- Pay: 20 euros an hour\n" in sheet
    assert "- Licence: cc-by-4.0\n" in sheet
    cli.ok("export", "--format", "huggingface", "-o", "set")
    heading = Path("set", "README.md").read_text("utf-8").split("\n---\n")[0]
    assert 'license: "cc-by-4.0"\nlanguage: ["en"]' in heading
    assert 'pretty_name: "Failures of three coding agents"' in heading
    assert heading.count("task_categories") == 1

    facts = gold["set"]
    options = {"ensure_ascii": False, "sort_keys": True, "separators": (",", ":")}
    canonical = json.dumps(gold["traces"], **options)  # type: ignore[arg-type]
    assert facts["content_hash"] == sha256(canonical.encode()).hexdigest()
    assert facts["content_hash"] in sheet
    assert (facts["version"], facts["decisions"], facts["last_decision_at"]) == ("1.0", 0, None)
    assert facts["modes"]["1.1"] == {"verdicts": 1, "adjudicated": 0.0, "unresolved": 0.0}
    assert facts["modes"]["1.2"] == {"verdicts": 0, "adjudicated": None, "unresolved": None}
    citation = yaml.safe_load(Path("gold.CITATION.cff").read_text("utf-8"))
    ada = {"family-names": "Example", "given-names": "Ada"}
    assert citation["authors"] == [ada, {"name": "Example Laboratory"}]
    assert citation["version"] == "1.0"
    assert cli.gold()["set"] == facts, "exporting changes neither hash"
    cli.label(*(row.replace("alice", "bob") for row in labels))
    changed = cli.gold()["set"]
    assert changed["content_hash"] != facts["content_hash"]
    assert changed["events_hash"] != facts["events_hash"]


def test_another_datasheet_may_be_named(cli: Cli) -> None:
    cli.label("t,alice,1.1,absent", "t,alice,,finished")
    Path("mine.toml").write_text('contact = "me@example.org"\n', encoding="utf-8")
    assert cli.gold()["datasheet"] is None
    assert cli.gold("--datasheet", "mine.toml")["datasheet"] == {"contact": "me@example.org"}
    csv = ("export", "--format", "csv-long", "-o", "x.csv")
    cli.refused(*csv, "--datasheet", "mine.toml", code=2)
    gold = ("export", "--format", "gold", "-o", "gold.json")
    cli.refused(*gold, "--datasheet", "nowhere.toml", says="cannot be read")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('license = "mit"', "unknown key 'license'; did you mean 'licence'?"),
        ('[people]\npayment = "none"', "[people]: unknown key 'payment'; did you mean 'pay'?"),
        ("zzz = 1", "expected pretty_name"),
        ("licence = 4", "'licence' is not text"),
        ('languages = "en"', "'languages' is not a list of texts"),
        ('people = "three"', "write [people]"),
        ("licence = ", "not TOML"),
    ],
)
def test_a_mistake_in_a_datasheet_is_reported(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "datasheet.toml"
    path.write_text(text + "\n", encoding="utf-8")
    with pytest.raises(ExchangeError, match=re.escape(message)) as error:
        read_datasheet(path)
    assert str(error.value).startswith(str(path))


# The codebook


def test_the_codebook_defines_every_mode_and_has_no_labels(cli: Cli) -> None:
    cli.label("t,alice,1.1,absent", "t,alice,,finished")
    guideline = Guideline("g", MAST.modes[0].slug, "Ask twice.", "alice", "2026-05-04T10:20:30Z")
    fact = GuidelineSet("g", None, guideline)
    with open_workspace() as workspace:
        workspace.append([NewEvent("alice", None, MAST.ref, None, fact)])
    for name in ("book.md", "book.tex", "book.txt"):
        for _ in range(2):  # its own file is replaced
            report = cli.json("export", "--format", "codebook", "-o", name)
            assert (report["modes"], report["guidelines"]) == (len(MAST.modes), 1)
    markdown = Path("book.md").read_text("utf-8")
    latex = Path("book.tex").read_text("utf-8")
    for mode in MAST.modes:
        assert f"### {mode.code} {mode.name}\n\n" in markdown
        assert f"\\subsubsection{{{mode.code} {mode.name}}}\n\n" in latex
    assert "- Ask twice. (alice, 2026-05-04)" in markdown
    assert "  \\item {}Ask twice. (alice, 2026-05-04)" in latex
    labels = ("export", "--format", "codebook", "-o", "book.md", "--labels", "alice")
    cli.refused(*labels, code=2)


def test_foreign_text_is_no_markup_in_the_codebook() -> None:
    guideline = {"text": "50% & more_ #1 \\x", "by": "alice", "at": "2026-05-04T10:20:30Z"}
    case: dict[str, Any] = {
        "trace": "run_7",
        "value": "present",
        "by": "bob",
        "at": "2026-05-05T10:20:30Z",
    }
    case |= {
        "targets": [{"span_first": "k1", "span_last": "k3"}],
        "reason": "[it] *repeats* itself",
    }
    agreed: dict[str, Any] = {"1.3": {"guidelines": [guideline], "cases": [case]}}
    latex = codebook_text(MAST, agreed, latex=True)
    assert r"50\% \& more\_ \#1 \textbackslash{}x (alice, 2026-05-04)" in latex
    assert r"\item {}run\_7: present at k1 to k3 (bob, 2026-05-05): [it] *repeats* itself" in latex
    environments = re.findall(r"\\begin\{(\w+)\}", latex)
    assert environments == re.findall(r"\\end\{(\w+)\}", latex)
    assert environments
    assert r"\[it\] \*repeats\* itself" in codebook_text(MAST, agreed, latex=False)


@pytest.mark.parametrize("file_format", ["gold", "huggingface"])
def test_an_export_without_gold_is_refused_with_advice(
    cli: Cli, tmp_path: Path, file_format: str
) -> None:
    table = "trace_id,annotator,mode,value\nt,ann,1.3,present\n"
    export = ("export", "--format", file_format, "-o", "gold")

    def import_table(rows: str) -> None:
        (tmp_path / "a.csv").write_text(table + rows)
        assert cli("import", "a.csv", "--format", "csv-long", "--allow-new").code == 0

    import_table("")
    for options, message in [
        ((), "no one has finished a trace; finish one in the app"),
        (("--gold", "settled"), "no verdict of two annotators agrees"),
        (("--annotators", "ann"), "there is no gold by ann"),
    ]:
        result = cli(*export, *options)
        assert (result.code, message in result.err, result.out) == (1, True, "")
    assert not (tmp_path / "gold").exists()
    import_table("t,ann,,finished\n")
    assert cli(*export).code == 0
    hidden = cli(*export, "--force", "--annotator", "bob")
    assert (hidden.code, "left out until bob has finished" in hidden.err) == (1, True)
