"""What an agent cannot do, however it calls the tools."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, Final

from mcp import Client

from mast_tui.adjudication import words_by_trace
from mast_tui.agents.desk import TOOLS
from mast_tui.agents.server import server_of
from mast_tui.gold import GoldTrace
from mast_tui.workspace import Workspace
from tests.agents.calls import (
    AGENT,
    INJECTION,
    JUDGE,
    SECRET,
    called,
    desk_on,
    rows_of_others,
    sample_traces,
    with_others_work,
)
from tests.workspace.build import MAST, MODES

CALLS: Final = 1000
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
        "quote": random.choice(["repair", INJECTION[:40], "not in it"]),
        "note": "a note",
        "confidence": random.random(),
        "severity": random.choice(["fatal", "benign"]),
        "remove": random.random() < 0.2,
        "value": random.choice(["absent", "unsure", "open", "present"]),
        "span": "k1",
        "text": "text",
        "open_modes": random.choice(["absent", "leave"]),
        "pattern": random.choice(["pods", "(", "SECRET", "."]),
        "regex": random.random() < 0.5,
        "count": random.choice([1, 100]),
        "offset": random.choice([0, 5]),
    }
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
    """Return the gold of all traces."""
    return {trace: words.gold(MAST) for trace, words in words_by_trace(workspace, MAST).items()}


def check_shown(workspace: Workspace, tool: str, document: dict[str, Any]) -> None:
    """Fail if an answer holds what others wrote on a trace that the agent has not finished."""
    if tool == "guidelines" and "cases" in document:
        finished = {one.trace_id for one in workspace.passes(annotator=AGENT) if one.finished}
        assert {case["trace"] for case in document["cases"]} <= finished
        return
    assert SECRET not in str(document)
