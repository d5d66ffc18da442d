"""Pages to hand over: what they show to whom, and that their labels come back without loss."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mast_tui.exchange.page.markdown import render_index_markdown
from mast_tui.gold import Decision, Said
from mast_tui.labels import AnnotatorKind, VerdictValue
from mast_tui.session import resolve_blind
from mast_tui.taxonomy.loader import load_mast
from mast_tui.workspace import NewEvent, Workspace
from mast_tui.workspace.events.types import Decided, SpanNoteSet
from tests.cli.conftest import Cli, opened
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


class Elements(HTMLParser):
    """The elements of a page, its text, and the elements that were left open."""

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
            "key": f"s{number}",
            "kind": kinds[number],
            "role": "tool" if kinds[number] == "tool_result" else "agent",
            "agent": "worker",
            "name": "bash" if number > 1 else None,
            "parent": None,
            "start": 1000.0 + number,
            "end": None,
            "status": "error" if number == 3 else "ok",
            "tokens": None,
            "place": f"line {number}",
            "preview": None,
            "text": text,
        }
        for number, text in enumerate(TEXTS)
    ]
    source = {
        "file": path.name,
        "record": None,
        "reader": "made",
        "key_scheme": 1,
        "native": True,
        "content_hash": "a" * 64,
        "content_bytes": 1,
    }
    record = {
        "format": "mast-tui trace",
        "version": 1,
        "id": trace_id,
        "source": source,
        "task": "Keep the evidence",
        "system": "made",
        "model": None,
        "benchmark": None,
        "task_id": None,
        "trial": None,
        "outcome": "failed",
        "score": 0.25,
        "hidden": {},
        "answer_key": {"reference": [["answer", "the secret answer"]]},
        "spans": spans,
        "problems": [],
    }
    path.write_text(json.dumps(record, separators=(",", ":")) + "\n", "utf-8")
    return path


@pytest.fixture
def trace(tmp_path: Path, cli: Cli) -> Path:
    """A trace that two people have labelled and a judge has looked at, with a decision on it."""
    path = write_trace(tmp_path / "run.jsonl")
    (tmp_path / "labels.csv").write_text(LABELS, "utf-8")
    cli.ok("judge", path, "--judge", "rules", "--rules", "all", "--quiet")
    cli.ok("import", "labels.csv", "--format", "csv-long", "--allow-new")
    mode = MAST.modes[0].slug
    sides = tuple(Said(name, VerdictValue.PRESENT, ()) for name in ("mira",))
    decision = Decision(
        mode, mode, VerdictValue.ABSENT, (), (), sides, "carol", "2026-05-05", reason="It does not"
    )
    with opened() as place:
        place.append([NewEvent("carol", "run", MAST.ref, 1, Decided(mode, None, decision))])
    return path


def exported(cli: Cli, *options: str) -> str:
    """Return all labels of a workspace as csv-long, without when judges finished."""
    cli.ok("export", "--format", "csv-long", "--labels", "all", "-o", "all.csv", *options)
    return JUDGE_FINISHED.sub(r"\1", Path("all.csv").read_text("utf-8"))


def test_labels_come_back_from_a_page_without_loss(cli: Cli, tmp_path: Path, trace: Path) -> None:
    cli.ok("page", trace, "-o", "run.html")
    before = exported(cli)
    cli.ok("import", "run.html", "--format", "page")
    assert exported(cli) == before, "a page changes the workspace that it came from"
    elsewhere = ("--workspace", str(tmp_path / "elsewhere.db"))
    imported = cli("import", "run.html", "--format", "page", "--json", *elsewhere)
    assert imported.json["labels"] == before.count(",present,")
    assert imported.json["events"]["known"] == 0
    assert exported(cli, *elsewhere) == before
    with closing(Workspace.open(tmp_path / "elsewhere.db")) as place:
        (record,) = place.traces()
        assert (record.system, record.score, record.spans) == ("made", 0.25, len(TEXTS))
        assert place.taxonomies()[0].content_hash == MAST.content_hash


def test_a_page_shows_the_run_with_everything_said_of_it(cli: Cli, trace: Path) -> None:
    cli.ok("page", trace, "-o", "run.html")
    content = Path("run.html").read_text("utf-8")
    page = Elements(content)
    assert page.open == []
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {f"span-{number}" for number in range(1, len(TEXTS) + 1)} <= set(ids)
    links = [attributes["href"] or "" for tag, attributes in page.elements if tag == "a"]
    assert {link[1:] for link in links} <= set(ids)
    assert "<mark" in content
    for sentence in (
        "says one thing",
        "two\nlines",
        "keep in mind",
        "adjudicated by carol: It does not",
    ):
        assert sentence in page.text
    assert "line 59 of the log" in page.text
    assert "bash -lc \nkubectl rollout restart\nsleep 5" in page.text


def test_foreign_text_stays_text(cli: Cli, tmp_path: Path, trace: Path) -> None:
    with opened() as place:
        fact = SpanNoteSet("s2", "", CLOSING)
        place.append([NewEvent("tomas", "run", MAST.ref, 2, fact)])
    cli.ok("page", trace, "-o", "run.html")
    page = Elements(Path("run.html").read_text("utf-8"))
    tags = [tag for tag, _ in page.elements]
    assert tags.count("script") == 2
    assert "img" not in tags
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert MARKUP in page.text
    assert "\x1b" not in page.text
    assert "\u202e" not in page.text
    elsewhere = ("--workspace", str(tmp_path / "elsewhere.db"))
    cli.ok("import", "run.html", "--format", "page", *elsewhere)


def test_a_page_shows_no_more_than_its_reader_may_see(
    cli: Cli, tmp_path: Path, trace: Path
) -> None:
    with opened() as place:
        place.add_annotator("newcomer", AnnotatorKind.HUMAN)
        resolve_blind(place, "newcomer", blind=True, taxonomy=MAST.ref)
    for name in ("run.html", "run.md"):
        options = ["--markdown"] if name.endswith("md") else []
        done = cli.ok("page", trace, "-o", name, "--annotator", "newcomer", *options)
        assert "1 trace is left out" in done.err
        content = Path(name).read_text("utf-8")
        for hidden in ("mira", "tomas", "carol", "judge:rules", "Outcome", "0.25", "one thing"):
            assert hidden not in content
        assert "evidence down first" in content
    cli.ok("page", trace, "-o", "run.html")
    assert "says one thing" in Path("run.html").read_text("utf-8")


def test_pictures_are_in_the_page_unless_it_has_masks(cli: Cli, tmp_path: Path) -> None:
    name = "<script>alert(1)<script>.png"
    (tmp_path / name).write_bytes(png(8, 4, 1))
    images = [
        anthropic_image(RED),
        {"type": "image", "source": {"type": "file", "path": name}},
        {"type": "image", "source": {"type": "file", "path": "missing<b>.png"}},
    ]
    record = {"messages": [{"role": "user", "content": images}]}
    (tmp_path / "seen.json").write_text(json.dumps(record))
    cli.ok("page", "seen.json", "-o", "seen.html")
    parsed = Elements((tmp_path / "seen.html").read_text())
    sources = [attributes for tag, attributes in parsed.elements if tag == "img"]
    assert [(image["width"], image["height"]) for image in sources] == [("64", "48"), ("8", "4")]
    assert sources[0]["src"] == f"data:image/png;base64,{RED}"
    assert "PNG, 64 × 48" in parsed.text
    assert "missing<b>.png (No such file" in parsed.text
    cli.ok("page", "seen.json", "-o", "seen.md", "--markdown")
    assert "*Picture: PNG, 64 × 48" in (tmp_path / "seen.md").read_text()
    cli.ok("page", "seen.json", "-o", "masked.html", "--redact")
    assert "<img" not in (tmp_path / "masked.html").read_text()


def test_a_page_lists_the_files_that_were_changed(cli: Cli, tmp_path: Path) -> None:
    arguments = json.dumps({"file_path": "<b>.py", "content": "x = 1\n"})
    function = {"name": "Write", "arguments": arguments}
    messages = [
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": function}]},
        {"role": "tool", "tool_call_id": "c", "content": "Error: disk full", "is_error": True},
    ]
    (tmp_path / "seen.json").write_text(json.dumps({"messages": messages}))
    cli.ok("page", "seen.json", "-o", "seen.html")
    text = " ".join(Elements((tmp_path / "seen.html").read_text()).text.split())
    assert "1 file changed <b>.py #2 failed" in text
    cli.ok("page", "seen.json", "-o", "seen.md", "--markdown")
    assert "- \\<b\\>.py: #2 failed" in (tmp_path / "seen.md").read_text()


def test_pseudonyms_stand_for_all_names(cli: Cli, trace: Path) -> None:
    cli.ok("page", trace, "-o", "run.html", "--pseudonyms")
    written = Path("run.html").read_text("utf-8")
    for name in ("mira", "tomas", "carol"):
        assert name not in written


def test_markdown_holds_the_same(cli: Cli, trace: Path) -> None:
    cli.ok("page", trace, "-o", "run.md", "--markdown")
    content = Path("run.md").read_text("utf-8")
    for sentence in (
        "says one thing",
        "two⏎lines",
        "keep in mind",
        "line 59 of the log",
        "### #4 ",
    ):
        assert sentence in content
    assert "<script>" not in content.replace("```", "").split("## Run")[0]


def test_several_runs_become_a_folder_with_an_index(cli: Cli, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    write_trace(runs / "a.jsonl", "a/../b")
    write_trace(runs / "b.jsonl", "index")
    cli.ok("page", runs, "-o", "pages")
    names = {path.name for path in Path("pages").iterdir()}
    assert names == {"index.html", "a-..-b.html", "index-2.html"}
    index = Elements(Path("pages/index.html").read_text("utf-8"))
    links = [attributes["href"] or "" for tag, attributes in index.elements if tag == "a"]
    assert sorted(links) == ["a-..-b.html", "index-2.html"]
    cli.ok("page", runs, "-o", "texts", "--markdown")
    assert len(list(Path("texts").glob("*.md"))) == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: "<p>another page</p>", "is no page of mast-tui with labels"),
        (lambda text: text.replace('"records": [', '"records": [{"record": "gold"}, '), "gold"),
        (lambda text: text.replace('"version": 1', '"version": 2'), "newer version"),
        (lambda text: text.replace('"annotator": "mira"', '"annotator": "gold"'), "reserved"),
        (lambda text: text.replace('"mode": "reasoning_', '"mode": "other'), "is no mode of"),
        (lambda text: text[: text.index('"record": "work"')], "is no page of mast-tui"),
    ],
)
def test_a_damaged_page_is_refused(
    cli: Cli, trace: Path, change: Callable[[str], str], said: str
) -> None:
    cli.ok("page", trace, "-o", "run.html")
    Path("bad.html").write_text(change(Path("run.html").read_text("utf-8")), "utf-8")
    cli.refused("import", "bad.html", "--format", "page", "--workspace", "elsewhere.db", says=said)


def test_the_index_as_markdown_has_no_markup_of_titles() -> None:
    index = render_index_markdown({"a b.md": "x](javascript:1) ![p](q)\n# H <img src=x>\x1b"})
    assert index == (
        "# Runs\n\n- [x\\](javascript:1) !\\[p\\](q)⏎\\# H \\<img src=x\\>␛](a%20b.md)\n"
    )


def test_labels_of_a_page_are_checked_against_a_trace_at_hand(cli: Cli, trace: Path) -> None:
    cli.ok("page", trace, "-o", "run.html")
    content = Path("run.html").read_text("utf-8")
    changed, count = re.subn(r'"first":\s*"[^"]+"', '"first": "nowhere"', content, count=1)
    assert count == 1
    Path("run.html").write_text(changed, "utf-8")
    cli.refused("import", "run.html", "--format", "page", says="nowhere")
