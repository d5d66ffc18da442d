"""mini-swe-agent's trajectories: commands in tool calls, in code blocks, and in response items."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import SpanStatus, Tokens
from mast_tui.traces.readers import recognising_readers
from mast_tui.traces.readers.mini_swe_agent import READER
from tests.traces.checks import read_file, read_one, said, span_lines, spans_of, told, write_json

PROMPTS = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "fix it"}]


def published_layout(*messages: object, **info: object) -> dict[str, object]:
    """A file of release 2 around these messages."""
    return {
        "info": {
            "model_stats": {"instance_cost": 0.1, "api_calls": 2},
            "config": {"model": {"model_name": "anthropic/claude-x"}},
            "mini_version": "2.0.0",
            "exit_status": "Submitted",
            "submission": "",
            **info,
        },
        "messages": [*PROMPTS, *messages],
        "trajectory_format": "mini-swe-agent-1.1",
    }


def published_answer(call_id: str, command: str, said: str | None, at: float) -> dict[str, object]:
    arguments = f'{{"command": "{command}"}}'
    return {
        "role": "assistant",
        "content": said,
        "tool_calls": [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": "bash", "arguments": arguments},
            }
        ],
        "extra": {
            "actions": [{"command": command, "tool_call_id": call_id}],
            "response": {"usage": {"prompt_tokens": 100, "completion_tokens": 7}},
            "timestamp": at,
        },
    }


def published_output(call_id: str, output: str, code: int, at: float) -> dict[str, object]:
    return {
        "role": "tool",
        "tool_call_id": call_id,
        "content": f"<returncode>{code}</returncode>\n<output>\n{output}</output>",
        "extra": {"raw_output": output, "returncode": code, "timestamp": at},
    }


def test_a_run_of_release_2(tmp_path: Path) -> None:
    run = published_layout(
        published_answer("call_1", "ls", "I look around", 1_700_000_000.5),
        published_output("call_1", "no such file\n", 2, 1_700_000_003),
        published_answer("call_2", "submit", None, 1_700_000_010),
        {
            "role": "exit",
            "content": "the patch",
            "extra": {"exit_status": "Submitted", "submission": "the patch"},
        },
        submission="the patch",
    )
    trace = read_one(READER, write_json(tmp_path / "run.traj.json", run))
    assert told(trace) == [
        ("message", "be brief"),
        ("message", "fix it"),
        ("message", "I look around"),
        ("tool_call", '{"command": "ls"}'),
        ("tool_result", "no such file\n"),
        ("tool_call", '{"command": "submit"}'),
        ("log", "the patch"),
        ("log", "Submitted"),
    ]
    call, result = trace.span(3), trace.span(4)
    assert (call.key, call.name, call.start, call.end) == (
        "call_1:call",
        "bash",
        1_700_000_000.5,
        1_700_000_003,
    )
    assert (result.key, result.parent) == ("call_1:result", "call_1:call")
    assert result.status is SpanStatus.ERROR
    assert [trace.span(index).tokens for index in range(2, 6)] == [
        None,
        Tokens(100, 7),
        None,
        Tokens(100, 7),
    ]
    assert trace.meta.model == "anthropic/claude-x"
    assert trace.meta.task == "fix it"
    assert trace.meta.system == "mini-swe-agent"


REFUSED = "```bash\nls\n```\n```bash\npwd\n```"


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param(
            [
                {
                    "role": "assistant",
                    "content": "THOUGHT: look\n\n```mswea_bash_command\nls -la\n```\nthen wait",
                    "extra": {"actions": [{"command": "ls -la"}], "timestamp": 1.7e9},
                },
                {
                    "role": "user",
                    "content": "<exception>slow</exception>\n"
                    "<returncode>-1</returncode>\n<output>\nx</output>",
                    "extra": {"raw_output": "x", "returncode": -1, "timestamp": 1.7e9 + 9},
                },
            ],
            [
                "message assistant: THOUGHT: look then wait",
                "tool_call assistant bash: ls -la",
                "tool_result assistant bash error: <exception>slow</exception> x",
            ],
            id="command in a code block",
        ),
        pytest.param(
            [
                {"role": "assistant", "content": REFUSED},
                {"role": "user", "content": "exactly one, please"},
                {
                    "role": "user",
                    "content": "none",
                    "extra": {"interrupt_type": "FormatError", "model_response": "I give up"},
                },
            ],
            [
                "message assistant: ```bash ls ``` ```bash pwd ```",
                "message user: exactly one, please",
                "message assistant: I give up",
                "message user: none",
            ],
            id="refused answers and complaints",
        ),
        pytest.param(
            [
                {
                    "object": "response",
                    "output": [
                        {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
                        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
                        {
                            "type": "message",
                            "content": [{"type": "output_text", "text": "listing"}],
                        },
                        {
                            "type": "function_call",
                            "call_id": "c1",
                            "id": "fc_1",
                            "name": "bash",
                            "arguments": "ls",
                        },
                    ],
                    "extra": {"actions": [{"command": "ls", "tool_call_id": "c1"}]},
                },
                {
                    "type": "function_call_output",
                    "call_id": "c1",
                    "output": "a.py",
                    "extra": {"returncode": 0},
                },
            ],
            [
                "reasoning assistant: hm",
                "message assistant: listing",
                "tool_call assistant bash: ls",
                "tool_result assistant bash ok: a.py",
            ],
            id="response items",
        ),
        pytest.param(
            [{"role": "oracle", "content": "42"}, 7, {"role": "assistant"}],
            ['log log: { "role": "oracle", "content": "42" }', "log log: 7", "message assistant: "],
            id="unknown messages",
        ),
    ],
)
def test_messages_become_spans(tmp_path: Path, messages: list[object], expected: list[str]) -> None:
    trace = read_one(READER, write_json(tmp_path / "run.json", published_layout(*messages)))
    assert span_lines(trace)[2:] == [*expected, "log log exit_status: Submitted"]
    results = [span for span in spans_of(trace) if span.kind == "tool_result"]
    assert [span.parent for span in results] == [
        span.key for span in spans_of(trace) if span.kind == "tool_call"
    ]


def test_a_bare_list_is_known_by_its_blocks_and_return_codes(tmp_path: Path) -> None:
    run = [
        *PROMPTS,
        {"role": "assistant", "content": "THOUGHT: a\n\n```bash\nls\n```"},
        {"role": "user", "content": "<returncode>0</returncode>\n<output>\na.py\n</output>"},
        {"role": "assistant", "content": "```bash\necho MINI_SWE_AGENT_FINAL_OUTPUT\n```"},
        {"role": "user", "content": "the patch"},
    ]
    source = Source(write_json(tmp_path / "run.json", run))
    assert [reader.name for reader in recognising_readers(source)] == ["mini-swe-agent"]
    trace = read_one(READER, source.path)
    assert told(trace)[3:] == [
        ("tool_call", "ls"),
        ("tool_result", "a.py\n"),
        ("tool_call", "echo MINI_SWE_AGENT_FINAL_OUTPUT"),
        ("tool_result", "the patch"),
    ]
    assert trace.span(4).key == "/3"
    assert trace.span(6).parent == "/4/action/0"


@pytest.mark.parametrize(
    "foreign",
    [
        [*PROMPTS, {"role": "assistant", "content": "try ```bash\nls\n```"}],
        [*PROMPTS, {"role": "user", "content": "<returncode>0</returncode>\n<output>"}],
        {"messages": PROMPTS, "info": {"version": 1}},
        {"messages": "none", "trajectory_format": "mini-swe-agent-1"},
    ],
)
def test_chats_with_shell_commands_are_left_to_others(tmp_path: Path, foreign: object) -> None:
    assert not READER.recognises(Source(write_json(tmp_path / "chat.json", foreign)))


def test_blocks_that_are_never_closed_cost_no_more_than_the_text(tmp_path: Path) -> None:
    run = published_layout({"role": "assistant", "content": "<bash>" * 100_000})
    path = write_json(tmp_path / "run.json", run)
    trace = read_one(READER, path)  # looking each to its end would take hours
    assert "<bash>" * 100_000 in said(trace)


MESSAGE = st.sampled_from(
    [
        published_answer("call_1", "ls", "words", 1.7e9),
        published_output("call_1", "out", 0, 1.7e9),
        {"role": "assistant", "content": "```bash\nls\n```"},
        {"role": "user", "content": "hello"},
        {"role": "exit", "content": "done", "extra": {}},
    ]
)


@settings(max_examples=40, deadline=None)
@given(messages=st.lists(MESSAGE, max_size=6), more=st.lists(MESSAGE, max_size=3))
def test_keys_stay_when_messages_are_appended(
    tmp_path_factory: pytest.TempPathFactory, messages: list[object], more: list[object]
) -> None:
    folder = tmp_path_factory.mktemp("grown")
    short, long = (
        read_file(READER, write_json(folder / "run.json", {**published_layout(*all_), "info": {}}))
        for all_ in (messages, [*messages, *more])
    )
    before, after = short.traces[0], long.traces[0]
    texts = {span.key: after.text(span.index) for span in spans_of(after)}
    assert {span.key: texts[span.key] for span in spans_of(before)} == {
        span.key: before.text(span.index) for span in spans_of(before)
    }
