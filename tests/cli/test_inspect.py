"""``mast-tui inspect`` and ``mast-tui convert``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.cli.command_line import split_words
from mast_tui.cli.dispatch import run
from tests.traces.rollouts import SESSION, call, message, meta, output, reasoning, record, write

Result = dict[str, object]


def mast_tui(*args: str | Path) -> int:
    return run(split_words([str(arg) for arg in args]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a rollout, a chat, a document and a broken file."""
    traces = tmp_path / "traces"
    traces.mkdir()
    path = write(
        traces,
        meta(),
        message("user", "go"),
        record("turn_context", {"model": "gpt-oss-120b"}),
        reasoning("hm"),
        call("a"),
        output("a", '{"output": "no such file", "metadata": {"exit_code": 2}}'),
        name="run.jsonl",
    )
    with path.open("ab") as file:
        file.write(b"{cut")
    chat = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    (traces / "chat.json").write_text(json.dumps([{"messages": chat}, {"messages": chat[:1]}]))
    (traces / "README.md").write_text("# what this is")
    return traces


def test_the_json_document_has_the_agreed_shape(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mast_tui("inspect", folder, "--json") == 0
    out, err = capsys.readouterr()
    assert err == ""
    document = json.loads(out)
    chat, rollout = document["files"]
    assert rollout == {
        "path": str(folder / "run.jsonl"),
        "format": "codex",
        "traces": [
            {
                "id": SESSION,
                "spans": 4,
                "agents": ["codex"],
                "system": "codex",
                "model": "gpt-oss-120b",
                "outcome": "unknown",
                "answer_key": {},
            }
        ],
        "problems": [
            {
                "place": "line 7",
                "message": "the last line is cut off; everything before it was read",
            }
        ],
    }
    assert [trace["spans"] for trace in chat["traces"]] == [2, 1]
    assert document["skipped"] == [{"path": str(folder / "README.md"), "reason": "document"}]
    assert document["failed"] == []


def test_spans_are_listed_when_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mast_tui("inspect", folder / "run.jsonl", "--spans", "--json") == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    spans = file["traces"][0]["span_list"]
    assert spans[-1] == {
        "index": 3,
        "key": "a:result",
        "kind": "tool_result",
        "agent": "codex",
        "name": "shell",
        "parent": "a:call",
        "place": "line 6",
        "status": "error",
        "text_chars": len("no such file"),
        "preview": "no such file",
    }
    assert [span["kind"] for span in spans] == ["message", "reasoning", "tool_call", "tool_result"]


def test_big_files_are_read_to_their_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, meta(), *(message("user", "x" * 1000) for _ in range(2000)))
    assert mast_tui("inspect", tmp_path, "--json") == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert file["traces"][0]["spans"] == 2000


def test_what_failed_is_told_on_stderr_with_exit_code_1(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "broken.json").write_text("{")
    assert mast_tui("inspect", folder, folder / "nothing", "--json") == 1
    out, err = capsys.readouterr()
    failed = json.loads(out)["failed"]
    assert [Path(one["path"]).name for one in failed] == ["broken.json", "nothing"]
    assert len(err.splitlines()) == 2
    assert "broken.json: not JSON, line 1" in err
    assert "nothing: no such file or folder" in err


def test_people_get_a_table_without_control_characters(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b]0;gone\x07[/red]\u202e"
    write(folder, meta("s-1"), message("user", evil), call(f"k{evil}"), name="evil.jsonl")
    (folder / f"na\x1bme{evil[-1]}.json").write_text("[]")
    assert mast_tui("inspect", folder, "--spans") == 0
    out = capsys.readouterr().out
    assert not any(character in out for character in "\x1b\x07\u202e")
    for shown in (SESSION, "gpt-oss-120b", "no such file", "[/red]", ":7: ", "document"):
        assert shown in out


def test_one_long_name_does_not_widen_every_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = {"type": "function_call", "name": "f" * (1 << 20), "arguments": "{}", "call_id": "x"}
    long = record("response_item", named)
    write(tmp_path, meta(), long, *(call(f"c{number}") for number in range(2000)))
    assert mast_tui("inspect", tmp_path, "--spans") == 0
    out = capsys.readouterr().out
    assert out.count("\n") > 2000
    assert len(out) < 2 << 20
    assert "f… " in out
    assert mast_tui("inspect", tmp_path, "--spans", "--json") == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert len(file["traces"][0]["span_list"][0]["name"]) == 1 << 20


def test_a_folder_without_traces_is_said_to_have_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mast_tui("inspect", tmp_path) == 0
    assert "no traces" in capsys.readouterr().out


def test_converting_writes_one_line_per_trace(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    assert mast_tui("convert", folder, "-o", out) == 0
    lines = [json.loads(line) for line in out.read_bytes().splitlines()]
    assert [len(line["spans"]) for line in lines] == [2, 1, 4]
    assert lines[2]["spans"][3]["text"] == "no such file"
    assert "3 traces written" in capsys.readouterr().err
    assert mast_tui("inspect", out, "--json") == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert [trace["spans"] for trace in file["traces"]] == [2, 1, 4]


def test_converting_to_atif_writes_what_other_tools_read(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    for _ in range(2):  # what it has written itself it replaces
        assert mast_tui("convert", folder, "--to", "atif", "-o", out) == 0
    lines = [json.loads(line) for line in out.read_bytes().splitlines()]
    assert [line["schema_version"] for line in lines] == ["ATIF-v1.7"] * 3
    assert lines[2]["steps"][-1]["observation"]["results"][0]["content"] == "no such file"
    capsys.readouterr()
    assert mast_tui("inspect", out, "--json") == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert file["format"] == "atif"
    assert [trace["spans"] for trace in file["traces"]] == [2, 1, 4]
    one = tmp_path / "one.json"
    assert mast_tui("convert", folder / "run.jsonl", "--to", "atif", "-o", one) == 0
    assert json.loads(one.read_bytes())["session_id"]


def test_converting_goes_on_after_a_file_that_failed(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "broken.json").write_text("{")
    out = tmp_path / "out.jsonl"
    assert mast_tui("convert", folder, "-o", out) == 1
    assert len(out.read_bytes().splitlines()) == 3
    assert "broken.json" in capsys.readouterr().err


def test_nothing_is_written_where_there_is_nothing_to_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "README.md").write_text("# what this is")
    assert mast_tui("convert", tmp_path, "-o", tmp_path / "out.jsonl") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    assert "inspect" in capsys.readouterr().err


def test_converting_a_folder_into_itself_can_be_repeated(folder: Path) -> None:
    out = folder / "all.jsonl"
    assert mast_tui("convert", folder, "-o", out) == 0
    first = out.read_bytes()
    assert mast_tui("convert", folder, "-o", out) == 0
    assert out.read_bytes() == first
