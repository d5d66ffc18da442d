"""The MCP server, through clients of the official SDK."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, Final

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from mast_tui.adjudication import read_work_by_trace
from mast_tui.agents.desk import MOST_CHARS, TOOLS
from mast_tui.agents.server import server_of
from mast_tui.gold import GoldTrace
from mast_tui.labels import AnnotatorKind
from mast_tui.traces.library import read_file
from mast_tui.workspace import Workspace
from tests.agents.calls import (
    AGENT,
    INJECTION,
    JUDGE,
    SECRET,
    answer,
    called,
    desk_on,
    rows_of_others,
    sample_traces,
    with_others_work,
)
from tests.workspace.build import MAST, MODES, trace_of

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


async def test_an_agent_sees_others_only_after_finishing() -> None:
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
            assert set(figures["agreement_with"]) == {"alice", "bob"}
            assert SECRET not in str(figures)
            own = await answer(client, "my_labels", trace="t1")
            assert own["labels"] == []
            assert own["notes"] == {}


async def test_texts_are_marked_as_data_paged_and_copied_as_quotes() -> None:
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
    # Quotes are copied as they are shown.
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


async def test_labels_change_by_the_same_call_and_absent_needs_every_span() -> None:
    with closing(Workspace.open(":memory:")) as workspace:
        async with Client(server_of(desk_on(workspace, sample_traces(1)))) as client:
            place = {"trace": "t0", "mode": "2.6", "first": "k2", "last": "k0"}
            await answer(client, "label", **place)
            done = await answer(client, "label", **place, note="why", severity="fatal")
            assert done["your_labels"] == 1
            (label,) = (await answer(client, "my_labels", trace="t0"))["labels"]
            assert (label["first"], label["last"]) == ("k0", "k2")
            assert (label["note"], label["severity"]) == ("why", "fatal")
            for tool, value in (("verdict", {"value": "absent"}), ("label", {})):
                document, _ = await called(client, tool, {"trace": "t0", "mode": "2.6", **value})
                assert "you have not read 3 spans" in document["refused"]
            await read_whole(client, "t0")
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
    with closing(Workspace.open(":memory:")) as workspace:
        async with Client(server_of(desk_on(workspace, sample_traces(1)))) as client:
            await answer(client, "read_spans", trace="t0", count=2)
            document, was_refused = await called(
                client, "finish", {"trace": "t0", "open_modes": "absent"}
            )
            assert was_refused
            assert "you have not read 1 span" in document["refused"]
            await answer(client, "finish", trace="t0", open_modes="leave")


async def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"role": "user", "content": "do it"}\n' * 2)
    traces = [*read_file(path, named=True).traces]
    trace = traces[0].identity.trace_id
    with closing(Workspace.open(":memory:")) as workspace:
        async with Client(server_of(desk_on(workspace, traces))) as client:
            assert len(await read_whole(client, trace)) == 2
            path.write_text(path.read_text() + '{"role": "assistant", "content": "done"}\n')
            work = await answer(client, "my_labels", trace=trace)
            assert work["not_read"] == [{"first": 3, "last": 3}]
            path.write_text('{"role": "user", "content": "do that"}\n' * 2)
            assert (await read_whole(client, trace))[0]["trace_text"] == "do that"
            path.unlink()
            document, _ = await called(client, "outline", {"trace": trace})
            assert "can no longer be read" in document["refused"]


# Hostile calls


CALLS: Final = 500
SEED: Final = 20_261_128
TRACES: Final = 12

HUGE: Final = "x" * 70_000
STRANGE: Final[tuple[Any, ...]] = (
    None, -1, 0, 10**30, 1e308, True, "", " ", "\x00", "\ud800", HUGE, [], {}, [[[[]]]],
    {"annotator": "alice"}, "../../etc/passwd", "'; DROP TABLE labels; --", "gold", "all", "#0",
    "#-1", "#99999999999", JUDGE, "alice", INJECTION,
)  # fmt: skip
FORGED: Final = ("annotator", "name", "as_user", "taxonomy", "workspace", "pass_number", "id")


def arguments_of(tool: str, random: Random) -> dict[str, Any]:
    """Return the arguments of a call: sound, wrong in one place, or made up."""
    sound = {
        "trace": f"t{random.randrange(TRACES)}",
        "mode": random.choice(["1.1", "1.3", "2.6", "0.0", MODES[2]]),
        "first": random.choice(["k0", "k1", "k2", "#1", "#3"]),
        "last": random.choice(["k1", "#3"]),
        "quote": random.choice(["repair", INJECTION[:40], "not in it"]), "note": "a note",
        "confidence": random.random(), "severity": random.choice(["fatal", "benign"]),
        "remove": random.random() < 0.2,
        "value": random.choice(["absent", "unsure", "open", "present"]), "span": "k1",
        "text": "text", "open_modes": random.choice(["absent", "leave"]),
        "pattern": random.choice(["pods", "(", "SECRET", "."]), "regex": random.random() < 0.5,
        "count": random.choice([1, 100]), "offset": random.choice([0, 5]),
    }  # fmt: skip
    request = next((one.request for one in TOOLS if one.name == tool), None)
    fields = () if request is None else request.__struct_fields__
    values = {key: sound[key] for key in fields if key in sound and random.random() < 0.8}
    if tool in ("list_traces", "outline", "read_spans", "my_labels"):
        values["first"] = random.choice([1, 2, 3, 10**9])
    for key in fields:
        if random.random() < 0.12:
            values[key] = random.choice(STRANGE)
    if random.random() < 0.1:
        values[random.choice(FORGED)] = random.choice(["alice", "carol", "gold", JUDGE])
    return values


def test_hostile_calls_show_and_change_nothing_of_others(tmp_path: Path) -> None:
    path = tmp_path / "workspace.db"
    traces = sample_traces(TRACES)
    with closing(Workspace.open(path, create=True)) as workspace:
        with_others_work(workspace, traces)
        gold_before = gold_of_all(workspace)
    before = rows_of_others(path)
    # Two servers of one agent write to one workspace at the same time.
    with ThreadPoolExecutor(2) as threads:
        results = threads.map(lambda seed: asyncio.run(call_often(path, seed)), (SEED, SEED + 1))
        refusals = list(chain.from_iterable(results))
    with closing(Workspace.open(path)) as workspace:
        events = list(workspace.events(annotator=AGENT))
        names = {info.name for info in workspace.annotators()}
        assert gold_of_all(workspace) == gold_before
        assert not workspace.check_rows().differences
    assert names == {"alice", "bob", "carol", JUDGE, AGENT}
    assert rows_of_others(path) == before
    assert len(refusals) == CALLS
    tried = min(sum(refusals), CALLS - sum(refusals), len(events))
    assert tried > CALLS // 20, "calls were refused, and others carried out"


async def call_often(path: Path, seed: int) -> list[bool]:
    """Make half of the calls through a server of its own, and return which were refused."""
    random = Random(seed)
    tools = [*(tool.name for tool in TOOLS), "adjudicate", "__init__", "", "export"]
    refusals = []
    with closing(Workspace.open(path)) as workspace:
        server = server_of(desk_on(workspace, sample_traces(TRACES)))
        async with Client(server, raise_exceptions=True) as client:
            for _ in range(CALLS // 2):
                tool = random.choice(tools)
                document, was_refused = await called(client, tool, arguments_of(tool, random))
                check_shown(workspace, tool, document)
                refusals.append(was_refused)
    return refusals


def gold_of_all(workspace: Workspace) -> dict[str, GoldTrace]:
    return {trace: sides.gold(MAST) for trace, sides in read_work_by_trace(workspace, MAST).items()}


def check_shown(workspace: Workspace, tool: str, document: dict[str, Any]) -> None:
    """Fail if an answer holds what others wrote on a trace that the agent has not finished."""
    if tool == "guidelines" and "cases" in document:
        finished = {one.trace_id for one in workspace.passes(annotator=AGENT) if one.finished}
        assert {case["trace"] for case in document["cases"]} <= finished
        return
    assert SECRET not in str(document)
