"""The command mast-tui mcp."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import pytest

from mast_tui.agents.server import skill_text
from mast_tui.traces.library import samples_folder
from tests.cli.conftest import Cli, cli

__all__ = ["cli"]  # the fixture


@pytest.mark.parametrize(
    ("agent", "file"),
    [("claude-code", ".mcp.json"), ("codex", ".codex/config.toml"), ("cursor", ".cursor/mcp.json")],
)
def test_a_configuration_starts_the_server_with_the_same_arguments(
    cli: Cli, tmp_path: Path, agent: str, file: str
) -> None:
    runs = tmp_path / 'runs "quoted"'
    runs.mkdir()
    done = cli("mcp", runs, "--annotator", "tester", "--workspace", "w.db", "--print-config", agent)
    assert done.code == 0
    assert file in done.err
    if agent == "codex":
        entry = tomllib.loads(done.out)["mcp_servers"]["mast-tui"]
    else:
        entry = done.json["mcpServers"]["mast-tui"]
        assert entry.pop("type", None) == ("stdio" if agent == "claude-code" else None)
    assert Path(entry["command"]).is_absolute()
    assert entry["args"] == [
        "mcp", str(runs), "--annotator", "agent:tester", "--workspace", str(tmp_path / "w.db"),
    ]  # fmt: skip
    assert not (tmp_path / "w.db").exists()


def test_the_skill_file_names_every_tool(cli: Cli) -> None:
    done = cli("mcp", "--print-skill")
    assert done.out == skill_text()
    head, body = done.out.split("\n---\n", 1)
    assert "name: annotate-agent-traces" in head
    for tool in ("taxonomy", "list_traces", "outline", "read_spans", "label", "verdict", "finish"):
        assert f"`{tool}`" in body


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((), 2, "--annotator agent:NAME"),
        (("--annotator", "judge:x"), 1, "judge's name"),
        (("--annotator", "agent:a|b"), 1, "separate names"),
        (("--annotator", "gold"), 1, "reserved"),
        (("--annotator", "x", "--assisted"), 2, "always work blind"),
        (("--annotator", "x", "--print-skill", "--print-config", "codex"), 2, "both print"),
        (("--annotator", "x"), 1, "no trace to annotate"),
        (
            ("--annotator", "x", "--workspace", "postgresql://h/d", "--print-config", "codex"),
            1,
            "give --workspace PATH",
        ),
    ],
)
def test_impossible_arguments_are_refused(
    cli: Cli, words: tuple[str, ...], code: int, message: str
) -> None:
    cli.refused("mcp", *words, says=message, code=code)
    assert not Path(".mast-tui").exists()


def test_an_agent_may_not_look_like_another_annotator(cli: Cli, tmp_path: Path) -> None:
    assert cli("judge", samples_folder() / "clean.jsonl", "--judge", "rules").code in (0, 1)
    rows = "trace_id,annotator,mode,value\nt1,agent:tomas,1.3,absent\nt1,agent:tomas,,finished\n"
    (tmp_path / "labels.csv").write_text(rows)
    cli.ok("import", "labels.csv", "--format", "csv-long", "--allow-new")
    cli.refused("mcp", samples_folder(), "--annotator", "agent:t\u043emas", says="looks like")


def test_a_missing_extra_is_named(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    monkeypatch.delitem(sys.modules, "mast_tui.agents.server", raising=False)
    cli.refused("mcp", samples_folder(), "--annotator", "x", says="pip install 'mast-tui[mcp]'")


def test_no_other_command_accepts_an_agent(cli: Cli, tmp_path: Path) -> None:
    trace = samples_folder() / "ad-restart-loop.jsonl"
    for words in (("read", trace), ("agree",), ("status",), ("report",)):
        done = cli(*words, "--annotator", "agent:x", "--workspace", "w.db")
        assert done.code == 1, words
    assert not (tmp_path / "w.db").exists() or cli("status", "--workspace", "w.db").code == 0


def test_labels_of_agents_survive_exchange(cli: Cli, tmp_path: Path) -> None:
    rows = (
        "trace_id,annotator,mode,value,note\n"
        "t1,agent:x,1.3,present,why\nt1,agent:x,1.1,absent,\nt1,agent:x,,finished,\n"
        "t1,mira,1.3,absent,\nt1,mira,,finished,\n"
    )
    (tmp_path / "labels.csv").write_text(rows)
    assert cli("import", "labels.csv", "--format", "csv-long", "--allow-new").code == 0
    for form, name in (("csv-long", "out.csv"), ("jsonl", "out.jsonl"), ("label-studio", "o.json")):
        assert cli("export", "--format", form, "--labels", "all", "-o", name).code == 0, form
        into = ("--workspace", f"{form}.db")
        assert cli("import", name, "--format", form, "--allow-new", *into).code == 0, form
        kinds = {
            row["name"]: row["kind"] for row in cli("status", "--json", *into).json["annotators"]
        }
        assert kinds["agent:x"] == "agent", form
    tasks = json.loads((tmp_path / "o.json").read_text())
    assert [len(task["annotations"]) for task in tasks] == [1]
    cli.ok("export", "--format", "gold", "-o", "gold.json")
    (trace,) = json.loads((tmp_path / "gold.json").read_text())["traces"]
    assert [annotator["name"] for annotator in trace["annotators"]] == ["mira"]
    cli.ok("export", "--format", "csv-long", "--labels", "all", "--pseudonyms", "-o", "p.csv")
    text = (tmp_path / "p.csv").read_text()
    assert "agent:x" in text
    assert "mira" not in text
