"""``mast-tui page``: contents of pages for each reader, and import of their labels."""

from __future__ import annotations

import json
import re
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mast_tui.exchange.page.rendering import render_index_markdown
from mast_tui.gold import Decision, SideAnswer
from mast_tui.labels import AnnotatorKind, VerdictValue
from mast_tui.session import resolve_blind
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import samples_folder
from mast_tui.workspace import NewEvent, Workspace
from mast_tui.workspace.events.types import Decided, SpanNoteSet
from tests.cli.conftest import Cli, open_workspace
from tests.traces.test_pictures import RED, anthropic_image, png

MAST = load_mast()
MARKUP = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=2>"
CLOSING = f"{MARKUP} \x1b[31m\u202e"
TEXTS = (
    "Restart the service, but write the evidence down first.",
    f"I will restart it now. {CLOSING}",
    '{"command": ["bash", "-lc", "kubectl rollout restart\\nsleep 5"]}',
    "\n".join(f"line {number} of the log" for number in range(60)),
)
JUDGE_FINISHED = re.compile(r"(,judge:[^,]*,,finished,.*),[^,]*Z,,")
HEADING = (
    "trace_id,annotator,mode,value,span_first,span_last,quote,char_start,char_end,confidence,"
    "severity,origin,saw_suggestion,note,taxonomy,created_at,slug,merged\n"
)
LABELS = HEADING + (
    "run,mira,2.6,present,s1,s2,,,,0.75,fatal,manual,true,says one thing,,2026-05-04T10:20:30Z,,\n"
    'run,mira,1.1,present,s3,s3,line 41 of the log,,,,benign,manual,false,"two\nlines",,,,\n'
    "run,mira,1.3,unsure,,,,,,,,,,,,,,\n"
    "run,mira,,note,s0,,,,,,,,,keep in mind,,,,\n"
    "run,mira,,finished,,,,,,,,,,,,2026-05-04T10:30:00Z,,\n"
    "run,tomas,2.6,present,,,,,,,,manual,false,,,,,\n"
    "run,tomas,1.2,absent,,,,,,,,,,,,,,\n"
    "run,tomas,,finished,,,,,,,,,,,,,,\n"
)


