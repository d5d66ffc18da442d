"""``mast-tui search``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.traces.rollouts import SESSION, call, message, meta, output, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a rollout and a chat."""
    (tmp_path / "traces").mkdir()
    write(
        tmp_path / "traces",
        meta(),
        message("user", "find the zebra"),
        call("a", '{"command": ["grep", "zebra"]}'),
        output("a", '{"output": "no zebra, \\u001b[31mno zebra", "metadata": {"exit_code": 1}}'),
        name="run.jsonl",
    )
    chat = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a zebra"}]
    (tmp_path / "traces" / "chat.json").write_text(json.dumps([{"messages": chat}] * 1))
    return tmp_path / "traces"


def test_a_line_tells_place_trace_span_and_text(cli: Cli, folder: Path) -> None:
    done = cli("search", "zebra", folder)
    assert (done.code, done.err) == (0, "")
    chat, asked, called, result = done.out.splitlines()
    assert chat.startswith(f"{folder / 'chat.json'}#/")
    assert chat.endswith("  #2 message  a zebra")
    assert asked == f"{folder / 'run.jsonl'}:2  {SESSION}  #1 message  find the zebra"
    assert "#2 tool call shell  " in called
    assert "  #3 tool result shell  ✗  " in result
    assert "\x1b" not in done.out


def test_json_is_one_object_a_line(cli: Cli, folder: Path) -> None:
    done = cli("search", "zebra", folder, "--json", "--tool", "shell", "--failed")
    assert (done.code, done.out.count("\n")) == (0, 1)
    document = done.json
    preview, (lit, unlit) = document.pop("preview"), document.pop("lit")
    assert preview[lit:unlit] == "zebra"
    assert document == {
        "path": str(folder / "run.jsonl"),
        "place": f"{folder / 'run.jsonl'}:4",
        "trace": SESSION,
        "span": 2,
        "key": "a:result",
        "kind": "tool_result",
        "agent": "codex",
        "name": "shell",
        "status": "error",
        "matches": 2,
        "start": document["start"],
        "end": document["start"] + 5,
    }


def test_spans_are_counted_by_trace(cli: Cli, folder: Path) -> None:
    chat, run = cli("search", "zebra", folder, "--count").out.splitlines()
    assert chat.endswith("  1 span")
    assert run == f"{folder / 'run.jsonl'}  {SESSION}  3 spans, 4 matches"
    document = cli("search", "zebra", folder, "--count", "--json", "--kind", "tool-call").json
    assert (document["spans"], document["matches"]) == (1, 1)

    assert cli("search", "zebra", folder, "--max", "2").out.count("\n") == 2


def test_exit_codes_tell_what_was_found(cli: Cli, folder: Path) -> None:
    none = cli("search", "giraffe", folder)
    assert (none.code, none.out, none.err) == (1, "", "")
    (folder / "broken.json").write_text('{"zebra": nothing,,}')
    done = cli("search", "zebra", folder)
    assert (done.code, done.out.count("\n")) == (1, 4)
    assert done.err.startswith(f"mast-tui search: {folder / 'broken.json'}: not JSON")
    missing = cli("search", "zebra", folder / "missing")
    assert (missing.code, "no such file" in missing.err) == (1, True)


@pytest.mark.parametrize(
    "words",
    [("search", "zebra"), ("search", "", "x"), ("search", "(", "x", "--regex")],
)
def test_wrong_usage_is_told(cli: Cli, words: tuple[str, ...]) -> None:
    done = cli(*words)
    assert (done.code, bool(done.err)) == (2, True)
