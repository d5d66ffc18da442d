"""Runs exported as one JSON document: benchmarks, agent frameworks, chat products."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.library import read_file
from mast_tui.traces.model import Outcome, Tokens, Trace
from mast_tui.traces.readers import recognising_readers
from tests.traces.checks import check_sound, span_lines, spans_of, write_json, write_json_lines
from tests.traces.text_coverage import text_coverage

LONG = "The lighthouse keeper wrote that the lamp had failed twice since Easter."
LONGER = "A mason looked at the tower and found a crack that runs from the sill to the gallery."

TAU2 = {
    "info": {
        "agent_info": {"implementation": "llm_agent", "llm": "lamp-1"},
        "environment_info": {"domain_name": "harbour", "policy": LONGER},
    },
    "tasks": [
        {
            "id": 4,
            "user_scenario": {"instructions": LONG},
            "evaluation_criteria": {
                "actions": [{"name": "book", "arguments": {"berth": 2}}],
                "nl_assertions": ["says sorry"],
            },
        }
    ],
    "simulations": [
        {
            "id": "s-1",
            "task_id": 4,
            "trial": 2,
            "termination_reason": "user_stop",
            "reward_info": {"reward": 1.0, "db_check": {"db_match": True}},
            "messages": [
                {"role": "user", "content": "A berth, please.", "usage": {"prompt_tokens": 7}},
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [
                        {"id": "a", "name": "list", "arguments": {}, "requestor": "assistant"},
                        {"id": "b", "name": "book", "arguments": {}, "requestor": "assistant"},
                    ],
                    "timestamp": "2026-10-01T10:00:03Z",
                    "usage": {"completion_tokens": 2, "prompt_tokens": 9},
                },
                {"role": "tool", "id": "b", "content": "taken", "error": True},
                {"role": "tool", "id": "a", "content": "1, 2", "error": False},
                {
                    "role": "user",
                    "content": None,
                    "tool_calls": [
                        {"id": "c", "name": "wave", "arguments": {}, "requestor": "user"}
                    ],
                },
                {
                    "role": "tool",
                    "tool_messages": [{"id": "c", "content": "waved", "requestor": "user"}],
                },
                None,
            ],
        }
    ],
}
TAU2_SPANS = [
    "message user: A berth, please.",
    "tool_call assistant list: {}",
    "tool_call assistant book: {}",
    "tool_result assistant book error: taken",
    "tool_result assistant list ok: 1, 2",
    "tool_call user wave: {}",
    "tool_result user wave: waved",
    "log log: ",
]

BFCL = {
    "id": "multi_turn_base_3",
    "result": [[["cd(folder='a')"]]],
    "inference_log": [
        [{"role": "state_info", "class_name": "Files", "content": {"cwd": "/"}}],
        {
            "begin_of_turn_query": [{"role": "user", "content": LONG}],
            "step_0": [
                {"role": "inference_input", "content": {"message": "the history again"}},
                {"role": "assistant", "content": "[cd(folder='a')]"},
                {
                    "role": "handler_log",
                    "content": "Successfully decoded model response.",
                    "model_response_decoded": ["cd(folder='a')"],
                },
                {"role": "tool", "content": '{"cwd": "/a"}'},
            ],
            "step_1": [
                {"role": "assistant", "content": "I am in the folder."},
                {
                    "role": "handler_log",
                    "content": "Error decoding the model response.",
                    "error": "no call in the text",
                },
            ],
        },
    ],
}
BFCL_SPANS = [
    'message Files: { "cwd": "/" }',
    f"message user: {LONG}",
    "tool_call assistant cd: folder='a'",
    'tool_result assistant cd: {"cwd": "/a"}',
    "message assistant: I am in the folder.",
    "message handler_log: Error decoding the model response. no call in the text",
]

SMOLAGENTS = [
    {"system_prompt": LONG},
    {"task": "How tall is the tower?", "task_images": None},
    {"plan": LONGER, "timing": {"start_time": 1790000000.0}},
    {
        "step_number": 1,
        "timing": {"start_time": 1790000001.0, "end_time": 1790000002.5},
        "model_input_messages": [],
        "tool_calls": [
            {"id": "t1", "type": "function", "function": {"name": "measure", "arguments": "x"}}
        ],
        "model_output": "I measure.",
        "observations": "30 m",
        "error": None,
        "token_usage": {"input_tokens": 11, "output_tokens": 3},
    },
    {
        "step_number": 2,
        "timing": {"start_time": 1790000003.0, "end_time": 1790000004.0},
        "tool_calls": None,
        "code_action": "print(h)",
        "model_output": None,
        "observations": None,
        "error": {"type": "AgentExecutionError", "message": "h is not defined"},
    },
    {"output": "30 m"},
]
SMOLAGENTS_SPANS = [
    f"message system: {LONG}",
    "message user: How tall is the tower?",
    f"message assistant: {LONGER}",
    "message assistant: I measure.",
    "tool_call assistant measure: x",
    "tool_result assistant measure: 30 m",
    "tool_call assistant python_interpreter: print(h)",
    "tool_result assistant python_interpreter error: h is not defined",
    "message assistant: 30 m",
]

BROWSER_USE = {
    "history": [
        {
            "model_output": {
                "thinking": None,
                "evaluation_previous_goal": "Unknown",
                "memory": LONG,
                "next_goal": "Open the log.",
                "action": [{"click": {"index": 3}}, {"done": {"text": "30 m", "success": True}}],
            },
            "result": [
                {"error": "the element is gone", "is_done": False},
                {"extracted_content": "30 m", "is_done": True, "success": True},
            ],
            "state": {"url": "https://tower.test", "title": "Tower", "screenshot": "iVBOR"},
            "metadata": {"step_start_time": 1790000001.0, "input_tokens": 40, "step_number": 1},
        }
    ]
}
BROWSER_USE_SPANS = [
    "message browser: Tower https://tower.test [image]",
    f"reasoning assistant: Unknown {LONG} Open the log.",
    'tool_call assistant click: { "index": 3 }',
    'tool_call assistant done: { "text": "30 m", "success": true }',
    "tool_result assistant click error: the element is gone",
    "tool_result assistant done ok: 30 m",
]

CREWAI = [
    {
        "timestamp": "2026-10-01 10:00:00",
        "task_name": "survey",
        "task": LONG,
        "agent": "Mason",
        "status": "started",
    },
    {
        "timestamp": "2026-10-01 10:01:00",
        "task_name": "survey",
        "task": LONG,
        "agent": "Mason",
        "status": "completed",
        "output": LONGER,
    },
]
CREWAI_SPANS = [f"message user: {LONG}", f"message Mason: {LONGER}"]


def chatgpt_node(
    name: str, parent: str | None, role: str, content: object, **message: object
) -> dict[str, object]:
    """A node of ChatGPT's tree."""
    author = {"role": role, "name": message.pop("author_name", None)}
    return {
        "id": name,
        "parent": parent,
        "message": {"id": name, "author": author, "content": content, **message},
    }


