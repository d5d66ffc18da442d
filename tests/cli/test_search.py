"""``mast-tui search``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_inspect import mast_tui
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


def test_a_line_tells_place_trace_span_and_text(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mast_tui("search", "zebra", folder) == 0
    out, err = capsys.readouterr()
    chat, asked, called, result = out.splitlines()
    assert err == ""
    assert chat.startswith(f"{folder / 'chat.json'}#/")
    assert chat.endswith("  #2 message  a zebra")
    assert asked == f"{folder / 'run.jsonl'}:2  {SESSION}  #1 message  find the zebra"
    assert "#2 tool call shell  " in called
    assert "  #3 tool result shell  ✗  " in result
    assert "\x1b" not in out


def test_json_is_one_object_a_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mast_tui("search", "zebra", folder, "--json", "--tool", "shell", "--failed") == 0
    (line,) = capsys.readouterr().out.splitlines()
    found = json.loads(line)
    preview, (lit, unlit) = found.pop("preview"), found.pop("lit")
    assert preview[lit:unlit] == "zebra"
    assert found == {
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
        "start": found["start"],
        "end": found["start"] + 5,
    }


def test_spans_are_counted_by_trace(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mast_tui("search", "zebra", folder, "--count") == 0
    chat, run = capsys.readouterr().out.splitlines()
    assert chat.endswith("  1 span")
    assert run == f"{folder / 'run.jsonl'}  {SESSION}  3 spans, 4 matches"
    assert mast_tui("search", "zebra", folder, "--count", "--json", "--kind", "tool-call") == 0
    counted = json.loads(capsys.readouterr().out)
    assert (counted["spans"], counted["matches"]) == (1, 1)


def test_it_stops_after_so_many(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mast_tui("search", "zebra", folder, "--max", "2") == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_exit_codes_tell_what_was_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mast_tui("search", "giraffe", folder) == 1
    assert capsys.readouterr() == ("", "")
    (folder / "broken.json").write_text('{"zebra": nothing,,}')
    assert mast_tui("search", "zebra", folder) == 1
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 4
    assert err.startswith(f"mast-tui search: {folder / 'broken.json'}: not JSON")
    assert mast_tui("search", "zebra", folder / "missing") == 1
    assert "no such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [("search", "zebra"), ("search", "", "x"), ("search", "(", "x", "--regex")],
)
def test_wrong_usage_is_told(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert mast_tui(*words) == 2
    assert capsys.readouterr().err
