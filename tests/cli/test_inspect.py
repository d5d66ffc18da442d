"""``inspect``, ``convert``, ``search`` and ``compare``: commands that read traces alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from tests.cli.conftest import Cli
from tests.traces.checks import write_json_lines
from tests.traces.rollouts import SESSION, call, message, meta, output, reasoning, record, write
from tests.ui.stage import SMALL, write_trace
from tests.ui.test_side_by_side import OTHERWISE

SAMPLES: Final = Path(__file__).parents[2] / "sample_traces"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a rollout, a file of two chats and a document."""
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


def test_inspect_prints_the_documented_json(cli: Cli, folder: Path) -> None:
    result = cli.ok("inspect", folder, "--json")
    assert result.err == ""
    chat, rollout = result.json["files"]
    trace = {
        "id": SESSION, "spans": 4, "agents": ["codex"], "system": "codex",
        "model": "gpt-oss-120b", "outcome": "unknown", "answer_key": {},
    }  # fmt: skip
    cut = "the last line is cut off; everything before it was read"
    assert rollout == {
        "path": str(folder / "run.jsonl"),
        "format": "codex",
        "traces": [trace],
        "problems": [{"place": "line 7", "message": cut}],
    }
    assert [trace["spans"] for trace in chat["traces"]] == [2, 1]
    assert result.json["skipped"] == [{"path": str(folder / "README.md"), "reason": "document"}]
    assert result.json["failed"] == []

    (file,) = cli.json("inspect", folder / "run.jsonl", "--spans")["files"]
    spans = file["traces"][0]["span_list"]
    assert spans[-1] == {
        "index": 3, "key": "a:result", "kind": "tool_result", "agent": "codex", "name": "shell",
        "parent": "a:call", "place": "line 6", "status": "error",
        "text_chars": len("no such file"), "preview": "no such file",
    }  # fmt: skip
    assert [span["kind"] for span in spans] == ["message", "reasoning", "tool_call", "tool_result"]


def test_inspect_reports_failed_and_empty_paths(cli: Cli, folder: Path, tmp_path: Path) -> None:
    (folder / "broken.json").write_text("{")
    result = cli.refused("inspect", folder, folder / "nothing", "--json")
    failed = [Path(failure["path"]).name for failure in result.json["failed"]]
    assert failed == ["broken.json", "nothing"]
    assert len(result.err.splitlines()) == 2
    assert "broken.json: not JSON, line 1" in result.err
    assert "nothing: no such file or folder" in result.err
    (tmp_path / "empty").mkdir()
    assert "no traces" in cli.ok("inspect", "empty").out


def test_inspect_prints_no_control_character_and_cuts_long_names(cli: Cli, folder: Path) -> None:
    hostile = "\x1b]0;gone\x07[/red]\u202e"
    write(folder, meta("s-1"), message("user", hostile), call(f"k{hostile}"), name="evil.jsonl")
    (folder / f"na\x1bme{hostile[-1]}.json").write_text("[]")
    long_name = {
        "type": "function_call",
        "name": "f" * (1 << 20),
        "arguments": "{}",
        "call_id": "x",
    }
    calls = (call(f"c{number}") for number in range(2000))
    write(folder, meta("s-2"), record("response_item", long_name), *calls, name="long.jsonl")
    messages = (message("user", "x" * 1000) for _ in range(2000))
    write(folder, meta("s-3"), *messages, name="big.jsonl")
    (file,) = cli.json("inspect", folder / "big.jsonl")["files"]
    assert file["traces"][0]["spans"] == 2000
    out = cli("inspect", folder, "--spans").out
    assert not any(character in out for character in "\x1b\x07\u202e")
    for part in (SESSION, "gpt-oss-120b", "no such file", "[/red]", ":7: ", "document", "f… "):
        assert part in out
    assert out.count("\n") > 2000
    assert len(out) < 2 << 20
    (file,) = cli.json("inspect", folder / "long.jsonl", "--spans")["files"]
    spans = file["traces"][0]["span_list"]
    assert (len(spans), len(spans[0]["name"])) == (2001, 1 << 20)


