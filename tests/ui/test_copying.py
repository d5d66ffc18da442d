"""Copying: texts, tools for the clipboard, and messages."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from mast_tui.ui.annotate.copying import location_of, whole_text
from mast_tui.ui.services.external_programs import TERMINAL_CHARS, copied_text, tools
from tests.traces import rollouts
from tests.ui.stage import PLAN, Stage, read_trace, stage


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of tools that comes first in the search path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def put_tool(folder: Path, name: str, *, fails: bool = False) -> Path:
    """Write a tool that stores its input beside itself, and return the path of that file."""
    stored = folder / f"{name}.kept"
    body = "exit 1" if fails else f"cat > {stored}"
    tool = folder / name
    tool.write_text(f"#!/bin/sh\n{body}\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    return stored


def tool_names(environment: dict[str, str], platform: str = "linux") -> list[str]:
    return [command[0] for command in tools(environment, platform)]


def test_tools_are_chosen_by_the_environment(
    bin_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(bin_folder))  # whatever else is installed
    for name in ("pbcopy", "wl-copy", "xclip", "xsel", "tmux"):
        put_tool(bin_folder, name)
    assert (tool_names({}), tool_names({"DISPLAY": ":0"})) == ([], ["xclip"])
    assert tool_names({"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}) == ["wl-copy"]
    assert (tool_names({}, "darwin"), tool_names({"TMUX": "/tmp/t,1,0"})) == (["pbcopy"], ["tmux"])
    assert tool_names({"TMUX": "/tmp/t,1,0", "DISPLAY": ":0"}) == ["xclip", "tmux"]
    remote = {"SSH_CONNECTION": "a b"}
    assert tool_names({**remote, "WAYLAND_DISPLAY": "wayland-0"}) == []
    assert tool_names({**remote, "DISPLAY": "localhost:10.0"}) == ["xclip"]
    assert tool_names(remote, "darwin") == []
    (bin_folder / "xclip").unlink()
    assert tool_names({"DISPLAY": ":0"}) == ["xsel"]


async def texts_copied_by(on: Stage, monkeypatch: pytest.MonkeyPatch, *keys: str) -> list[str]:
    """Return the texts that these keys send to the terminal."""
    copied: list[str] = []
    monkeypatch.setattr(on.app, "copy_to_clipboard", copied.append)
    await on.press(*keys)
    return copied


async def test_texts_are_copied_by_a_tool_or_the_terminal(
    small: Path, bin_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(small) as on:
        assert await texts_copied_by(on, monkeypatch, "j", "y") == [PLAN]
        assert on.message.startswith(f"Copied the text of #2, {len(PLAN)} characters, through")
        assert "OSC 52" in on.message
        copied = await texts_copied_by(on, monkeypatch, "C", *"place", "enter")
        assert copied == [f"{small}#/messages/1"]
        await on.press("C", *"whole", "enter")
        assert copied[1] == whole_text(read_trace(small))
        await on.press("C", "escape")
        assert len(copied) == 2
        stored = put_tool(bin_folder, "xclip")
        monkeypatch.setenv("DISPLAY", ":0")
        assert await texts_copied_by(on, monkeypatch, "w", "v", "w", "y") == []
        assert stored.read_text("utf-8") == "I look"
        assert on.message == "Copied the quote, 6 characters, by xclip"
        put_tool(bin_folder, "xclip", fails=True)
        assert await texts_copied_by(on, monkeypatch, "y") == ["I look"]


def test_the_copied_trace_has_all_texts(small: Path) -> None:
    trace = read_trace(small)
    text = whole_text(trace)
    assert text.startswith("#1 message · user\nFind out why")
    offset = 0
    for index in range(len(trace)):
        offset = text.index(f"#{index + 1} ", offset)
        offset = text.index(trace.text(index), offset)


def test_a_place_in_a_file_of_lines(tmp_path: Path) -> None:
    path = rollouts.write(
        tmp_path, rollouts.meta(), rollouts.message("user", "go"), name="run.jsonl"
    )
    trace = read_trace(path)
    assert location_of(trace, trace.span(0)) == f"{path}:2"


def test_long_texts_are_cut_for_terminals() -> None:
    assert "the first 100,000 of 100,001" in copied_text("it", TERMINAL_CHARS + 1, [])
    assert "first" not in copied_text("it", TERMINAL_CHARS + 1, ["xsel", "tmux"])
