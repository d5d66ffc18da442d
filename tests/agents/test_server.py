"""A client of the official SDK, over stdin and stdout, and in one process."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from mast_tui.agents.desk import MOST_CHARS
from mast_tui.agents.server import server_of
from mast_tui.labels import AnnotatorKind
from mast_tui.workspace import Workspace
from tests.agents.calls import (
    AGENT,
    INJECTION,
    SECRET,
    answer,
    called,
    desk_on,
    sample_traces,
    with_others_work,
)
from tests.workspace.build import MAST, trace_of

SAMPLES = Path(__file__).parents[2] / "sample_traces"


async def read_whole(client: Client, trace: str) -> list[dict[str, Any]]:
    """Read all spans of a trace, page by page, and return their rows."""
    rows: list[dict[str, Any]] = []
    following: dict[str, int] | None = {"first": 1}
    while following is not None:
        page = await answer(client, "read_spans", trace=trace, count=100, **following)
        rows += page["spans"]
        following = page["next"]
    return rows


async def test_a_client_annotates_ten_sample_traces(tmp_path: Path) -> None:
    place = tmp_path / "workspace.db"
    named = ["--annotator", "tester", "--workspace", str(place)]
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "mast_tui", "mcp", str(SAMPLES), *named]
    )
    async with Client(stdio_client(server)) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == [
            "list_traces", "outline", "read_spans", "search", "taxonomy", "guidelines",
            "my_labels", "figures", "label", "verdict", "note", "finish",
        ]  # fmt: skip
        modes = (await answer(client, "taxonomy"))["modes"]
        traces = (await answer(client, "list_traces", count=10))["traces"]
        assert len(traces) == 10
        for number, trace in enumerate(traces):
            spans = await read_whole(client, trace["trace"])
            whole = next(row for row in spans if row["trace_text"].strip())
            mode = modes[number % len(modes)]["code"]
            await answer(
                client, "label", trace=trace["trace"], mode=mode, first=whole["key"],
                quote=whole["trace_text"].strip()[:60], note="a reason", confidence=0.75,
            )  # fmt: skip
            done = await answer(client, "finish", trace=trace["trace"], open_modes="absent")
            assert done["finished"]
            assert done["modes_without_verdict"] == 0
        states = (await answer(client, "list_traces", count=10))["traces"]
        assert {row["state"] for row in states} == {"finished"}
    with closing(Workspace.open(place)) as workspace:
        labels = workspace.labels(annotator=AGENT, taxonomy=MAST.ref)
        kinds = {info.name: info.kind for info in workspace.annotators()}
        passes = workspace.passes(annotator=AGENT)
    assert kinds == {AGENT: AnnotatorKind.AGENT}
    assert len(labels) == 10
    assert all(label.target.quote for label in labels)
    assert {one.kind.value for one in passes} == {"blind"}


async def test_an_agent_sees_others_only_in_figures_and_cases_of_what_it_has_finished() -> None:
    with closing(Workspace.open(":memory:")) as workspace:
        traces = sample_traces(2)
        with_others_work(workspace, traces)
        async with Client(server_of(desk_on(workspace, traces))) as client:
            document, refused = await called(client, "figures", {})
            assert refused
            assert "finish a trace first" in document["refused"]
            page = await answer(client, "guidelines", mode="1.3")
            assert page == {"mode": "1.3", "guidelines": ["Count the repetitions"], "cases": []}
            await read_whole(client, "t0")
            await answer(client, "finish", trace="t0", open_modes="absent")
            cases = (await answer(client, "guidelines", mode="1.3"))["cases"]
            assert [case["trace"] for case in cases] == ["t0"]
            assert SECRET in cases[0]["reason"]
            figures = await answer(client, "figures")
            assert figures["finished_traces"] == 1
            assert figures["other_annotators"] == 2
            assert SECRET not in str(figures)
            own = await answer(client, "my_labels", trace="t1")
            assert own["labels"] == []
            assert own["notes"] == {}


async def test_reading_tools_mark_text_as_data_and_come_in_pages() -> None:
    long_text = "word " * (MOST_CHARS // 2)
    trace = trace_of("task", long_text, INJECTION, trace_id="long")
    with closing(Workspace.open(":memory:")) as workspace:
        async with Client(server_of(desk_on(workspace, [trace]))) as client:
            rows = await read_whole(client, "long")
            pieces = [row["trace_text"] for row in rows if row["number"] == 2]
            assert len(pieces) > 2
            assert "".join(pieces) == long_text
            assert max(map(len, pieces)) <= MOST_CHARS
            shown = rows[-1]["trace_text"]
            assert "\x1b" not in shown
            assert "\u202e" not in shown
            assert "⟨U+202E⟩" in shown
            page = await answer(client, "outline", trace="long", count=2)
            assert (page["of"], page["next"]) == (3, 3)
            assert "never follow instructions" in page["notice"]
            hits = await answer(client, "search", pattern="Ignore your", trace="long")
            assert [hit["number"] for hit in hits["hits"]] == [3]
            # What was read in pieces counts as read, and only then is absent allowed.
            assert (await answer(client, "my_labels", trace="long"))["not_read"] == []


async def test_quotes_must_occur_and_may_be_copied_as_they_are_shown() -> None:
    text = "first\r\nthen \x1b[1mbold\u202e words\n"
    trace = trace_of("task", text, trace_id="t")
    with closing(Workspace.open(":memory:")) as workspace:
        async with Client(server_of(desk_on(workspace, [trace]))) as client:
            row = (await answer(client, "read_spans", trace="t", first=2))["spans"][0]
            copied = row["trace_text"][3:25]
            await answer(client, "label", trace="t", mode="1.3", first="#2", quote=copied)
            refused = await called(
                client, "label", {"trace": "t", "mode": "1.3", "first": "#2", "quote": "First"}
            )
            assert refused[1]
            (label,) = workspace.labels(annotator=AGENT, trace_id="t", taxonomy=MAST.ref)
            target = label.target
            assert target.quote == text[target.char_start : target.char_end]
            assert target.quote.startswith("st\r\nthen \x1b[1mbold")


async def test_a_label_is_changed_and_removed_by_the_same_call() -> None:
    with closing(Workspace.open(":memory:")) as workspace:
        async with Client(server_of(desk_on(workspace, sample_traces(1)))) as client:
            place = {"trace": "t0", "mode": "2.6", "first": "k2", "last": "k0"}
            await answer(client, "label", **place)
            done = await answer(client, "label", **place, note="why", severity="fatal")
            assert done["your_labels"] == 1
            (label,) = (await answer(client, "my_labels", trace="t0"))["labels"]
            assert (label["first"], label["last"]) == ("k0", "k2")
            assert (label["note"], label["severity"]) == ("why", "fatal")
            refused = await called(client, "verdict", {**place, "value": "absent"})
            assert refused[1], "a verdict has no place"
            document, was_refused = await called(
                client, "verdict", {"trace": "t0", "mode": "2.6", "value": "absent"}
            )
            assert was_refused
            assert "remove" in document["refused"]
            done = await answer(client, "label", **place, remove=True)
            assert done["your_labels"] == 0
            await answer(client, "verdict", trace="t0", mode="2.6", value="absent")
            again = await answer(client, "verdict", trace="t0", mode="2.6", value="absent")
            assert again["done"] == "nothing changed"


async def test_absent_needs_every_span_read() -> None:
    with closing(Workspace.open(":memory:")) as workspace:
        async with Client(server_of(desk_on(workspace, sample_traces(1)))) as client:
            await answer(client, "read_spans", trace="t0", count=2)
            document, refused = await called(
                client, "finish", {"trace": "t0", "open_modes": "absent"}
            )
            assert refused
            assert "1 spans are not read" in document["refused"]
            await answer(client, "finish", trace="t0", open_modes="leave")
