"""A trace whose file is replaced, cut or written over while it is open: told, and never quoted."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mast_tui.traces.index import lines
from tests.traces.rollouts import message, meta, write
from tests.ui.stage import PLAN, SMALL, Stage, stage, write_trace

Change = Callable[[Path], None]

LONG = "word " * 40_000
"""So long that no text is read ahead with the one before it."""


def gone(path: Path) -> None:
    path.unlink()


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def written_over(path: Path) -> None:
    data = path.read_bytes().replace(b"word", b"lies")
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(1, 1))


def rewritten_longer(path: Path) -> None:
    data = path.read_bytes().replace(b"word", b"other")
    with path.open("r+b") as file:
        file.write(data)


def appended(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b'{"type": "x"}\n')


CHANGES: dict[Change, str] = {
    gone: "the file has gone",
    pipe: "it is not a regular file any more",
    device: "it is not a regular file any more",
    replaced: "another file is in its place",
    cut: "the file has been cut",
    written_over: "the file has changed",
    rewritten_longer: "the file has changed",
}


@pytest.fixture
def rollout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A rollout of which no text stays in memory."""
    monkeypatch.setattr(lines, "_CACHED_CHARS", 0)
    said = [message("assistant", f"{number} {LONG}") for number in range(5)]
    (tmp_path / "traces").mkdir()
    return write(tmp_path / "traces", meta(), message("user", "go"), *said, name="run.jsonl")


def told(on: Stage) -> list[str]:
    """What was said in the corner of the screen."""
    return [notice.message for notice in on.app._notifications]


@pytest.mark.parametrize("change", CHANGES)
async def test_nothing_is_quoted_or_copied_of_a_file_that_has_changed(
    change: Change, rollout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(rollout, workspace=tmp_path / "w.db") as on:
        copied: list[str] = []
        monkeypatch.setattr(on.app, "copy_to_clipboard", copied.append)
        await on.press("j", "j")
        assert "1 word word" in on.text
        assert not told(on)
        change(rollout)
        await on.press("j")
        assert on.number == 4
        reason = CHANGES[change]
        assert f"[cannot be read: {reason}]" in on.text
        (words,) = told(on)
        assert words.startswith(f"run.jsonl has changed: {reason}.")
        await on.press("w")
        assert on.message == "This span cannot be read any more"
        assert on.annotate.state.selection.is_plain
        await on.press("y")
        assert copied == []
        await on.press("1", "3")
        assert on.labels == {("1.3", 4, 4)}
        assert [label.target.quote for label in on.session.labels] == [None]
        await on.press("j", "k")
        assert len(told(on)) == 1


async def test_a_label_with_a_quote_is_shown_where_its_text_cannot_be_read(
    rollout: Path, tmp_path: Path
) -> None:
    async with stage(rollout, workspace=tmp_path / "w.db") as on:
        await on.press("j", "w", "1", "3")
        assert [label.target.quote for label in on.session.labels] == ["0"]
        await on.press("j")
        rollout.unlink()
        await on.press("k")
        assert "[cannot be read: the file has gone]" in on.text
        await on.press("ctrl+t")
        assert on.annotate.state.has_spans


async def test_a_file_that_only_grows_is_no_news(rollout: Path, tmp_path: Path) -> None:
    async with stage(rollout, workspace=tmp_path / "w.db") as on:
        await on.press("j")
        appended(rollout)
        await on.press("j")
        assert "1 word word" in on.text
        assert not told(on)


@pytest.mark.parametrize("change", [gone, pipe])
async def test_what_is_still_in_memory_is_shown_and_the_change_told(
    change: Change, tmp_path: Path
) -> None:
    path = write_trace(tmp_path / "traces" / "chat.json", SMALL)
    async with stage(path, workspace=tmp_path / "w.db") as on:
        change(path)
        await on.press("j")
        assert PLAN in on.text
        (words,) = told(on)
        assert words.startswith(f"chat.json has changed: {CHANGES[change]}.")


async def test_a_trace_that_is_opened_again_is_read_as_it_is_now(
    rollout: Path, tmp_path: Path
) -> None:
    write_trace(rollout.parent / "chat.json", SMALL)
    async with stage(rollout.parent, workspace=tmp_path / "w.db") as on:
        trace = next(t for t in on.app.catalog.traces.values() if t.path == rollout)
        before = on.app.catalog.opened(trace)
        before.advance()
        assert before.text(1).startswith("0 word")
        replaced(rollout)
        with pytest.raises(OSError, match="another file"):
            before.text(2)
        after = on.app.catalog.opened(trace)
        after.advance()
        assert after.text(2).startswith("1 word")
