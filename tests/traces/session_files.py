"""Made sessions of coding agents: the content of a file of each format, and what is read of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Record = Mapping[str, Any]

DAY = "2026-11-02T08:00:"
MS = 1_793_000_000_000
LONG = "The mill stands on the left bank; its wheel has not turned since the flood of March."
LONGER = "Twelve sacks of rye are in the loft, and the miller counts them again every evening."


@dataclass(frozen=True)
class SessionFile:
    """A made session.

    Attributes:
        format: The format that ``inspect`` shows.
        content: Records, one a line, or one document.
        spans: The spans as ``checks.span_lines`` writes them.
        id: The id of the session, where the file has it.
        model: The model.
        version: The version of the agent's program.
        tokens: Input and output of all spans.
    """

    format: str
    content: Sequence[Record] | Record
    spans: Sequence[str]
    id: str | None = None
    model: str | None = None
    version: str | None = None
    tokens: tuple[int, int] = (0, 0)

    def write(self, folder: Path, line: str | None = None) -> Path:
        """Write the session to a file in a folder; return its path.

        Args:
            folder: The folder of the file.
            line: A broken line to insert after the second line.
        """
        if isinstance(self.content, Mapping):
            path = folder / "session.json"
            path.write_text(json.dumps(self.content, indent=1), encoding="utf-8")
            return path
        lines = [json.dumps(record) for record in self.content]
        if line is not None:
            lines.insert(2, line)
        path = folder / "session.jsonl"
        path.write_text("".join(f"{file_line}\n" for file_line in lines), encoding="utf-8")
        return path


def _timestamp(second: int) -> str:
    return f"{DAY}{second:02d}.000Z"


def _pi_message(name: str, parent: str | None, message: Record) -> Record:
    time = _timestamp(len(name))
    return {
        "type": "message",
        "id": name,
        "parentId": parent,
        "timestamp": time,
        "message": message,
    }


PI = SessionFile(
    "pi",
    [
        {"type": "session", "version": 3, "id": "mill", "timestamp": _timestamp(0), "cwd": "/mill"},
        {"type": "model_change", "id": "m", "parentId": None, "modelId": "grain-2"},
        _pi_message("a", "m", {"role": "user", "content": LONG}),
        _pi_message(
            "aa", "a", {"role": "assistant", "content": [{"type": "text", "text": "Dropped."}]}
        ),
        _pi_message(
            "b",
            "a",
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": LONGER},
                    {"type": "toolCall", "id": "t", "name": "count", "arguments": {"of": "rye"}},
                ],
                "usage": {"input": 20, "output": 4, "cacheRead": 5, "cacheWrite": 0},
            },
        ),
        _pi_message(
            "c",
            "t",
            {"role": "toolResult", "toolCallId": "t", "content": "twelve", "isError": False},
        ),
        _pi_message(
            "d", "c", {"role": "bashExecution", "command": "ls", "output": "x", "exitCode": 2}
        ),
        {"type": "compaction", "id": "e", "parentId": "d", "summary": "Rye was counted."},
        {"type": "label", "id": "f", "parentId": "e", "label": "sacks"},
        _pi_message(
            "g",
            "f",
            {"role": "assistant", "content": [], "stopReason": "error", "errorMessage": "No net."},
        ),
    ],
    [
        f"message user: {LONG}",
        f"reasoning assistant: {LONGER}",
        'tool_call assistant count: { "of": "rye" }',
        "tool_result assistant count ok: twelve",
        "tool_call user bash: ls",
        "tool_result user bash error: x",
        "log log compaction: Rye was counted.",
        "log log error error: No net.",
    ],
    id="mill",
    model="grain-2",
    tokens=(25, 4),
)


def _droid_message(name: str, parent: str, role: str, *content: Record) -> Record:
    message = {"role": role, "content": list(content)}
    return {"type": "message", "id": name, "parentId": parent, "message": message}


DROID = SessionFile(
    "factory-droid",
    [
        {"type": "session_start", "id": "loft", "title": "Rye", "version": 2, "cwd": "/mill"},
        _droid_message("a", "loft", "user", {"type": "text", "text": LONG}),
        _droid_message(
            "b", "a", "assistant", {"type": "tool_use", "id": "u", "name": "Sum", "input": {}}
        ),
        _droid_message(
            "c",
            "b",
            "user",
            {"type": "tool_result", "tool_use_id": "u", "is_error": True, "content": "no scale"},
        ),
        _droid_message(
            "d",
            "c",
            "user",
            {"type": "text", "text": "<system-reminder>\nBe brief.\n</system-reminder>"},
            {"type": "text", "text": "Go on."},
        ),
        _droid_message("e", "d", "assistant", {"type": "text", "text": LONGER}),
    ],
    [
        f"message user: {LONG}",
        "tool_call assistant Sum: {}",
        "tool_result assistant Sum error: no scale",
        "message system: <system-reminder> Be brief. </system-reminder>",
        "message user: Go on.",
        f"message assistant: {LONGER}",
    ],
    id="loft",
)


def _qwen_record(name: str, parent: str | None, kind: str, **fields: Any) -> Record:
    return {
        "uuid": name,
        "parentUuid": parent,
        "sessionId": "q-mill",
        "type": kind,
        "version": "0.30.1",
        "timestamp": _timestamp(1),
        **fields,
    }


QWEN = SessionFile(
    "qwen-code",
    [
        _qwen_record(
            "1", None, "system", subtype="custom_title", systemPayload={"customTitle": "x"}
        ),
        _qwen_record("2", "1", "user", message={"role": "user", "parts": [{"text": LONG}]}),
        _qwen_record(
            "3", "2", "assistant", message={"role": "model", "parts": [{"text": "Dropped."}]}
        ),
        _qwen_record("4", "2", "system", subtype="rewind", systemPayload={"targetUuid": "2"}),
        _qwen_record(
            "5",
            "4",
            "assistant",
            model="grain-2",
            message={
                "role": "model",
                "parts": [
                    {"text": LONGER, "thought": True},
                    {"functionCall": {"id": "f", "name": "weigh", "args": {"sack": 3}}},
                ],
            },
            usageMetadata={"promptTokenCount": 9, "candidatesTokenCount": 2},
        ),
        _qwen_record(
            "6",
            "5",
            "tool_result",
            message={
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "f", "name": "weigh", "response": {"output": "9"}}}
                ],
            },
            toolCallResult={"callId": "f", "status": "error"},
        ),
        _qwen_record(
            "7", "6", "assistant", message={"role": "model", "parts": [{"text": "It is off."}]}
        ),
    ],
    [
        f"message user: {LONG}",
        'log log rewind: { "targetUuid": "2" }',
        f"reasoning assistant: {LONGER}",
        'tool_call assistant weigh: { "sack": 3 }',
        "tool_result assistant weigh error: 9",
        "message assistant: It is off.",
    ],
    id="q-mill",
    model="grain-2",
    version="0.30.1",
    tokens=(9, 2),
)

STRANDS = SessionFile(
    "strands",
    [
        {"message": {"role": "user", "content": [{"text": LONG}]}, "message_id": 0},
        {
            "message": {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": LONGER}}},
                    {"toolUse": {"toolUseId": "t", "name": "weigh", "input": {"sack": 1}}},
                ],
            },
            "message_id": 1,
            "created_at": _timestamp(2),
        },
        {
            "message": {
                "role": "user",
                "content": [
                    {
                        "toolResult": {
                            "toolUseId": "t",
                            "status": "error",
                            "content": [{"text": "broken"}],
                        }
                    }
                ],
            },
            "message_id": 2,
            "created_at": _timestamp(3),
        },
    ],
    [
        f"message user: {LONG}",
        f"reasoning assistant: {LONGER}",
        'tool_call assistant weigh: { "sack": 1 }',
        "tool_result assistant weigh error: broken",
    ],
)

GOOSE = SessionFile(
    "goose",
    [
        {"working_dir": "/mill", "description": "Rye", "input_tokens": 80, "output_tokens": 7},
        {"role": "user", "created": 1_793_000_000, "content": [{"type": "text", "text": LONG}]},
        {
            "role": "assistant",
            "created": 1_793_000_001,
            "content": [
                {"type": "text", "text": LONGER},
                {
                    "type": "toolRequest",
                    "id": "r",
                    "toolCall": {"status": "success", "value": {"name": "sh", "arguments": {}}},
                },
            ],
        },
        {
            "role": "user",
            "created": 1_793_000_002,
            "content": [
                {
                    "type": "toolResponse",
                    "id": "r",
                    "toolResult": {
                        "status": "success",
                        "value": {"content": [{"type": "text", "text": "ok"}], "isError": False},
                    },
                }
            ],
        },
    ],
    [
        f"message user: {LONG}",
        f"message assistant: {LONGER}",
        "tool_call assistant sh: {}",
        "tool_result assistant sh ok: ok",
    ],
    tokens=(80, 7),
)

GOOSE_STREAM = SessionFile(
    "goose",
    [
        {
            "type": "message",
            "message": {
                "id": "x",
                "role": "assistant",
                "created": 1,
                "content": [{"type": "text", "text": "The mill "}],
            },
        },
        {
            "type": "message",
            "message": {
                "id": "x",
                "role": "assistant",
                "created": 1,
                "content": [{"type": "text", "text": "stands still."}],
            },
        },
        {
            "type": "message",
            "message": {
                "role": "assistant",
                "created": 2,
                "content": [
                    {"type": "toolRequest", "id": "r", "toolCall": {"value": {"name": "turn"}}}
                ],
            },
        },
        {"type": "error", "error": "The wheel is stuck."},
        {"type": "complete", "total_tokens": 9},
    ],
    [
        "message assistant: The mill stands still.",
        "tool_call assistant turn: ",
        "log log error error: The wheel is stuck.",
    ],
)

CURSOR = SessionFile(
    "cursor",
    [
        {"role": "user", "message": {"content": f"<user_query>\n{LONG}\n</user_query>"}},
        {
            "role": "assistant",
            "message": {
                "content": [
                    {"type": "text", "text": LONGER},
                    {"type": "tool_use", "name": "Read", "input": {"path": "rye.txt"}},
                ]
            },
        },
        {
            "role": "user",
            "message": {
                "content": [{"type": "tool_result", "tool_use_id": "z9", "content": "twelve sacks"}]
            },
        },
        {"role": "assistant", "message": {"content": [{"type": "text", "text": "Twelve."}]}},
        {"type": "turn_ended", "status": "success"},
    ],
    [
        f"message user: <user_query> {LONG} </user_query>",
        f"message assistant: {LONGER}",
        'tool_call assistant Read: { "path": "rye.txt" }',
        "tool_result assistant Read: twelve sacks",
        "message assistant: Twelve.",
    ],
)

GROK = SessionFile(
    "grok-cli",
    [
        {"type": "system", "content": "You grind."},
        {"type": "user", "content": [{"type": "text", "text": "os"}], "synthetic_reason": "env"},
        {"type": "user", "content": LONG, "prompt_index": 0},
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": LONGER}]},
        {
            "type": "assistant",
            "content": "",
            "tool_calls": [{"id": "k", "name": "open", "arguments": '{"door": 1}'}],
            "model_id": "grain-2",
        },
        {"type": "tool_result", "tool_call_id": "k", "content": "Error: the door is locked"},
    ],
    [
        "message system: You grind.",
        "message system: os",
        f"message user: {LONG}",
        f"reasoning assistant: {LONGER}",
        'tool_call assistant open: {"door": 1}',
        "tool_result assistant open error: Error: the door is locked",
    ],
    model="grain-2",
)


def _loglines_document(*lines: Record) -> Record:
    return {
        "loglines": [{"timestamp": _timestamp(number), **line} for number, line in enumerate(lines)]
    }


CLAUDE_WEB = SessionFile(
    "claude-code-web",
    _loglines_document(
        {"type": "user", "message": {"role": "user", "content": LONG}},
        {
            "type": "assistant",
            "message": {
                "role": "assistant",
                "model": "grain-2",
                "content": [
                    {"type": "thinking", "thinking": LONGER},
                    {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}},
                ],
                "usage": {"input_tokens": 5, "cache_read_input_tokens": 2, "output_tokens": 3},
            },
        },
        {
            "type": "user",
            "message": {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t", "content": "x", "is_error": True}
                ],
            },
        },
    ),
    [
        f"message user: {LONG}",
        f"reasoning claude-code: {LONGER}",
        'tool_call claude-code Bash: { "command": "ls" }',
        "tool_result claude-code Bash error: x",
    ],
    model="grain-2",
    tokens=(7, 3),
)


def _kimi_record(kind: str, number: int, **fields: Any) -> Record:
    return {"type": kind, "time": MS + number, **fields}


def _kimi_event(number: int, **event: Any) -> Record:
    return _kimi_record("context.append_loop_event", number, event=event)


KIMI = SessionFile(
    "kimi-cli",
    [
        {"type": "metadata", "protocol_version": "1.4", "created_at": MS},
        _kimi_record("config.update", 0, systemPrompt="You grind rye.", modelAlias="grain-2"),
        _kimi_record("turn.prompt", 1, input=[{"type": "text", "text": LONG}]),
        _kimi_record(
            "context.append_message",
            2,
            message={"role": "user", "content": [{"type": "text", "text": LONG}], "toolCalls": []},
        ),
        _kimi_event(3, type="step.begin", uuid="s", step=1),
        _kimi_event(4, type="content.part", stepUuid="s", part={"type": "think", "think": LONGER}),
        _kimi_event(
            5, type="tool.call", stepUuid="s", toolCallId="B", name="Bash", args={"command": "ls"}
        ),
        _kimi_event(
            6, type="tool.result", toolCallId="B", result={"output": "none", "isError": True}
        ),
        _kimi_event(
            7, type="step.end", uuid="s", usage={"inputOther": 4, "inputCacheRead": 6, "output": 2}
        ),
        _kimi_record("usage.record", 8, usage={"inputOther": 4, "output": 2}),
        _kimi_record(
            "context.append_message",
            9,
            message={
                "role": "assistant",
                "content": [],
                "toolCalls": [{"id": "C", "name": "Stop", "arguments": "{}"}],
            },
        ),
        _kimi_record("turn.prompt", 10, input="And the wheel?"),
        _kimi_record("turn.cancel", 11),
    ],
    [
        "message system: You grind rye.",
        f"message user: {LONG}",
        f"reasoning assistant: {LONGER}",
        'tool_call assistant Bash: { "command": "ls" }',
        "tool_result assistant Bash error: none",
        "tool_call assistant Stop: {}",
        "message user: And the wheel?",
        "log log turn.cancel error: turn.cancel",
    ],
    model="grain-2",
    tokens=(10, 2),
)


def _wire_record(kind: str, **payload: Any) -> Record:
    return {"timestamp": MS / 1000, "message": {"type": kind, "payload": payload}}


KIMI_WIRE = SessionFile(
    "kimi-cli",
    [
        {"type": "metadata", "protocol_version": "1.9"},
        _wire_record("TurnBegin", user_input=LONG),
        _wire_record("StepBegin", n=1),
        _wire_record("ContentPart", type="think", think=LONGER),
        _wire_record(
            "ToolCall", type="function", id="k", function={"name": "Bash", "arguments": "{}"}
        ),
        _wire_record(
            "StatusUpdate", token_usage={"input_other": 3, "input_cache_read": 4, "output": 2}
        ),
        _wire_record(
            "ToolResult", tool_call_id="k", return_value={"is_error": True, "output": "none"}
        ),
        _wire_record("ContentPart", type="text", text="There is none."),
        _wire_record("TurnEnd"),
    ],
    [
        f"message user: {LONG}",
        f"reasoning assistant: {LONGER}",
        "tool_call assistant Bash: {}",
        "tool_result assistant Bash error: none",
        "message assistant: There is none.",
    ],
    tokens=(7, 2),
)


def _copilot_event(kind: str, **data: Any) -> Record:
    return {"type": kind, "data": data, "id": f"e-{kind}", "timestamp": _timestamp(5)}


COPILOT = SessionFile(
    "copilot-cli",
    [
        _copilot_event(
            "session.start", sessionId="cop", copilotVersion="2.0.1", selectedModel="grain-2"
        ),
        _copilot_event(
            "user.message", content=LONG, transformedContent="<x>The same with more</x>"
        ),
        _copilot_event("assistant.reasoning", content=LONGER),
        _copilot_event(
            "assistant.message",
            content="",
            reasoningText=LONGER,
            toolRequests=[{"toolCallId": "k", "name": "sh", "arguments": {}, "type": "function"}],
            outputTokens=6,
        ),
        _copilot_event("tool.execution_start", toolCallId="k", toolName="sh", arguments={}),
        _copilot_event("hook.end", hookType="postToolUse", success=True),
        _copilot_event(
            "tool.execution_complete", toolCallId="k", success=True, result={"content": "9"}
        ),
        _copilot_event(
            "subagent.started", toolCallId="s", agentName="helper", agentDescription="Helps"
        ),
        _copilot_event("assistant.message", content="Nine.", parentToolCallId="s", toolRequests=[]),
        _copilot_event("abort", reason="user initiated"),
    ],
    [
        f"message user: {LONG}",
        f"reasoning assistant: {LONGER}",
        "tool_call assistant sh: {}",
        "tool_result assistant sh ok: 9",
        "log log subagent.started: Helps",
        "message helper: Nine.",
        "log log abort error: user initiated",
    ],
    id="cop",
    model="grain-2",
    version="2.0.1",
    tokens=(0, 6),
)

DROID_STREAM = SessionFile(
    "droid-stream",
    [
        {"type": "system", "subtype": "init", "sessionId": "ds", "model": "grain-2", "id": "s"},
        {"type": "message", "sessionId": "ds", "role": "user", "text": LONG, "timestamp": MS},
        {
            "type": "tool_call",
            "sessionId": "ds",
            "id": "k",
            "toolName": "Execute",
            "parameters": {"command": "ls"},
        },
        {"type": "tool_result", "sessionId": "ds", "id": "k", "isError": True, "value": "denied"},
        {"type": "tool_call", "sessionId": "ds", "id": "l", "toolName": "Execute"},
        {"type": "tool_result", "sessionId": "ds", "id": "l", "value": {"exitCode": "0"}},
        {
            "type": "completion",
            "sessionId": "ds",
            "finalText": LONGER,
            "usage": {"input_tokens": 3, "output_tokens": 1},
        },
    ],
    [
        f"message user: {LONG}",
        'tool_call assistant Execute: { "command": "ls" }',
        "tool_result assistant Execute error: denied",
        "tool_call assistant Execute: ",
        'tool_result assistant Execute: { "exitCode": "0" }',
        f"message assistant: {LONGER}",
    ],
    id="ds",
    model="grain-2",
    tokens=(3, 1),
)


def _rpc_record(**message: Any) -> Record:
    return {"ts": _timestamp(1), "direction": "out", "message": {"jsonrpc": "2.0", **message}}


MCP = SessionFile(
    "mcp-log",
    [
        _rpc_record(id=0, method="initialize", params={"clientInfo": {"name": "mill"}}),
        _rpc_record(
            id=1, method="tools/call", params={"name": "find", "arguments": {"what": "rye"}}
        ),
        _rpc_record(id=2, method="tools/call", params={"name": "find", "arguments": {}}),
        _rpc_record(id=2, error={"code": -32602, "message": "what is missing"}),
        _rpc_record(id=1, result={"content": [{"type": "text", "text": LONG}], "isError": False}),
        _rpc_record(id=1, method="tools/call", params={"name": "stop"}),
        _rpc_record(id=1, result={"content": [], "isError": True}),
    ],
    [
        'log log initialize: { "clientInfo": { "name": "mill" } }',
        'tool_call client find: { "what": "rye" }',
        "tool_call client find: {}",
        "tool_result client find error: what is missing",
        f"tool_result client find ok: {LONG}",
        "tool_call client stop: ",
        "tool_result client stop error: ",
    ],
)


def _gemini_call(name: str, response: Record | None, status: str) -> Record:
    call: dict[str, Any] = {"id": name, "name": name, "args": {"n": 1}, "status": status}
    if response is not None:
        call["result"] = [{"functionResponse": {"id": name, "response": response}}]
    return call


_GEMINI_ANSWER = {
    "id": "g2",
    "type": "gemini",
    "timestamp": _timestamp(2),
    "content": [{"text": LONGER}],
    "thoughts": [{"subject": "Count", "description": "sack by sack", "timestamp": _timestamp(1)}],
    "tokens": {"input": 11, "output": 3, "cached": 5, "thoughts": 2, "total": 16},
    "model": "grain-2",
    "toolCalls": [
        _gemini_call("weigh", {"output": "heavy"}, "success"),
        _gemini_call("open", {"error": "locked"}, "error"),
        _gemini_call("wait", None, "executing"),
    ],
}
_GEMINI_HEADER = {
    "sessionId": "gem",
    "projectHash": "ab",
    "startTime": _timestamp(0),
    "kind": "main",
}
_GEMINI_SPANS = [
    f"message user: {LONG}",
    "reasoning assistant: Count sack by sack",
    f"message assistant: {LONGER}",
    'tool_call assistant weigh: { "n": 1 }',
    "tool_result assistant weigh ok: heavy",
    'tool_call assistant open: { "n": 1 }',
    "tool_result assistant open error: locked",
    'tool_call assistant wait: { "n": 1 }',
]
GEMINI = SessionFile(
    "gemini-cli",
    {
        **_GEMINI_HEADER,
        "messages": [
            {"id": "g1", "type": "user", "timestamp": _timestamp(1), "content": LONG},
            _GEMINI_ANSWER,
            {"id": "g3", "type": "error", "timestamp": _timestamp(3), "content": "Quota."},
        ],
    },
    [*_GEMINI_SPANS, "log log error error: Quota."],
    id="gem",
    model="grain-2",
    tokens=(11, 3),
)
GEMINI_LINES = SessionFile(
    "gemini-cli",
    [
        _GEMINI_HEADER,
        {"id": "g1", "type": "user", "timestamp": _timestamp(1), "content": [{"text": LONG}]},
        {"$set": {"lastUpdated": _timestamp(1)}},
        {**_GEMINI_ANSWER, "content": "The mill", "toolCalls": []},
        _GEMINI_ANSWER,
        {"id": "g3", "type": "user", "content": "Taken back."},
        {"id": "g4", "type": "gemini", "content": "So is this."},
        {"$rewindTo": "g3"},
        {"id": "g5", "type": "info", "content": "Rewound."},
        {"$set": {"messages": [{"id": "g6", "type": "user", "content": "A summary."}]}},
    ],
    [*_GEMINI_SPANS, "log log info: Rewound.", "message user: A summary."],
    id="gem",
    model="grain-2",
    tokens=(11, 3),
)


def _opencode_message(name: str, role: str, *parts: Record, **info: Any) -> Record:
    message_info = {"id": name, "sessionID": "ses_m", "role": role, "time": {"created": MS}, **info}
    return {"info": message_info, "parts": list(parts)}


OPENCODE = SessionFile(
    "opencode",
    {
        "info": {"id": "ses_m", "version": "2.1.0", "directory": "/mill"},
        "messages": [
            _opencode_message("m1", "user", {"type": "text", "text": LONG}),
            _opencode_message(
                "m2",
                "assistant",
                {"type": "step-start"},
                {"type": "reasoning", "text": LONGER},
                {
                    "type": "tool",
                    "callID": "k",
                    "tool": "bash",
                    "state": {
                        "status": "completed",
                        "input": {"command": "ls"},
                        "output": "none",
                        "metadata": {"exit": 1},
                        "time": {"start": MS + 1000, "end": MS + 2000},
                    },
                },
                {"type": "tool", "callID": "l", "tool": "read", "state": {"status": "running"}},
                {"type": "text", "text": "There is none."},
                modelID="grain-2",
                tokens={"input": 30, "output": 8, "cache": {"read": 4}},
                error={"name": "Aborted", "data": {"message": "Stopped."}},
            ),
        ],
    },
    [
        f"message user: {LONG}",
        f"reasoning assistant: {LONGER}",
        'tool_call assistant bash: { "command": "ls" }',
        "tool_result assistant bash error: none",
        "tool_call assistant read: ",
        "message assistant: There is none.",
        "log log Aborted error: Stopped.",
    ],
    id="ses_m",
    model="grain-2",
    version="2.1.0",
    tokens=(30, 8),
)


def _opencode_run_event(kind: str, **part: Any) -> Record:
    return {"type": kind, "timestamp": MS, "sessionID": "ses_r", "part": part}


OPENCODE_RUN = SessionFile(
    "opencode",
    [
        _opencode_run_event("step_start", type="step-start"),
        _opencode_run_event("text", type="text", text=LONGER),
        _opencode_run_event(
            "tool_use",
            type="tool",
            callID="k",
            tool="bash",
            state={"status": "error", "input": {"command": "ls"}, "error": "denied"},
        ),
        _opencode_run_event("step_finish", type="step-finish", tokens={"input": 6, "output": 1}),
        {"type": "error", "sessionID": "ses_r", "error": {"name": "E", "data": {"message": "No."}}},
    ],
    [
        f"message assistant: {LONGER}",
        'tool_call assistant bash: { "command": "ls" }',
        "tool_result assistant bash error: denied",
        "log log E error: No.",
    ],
    id="ses_r",
    tokens=(6, 1),
)


def _cline_message(number: int, kind: str, name: str, text: object) -> Record:
    json_text = text if isinstance(text, str) else json.dumps(text)
    return {"ts": MS + number, "type": kind, kind: name, "text": json_text}


CLINE = SessionFile(
    "cline",
    [
        _cline_message(0, "say", "text", LONG),
        _cline_message(
            1, "say", "api_req_started", {"request": "r", "tokensIn": 12, "tokensOut": 5}
        ),
        _cline_message(2, "say", "reasoning", LONGER),
        _cline_message(3, "say", "tool", {"tool": "searchFiles", "path": ".", "content": "2 hits"}),
        _cline_message(
            4, "ask", "tool", {"tool": "readFile", "path": "rye.txt", "content": "/rye.txt"}
        ),
        _cline_message(4, "say", "task_progress", "- [x] count"),
        _cline_message(
            5, "say", "api_req_started", {"request": "[read_file for 'rye.txt'] Result:\n\nrye"}
        ),
        _cline_message(6, "ask", "command", "ls /loft"),
        _cline_message(7, "ask", "command_output", ""),
        _cline_message(8, "say", "command_output", "one"),
        _cline_message(8, "say", "command_output", "two"),
        _cline_message(10, "ask", "use_mcp_server", {"toolName": "turn", "arguments": '{"n": 2}'}),
        _cline_message(11, "say", "mcp_server_request_started", ""),
        _cline_message(12, "say", "mcp_server_response", "Error:\nstuck"),
        _cline_message(
            13, "ask", "followup", {"question": "Which way?", "options": ["left", "right"]}
        ),
        _cline_message(14, "say", "user_feedback", "Left."),
        _cline_message(15, "say", "error", "No net."),
        {**_cline_message(16, "say", "completion_result", "It turns."), "partial": True},
        _cline_message(16, "say", "completion_result", "It turns left."),
        _cline_message(17, "ask", "completion_result", ""),
    ],
    [
        f"message user: {LONG}",
        f"reasoning assistant: {LONGER}",
        'tool_call assistant searchFiles: { "path": "." }',
        "tool_result assistant searchFiles: 2 hits",
        'tool_call assistant readFile: { "path": "rye.txt" }',
        "log log task_progress: - [x] count",
        "tool_result assistant readFile: rye",
        'tool_call assistant command: { "command": "ls /loft" }',
        "tool_result assistant command: one two",
        'tool_call assistant turn: { "n": 2 }',
        "tool_result assistant turn error: Error: stuck",
        "message assistant: Which way? - left - right",
        "message user: Left.",
        "log log error error: No net.",
        "message assistant: It turns left.",
    ],
    tokens=(12, 5),
)


def _antigravity_step(number: int, source: str, kind: str, **fields: Any) -> Record:
    return {
        "step_index": number,
        "source": source,
        "type": kind,
        "status": "DONE",
        "created_at": _timestamp(number),
        **fields,
    }


ANTIGRAVITY = SessionFile(
    "antigravity",
    [
        _antigravity_step(
            0, "USER_EXPLICIT", "USER_INPUT", content=f"<USER_REQUEST>\n{LONG}\n</USER_REQUEST>"
        ),
        _antigravity_step(1, "SYSTEM", "CONVERSATION_HISTORY"),
        _antigravity_step(
            2,
            "MODEL",
            "PLANNER_RESPONSE",
            thinking=LONGER,
            tool_calls=[{"name": "run", "args": {"CommandLine": '"ls"'}}],
        ),
        _antigravity_step(3, "MODEL", "RUN_COMMAND", content="none", status="ERROR"),
        _antigravity_step(4, "SYSTEM", "CHECKPOINT", content="Resumed."),
        _antigravity_step(5, "MODEL", "PLANNER_RESPONSE", content="There is none."),
    ],
    [
        f"message user: <USER_REQUEST> {LONG} </USER_REQUEST>",
        f"reasoning assistant: {LONGER}",
        'tool_call assistant run: { "CommandLine": "ls" }',
        "tool_result assistant run error: none",
        "message system: Resumed.",
        "message assistant: There is none.",
    ],
)

_TELEMETRY_MESSAGES = [
    {"role": "user", "content": LONG, "timestamp": MS},
    {
        "role": "assistant",
        "content": [{"type": "toolCall", "id": "k", "name": "sh", "arguments": {"command": "ls"}}],
        "model": "grain-2",
        "usage": {"input": 2, "output": 1, "cacheRead": 1},
        "timestamp": MS + 1,
    },
    {"role": "toolResult", "toolCallId": "k", "toolName": "sh", "content": "none", "isError": True},
    {"role": "assistant", "content": [{"type": "text", "text": LONGER}], "timestamp": MS + 2},
]


def _telemetry_event(kind: str, **fields: Any) -> Record:
    return {"type": kind, "sessionKey": "agent:main:main", "agentId": "main", **fields}


TELEMETRY = SessionFile(
    "openclaw-telemetry",
    [
        {"type": "message.in", "channel": "chat", "content": LONG, "ts": MS},
        _telemetry_event("agent.start", prompt=LONG),
        _telemetry_event("agent.start", prompt=LONG, messages=[]),
        _telemetry_event("tool.start", toolName="sh", params={"command": "ls"}),
        _telemetry_event("tool.end", toolName="sh", success=False),
        _telemetry_event("agent.end", messages=_TELEMETRY_MESSAGES, success=True),
        {"type": "message.out", "channel": "chat", "content": LONGER},
        _telemetry_event("agent.start", prompt="Again.", messages=_TELEMETRY_MESSAGES),
        _telemetry_event("tool.start", toolName="turn", params={}),
        _telemetry_event("tool.end", toolName="turn", success=True),
    ],
    [
        f"message user: {LONG}",
        'tool_call assistant sh: { "command": "ls" }',
        "tool_result assistant sh error: none",
        f"message assistant: {LONGER}",
        "message user: Again.",
        "tool_call assistant turn: {}",
        "tool_result assistant turn ok: ",
    ],
    model="grain-2",
    tokens=(3, 1),
)


def _buddy_record(kind: str, **fields: Any) -> Record:
    return {"type": kind, "sessionId": "bud", "timestamp": MS, **fields}


CODEBUDDY = SessionFile(
    "codebuddy",
    [
        _buddy_record("session_start", model="grain-2"),
        _buddy_record("message", role="user", content=[{"type": "input_text", "text": LONG}]),
        _buddy_record("reasoning", rawContent=[{"type": "reasoning_text", "text": LONGER}]),
        _buddy_record("function_call", name="sh", callId="k", arguments='{"command": "ls"}'),
        _buddy_record("function_call_result", name="sh", callId="k", output="none", status="error"),
        _buddy_record(
            "message", role="assistant", content=[{"type": "output_text", "text": "None."}]
        ),
        _buddy_record("topic", topic="Rye"),
        {
            "event_type": "tool_use",
            "session_id": "bud",
            "tool": {"name": "stop"},
            "input": {"now": True},
        },
    ],
    [
        f"message user: {LONG}",
        f"reasoning assistant: {LONGER}",
        'tool_call assistant sh: {"command": "ls"}',
        "tool_result assistant sh error: none",
        "message assistant: None.",
        'tool_call assistant stop: { "now": true }',
    ],
    id="bud",
    model="grain-2",
)

DEVIN = SessionFile(
    "devin",
    {
        "session": {"id": "calm-mill", "model": "grain-2", "main_chain_id": 3},
        "nodes": [
            {"message_id": "a", "role": "user", "content": LONG, "metadata": {}},
            {
                "message_id": "b",
                "role": "assistant",
                "content": "I count.",
                "thinking": {"thinking": LONGER, "signature": "s"},
                "tool_calls": [{"id": "k", "name": "count", "arguments": {"of": "rye"}}],
            },
            {"message_id": "c", "role": "tool", "content": "twelve", "tool_call_id": "k"},
        ],
    },
    [
        f"message user: {LONG}",
        f"reasoning assistant: {LONGER}",
        "message assistant: I count.",
        'tool_call assistant count: { "of": "rye" }',
        "tool_result assistant count: twelve",
    ],
    id="calm-mill",
    model="grain-2",
)


def _fx_call(name: str) -> Record:
    return {"id": name, "name": name, "arguments_json": '{"n": 1}', "provider_result": None}


FX = SessionFile(
    "fx",
    {
        "session_id": "fx-1",
        "state": {
            "preferences": {"model": "grain-2"},
            "history": [
                {
                    "kind": "assistant",
                    "user": {"text": LONG},
                    "assistant": None,
                    "execution": {
                        "tool_steps": [
                            {
                                "assistant": LONGER,
                                "tool_calls": [_fx_call("weigh")],
                                "tool_results": [
                                    {
                                        "tool_call_id": "weigh",
                                        "tool_name": "weigh",
                                        "status": "error",
                                        "output": "broken",
                                        "created_at_ms": MS,
                                    }
                                ],
                            },
                            {"assistant": "It is broken.", "tool_calls": [], "tool_results": []},
                        ]
                    },
                },
                {
                    "kind": "interrupted",
                    "user": {"text": "Mend it."},
                    "tool_call": _fx_call("mend"),
                    "terminal_reason": "cancelled",
                },
            ],
        },
    },
    [
        f"message user: {LONG}",
        f"message assistant: {LONGER}",
        'tool_call assistant weigh: {"n": 1}',
        "tool_result assistant weigh error: broken",
        "message assistant: It is broken.",
        "message user: Mend it.",
        'tool_call assistant mend: {"n": 1}',
        "log log interrupted error: cancelled",
    ],
    id="fx-1",
    model="grain-2",
)

SESSIONS = {
    "Pi": PI,
    "Droid": DROID,
    "Qwen": QWEN,
    "Strands": STRANDS,
    "Goose": GOOSE,
    "Goose stream": GOOSE_STREAM,
    "Cursor": CURSOR,
    "Grok": GROK,
    "Claude web": CLAUDE_WEB,
    "Kimi": KIMI,
    "Kimi wire": KIMI_WIRE,
    "Copilot": COPILOT,
    "Droid stream": DROID_STREAM,
    "MCP": MCP,
    "Gemini": GEMINI,
    "Gemini lines": GEMINI_LINES,
    "OpenCode": OPENCODE,
    "OpenCode run": OPENCODE_RUN,
    "Cline": CLINE,
    "Antigravity": ANTIGRAVITY,
    "Telemetry": TELEMETRY,
    "CodeBuddy": CODEBUDDY,
    "Devin": DEVIN,
    "fx": FX,
}