CHATGPT = {
    "conversation_id": "c-9",
    "current_node": "n6",
    "mapping": {
        "n0": {"id": "n0", "parent": None, "message": None},
        "n1": chatgpt_node("n1", "n0", "user", {"content_type": "text", "parts": [LONG]}),
        "n2": chatgpt_node("n2", "n1", "assistant", {"content_type": "text", "parts": ["No."]}),
        "n3": chatgpt_node(
            "n3",
            "n1",
            "assistant",
            {"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "Count."}]},
        ),
        "n4": chatgpt_node(
            "n4", "n3", "assistant", {"content_type": "code", "text": "1+1"}, recipient="python"
        ),
        "n5": chatgpt_node(
            "n5",
            "n4",
            "tool",
            {"content_type": "execution_output", "text": "2"},
            author_name="python",
        ),
        "n6": chatgpt_node(
            "n6",
            "n5",
            "assistant",
            {
                "content_type": "multimodal_text",
                "parts": [{"content_type": "image_asset_pointer"}, "Two."],
            },
            metadata={"model_slug": "lamp-2"},
        ),
    },
}
CHATGPT_SPANS = [
    f"message user: {LONG}",
    "reasoning assistant: s Count.",
    "tool_call assistant python: 1+1",
    "tool_result assistant python: 2",
    "message assistant: [image] Two.",
]

CLAUDE_AI = {
    "uuid": "conv-1",
    "chat_messages": [
        {
            "uuid": "m1",
            "sender": "human",
            "text": "Read it.",
            "content": [],
            "attachments": [{"file_name": "log.txt", "extracted_content": LONG}],
            "parent_message_uuid": "00000000-0000-4000-8000-000000000000",
        },
        {
            "uuid": "m2",
            "sender": "assistant",
            "content": [{"type": "text", "text": "An answer made anew later."}],
            "parent_message_uuid": "m1",
        },
        {
            "uuid": "m3",
            "sender": "assistant",
            "content": [
                {"type": "tool_use", "name": "repl", "input": {"code": "1"}},
                {"type": "tool_result", "name": "repl", "content": [], "is_error": True},
                {"type": "token_budget"},
                {"type": "text", "text": "It failed."},
            ],
            "parent_message_uuid": "m1",
            "created_at": "2026-10-01T10:00:00Z",
        },
    ],
}
CLAUDE_AI_SPANS = [
    f"message user: Read it. [file log.txt] {LONG}",
    'tool_call assistant repl: { "code": "1" }',
    "tool_result assistant repl error: ",
    "message assistant: It failed.",
]

LIBRECHAT_PARTS = [
    {"type": "think", "think": "Ask the gauge."},
    {"type": "text", "text": {"value": "I measure.", "annotations": []}, "tool_call_ids": ["g1"]},
    {
        "type": "tool_call",
        "tool_call": {
            "id": "g1",
            "name": "gauge",
            "args": '{"at": "A"}',
            "type": "tool_call",
            "progress": 1,
            "output": "4 m",
        },
    },
    {
        "type": "tool_call",
        "tool_call": {
            "id": "g2",
            "type": "function",
            "function": {"name": "tide", "arguments": "{}", "output": None},
        },
    },
    {"type": "error", "error": "The tide table is gone."},
    {"type": "text", "text": "Four metres."},
]


def librechat_message(
    name: str, parent: str, text: str, *children: object, **fields: object
) -> dict[str, object]:
    """A message of a LibreChat export."""
    message = {"messageId": name, "parentMessageId": parent, "text": text, **fields}
    return {**message, "children": list(children)} if children else message


LIBRECHAT_QUESTION = librechat_message(
    "m1",
    "00000000-0000-0000-0000-000000000000",
    LONG,
    sender="User",
    isCreatedByUser=True,
    tokenCount=20,
    files=[{"filename": "log.txt"}],
)
LIBRECHAT_OTHER = librechat_message(
    "m2", "m1", "An answer made anew later.", sender="Mason", isCreatedByUser=False
)
LIBRECHAT_ANSWER = librechat_message(
    "m3",
    "m1",
    "",
    sender="Mason",
    isCreatedByUser=False,
    content=LIBRECHAT_PARTS,
    model="lamp-4",
    promptTokens=30,
    tokenCount=5,
    createdAt="2026-10-01T10:00:00Z",
)
LIBRECHAT_ERROR = librechat_message(
    "m4", "m3", "The server is away.", sender="Mason", isCreatedByUser=False, error=True
)
LIBRECHAT_HEAD = {
    "conversationId": "lc-1",
    "endpoint": "agents",
    "title": "Depth",
    "options": {"model": "lamp-4", "promptPrefix": LONGER},
}
LIBRECHAT_MESSAGES = [LIBRECHAT_QUESTION, LIBRECHAT_OTHER, LIBRECHAT_ANSWER, LIBRECHAT_ERROR]
LIBRECHAT = {**LIBRECHAT_HEAD, "recursive": False, "messages": LIBRECHAT_MESSAGES}
LIBRECHAT_TREE = {
    **LIBRECHAT_HEAD,
    "recursive": True,
    "messagesTree": [
        {
            **LIBRECHAT_QUESTION,
            "children": [LIBRECHAT_OTHER, {**LIBRECHAT_ANSWER, "children": [LIBRECHAT_ERROR]}],
        }
    ],
}
LIBRECHAT_SPANS = [
    f"message system: {LONGER}",
    f"message user: {LONG} [file log.txt]",
    "reasoning Mason: Ask the gauge.",
    "message Mason: I measure.",
    'tool_call Mason gauge: {"at": "A"}',
    "tool_result Mason gauge: 4 m",
    "tool_call Mason tide: {}",
    "log Mason error: The tide table is gone.",
    "message Mason: Four metres.",
    "log Mason error: The server is away.",
]

SEMANTIC_KERNEL = {
    "messages": [
        {"role": "user", "items": [{"content_type": "text", "text": LONG}]},
        {
            "role": "assistant",
            "items": [
                {
                    "content_type": "function_call",
                    "id": "k",
                    "name": "sea-depth",
                    "arguments": '{"at": "A"}',
                }
            ],
            "ai_model_id": "lamp-3",
        },
        {
            "role": "tool",
            "items": [
                {
                    "content_type": "function_result",
                    "id": "k",
                    "name": "sea-depth",
                    "result": "4 m",
                }
            ],
        },
    ]
}
SEMANTIC_KERNEL_SPANS = [
    f"message user: {LONG}",
    'tool_call assistant sea-depth: {"at": "A"}',
    "tool_result assistant sea-depth: 4 m",
]

ASSISTANTS = {
    "messages": {
        "object": "list",
        "data": [
            {
                "object": "thread.message",
                "created_at": 1790000009,
                "thread_id": "th",
                "role": "assistant",
                "content": [{"type": "text", "text": {"value": "Thirty.", "annotations": []}}],
            },
            {
                "object": "thread.message",
                "created_at": 1790000001,
                "thread_id": "th",
                "role": "user",
                "content": [{"type": "text", "text": {"value": LONG, "annotations": []}}],
            },
        ],
    },
    "run_steps": {
        "object": "list",
        "data": [
            {
                "object": "thread.run.step",
                "created_at": 1790000005,
                "thread_id": "th",
                "step_details": {
                    "type": "tool_calls",
                    "tool_calls": [
                        {
                            "id": "a1",
                            "type": "function",
                            "function": {"name": "measure", "arguments": "{}", "output": "30 m"},
                        },
                        {
                            "id": "a2",
                            "type": "code_interpreter",
                            "code_interpreter": {
                                "input": "1+1",
                                "outputs": [{"type": "logs", "logs": "2"}],
                            },
                        },
                    ],
                },
            }
        ],
    },
}
ASSISTANTS_SPANS = [
    f"message user: {LONG}",
    "tool_call assistant measure: {}",
    "tool_result assistant measure: 30 m",
    "tool_call assistant code_interpreter: 1+1",
    "tool_result assistant code_interpreter: 2",
    "message assistant: Thirty.",
]

SMOLAGENTS_OLD = [
    {"task": LONG, "task_images": ["iVBOR"]},
    {"facts": "The tower leans.", "plan": LONGER},
    {
        "step_number": 1,
        "start_time": 1790000001.0,
        "end_time": 1790000002.0,
        "tool_calls": [
            {"id": "f", "function": {"name": "find", "arguments": {}}},
            {"id": "g", "function": {"name": "gauge", "arguments": {}}},
        ],
        "model_output": None,
        "model_output_message": {"role": "assistant", "content": "I look for the gauge first."},
        "observations": "30 m",
        "action_output": "The gauge says thirty metres, give or take one.",
        "error": None,
    },
    {
        "step_number": 2,
        "tool_calls": None,
        "model_output": [{"type": "text", "text": "Thirty."}],
        "observations": None,
        "error": "no code in the answer",
    },
    7,
]
SMOLAGENTS_OLD_SPANS = [
    f"message user: {LONG} [image]",
    f"message assistant: The tower leans. {LONGER}",
    "message assistant: I look for the gauge first.",
    "tool_call assistant find: {}",
    "tool_call assistant gauge: {}",
    "tool_result assistant gauge: 30 m The gauge says thirty metres, give or take one.",
    "message assistant: Thirty.",
    "tool_result tool error: no code in the answer",
    "log log: 7",
]
SMOLAGENTS_SAVED = {
    "system_prompt": {"system_prompt": "You measure."},
    "steps": SMOLAGENTS_OLD,
    "output": "The tower is thirty metres tall, and it leans.",
    "state": "success",
}
SMOLAGENTS_SAVED_SPANS = [
    "message system: You measure.",
    *SMOLAGENTS_OLD_SPANS,
    "message assistant: The tower is thirty metres tall, and it leans.",
]

BROWSER_USE_OLD = [
    {
        "model_output": {
            "current_state": {
                "page_summary": LONGER,
                "next_goal": "Open it.",
                "reasoning_task_status": LONG,
            },
            "action": [{"open": {"url": "x"}, "interacted_element": None}, {"wait": {}}],
        },
        "result": [
            {
                "extracted_content": "The page opened, but half of it is missing.",
                "long_term_memory": "Half of the page is missing, so I open it again.",
                "error": "time is up",
                "attachments": ["page.txt"],
            }
        ],
        "state": {"title": "Tower"},
    },
    {"model_output": None, "result": [{"error": "the browser has gone"}], "state": {}},
    {"model_output": "no JSON at all", "result": "nothing done", "state": None},
]
BROWSER_USE_OLD_SPANS = [
    "message browser: Tower",
    f"reasoning assistant: {LONGER} Open it. {LONG}",
    'tool_call assistant open: { "url": "x" }',
    "tool_call assistant wait: {}",
    "tool_result assistant open error: The page opened, but half of it is missing. "
    "Half of the page is missing, so I open it again. time is up [file page.txt]",
    "tool_result tool error: the browser has gone",
    "message assistant: no JSON at all",
    "tool_result tool ok: nothing done",
]

CREW_OUTPUT = {
    "raw": "Mend the sill before the gallery, and mend it soon.",
    "tasks_output": [
        {"description": LONG, "expected_output": "A report.", "raw": LONGER, "agent": "Mason"},
        {"description": "Order it.", "raw": "Sill first.", "agent": "Clerk"},
    ],
    "token_usage": {"total_tokens": 9},
}
CREW_OUTPUT_SPANS = [
    f"message user: {LONG} A report.",
    f"message Mason: {LONGER}",
    "message user: Order it.",
    "message Clerk: Sill first.",
    "message assistant: Mend the sill before the gallery, and mend it soon.",
]
CREWAI_FAILED = [{**CREWAI[1], "output": None, "status": "failed", "error": "no scaffold"}, None]
CREWAI_FAILED_SPANS = [
    f"message user: {LONG}",
    "tool_result Mason Mason error: no scaffold",
    "log log: ",
]

CHATGPT_KINDS = {
    "mapping": {
        node["id"]: {**node, "children": children, "parent": None}
        for node, children in (
            (
                chatgpt_node(
                    "a",
                    None,
                    "user",
                    {"content_type": "user_editable_context", "user_instructions": LONG},
                ),
                ["b"],
            ),
            (
                chatgpt_node(
                    "b",
                    None,
                    "user",
                    {"content_type": "text", "parts": "How tall is it?"},
                    metadata={"attachments": [{"name": "tower.pdf"}]},
                ),
                ["c"],
            ),
            (
                chatgpt_node(
                    "c",
                    None,
                    "assistant",
                    {"content_type": "code", "text": "search()"},
                    recipient="web",
                ),
                ["d"],
            ),
            (
                chatgpt_node(
                    "d",
                    None,
                    "tool",
                    {"content_type": "tether_quote", "text": LONGER},
                    author_name="web.run",
                ),
                ["e"],
            ),
            (
                chatgpt_node(
                    "e",
                    None,
                    "tool",
                    {"content_type": "system_error", "name": "E", "text": "no page"},
                    author_name="web.run",
                ),
                ["f"],
            ),
            (
                chatgpt_node(
                    "f",
                    None,
                    "assistant",
                    {"content_type": "new_kind", "output_str": "It is thirty metres by the log."},
                ),
                [],
            ),
        )
    }
}
CHATGPT_KINDS_SPANS = [
    f"message system: {LONG}",
    "message user: How tall is it? [file tower.pdf]",
    "tool_call assistant web: search()",
    f"tool_result assistant web: {LONGER}",
    "tool_result assistant web error: no page",
    "message assistant: It is thirty metres by the log.",
]

CLAUDE_AI_KINDS = {
    "chat_messages": [
        {
            "sender": "human",
            "text": LONG,
            "content": [{"type": "text", "text": ""}],
            "files": [{"file_name": "tower.png"}],
        },
        3,
        {"sender": "assistant", "content": [{"type": "flag", "flag": "f"}, "Yes."]},
        {"sender": "assistant", "content": LONGER},
    ]
}
CLAUDE_AI_KINDS_SPANS = [
    f"message user: {LONG} [file tower.png]",
    "log log: 3",
    'log log flag: { "type": "flag", "flag": "f" }',
    "message assistant: Yes.",
    f"message assistant: {LONGER}",
]

KERNEL_CAMEL = [
    {"role": {"label": "user"}, "items": [{"$type": "TextContent", "text": LONG}]},
    {
        "role": {"label": "assistant"},
        "items": [
            {"$type": "ReasoningContent", "text": "I look."},
            {
                "$type": "FunctionCallContent",
                "id": "k",
                "functionName": "depth",
                "pluginName": "sea",
                "arguments": {},
            },
        ],
        "metadata": {"Usage": {"InputTokenCount": 5, "OutputTokenCount": 2}},
    },
    {
        "role": {"label": "tool"},
        "items": [{"$type": "FunctionResultContent", "callId": "k", "result": "4 m"}],
    },
    {"Role": {"Label": "user"}, "Items": [{"$type": "ImageContent", "Uri": "x"}]},
    {"Role": {"Label": "Assistant"}, "Content": LONGER},
    None,
]
KERNEL_CAMEL_SPANS = [
    f"message user: {LONG}",
    "reasoning assistant: I look.",
    "tool_call assistant sea.depth: {}",
    "tool_result assistant sea.depth: 4 m",
    "message user: [image]",
    f"message assistant: {LONGER}",
    "log log: ",
]

BFCL_WITHOUT_ANSWER = {
    "id": "simple_0",
    "result": [
        [[{"cd": "{}"}, "Now I am in it."]],
        ["All done in the folder, and nothing is left to be moved."],
    ],
    "inference_log": [
        {"role": "inference_input", "content": {"message": [{"role": "user", "content": LONG}]}},
        {"end_of_turn_state": [{"role": "state_info", "class_name": "Files", "content": "a"}, 5]},
    ],
    "traceback": "KeyError",
}
BFCL_WITHOUT_ANSWER_SPANS = [
    f"message user: {LONG}",
    "message Files: a",
    "log log: 5",
    "tool_call assistant cd: {}",
    "message assistant: Now I am in it.",
    "message assistant: All done in the folder, and nothing is left to be moved.",
    "message traceback: KeyError",
]
BFCL_COUNTED = {
    "id": "simple_1",
    "result": "[cd(folder='a')]",
    "input_token_count": 5,
    "output_token_count": 2,
    "latency": 0.5,
    "reasoning_content": LONG,
}
BFCL_COUNTED_SPANS = [f"reasoning assistant: {LONG}", "message assistant: [cd(folder='a')]"]

THREADS = [
    {
        "object": "thread.run",
        "created_at": 1790000001,
        "failed_at": 1790000009,
        "thread_id": "th",
        "model": "lamp-4",
        "instructions": LONGER,
        "last_error": {"code": "rate", "message": "Too many requests were made."},
    },
    {
        "object": "thread.run.step",
        "created_at": 1790000001,
        "thread_id": "th",
        "step_details": {"tool_calls": [{"type": "function", "function": "torn"}]},
    },
    {"object": "thread.message", "created_at": 1790000001, "role": "assistant", "content": "Yes."},
    {"object": "thread.message", "created_at": 1790000001, "role": "user", "content": LONG},
]
THREADS_SPANS = [
    f"message user: {LONG}",
    f"message system: {LONGER}",
    'tool_call assistant function: { "type": "function", "function": "torn" }',
    "message assistant: Yes.",
    "message error: Too many requests were made.",
]

NOT_SHOWN = (
    *("policy", "user_scenario", "id", "url", "inference_input"),
    *("model_input_messages", "screenshot"),
)


def read_export(path: Path) -> Trace:
    """The only trace of a file that one reader alone claims."""
    assert len(list(recognising_readers(Source(path)))) == 1
    (trace,) = read_file(path, named=False).traces
    check_sound(trace)
    return trace


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(TAU2, TAU2_SPANS, id="tau2"),
        pytest.param(TAU2["simulations"], TAU2_SPANS, id="tau2-simulations-alone"),
        pytest.param(BFCL, BFCL_SPANS, id="bfcl"),
        pytest.param(SMOLAGENTS, SMOLAGENTS_SPANS, id="smolagents"),
        pytest.param({"steps": SMOLAGENTS}, SMOLAGENTS_SPANS, id="smolagents-result"),
        pytest.param(BROWSER_USE, BROWSER_USE_SPANS, id="browser-use"),
        pytest.param(CREWAI, CREWAI_SPANS, id="crewai"),
        pytest.param(CHATGPT, CHATGPT_SPANS, id="chatgpt"),
        pytest.param([CHATGPT], CHATGPT_SPANS, id="chatgpt-list"),
        pytest.param(
            {name: value for name, value in CHATGPT.items() if name != "current_node"},
            CHATGPT_SPANS,
            id="chatgpt-without-current-node",
        ),
        pytest.param([CLAUDE_AI], CLAUDE_AI_SPANS, id="claude-ai"),
        pytest.param(LIBRECHAT, LIBRECHAT_SPANS, id="librechat"),
        pytest.param([LIBRECHAT_TREE], LIBRECHAT_SPANS, id="librechat-tree"),
        pytest.param(SEMANTIC_KERNEL, SEMANTIC_KERNEL_SPANS, id="semantic-kernel"),
        pytest.param(ASSISTANTS, ASSISTANTS_SPANS, id="openai-assistants"),
    ],
)
def test_exports_become_spans(document: object, expected: list[str], tmp_path: Path) -> None:
    """Each text is in one span; calls and results are tied, errors have their status."""
    path = write_json(tmp_path / "run.json", document)
    trace = read_export(path)
    assert span_lines(trace) == expected
    for span in spans_of(trace):
        assert span.kind.value != "tool_result" or span.parent is not None
    if document is CREWAI:  # the log repeats the task in both of its lines
        return
    coverage = text_coverage(path, [trace], NOT_SHOWN)
    assert not coverage.lost
    assert not coverage.doubled


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(SMOLAGENTS_OLD, SMOLAGENTS_OLD_SPANS, id="smolagents-old"),
        pytest.param(SMOLAGENTS_SAVED, SMOLAGENTS_SAVED_SPANS, id="smolagents-saved"),
        pytest.param(
            {"memory": {"steps": SMOLAGENTS_OLD}}, SMOLAGENTS_OLD_SPANS, id="smolagents-memory"
        ),
        pytest.param(BROWSER_USE_OLD, BROWSER_USE_OLD_SPANS, id="browser-use-old"),
        pytest.param(
            {"agent_id": "a", "history": {"history": BROWSER_USE_OLD}},
            BROWSER_USE_OLD_SPANS,
            id="browser-use-state",
        ),
        pytest.param(CREWAI_FAILED, CREWAI_FAILED_SPANS, id="crewai-without-start"),
        pytest.param(CREW_OUTPUT, CREW_OUTPUT_SPANS, id="crewai-output"),
        pytest.param(BFCL_WITHOUT_ANSWER, BFCL_WITHOUT_ANSWER_SPANS, id="bfcl-without-answer"),
        pytest.param(BFCL_COUNTED, BFCL_COUNTED_SPANS, id="bfcl-counted"),
        pytest.param(THREADS, THREADS_SPANS, id="openai-assistants-runs"),
        pytest.param(CHATGPT_KINDS, CHATGPT_KINDS_SPANS, id="chatgpt-kinds"),
        pytest.param({"conversations": [CHATGPT]}, CHATGPT_SPANS, id="chatgpt-wrapped"),
        pytest.param(CLAUDE_AI_KINDS, CLAUDE_AI_KINDS_SPANS, id="claude-ai-kinds"),
        pytest.param(KERNEL_CAMEL, KERNEL_CAMEL_SPANS, id="semantic-kernel-camel"),
        pytest.param(
            {"chat_history": SEMANTIC_KERNEL}, SEMANTIC_KERNEL_SPANS, id="semantic-kernel-thread"
        ),
    ],
)
def test_other_layouts_of_exports_become_spans(
    document: object, expected: list[str], tmp_path: Path
) -> None:
    """Older and damaged layouts lose no text; a result without a call is not tied to another."""
    path = write_json(tmp_path / "run.json", document)
    trace = read_export(path)
    assert span_lines(trace) == expected
    coverage = text_coverage(path, [trace], NOT_SHOWN)
    assert not coverage.lost
    assert not coverage.doubled


