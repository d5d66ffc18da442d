"""The information that blind and assisted annotators see, on all screens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from mast_tui.labels import WHOLE_TRACE, Target
from mast_tui.session import Session
from mast_tui.ui.library.screen import LibraryScreen
from mast_tui.workspace import Workspace
from tests.ui.stage import (
    MAST,
    SLUGS,
    SMALL,
    Message,
    Stage,
    finding,
    missing,
    read_trace,
    stage,
    suggest,
    write_trace,
)

OUTCOMES: Mapping[str, float] = {"anna": 1.0, "bert": 0.0, "carl": 1.0, "dora": 0.0}
"""Four traces; by name they come in another order than by outcome."""


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Traces whose files record their outcome."""
    folder = tmp_path / "runs"
    for name, reward in OUTCOMES.items():
        steps: list[Message] = [{"role": "user", "content": f"the task of {name}"}, *SMALL[1:]]
        write_trace(folder / f"{name}.json", steps, reward=reward, ground_truth=f"truth of {name}")
    return folder


@pytest.fixture
def workspace(runs: Path, workspace: Path) -> Path:
    """A workspace in which bob has labelled and finished, and a judge suggests."""
    for name in OUTCOMES:
        trace = read_trace(runs / f"{name}.json")
        suggest(workspace, trace, [finding(trace, "1.3", 3, 8), finding(trace, "3.2", 12, 12)])
    with closing(Workspace.open(workspace)) as store:
        for name, code, number in (("anna", "2.6", 0), ("bert", "3.1", 1)):
            trace = read_trace(runs / f"{name}.json")
            session = Session.open(store, trace, MAST, "bob", blind=False)
            key = trace.span(number).key
            session.toggle_label(SLUGS[code], Target(key, key), suggestions_on_screen=True)
            if name == "anna":
                session.edit_label(session.labels[0].id, note="aha")
                session.note_span(key, "bobsnote")
                session.toggle_label(SLUGS["3.3"], WHOLE_TRACE, suggestions_on_screen=True)
            session.finish(open_modes="absent")
    return workspace


def listed_names(on: Stage) -> list[str]:
    return [row.name.removesuffix(".json") for row in on.screen(LibraryScreen).table.rows]


HIDDEN = re.compile(r"failed|succeeded|◌|○|reward|truth|bobsnote|aha|suggestions? wait|[1-9] wait")


async def test_blind_annotators_see_nothing_hidden(runs: Path, workspace: Path) -> None:
    async with stage(runs, workspace=workspace, blind=True) as on:
        assert "alice · blind" in on.text
        text = on.text.replace("○ ", "")  # a trace that is not begun
        assert not HIDDEN.search(text)
        orders = []
        for _ in range(6):
            orders.append(tuple(listed_names(on)))
            await on.press("o")
        # No order, that by outcome and that by suggestions included, parts the traces.
        assert set(orders) == {tuple(OUTCOMES)}
        for word in ("failed", "succeeded", "0.0", "truth"):
            await on.press("/", *word)
            assert listed_names(on) == []
            await on.press("escape")
        await on.press("g")
        await on.press("enter")
        assert not HIDDEN.search(on.text)
        for key in ("]", "[", "a", "x", "e", "r", "."):
            await on.press(key)
            assert not HIDDEN.search(on.text.replace("what others say", ""))
            assert on.labels == set()
        await on.press("J")
        assert not re.search(r"◌|[0-9]+ suggestion", on.text)
        # What one labels has seen nothing.
        await on.press("1", "3")
        assert not on.session.labels[0].saw_suggestions
        current = on.session.current
        assert current is not None
        assert not current.judge_seen


async def test_assisted_annotators_see_others_after_finishing(runs: Path, workspace: Path) -> None:
    async with stage(runs, workspace=workspace) as on:
        assert not missing(on.text, "failed", "succeeded")
        assert on.text.count("◌2") == len(OUTCOMES)
        await on.press("/", *"failed", "enter")
        assert listed_names(on) == ["bert", "dora"]
        await on.press("escape", "g")
        await on.press("enter")
        assert "◌" in on.text
        assert "failed" in on.text or "succeeded" in on.text
        for word in ("bob", "○", "bobsnote", "aha", "2.6 "):
            assert word not in "".join(on.row(number) for number in range(1, 13))
        assert "bob" not in on.text
        await on.press("1", "1", "D", "o")
        assert "bob" not in on.text
        assert "2.6 ○" not in on.text
        await on.press("r", "y")
        assert "Timeline · whole trace: 3.3 ○ ─" in on.text
        assert not missing(on.row(1) + on.message, "2.6 ○", "2 labels of bob", "first at #")


async def test_nothing_is_shown_without_a_workspace(runs: Path, workspace: Path) -> None:
    # Who works here, and how, is not known yet; it may be somebody blind.
    workspace.write_text("no database")
    async with stage(runs, workspace=workspace, blind=True) as on:
        await on.press("r")
        assert not HIDDEN.search(on.text.replace("○ ", ""))
        await on.press("enter")
        assert not HIDDEN.search(on.text)


async def test_finishing_reveals_nothing_before_r(runs: Path, workspace: Path) -> None:
    async with stage(runs, workspace=workspace, blind=True) as on:
        await on.press("enter")
        await on.press("D")
        assert on.session.finished
        assert not HIDDEN.search(on.text.replace("what others say", ""))
        await on.press("escape")
        assert not re.search(r"failed|succeeded|◌", on.text)
        await on.press("G", "enter", "r", "y")
        assert "2.6 ○" in on.row(1)
        assert "1.3 ◌" in on.row(3)
        assert "succeeded" in on.lines[0]
        await on.press("escape")
        # Of this trace it is known now, of the others it is not.
        assert on.text.count("succeeded") == 1
        assert "failed" not in on.text
        await on.press("/", *"succeeded", "enter")
        assert listed_names(on) == ["anna"]


async def test_a_long_name_shortens_the_title(runs: Path, workspace: Path) -> None:
    name = "m" * 30
    async with stage(runs, workspace=workspace, annotator=name, assisted=True, size=(80, 24)) as on:
        assert on.lines[0].endswith(f" {name} · sugg. shown · 0 of 4 ✓ ")