def test_convert_writes_one_line_for_each_trace(cli: Cli, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert "3 traces written" in cli.ok("convert", folder, "-o", out).err
    lines = [json.loads(line) for line in out.read_bytes().splitlines()]
    assert [len(line["spans"]) for line in lines] == [2, 1, 4]
    assert lines[2]["spans"][3]["text"] == "no such file"
    (file,) = cli.json("inspect", out)["files"]
    assert [trace["spans"] for trace in file["traces"]] == [2, 1, 4]

    atif = tmp_path / "out.json"
    for _ in range(2):  # its own file is replaced
        cli.ok("convert", folder, "--to", "atif", "-o", atif)
    lines = [json.loads(line) for line in atif.read_bytes().splitlines()]
    assert [line["schema_version"] for line in lines] == ["ATIF-v1.7"] * 3
    assert lines[2]["steps"][-1]["observation"]["results"][0]["content"] == "no such file"
    (file,) = cli.json("inspect", atif)["files"]
    assert (file["format"], [trace["spans"] for trace in file["traces"]]) == ("atif", [2, 1, 4])
    single = tmp_path / "one.json"
    cli.ok("convert", folder / "run.jsonl", "--to", "atif", "-o", single)
    assert json.loads(single.read_bytes())["session_id"]

    inside = folder / "all.jsonl"
    cli.ok("convert", folder, "-o", inside)
    first = inside.read_bytes()
    cli.ok("convert", folder, "-o", inside)
    assert inside.read_bytes() == first
    (folder / "broken.json").write_text("{")
    cli.refused("convert", folder, "-o", out, says="broken.json")
    assert len(out.read_bytes().splitlines()) == 3


def test_convert_writes_no_file_without_traces(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# what this is")
    cli.refused("convert", tmp_path, "-o", tmp_path / "out.jsonl", says="inspect")
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


# One trace of a file


@pytest.fixture
def chats(cli: Cli) -> Path:
    messages = [{"messages": [{"role": "user", "content": f"zebra {n}"}]} for n in range(3)]
    return write_json_lines(Path("chats.jsonl"), *messages)


@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["one process", "workers"])
@pytest.mark.parametrize("command", ["inspect", "search"])
def test_a_number_after_a_file_names_one_of_its_traces(
    cli: Cli, chats: Path, command: str, workers: tuple[str, ...]
) -> None:
    for suffixes, expected in (
        (("#2",), ["2"]),
        (("#2", "#0"), ["0", "2"]),
        (("#1", ""), ["0", "1", "2"]),
    ):
        query = ["zebra"] if command == "search" else []
        paths = [f"{chats}{suffix}" for suffix in suffixes]
        out = cli.ok(command, *query, *paths, "--json", *workers).out
        if command == "search":
            ids = [json.loads(line)["trace"] for line in out.splitlines()]
        else:
            ids = [trace["id"] for file in json.loads(out)["files"] for trace in file["traces"]]
        assert [trace_id.partition(":")[2].partition("-")[0] for trace_id in ids] == expected


def test_every_command_accepts_one_trace_of_a_file(cli: Cli, chats: Path) -> None:
    assert "1 trace judged" in cli.ok("judge", f"{chats}#1", "--judge", "rules").out
    for paths, judged in (((f"{chats}#1",), 1), ((f"{chats}#0", f"{chats}#1"), 2)):
        out = cli.ok("judge", *paths, "--judge", "rules", "--out", "shards").out
        assert f"{judged} trace" in out
    cli.ok("convert", f"{chats}#1", "-o", "converted.jsonl")
    (line,) = Path("converted.jsonl").read_text().splitlines()
    assert json.loads(line)["spans"][0]["text"] == "zebra 1"
    cli.ok("compare", f"{chats}#1", f"{chats}#2")
    cli.refused("compare", chats, chats, says="contains 3 traces; give one of them")
    cli.refused("compare", f"{chats}#1", f"{chats}#3", says="no #3")
    assert "contains 3 traces, but no #3" in cli("inspect", f"{chats}#3").err
    # A file whose name ends in a number has precedence over a trace.
    file = chats.rename("chats.jsonl#2")
    assert len(cli.json("inspect", file)["files"][0]["traces"]) == 3
    Path("empty").mkdir()
    result = cli("judge", "empty", "--judge", "rules")
    assert (result.code, "the paths contain no traces" in result.err) == (1, True)


# Search


@pytest.fixture
def zebras(cli: Cli) -> Path:
    """A folder with a rollout and a chat that contain a word."""
    folder = Path("traces")
    folder.mkdir()
    write(
        folder,
        meta(),
        message("user", "find the zebra"),
        call("a", '{"command": ["grep", "zebra"]}'),
        output("a", '{"output": "no zebra, \\u001b[31mno zebra", "metadata": {"exit_code": 1}}'),
        name="run.jsonl",
    )
    chat = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a zebra"}]
    (folder / "chat.json").write_text(json.dumps([{"messages": chat}]))
    return folder


def test_search_prints_place_trace_span_and_text(cli: Cli, zebras: Path) -> None:
    output = cli.ok("search", "zebra", zebras)
    chat, prompt, called, failed_result = output.out.splitlines()
    assert chat.startswith(f"{zebras / 'chat.json'}#/")
    assert chat.endswith("  #2 message  a zebra")
    assert prompt == f"{zebras / 'run.jsonl'}:2  {SESSION}  #1 message  find the zebra"
    assert "#2 tool call shell  " in called
    assert "  #3 tool result shell  ✗  " in failed_result
    assert "\x1b" not in output.out
    assert output.err == ""

    document = cli.ok("search", "zebra", zebras, "--json", "--tool", "shell", "--failed").json
    first, last = document.pop("lit")
    assert document.pop("preview")[first:last] == "zebra"
    assert document == {
        "path": str(zebras / "run.jsonl"), "place": f"{zebras / 'run.jsonl'}:4",
        "trace": SESSION, "span": 2, "key": "a:result", "kind": "tool_result", "agent": "codex",
        "name": "shell", "status": "error", "matches": 2, "start": document["start"],
        "end": document["start"] + 5,
    }  # fmt: skip

    chat, run = cli("search", "zebra", zebras, "--count").out.splitlines()
    assert chat.endswith("  1 span")
    assert run == f"{zebras / 'run.jsonl'}  {SESSION}  3 spans, 4 matches"
    counted = cli.json("search", "zebra", zebras, "--count", "--kind", "tool-call")
    assert (counted["spans"], counted["matches"]) == (1, 1)
    assert cli("search", "zebra", zebras, "--max", "2").out.count("\n") == 2


def test_search_sets_the_exit_code_by_matches_and_failures(cli: Cli, zebras: Path) -> None:
    assert cli.refused("search", "giraffe", zebras).err == ""
    cli.refused("search", "zebra", zebras / "missing", says="no such file")
    (zebras / "broken.json").write_text('{"zebra": nothing,,}')
    result = cli("search", "zebra", zebras)
    assert (result.code, result.out.count("\n")) == (1, 4)
    assert result.err.startswith(f"mast-tui search: {zebras / 'broken.json'}: not JSON")
    for options in (("zebra",), ("", "x"), ("(", "x", "--regex")):
        assert cli.refused("search", *options, code=2).err


# Compare


def test_compare_shows_the_first_difference_of_two_runs(cli: Cli) -> None:
    write_trace(Path("a.json"), SMALL)
    write_trace(Path("b.json"), OTHERWISE)
    result = cli.ok("compare", "a.json", "b.json")
    assert result.err == ""
    assert "They diverge at A #9 and B #9. Before it 4 of 4 actions are the same" in result.out
    assert "#10 restart: pod=checkout-2" in result.out
    assert "#3 get_pods" not in result.out
    assert "#3 get_pods" in cli("compare", "a.json", "b.json", "--all").out
    assert "The agents do the same in both." in cli("compare", "a.json", "a.json").out

    document = cli.json("compare", "a.json", "b.json")
    assert document["first"] == document["fork"] == {"place": 8, "a": 8, "b": 8}
    assert document["cause"] is None
    assert document["alike"]["before"] == {"same": 4, "actions": 4}
    assert [place["likeness"] for place in document["places"][:8]] == ["same"] * 8
    assert document["a"]["outcome"] == "unknown"
    assert cli.json("compare", "a.json", "b.json", "--blind")["a"]["outcome"] is None
    several = SAMPLES / "appworld_rota_and_shelf.json"
    cli.ok("compare", f"{several}#0", f"{several}#1")
    cli.refused("compare", "a.json", "none.json", says="none.json: no such file")
    Path("empty.json").write_text("")
    assert "empty" in cli("compare", "a.json", "empty.json").err
