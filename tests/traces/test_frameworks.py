from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import Outcome, Role, Span, SpanKind, SpanStatus, Trace
from mast_tui.traces.readers import recognise
from mast_tui.traces.readers.frameworks import FRAMEWORKS, Framework, Transcript, framework_of
from tests.traces.checks import read_one

CHATDEV = """\
[2025-26-03 14:05:09 INFO] **[Preprocessing]**

**ChatDev Starts** (20250326140509)

**task_prompt**: Write a clock.
It shows seconds.

**project_name**: clock

[2025-26-03 14:05:10 INFO] System: **[chatting]**

| **model_type** | ModelType.GPT_4O_MINI |

[2025-26-03 14:05:11 INFO] Programmer: **[Start Chat]**

[You are Programmer.]

Now write it.
[2025-26-03 14:05:19 INFO] Programmer: **Programmer<->Code Reviewer on : Coding, turn 0**

[You are Programmer.]

Here it is.

[2025-26-03 14:05:20 INFO] HTTP Request: POST http://llm/v1 "HTTP/1.1 200 OK"
[2025-26-03 14:05:21 ERROR] the viewer is gone
[2025-26-03 14:05:30 INFO] **[Test Reports]**:

The software run successfully without errors.
"""

METAGPT_RECORD = json.dumps(
    {
        "run_id": 2,
        "prompt": "write a stack",
        "content": "2025-01-17 11:40:27.872 | INFO     | metagpt.roles.role:_act:391 - "
        "Alice(SimpleCoder): to do SimpleWriteCode\n```python\nclass Stack: ...\n```\n"
        "2025-01-17 11:40:30.812 | INFO     | __main__:_act:85 - Bob(SimpleTester): to do X",
        "log_file": "logs/2.txt",
    },
    indent=2,
)

METAGPT_POOL = """\
=== MetaGPT Agent Communication Log - Started at 2025-03-31 12:53:42 ===

[2025-03-31 12:53:42] FROM: Human TO: {'<all>'}
ACTION: UserRequirement
CONTENT:
Write a stack.
--------------------------------------------------------------------------------

[2025-03-31 12:54:14] NEW MESSAGES:

SimpleCoder:
def push(): ...
--------------------------------------------------------------------------------

=== Communication Log Ended at 2025-03-31 12:55:09 ===
"""

AG2 = json.dumps(
    {
        "instance_id": "1",
        "problem_statement": ["How many", "apples?"],
        "other_data": {"correct": False, "answer": "SECRET"},
        "trajectory": [
            {"content": ["Solve it.", "Slowly."], "role": "assistant", "name": "proxy"},
            {"content": "42", "role": "user", "name": "solver"},
        ],
        "note": {"text": ["SECRET"], "options": {"Step repetition": "yes"}},
    }
)

HYPERAGENT_LINES = [
    "HyperAgent_x__y-1 - INFO - Initialized tools",
    "HyperAgent_x__y-1 - INFO - Planner's Response: Thought: look",
    "",
    "Subgoal: find it",
    "HyperAgent_x__y-1 - INFO - Inner-Navigator-Assistant's Response: Thought: open",
    "HyperAgent_x__y-1 - INFO - Navigator->Planner: found",
]
HYPERAGENT = json.dumps(
    {
        "instance_id": "x__y-1",
        "problem_statement": ["It breaks"],
        "other_data": {"patch": ["SECRET"]},
        "trajectory": HYPERAGENT_LINES,
    },
    indent=4,
)

APPWORLD = """\

******************** Task 5/16 (692c77d_1)  ********************
Like two songs.
Response from Supervisor Agent
    # ask
    send_message(app_name='spotify', message='hi')


Code Execution Output

    reply = ...

Entering Spotify Agent message loop
    Message to Spotify Agent
        hi

    Response from Spotify Agent
        print(apis.spotify.show())

    Message to Spotify Agent
        []

    Reply from Spotify Agent to Supervisor
        nothing

Exiting Spotify Agent message loop
Response from send_message API
    nothing

Message to Supervisor Agent
    nothing

Evaluation
{
    "success": false,
    "failures": [{"requirement": "SECRET"}]
}"""

MAGENTIC = """\
Collecting openai
SCENARIO.PY STARTING !#!#
---------- user ----------
Find the date.
---------- MagenticOneOrchestrator ----------

We are working on it.

---------- TextMessage (WebSurfer) ----------
I clicked.
SCENARIO.PY COMPLETE !#!#
SCENARIO.PY RUNTIME: 12 !#!#
"""

