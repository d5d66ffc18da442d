"""``mast-tui inspect`` and ``mast-tui convert``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.traces.rollouts import SESSION, call, message, meta, output, reasoning, record, write


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


def test_the_json_document_has_the_agreed_shape(cli: Cli, folder: Path) -> None:
    done = cli("inspect", folder, "--json")
    assert (done.code, done.err) == (0, "")
    document = done.json
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


def test_spans_are_listed_when_asked_for(cli: Cli, folder: Path) -> None:
    (file,) = cli("inspect", folder / "run.jsonl", "--spans", "--json").json["files"]
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


def test_big_files_are_read_to_their_end(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, meta(), *(message("user", "x" * 1000) for _ in range(2000)))
    (file,) = cli("inspect", tmp_path, "--json").json["files"]
    assert file["traces"][0]["spans"] == 2000


def test_what_failed_is_told_on_stderr_with_exit_code_1(cli: Cli, folder: Path) -> None:
    (folder / "broken.json").write_text("{")
    done = cli("inspect", folder, folder / "nothing", "--json")
    failed = [Path(failure["path"]).name for failure in done.json["failed"]]
    assert (done.code, failed) == (1, ["broken.json", "nothing"])
    assert len(done.err.splitlines()) == 2
    assert "broken.json: not JSON, line 1" in done.err
    assert "nothing: no such file or folder" in done.err


def test_people_get_a_table_without_control_characters(cli: Cli, folder: Path) -> None:
    evil = "\x1b]0;gone\x07[/red]\u202e"
    write(folder, meta("s-1"), message("user", evil), call(f"k{evil}"), name="evil.jsonl")
    (folder / f"na\x1bme{evil[-1]}.json").write_text("[]")
    out = cli("inspect", folder, "--spans").out
    assert not any(character in out for character in "\x1b\x07\u202e")
    for shown in (SESSION, "gpt-oss-120b", "no such file", "[/red]", ":7: ", "document"):
        assert shown in out


def test_one_long_name_does_not_widen_every_row(cli: Cli, tmp_path: Path) -> None:
    named = {"type": "function_call", "name": "f" * (1 << 20), "arguments": "{}", "call_id": "x"}
    long = record("response_item", named)
    write(tmp_path, meta(), long, *(call(f"c{number}") for number in range(2000)))
    out = cli("inspect", tmp_path, "--spans").out
    assert out.count("\n") > 2000
    assert len(out) < 2 << 20
    assert "f… " in out
    (file,) = cli("inspect", tmp_path, "--spans", "--json").json["files"]
    assert len(file["traces"][0]["span_list"][0]["name"]) == 1 << 20


def test_a_folder_without_traces_is_said_to_have_none(cli: Cli, tmp_path: Path) -> None:
    done = cli("inspect", tmp_path)
    assert (done.code, "no traces" in done.out) == (0, True)


def test_converting_writes_one_line_per_trace(cli: Cli, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    done = cli("convert", folder, "-o", out)
    assert (done.code, "3 traces written" in done.err) == (0, True)
    lines = [json.loads(line) for line in out.read_bytes().splitlines()]
    assert [len(line["spans"]) for line in lines] == [2, 1, 4]
    assert lines[2]["spans"][3]["text"] == "no such file"
    (file,) = cli("inspect", out, "--json").json["files"]
    assert [trace["spans"] for trace in file["traces"]] == [2, 1, 4]


def test_converting_to_atif_writes_what_other_tools_read(
    cli: Cli, folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    for _ in range(2):  # what it has written itself it replaces
        assert cli("convert", folder, "--to", "atif", "-o", out).code == 0
    lines = [json.loads(line) for line in out.read_bytes().splitlines()]
    assert [line["schema_version"] for line in lines] == ["ATIF-v1.7"] * 3
    assert lines[2]["steps"][-1]["observation"]["results"][0]["content"] == "no such file"
    (file,) = cli("inspect", out, "--json").json["files"]
    assert file["format"] == "atif"
    assert [trace["spans"] for trace in file["traces"]] == [2, 1, 4]
    one = tmp_path / "one.json"
    assert cli("convert", folder / "run.jsonl", "--to", "atif", "-o", one).code == 0
    assert json.loads(one.read_bytes())["session_id"]


def test_converting_goes_on_after_a_file_that_failed(
    cli: Cli, folder: Path, tmp_path: Path
) -> None:
    (folder / "broken.json").write_text("{")
    out = tmp_path / "out.jsonl"
    done = cli("convert", folder, "-o", out)
    assert (done.code, "broken.json" in done.err) == (1, True)
    assert len(out.read_bytes().splitlines()) == 3


def test_nothing_is_written_where_there_is_nothing_to_write(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# what this is")
    done = cli("convert", tmp_path, "-o", tmp_path / "out.jsonl")
    assert (done.code, "inspect" in done.err) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


def test_converting_a_folder_into_itself_can_be_repeated(cli: Cli, folder: Path) -> None:
    out = folder / "all.jsonl"
    assert cli("convert", folder, "-o", out).code == 0
    first = out.read_bytes()
    assert cli("convert", folder, "-o", out).code == 0
    assert out.read_bytes() == first