def test_runs_that_one_file_lists_are_a_trace_each(tmp_path: Path) -> None:
    """Runs stand a line each, or in one list."""
    lines = write_json_lines(tmp_path / "runs.jsonl", {"steps": SMOLAGENTS}, SMOLAGENTS_SAVED)
    listed = write_json(tmp_path / "runs.json", [BROWSER_USE, BROWSER_USE])
    threads = write_json(tmp_path / "threads.json", [THREADS[0], {**THREADS[3], "thread_id": "b"}])
    expected = [SMOLAGENTS_SPANS, SMOLAGENTS_SAVED_SPANS]
    assert [span_lines(trace) for trace in read_file(lines, named=False).traces] == expected
    assert len(read_file(listed, named=False).traces) == 2
    names = [trace.identity.trace_id for trace in read_file(threads, named=False).traces]
    assert names == ["th", "b"]


def test_a_conversation_without_messages_is_a_problem(tmp_path: Path) -> None:
    """Exports list conversations that were opened and never used: they are no traces."""
    empty = {"uuid": "conv-0", "chat_messages": []}
    report = read_file(write_json(tmp_path / "c.json", [empty, CLAUDE_AI]), named=False)
    assert [problem.place for problem in report.problems] == ["/0"]
    assert [trace.identity.trace_id for trace in report.traces] == ["conv-1"]