LOGGER = "2025-03-22 11:30:{second:02}.941 | {level:<8} | app.{where}:80 - {text}"
OPENMANUS = "Enter your prompt: Report the weather\n" + "\n".join(
    LOGGER.format(second=second, level=level, where=where, text=text)
    for second, (level, where, text) in enumerate(
        [
            ("INFO", "agent.base:run", "Executing step 1/20"),
            ("INFO", "agent.toolcall:think", "✨ Manus's thoughts: I look it up\nonline"),
            ("INFO", "agent.toolcall:think", "🧰 Tools being prepared: ['browser', 'browser']"),
            ("INFO", "agent.toolcall:think", '🔧 Tool arguments: {"url":"x"}'),
            ("INFO", "agent.toolcall:execute_tool", "🔧 Activating tool: 'browser'..."),
            ("INFO", "agent.toolcall:act", "🎯 Tool 'browser' completed its mission! Result: ok"),
            ("INFO", "agent.toolcall:execute_tool", "🔧 Activating tool: 'browser'..."),
            (
                "INFO",
                "agent.toolcall:act",
                "🎯 Tool 'browser' completed its mission! Result: Error: gone",
            ),
            ("ERROR", "llm:ask", "API connection failed"),
        ]
    )
)

LOGS = {
    "chatdev": CHATDEV,
    "metagpt": METAGPT_POOL,
    "hyperagent": "\n".join(HYPERAGENT_LINES),
    "ag2": AG2,
    "appworld": APPWORLD,
    "magentic-one": MAGENTIC,
    "openmanus": OPENMANUS,
}


def reader(name: str) -> Framework:
    """Return the reader of a framework."""
    (framework_reader,) = (framework for framework in FRAMEWORKS if framework.name == name)
    return framework_reader


def read(name: str, text: str, tmp_path: Path) -> tuple[Trace, list[Span], list[str]]:
    """Return the trace, the spans and the texts that a framework's reader makes of a log."""
    path = tmp_path / ("run.json" if text.startswith("{") else "run.log")
    path.write_text(text, encoding="utf-8")
    trace = read_one(reader(name), path)
    indices = range(len(trace))
    return trace, [trace.span(index) for index in indices], [trace.text(i) for i in indices]


