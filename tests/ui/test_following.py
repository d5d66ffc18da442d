"""An open trace whose file grows."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mast_tui.ui.annotate.filter import Condition, SpanFilter
from tests.traces.rollouts import message, meta
from tests.ui.settle import settle
from tests.ui.stage import SMALL, LabelledSpans, Stage, stage, write_trace


def lines_of(*records: object) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def rollout(folder: Path, spans: int) -> Path:
    path = folder / "traces" / "run.jsonl"
    path.parent.mkdir()
    messages = (message("assistant", f"step {number}") for number in range(2, spans + 1))
    path.write_bytes(lines_of(meta(), message("user", "step 1"), *messages))
    return path


def append(path: Path, *texts: str) -> None:
    with path.open("ab") as file:
        file.write(lines_of(*(message("assistant", text) for text in texts)))


def known_spans(on: Stage) -> int:
    """Return the number of spans that are known."""
    return len(on.trace)


async def until(on: Stage, arrived: Callable[[], bool]) -> None:
    """Wait until the app has noticed new spans by itself."""
    await on.until(arrived)
    await settle(on.pilot)


async def test_new_spans_are_shown_and_nothing_moves(tmp_path: Path) -> None:
    path = rollout(tmp_path, 60)
    async with stage(path, workspace=tmp_path / "w.db") as on:
        await on.press("j", "j", "1", "3")
        await on.press("/", *"step 1", "enter", "g", "j", "j", "j")
        previous_total = on.annotate.state.hits.total
        append(path, "step 1 again", "and more")
        await until(on, lambda: known_spans(on) == 62)
        assert (on.number, on.labels) == (4, {("1.3", 3, 3)})
        assert on.annotate.timeline.row_count == 62
        await until(on, lambda: on.annotate.state.hits.total == previous_total + 1)
        await on.press("G")
        assert "and more" in on.text


async def test_keys_read_new_spans_at_once(tmp_path: Path) -> None:
    path = rollout(tmp_path, 5)
    async with stage(path, workspace=tmp_path / "w.db") as on:
        on.annotate.following.check = lambda: None  # type: ignore[method-assign]
        for spans, key in ((5, "f5"), (7, "O")):
            await on.press(key)
            assert on.message == f"The file has not grown: {spans} spans"
            append(path, "more", "and more")
            await on.press(key)
            assert (on.message, known_spans(on), on.number) == ("2 more spans", spans + 2, 1)


async def test_the_end_and_a_filter_take_in_new_spans(tmp_path: Path) -> None:
    path = rollout(tmp_path, 5)
    async with stage(path, workspace=tmp_path / "w.db") as on:
        await on.press("G")
        append(path, *(f"new {number}" for number in range(3)))
        await until(on, lambda: known_spans(on) == 8)
        assert on.number == 8
        await on.press("k")
        append(path, "ninth")
        await until(on, lambda: known_spans(on) == 9)
        assert on.number == 7

        await on.press("j")
        on.annotate.filter.apply(SpanFilter({Condition("agent", "user")}))
        await settle(on.pilot)
        rows = on.annotate.timeline.row_count
        with path.open("ab") as file:
            file.write(lines_of(message("user", "hurry"), message("assistant", "I do")))
        await until(on, lambda: known_spans(on) == 11)
        assert on.annotate.timeline.row_count == rows + 1


async def test_a_text_file_that_grows_keeps_labels(tmp_path: Path) -> None:
    path = tmp_path / "traces" / "run.log"
    path.parent.mkdir()
    path.write_text("one\n\ntwo\n\nthree begins\n")
    async with stage(path, workspace=tmp_path / "w.db") as on:
        await on.press("j", "1", "3")
        with path.open("a") as file:
            file.write("three goes on\n\nfour\n")
        await until(on, lambda: known_spans(on) == 4)
        assert (on.number, on.labels) == (2, {("1.3", 2, 2)})
        await on.press("j")
        assert "│ three goes on " in on.text


def replace_by_copy(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes() + lines_of(message("assistant", "another")))
    other.replace(path)


def cut(path: Path) -> None:
    data = path.read_bytes()
    os.truncate(path, data.index(b"step 4"))


@pytest.mark.parametrize(
    ("change", "reason", "left", "labels"),
    [
        (replace_by_copy, "another file is in its place", 6, {("1.3", 2, 2)}),
        (cut, "the file has been cut", 3, set()),  # its labels are those of the content it had
    ],
)
async def test_a_replaced_or_cut_file_is_read_again_on_a_key(
    tmp_path: Path, change: Callable[[Path], None], reason: str, left: int, labels: LabelledSpans
) -> None:
    path = rollout(tmp_path, 5)
    async with stage(path, workspace=tmp_path / "w.db") as on:
        await on.press("j", "1", "3")
        change(path)
        await until(on, lambda: bool(on.notices))
        assert on.notices == [f"run.jsonl has changed: {reason}. Press O to read it again"]
        assert known_spans(on) == 5
        await on.press("f5")
        await until(on, lambda: on.message == f"Read again, because {reason}: {left} spans")
        assert (known_spans(on), (on.number, on.labels)) == (left, (2, labels))


async def test_a_rewritten_document_is_read_on_a_key(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "traces" / "chat.json", SMALL[:4])
    async with stage(path, workspace=tmp_path / "w.db") as on:
        await on.press("j", "j")
        write_trace(path)
        await on.press("O")
        assert on.message == "Read again, because the file has changed: 12 spans"
        assert (known_spans(on), on.number) == (12, 3)


async def test_a_missing_file_is_reported_and_nothing_lost(tmp_path: Path) -> None:
    path = rollout(tmp_path, 5)
    away = path.with_name("away")
    async with stage(path, workspace=tmp_path / "w.db") as on:
        await on.press("j", "1", "3")
        path.rename(away)
        await on.press("f5")
        assert on.message == "The file could not be read again: the file is gone"
        assert (known_spans(on), on.labels) == (5, {("1.3", 2, 2)})
        append(away, "six")
        away.rename(path)
        await on.press("f5")
        assert (on.message, on.labels) == ("1 more span", {("1.3", 2, 2)})