def test_a_simulation_has_its_task_trial_reward_and_answer_key(tmp_path: Path) -> None:
    """Facts lie in the results around the simulation; the user's own tokens do not count."""
    trace = read_export(write_json(tmp_path / "results.json", TAU2))
    meta = trace.meta
    assert (meta.task_id, meta.trial, meta.benchmark) == ("4", 2, "tau2 harbour")
    assert (meta.model, meta.outcome, meta.score) == ("lamp-1", Outcome.SUCCEEDED, 1.0)
    assert trace.identity.trace_id == "s-1"
    assert meta.task == "A berth, please."
    names = {name for entries in meta.hidden for name in [entries[0]]}
    assert any("policy" in name for name in names)
    assert [span.tokens for span in spans_of(trace) if span.tokens] == [Tokens(9, 2)]


def test_lines_of_bfcl_are_a_trace_each(tmp_path: Path) -> None:
    """A result file has a conversation on each line, with its own task."""
    path = write_json_lines(tmp_path / "r.jsonl", BFCL, {**BFCL, "id": "multi_turn_base_4"})
    traces = read_file(path, named=False).traces
    assert [trace.meta.task_id for trace in traces] == ["multi_turn_base_3", "multi_turn_base_4"]


@pytest.mark.parametrize(
    "conversation",
    [CHATGPT, CLAUDE_AI, LIBRECHAT, LIBRECHAT_TREE],
    ids=["chatgpt", "claude-ai", "librechat", "librechat-tree"],
)
def test_other_branches_of_a_conversation_are_named(conversation: object, tmp_path: Path) -> None:
    """Answers that were made anew are no part of the run, and the trace says so."""
    trace = read_export(write_json(tmp_path / "conversations.json", [conversation]))
    (problem,) = trace.problems
    assert problem.message.startswith("1 message of another branch left out")