class ParsedPage(HTMLParser):
    """The elements of a page, its text, and the elements without an end."""

    EMPTY = frozenset({"meta", "br", "input", "img", "link"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def write_trace(path: Path, trace_id: str = "run") -> Path:
    """Write a trace in the project's own format, with a sub-agent's steps and an answer key."""
    kinds = ("message", "message", "tool_call", "tool_result")
    spans = [
        {
            "key": f"s{number}", "kind": kinds[number], "agent": "worker", "parent": None,
            "role": "tool" if kinds[number] == "tool_result" else "agent",
            "name": "bash" if number > 1 else None, "start": 1000.0 + number, "end": None,
            "status": "error" if number == 3 else "ok", "tokens": None,
            "place": f"line {number}", "preview": None, "text": text,
        }
        for number, text in enumerate(TEXTS)
    ]  # fmt: skip
    source = {
        "file": path.name, "record": None, "reader": "made", "key_scheme": 1, "native": True,
        "content_hash": "a" * 64, "content_bytes": 1,
    }  # fmt: skip
    record = {
        "format": "mast-tui trace", "version": 1, "id": trace_id, "source": source,
        "task": "Keep the evidence", "system": "made", "model": None, "benchmark": None,
        "task_id": None, "trial": None, "outcome": "failed", "score": 0.25, "hidden": {},
        "answer_key": {"reference": [["answer", "the secret answer"]]}, "spans": spans,
        "problems": [],
    }  # fmt: skip
    path.write_text(json.dumps(record, separators=(",", ":")) + "\n", "utf-8")
    return path


@pytest.fixture
def trace(tmp_path: Path, cli: Cli) -> Path:
    """A trace with labels of two annotators and a judge, and with a decision."""
    path = write_trace(tmp_path / "run.jsonl")
    (tmp_path / "labels.csv").write_text(LABELS, "utf-8")
    cli.ok("judge", path, "--judge", "rules", "--rules", "all", "--quiet")
    cli.ok("import", "labels.csv", "--format", "csv-long", "--allow-new")
    mode = MAST.modes[0].slug
    side = SideAnswer("mira", VerdictValue.PRESENT, ())
    decision = Decision(
        mode,
        mode,
        VerdictValue.ABSENT,
        (),
        (),
        (side,),
        "carol",
        "2026-05-05",
        reason="It does not",
    )
    with open_workspace() as workspace:
        workspace.append([NewEvent("carol", "run", MAST.ref, 1, Decided(mode, None, decision))])
    return path


def write_page(cli: Cli, trace: object, name: str = "run.html", *options: object) -> str:
    markdown = ["--markdown"] if name.endswith("md") else []
    cli.ok("page", trace, "-o", name, *markdown, *options)
    return Path(name).read_text("utf-8")


def export_labels(cli: Cli, *options: str) -> str:
    """Return all labels of a workspace as csv-long, without the judges' finish times."""
    return JUDGE_FINISHED.sub(r"\1", cli.export("csv-long", "--labels", "all", *options))


def test_labels_are_imported_from_a_page_without_loss(cli: Cli, trace: Path) -> None:
    content = write_page(cli, trace)
    original = export_labels(cli)
    cli.ok("import", "run.html", "--format", "page")
    assert export_labels(cli) == original, "a page changes its own workspace"
    elsewhere = ("--workspace", "elsewhere.db")
    imported = cli.json("import", "run.html", "--format", "page", *elsewhere)
    assert imported["labels"] == original.count(",present,")
    assert imported["events"]["known"] == 0
    assert export_labels(cli, *elsewhere) == original
    with closing(Workspace.open("elsewhere.db")) as workspace:
        (record,) = workspace.traces()
        assert (record.system, record.score, record.spans) == ("made", 0.25, len(TEXTS))
        assert workspace.taxonomies()[0].content_hash == MAST.content_hash
    # Labels are checked against the trace.
    changed, count = re.subn(r'"first":\s*"[^"]+"', '"first": "nowhere"', content, count=1)
    assert count == 1
    Path("run.html").write_text(changed, "utf-8")
    cli.refused("import", "run.html", "--format", "page", says="nowhere")


def test_a_page_shows_the_run_with_labels_notes_and_decisions(cli: Cli, trace: Path) -> None:
    content = write_page(cli, trace)
    parsed = ParsedPage(content)
    assert parsed.open == []
    ids = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {f"span-{number}" for number in range(1, len(TEXTS) + 1)} <= set(ids)
    links = [attributes["href"] or "" for tag, attributes in parsed.elements if tag == "a"]
    assert {link[1:] for link in links} <= set(ids)
    assert "<mark" in content
    for text in (
        "says one thing",
        "two\nlines",
        "keep in mind",
        "adjudicated by carol: It does not",
        "line 59 of the log",
        "bash -lc \nkubectl rollout restart\nsleep 5",
    ):
        assert text in parsed.text
    markdown = write_page(cli, trace, "run.md")
    for text in ("says one thing", "two⏎lines", "keep in mind", "line 59 of the log", "### #4 "):
        assert text in markdown
    assert "<script>" not in markdown.replace("```", "").split("## Run")[0]
    pseudonymous = write_page(cli, trace, "letters.html", "--pseudonyms")
    for name in ("mira", "tomas", "carol"):
        assert name not in pseudonymous


def test_foreign_text_is_no_markup(cli: Cli, trace: Path) -> None:
    with open_workspace() as workspace:
        fact = SpanNoteSet("s2", "", CLOSING)
        workspace.append([NewEvent("tomas", "run", MAST.ref, 2, fact)])
    parsed = ParsedPage(write_page(cli, trace))
    tags = [tag for tag, _ in parsed.elements]
    assert tags.count("script") == 2
    assert "img" not in tags
    assert not any(name.startswith("on") for _, names in parsed.elements for name in names)
    assert MARKUP in parsed.text
    assert "\x1b" not in parsed.text
    assert "\u202e" not in parsed.text
    cli.ok("import", "run.html", "--format", "page", "--workspace", "elsewhere.db")
    index = render_index_markdown({"a b.md": "x](javascript:1) ![p](q)\n# H <img src=x>\x1b"})
    link = "[x\\](javascript:1) !\\[p\\](q)⏎\\# H \\<img src=x\\>␛](a%20b.md)"
    assert index == f"# Runs\n\n- {link}\n"


def test_a_page_shows_no_more_than_its_reader_may_see(cli: Cli, trace: Path) -> None:
    with open_workspace() as workspace:
        workspace.add_annotator("newcomer", AnnotatorKind.HUMAN)
        resolve_blind(workspace, "newcomer", blind=True, taxonomy=MAST.ref)
    for name, options in (("run.html", ()), ("run.md", ("--markdown",))):
        result = cli.ok("page", trace, "-o", name, "--annotator", "newcomer", *options)
        assert "judges' labels on 1 trace are left out" in result.err
        content = Path(name).read_text("utf-8")
        for hidden in ("mira", "tomas", "carol", "judge:rules", "Outcome", "0.25", "one thing"):
            assert hidden not in content
        assert "evidence down first" in content
    assert "says one thing" in write_page(cli, trace)


def test_pictures_are_in_the_page_unless_it_is_redacted(cli: Cli) -> None:
    name = "<script>alert(1)<script>.png"
    Path(name).write_bytes(png(8, 4, 1))
    files = [
        {"type": "image", "source": {"type": "file", "path": path}}
        for path in (name, "missing<b>.png")
    ]
    record = {"messages": [{"role": "user", "content": [anthropic_image(RED), *files]}]}
    Path("seen.json").write_text(json.dumps(record))
    parsed = ParsedPage(write_page(cli, "seen.json"))
    sources = [attributes for tag, attributes in parsed.elements if tag == "img"]
    assert [(image["width"], image["height"]) for image in sources] == [("64", "48"), ("8", "4")]
    assert sources[0]["src"] == f"data:image/png;base64,{RED}"
    assert "PNG, 64 × 48" in parsed.text
    assert "missing<b>.png (No such file" in parsed.text
    assert "*Picture: PNG, 64 × 48" in write_page(cli, "seen.json", "seen.md")
    assert "<img" not in write_page(cli, "seen.json", "masked.html", "--redact")


def test_a_page_lists_the_changed_files(cli: Cli) -> None:
    arguments = json.dumps({"file_path": "<b>.py", "content": "x = 1\n"})
    calls = [{"id": "c", "function": {"name": "Write", "arguments": arguments}}]
    messages = [
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c", "content": "Error: disk full", "is_error": True},
    ]
    Path("seen.json").write_text(json.dumps({"messages": messages}))
    text = " ".join(ParsedPage(write_page(cli, "seen.json")).text.split())
    assert "1 file changed <b>.py #2 failed" in text
    assert "- \\<b\\>.py: #2 failed" in write_page(cli, "seen.json", "seen.md")


def test_several_runs_become_a_folder_with_an_index(cli: Cli) -> None:
    runs = Path("runs")
    runs.mkdir()
    write_trace(runs / "a.jsonl", "a/../b")
    write_trace(runs / "index.jsonl", "b")
    cli.ok("page", runs, "-o", "pages")
    names = {path.name for path in Path("pages").iterdir()}
    assert names == {"index.html", "a.html", "index-2.html"}
    index = ParsedPage(Path("pages/index.html").read_text("utf-8"))
    links = [attributes["href"] or "" for tag, attributes in index.elements if tag == "a"]
    assert sorted(links) == ["a.html", "index-2.html"]
    cli.ok("page", runs, "-o", "texts", "--markdown")
    assert len(list(Path("texts").glob("*.md"))) == 3
    chat = samples_folder() / "chatdev_routelat.json"
    for name in ("run.html", "run.md") * 2:  # a run of ChatDev also looks like one on its page
        cli.ok("page", chat, "-o", name, *(["--markdown"] if name == "run.md" else []))


def test_a_damaged_page_is_refused(cli: Cli, trace: Path) -> None:
    content = write_page(cli, trace)
    for damaged, message in (
        ("<p>another page</p>", "is not a mast-tui page with labels"),
        (content.replace('"records": [', '"records": [{"record": "gold"}, '), "gold"),
        (content.replace('"version": 1', '"version": 2'), "newer version"),
        (content.replace('"annotator": "mira"', '"annotator": "gold"'), "reserved"),
        (content.replace('"mode": "reasoning_', '"mode": "other'), "is not a mode of"),
        (content[: content.index('"record": "work"')], "is not a mast-tui page"),
    ):
        Path("bad.html").write_text(damaged, "utf-8")
        arguments = ("import", "bad.html", "--format", "page", "--workspace", "elsewhere.db")
        cli.refused(*arguments, says=message)
