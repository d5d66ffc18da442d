"""An open trace whose file is replaced, cut or overwritten."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mast_tui.traces.index import lines
from mast_tui.traces.library import read_file, read_fully
from tests.traces.rollouts import message, meta, write
from tests.ui.stage import PLAN, SMALL, stage, write_trace

Change = Callable[[Path], object]

LONG = "word " * 40_000
"""A text that is too long to be read with the one before it."""


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def replace_by_copy(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)


def overwrite_words(path: Path, word: bytes) -> None:
    data = path.read_bytes().replace(b"word", word)
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(1, 1))


CHANGES: dict[str, tuple[Change, str]] = {
    "gone": (Path.unlink, "the file is gone"),
    "pipe": (replace_by_pipe, "it is not a regular file any more"),
    "device": (replace_by_device, "it is not a regular file any more"),
    "replaced": (replace_by_copy, "another file is in its place"),
    "cut": (lambda path: os.truncate(path, path.stat().st_size // 2), "the file has been cut"),
    "overwritten": (lambda path: overwrite_words(path, b"lies"), "the file has changed"),
    "longer": (lambda path: overwrite_words(path, b"other"), "the file has changed"),
}
"""Changes of a file, and the reason that a reader gives."""


@pytest.fixture
def rollout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A rollout of which no text stays in memory."""
    monkeypatch.setattr(lines, "_CACHED_CHARS", 0)
    messages = [message("assistant", f"{number} {LONG}") for number in range(5)]
    (tmp_path / "traces").mkdir()
    return write(tmp_path / "traces", meta(), message("user", "go"), *messages, name="run.jsonl")


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_file_is_not_read(change: str, rollout: Path) -> None:
    do, reason = CHANGES[change]
    trace = read_file(rollout, named=True).traces[0]
    read_fully(trace)
    assert trace.text(1).startswith("0 word")
    do(rollout)
    with pytest.raises(OSError, match=reason):
        trace.text(2)


async def test_nothing_is_quoted_or_copied_of_a_changed_file(
    rollout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(rollout, workspace=tmp_path / "w.db") as on:
        copied: list[str] = []
        monkeypatch.setattr(on.app, "copy_to_clipboard", copied.append)
        await on.press("j", "j", "w", "1", "3")
        assert [label.target.quote for label in on.session.labels] == ["1"]
        assert "1 word word" in on.text
        assert not on.notices
        rollout.unlink()
        await on.press("j")
        assert on.number == 4
        reason = "the file is gone"
        assert f"[cannot be read: {reason}]" in on.text
        (notice,) = on.notices
        assert notice.startswith(f"run.jsonl has changed: {reason}.")
        await on.press("w")
        assert on.message == "This span cannot be read any more"
        assert on.annotate.state.selection.is_plain
        await on.press("y")
        assert copied == []
        await on.press("1", "3")
        assert on.labels == {("1.3", 3, 3), ("1.3", 4, 4)}
        await on.press("j", "k")
        assert len(on.notices) == 1


async def test_a_quote_in_a_text_that_cannot_be_read(rollout: Path, tmp_path: Path) -> None:
    async with stage(rollout, workspace=tmp_path / "w.db") as on:
        await on.press("j", "w", "1", "3")
        await on.press("j")
        rollout.unlink()
        await on.press("k")
        assert "[cannot be read: the file is gone]" in on.text
        await on.press("ctrl+t")
        assert on.annotate.state.has_spans


async def test_text_in_memory_is_shown_and_the_change_announced(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "traces" / "chat.json", SMALL)
    async with stage(path, workspace=tmp_path / "w.db") as on:
        replace_by_pipe(path)
        await on.press("j")
        assert PLAN in on.text
        (notice,) = on.notices
        assert notice.startswith(f"chat.json has changed: {CHANGES['pipe'][1]}.")


async def test_labels_on_an_earlier_content_of_the_file_are_named(
    small: Path, workspace: Path
) -> None:
    for messages, note in ((SMALL, ""), (SMALL[:-1], "has changed since you labelled it")):
        write_trace(small, messages)
        async with stage(small, workspace=workspace) as on:
            assert note in "".join(on.notices)
            assert not on.labels
            await on.press("1", "3", "q")