def test_a_librechat_answer_has_its_model_and_tokens(tmp_path: Path) -> None:
    """The count of a question's tokens is that of its text and no model call's."""
    trace = read_export(write_json(tmp_path / "chat.json", LIBRECHAT))
    assert (trace.identity.trace_id, trace.meta.model) == ("lc-1", "lamp-4")
    assert [span.tokens for span in spans_of(trace) if span.tokens] == [Tokens(30, 5)]


@pytest.mark.parametrize("broken", [None, 7, "?", [], {}, {"content": 3}])
def test_broken_messages_of_librechat_lose_nothing_else(broken: object, tmp_path: Path) -> None:
    """A message that is none breaks neither the reading nor the branch around it."""
    messages = [broken, *LIBRECHAT_MESSAGES, broken]
    document = {**LIBRECHAT, "messages": messages}
    trace = read_export(write_json(tmp_path / "chat.json", document))
    assert span_lines(trace) == LIBRECHAT_SPANS
    assert [problem.message.partition(" left out")[0] for problem in trace.problems] == [
        "1 message of another branch",
        "2 messages without `messageId`",
    ]


def test_messages_of_librechat_without_ids_follow_one_another(tmp_path: Path) -> None:
    """The order of the list is the order of the conversation where nothing else tells it."""
    messages = [
        {"messageId": None, "text": text, "isCreatedByUser": by_user}
        for text, by_user in ((LONG, True), (LONGER, False))
    ]
    document = {"conversationId": "lc-2", "messages": messages}
    lines = span_lines(read_export(write_json(tmp_path / "chat.json", document)))
    assert lines == [f"message user: {LONG}", f"message assistant: {LONGER}"]