@pytest.mark.parametrize("name", LOGS)
def test_each_log_is_told_from_all_others(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(LOGS[name], encoding="utf-8")
    source = Source(path)
    assert [one.name for one in FRAMEWORKS if one.recognises(source)] == [name]
    chosen = recognise(source)
    assert chosen is not None
    assert chosen.name == name
    found = framework_of(Transcript(LOGS[name]))
    assert found is not None
    assert found.name == name
    trace = read_one(found, path)
    assert trace.meta.system == found.system
    assert trace.identity.reader == name


@pytest.mark.parametrize("name", [name for name in LOGS if name != "ag2"])
def test_keys_are_the_lines_where_records_begin(name: str, tmp_path: Path) -> None:
    _trace, spans, texts = read(name, LOGS[name], tmp_path)
    lines = LOGS[name].split("\n")
    for span, text in zip(spans, texts, strict=True):
        number = int(span.key.removeprefix("line "))
        assert span.place == span.key
        here = "\n".join(lines[number - 1 :])
        assert text.strip() in here
        assert here.find(text.strip()) < 200


def test_chatdev(tmp_path: Path) -> None:
    trace, spans, texts = read("chatdev", CHATDEV, tmp_path)
    assert [(span.kind, span.role, span.agent) for span in spans] == [
        (SpanKind.LOG, Role.LOG, "log"),
        (SpanKind.LOG, Role.LOG, "log"),
        (SpanKind.MESSAGE, Role.SYSTEM, "Programmer"),
        (SpanKind.MESSAGE, Role.AGENT, "Programmer"),
        (SpanKind.LOG, Role.LOG, "log"),
        (SpanKind.LOG, Role.LOG, "log"),
        (SpanKind.TOOL_RESULT, Role.TOOL, "ChatDev"),
    ]
    assert spans[3].preview == "Here it is."
    assert "on : Coding, turn 0" in texts[3]
    assert spans[5].status is SpanStatus.ERROR
    # The day stands before the month: 26 March 2025, 14:05:09 UTC.
    assert spans[0].start == 1742997909
    assert spans[3].start == 1742997919
    assert trace.meta.task == "Write a clock.\nIt shows seconds."
    assert trace.meta.model == "gpt-4o-mini"


def test_metagpt_as_a_json_record(tmp_path: Path) -> None:
    trace, spans, texts = read("metagpt", METAGPT_RECORD, tmp_path)
    assert [(span.key, span.agent) for span in spans] == [
        ("line 1", "SimpleCoder"),
        ("line 5", "SimpleTester"),
    ]
    assert "class Stack" in texts[0]
    assert trace.meta.task == "write a stack"


def test_metagpt_as_the_log_of_its_message_pool(tmp_path: Path) -> None:
    trace, spans, texts = read("metagpt", METAGPT_POOL, tmp_path)
    assert [(span.key, span.agent, span.role) for span in spans] == [
        ("line 1", "log", Role.LOG),
        ("line 3", "Human", Role.USER),
        ("line 9", "SimpleCoder", Role.AGENT),
        ("line 15", "log", Role.LOG),
    ]
    assert spans[2].preview == "def push(): ..."
    assert not texts[2].endswith("-")
    assert trace.meta.task == "Write a stack."


def test_ag2(tmp_path: Path) -> None:
    trace, spans, texts = read("ag2", AG2, tmp_path)
    assert [(span.key, span.agent) for span in spans] == [
        ("/trajectory/0", "proxy"),
        ("/trajectory/1", "solver"),
    ]
    assert texts[0] == "Solve it.\nSlowly."
    assert trace.meta.task == "How many\napples?"
    assert trace.meta.outcome is Outcome.FAILED
    assert "SECRET" in dict(trace.meta.hidden)["note"]
    assert not any("SECRET" in text for text in texts)


@pytest.mark.parametrize("text", [HYPERAGENT, "\n".join(HYPERAGENT_LINES)])
def test_hyperagent_as_json_and_as_text(text: str, tmp_path: Path) -> None:
    _trace, spans, texts = read("hyperagent", text, tmp_path)
    assert [(span.key, span.agent) for span in spans] == [
        ("line 1", "log"),
        ("line 2", "Planner"),
        ("line 5", "Inner-Navigator-Assistant"),
        ("line 6", "Navigator"),
    ]
    assert texts[1] == "Thought: look\n\nSubgoal: find it"
    assert not any("SECRET" in said for said in texts)


def test_hyperagent_prints_more_often_after_each_start_and_each_message_is_one_span(
    tmp_path: Path,
) -> None:
    def said(times: int, *bodies: str) -> list[str]:
        return [f"HyperAgent_x__y-1 - INFO - {body}" for body in bodies for _ in range(times)]

    lines = [
        *said(1, "Initialized HyperAgent instance x", "Planner's Response: look"),
        *said(1, "Planner's Response: look"),
        *said(3, "Initialized HyperAgent instance x", "Planner's Response: look"),
        *said(3, "Planner's Response: look", "Navigator->Planner: found"),
        *said(2, "cut off"),
    ]
    trace, spans, texts = read("hyperagent", "\n".join(lines), tmp_path)
    assert [span.key for span in spans] == [
        *("line 1", "line 2", "line 3"),
        *("line 4", "line 7", "line 10", "line 13", "line 16"),
    ]
    assert texts[3:] == [
        "Initialized HyperAgent instance x",
        *("look", "look", "Navigator->Planner: found", "cut off"),
    ]
    assert [span.preview.partition(" · ")[0] for span in spans[2:]] == [
        *("look", "printed 3×", "printed 3×", "printed 3×", "printed 3×", "printed 2×"),
    ]
    assert trace.problems == ()


def test_appworld(tmp_path: Path) -> None:
    trace, spans, texts = read("appworld", APPWORLD, tmp_path)
    assert [(span.kind.value, span.agent, span.name) for span in spans] == [
        ("message", "user", None),
        ("tool_call", "Supervisor", "python"),
        ("tool_result", "Supervisor", "python"),
        ("log", "log", None),
        ("message", "Supervisor", None),
        ("tool_call", "Spotify", "python"),
        ("tool_result", "Spotify", "python"),
        ("message", "Spotify", None),
        ("log", "log", None),
        ("tool_result", "Supervisor", "send_message"),
        ("tool_result", "Supervisor", "python"),
    ]
    supervisor, spotify = spans[1].key, spans[5].key
    assert [spans[index].parent for index in (2, 6, 9, 10)] == [
        supervisor,
        spotify,
        supervisor,
        supervisor,
    ]
    assert trace.meta.task == "Like two songs."
    assert trace.meta.outcome is Outcome.FAILED
    assert "SECRET" in dict(trace.meta.answer_key.tests)["failed"]
    assert not any("SECRET" in said for said in texts)


def test_magentic_one(tmp_path: Path) -> None:
    trace, spans, texts = read("magentic-one", MAGENTIC, tmp_path)
    assert [(span.agent, said.split("\n")[0]) for span, said in zip(spans, texts, strict=True)] == [
        ("log", "Collecting openai"),
        ("log", "SCENARIO.PY STARTING !#!#"),
        ("user", "Find the date."),
        ("MagenticOneOrchestrator", "We are working on it."),
        ("WebSurfer", "I clicked."),
        ("log", "SCENARIO.PY COMPLETE !#!#"),
        ("log", "SCENARIO.PY RUNTIME: 12 !#!#"),
    ]
    assert trace.meta.task == "Find the date."


def test_openmanus(tmp_path: Path) -> None:
    trace, spans, texts = read("openmanus", OPENMANUS, tmp_path)
    acts = [
        (span.kind.value, span.name, span.status.value, said)
        for span, said in zip(spans, texts, strict=True)
        if span.kind is not SpanKind.LOG
    ]
    assert acts == [
        ("reasoning", None, "unknown", "I look it up\nonline"),
        ("tool_call", "browser", "unknown", '{"url":"x"}'),
        ("tool_result", "browser", "unknown", "ok"),
        ("tool_call", "browser", "unknown", "🔧 Activating tool: 'browser'..."),
        ("tool_result", "browser", "error", "Error: gone"),
    ]
    calls = [span.key for span in spans if span.kind is SpanKind.TOOL_CALL]
    assert [span.parent for span in spans if span.kind is SpanKind.TOOL_RESULT] == calls
    assert spans[-1].status is SpanStatus.ERROR
    assert trace.meta.task == "Report the weather"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "just some words\n\nand more\n",
        'echo SCENARIO.PY STARTING !#!#\nexec >log\necho "RUN.SH COMPLETE !#!#"\n',
        '{"trajectory": [1, 2]}',
        '{"trajectory": []}',
        "[]",
        "{broken",
    ],
)
def test_other_text_belongs_to_no_framework(text: str, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(text, encoding="utf-8")
    assert framework_of(Transcript(text)) is None
    assert not any(one.recognises(Source(path)) for one in FRAMEWORKS)


def test_a_badly_encoded_log_is_read_and_the_line_named(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(MAGENTIC.encode().replace(b"I clicked", b"I cl\xefcked"))
    trace = read_one(reader("magentic-one"), path)
    assert [problem.place for problem in trace.problems] == ["line 10"]
    assert len(trace) == 7


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    name=st.sampled_from(sorted(LOGS)),
    edits=st.lists(
        st.tuples(
            st.integers(0, 1500),
            st.integers(0, 60),
            st.text(max_size=6) | st.sampled_from(sorted(LOGS.values())),
        ),
        max_size=4,
    ),
)
def test_no_spoilt_log_raises(name: str, edits: list[tuple[int, int, str]], tmp_path: Path) -> None:
    text = LOGS[name]
    for begin, length, put in edits:
        text = text[:begin] + put + text[begin + length :]
    path = tmp_path / "run.log"
    path.write_text(text, encoding="utf-8", errors="replace")
    source = Source(path)
    for framework in FRAMEWORKS:
        if framework.recognises(source):
            read_one(framework, path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    items=st.lists(
        st.none()
        | st.integers()
        | st.text(max_size=9)
        | st.sampled_from(HYPERAGENT_LINES)
        | st.dictionaries(st.sampled_from(["content", "role", "name"]), st.text(max_size=5)),
        min_size=1,
    ),
    first=st.sampled_from([HYPERAGENT_LINES[1], {"content": [1], "role": None, "name": []}]),
)
def test_no_spoilt_trajectory_raises(items: list[object], first: object, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"trajectory": [first, *items]}), encoding="utf-8")
    found = [framework for framework in FRAMEWORKS if framework.recognises(Source(path))]
    assert found
    for framework in found:
        read_one(framework, path)
