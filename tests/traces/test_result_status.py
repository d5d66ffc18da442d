"""The status of a tool result from its text."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.traces.library import read_file
from mast_tui.traces.model import SpanKind, SpanStatus
from mast_tui.traces.result_status import (
    first_known_status,
    status_of_message,
    status_of_result,
    worst_status,
)
from tests.traces.checks import spans_of, write_json

TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 2, in <module>\n    f()\n'

FAILED = [
    "exitcode: 1 (execution failed)\nCode output: x",
    "<returncode>2</returncode>\n<output>x</output>",
    "exit code 1\nboom",
    "Exit code: 127\nWall time: 1 s",
    "Chunk ID: 4\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\nx",
    "The script ran, then exited with Unix exit code: 1\nIts output was:\nx",
    "x\n[The command completed with exit code 1.]",
    "x\n[Current working directory: /w]\n[Command finished with exit code 2]",
    "gcc -c a.c\nmake: *** [Makefile:3: a.o] Error 1\n",
    "x\nexit status 2\n",
    "Error: user not found",
    "error: Metrics API not available",
    "[ERROR]: no such tool",
    "ERROR:\nno such tool",
    "Error executing tool: no such tool",
    "ValueError: bad literal",
    "requests.exceptions.HTTPError: 404",
    TRACEBACK + "NameError: name 'x' is not defined",
    "starting\n1\n2\n" + TRACEBACK + "json.decoder.JSONDecodeError: Expecting value\n\n",
    "\x1b[31m" + TRACEBACK + "\x1b[0mKeyError: 'a'",
    "Failed the python code execution test: " + TRACEBACK + "KeyError: 'a'\n" + "x\n" * 40,
    "Execution failed. Response status 401: {}",
    "Your proposed edit has introduced new syntax error(s). Please retry.\n\nERRORS:\n- E999",
    "No replacement was performed, old_str did not appear verbatim.",
    "File already exists at: /a.py. Cannot overwrite files using command `create`.",
    "Invalid `insert_line` parameter: 9. It should be within the range of lines: [0, 3]",
    "Your edit was not applied (file not modified): Text 'a' not found in displayed lines.",
    "Command timed out before completing.",
    "<tool_use_error>File has not been read yet.</tool_use_error>",
    "fatal: not a git repository",
    "FATA[0000] rpc error: code = PermissionDenied",
    "bash: line 1: xxd: command not found\n\n",
    "cat: /x/y.py: No such file or directory\n",
    "ls: cannot access 'a b': No such file or directory",
    "..F.\n=== 1 failed, 3 passed in 0.12s ===",
    "2 failed, 1 error in 61.20s (0:01:01)",
    "Ran 3 tests in 0.001s\n\nFAILED (failures=1)\n",
    '{"error": "address_unknown", "hint": "no blank"}',
    '{"success": false, "message": "full"}',
    '{"status": "error", "message": "full"}',
    '{"output": "x", "exit_code": 1}',
]

UNKNOWN = [
    "",
    "done",
    "Error: 0.0132",
    "error: none\nrows: 12",
    "Errors: 3 of 12 pages could not be fetched",
    "Error handling is described in chapter 4.",
    "no errors found",
    "14:02 ERROR payment timed out\n14:03 INFO up\n",
    "def f():\n    raise ValueError('x')\n",
    "a.log:\n" + TRACEBACK + "KeyError: 'a'\n" + "GET / 200\n" * 40,
    "notes: see Traceback (most recent call last) below\nall is well",
    "grep: a: No such file or directory\nb.py:3: import c\n",
    "=== 4 passed in 0.10s ===",
    "=== 4 passed, 0 failed in 0.10s ===",
    '{"error": null, "result": 4}',
    '{"error": "", "data": []}',
    '{"error": "rate", "data": [1]}',
    '{"job": "sync", "status": "failed"}',
    '{"failure": {"message": "string"}}',
    '[{"error": "x"}]',
    "import re\nexit_code = 1\n",
]

SUCCEEDED = [
    "exitcode: 0 (execution succeeded)\nCode output: [Errno 2] No such file",
    "Exit code: 0\nOutput:\n" + TRACEBACK + "KeyError: 'a'",
    TRACEBACK + "KeyError: 'a'\n[Command finished with exit code 0]",
    "41.0\nexit status 0",
]


@pytest.mark.parametrize("text", FAILED)
def test_a_result_that_reports_failure_is_an_error(text: str) -> None:
    assert status_of_result(text) is SpanStatus.ERROR


@pytest.mark.parametrize("text", UNKNOWN)
def test_a_result_about_errors_is_no_error(text: str) -> None:
    assert status_of_result(text) is SpanStatus.UNKNOWN


@pytest.mark.parametrize("text", SUCCEEDED)
def test_an_exit_code_of_zero_outranks_the_text(text: str) -> None:
    assert status_of_result(text) is SpanStatus.OK


@pytest.mark.parametrize(
    ("agent", "text", "status"),
    [
        ("Computer_terminal", TRACEBACK + "KeyError: 'a'", SpanStatus.ERROR),
        ("ComputerTerminal", "Error: no page", SpanStatus.ERROR),
        ("user_proxy", "exitcode: 1 (execution failed)\nCode output:", SpanStatus.ERROR),
        ("Coder", "Error: I could not do it.", SpanStatus.UNKNOWN),
        ("user", TRACEBACK + "KeyError: 'a'", SpanStatus.UNKNOWN),
    ],
)
def test_messages_are_never_errors_by_their_text(agent: str, text: str, status: SpanStatus) -> None:
    assert status_of_message(agent, text) is status


def test_fields_of_the_format_outrank_the_text(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Error: my page is gone"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "Error: no such page"},
        {"role": "assistant", "content": "Error: I found nothing."},
        {"role": "tool", "content": "Error: is the word", "status": "success"},
    ]
    (trace,) = read_file(write_json(tmp_path / "chat.json", messages), named=True).traces
    spans = spans_of(trace)
    assert [(span.kind, span.status) for span in spans] == [
        (SpanKind.MESSAGE, SpanStatus.UNKNOWN),
        (SpanKind.TOOL_CALL, SpanStatus.UNKNOWN),
        (SpanKind.TOOL_RESULT, SpanStatus.ERROR),
        (SpanKind.MESSAGE, SpanStatus.UNKNOWN),
        (SpanKind.TOOL_RESULT, SpanStatus.OK),
    ]


def test_hostile_texts_are_classified_in_linear_time() -> None:
    for text in ("a: " * 5_000, " " * 50_000, "[" * 50_000, "A." * 25_000, "\n" * 50_000):
        assert status_of_result(text) is SpanStatus.UNKNOWN


def test_a_failure_outranks_other_statuses_else_the_first_known_counts() -> None:
    unknown = SpanStatus.UNKNOWN
    ok = SpanStatus.OK
    error = SpanStatus.ERROR
    assert first_known_status(unknown, ok, error) is ok
    assert worst_status(unknown, ok, error) is error
    assert worst_status(unknown, ok) is ok
    assert worst_status() is first_known_status(unknown) is unknown
