"""The first minute: the name, the welcome, a label, a suggestion, a finish, another annotator."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from mast_tui.labels import AnnotatorKind
from mast_tui.ui.dialogs.help import HelpScreen
from mast_tui.ui.dialogs.opening import NameScreen, WelcomeScreen
from mast_tui.ui.library.screen import LibraryScreen
from mast_tui.workspace import Workspace
from mast_tui.workspace.paths import default_workspace_path, samples_workspace_path
from tests.ui.stage import Stage, finding, missing, read_trace, stage, suggest, write_runs


def text_of(on: Stage) -> str:
    """Return the text of the open dialog, or else of the screen, without frames and line breaks."""
    lines = on.lines
    if on.app.screen.is_modal:
        box = on.app.screen.query_one(".dialog").region
        lines = [line[box.x : box.right] for line in lines[box.y : box.bottom]]
    return " ".join(" ".join(lines).replace("│", " ").split())


async def test_the_first_minute(tmp_path: Path) -> None:
    write_runs(tmp_path / "runs", "one", "two")
    trace = read_trace(tmp_path / "runs" / "one.json")
    suggest(default_workspace_path(Path.cwd()), trace, [finding(trace, "2.6", 9, 9)])
    saved = "Your labels are saved at once in .mast-tui/workspace.db (the folder you started in)."
    async with stage(tmp_path / "runs", annotator=None, welcomed=False, size=(80, 24)) as on:
        on.screen(NameScreen)
        assert (
            f"{saved} Each label carries your name: use the same name on every machine."
            in text_of(on)
        )
        await on.press("enter")
        on.screen(WelcomeScreen)
        assert not missing(
            text_of(on),
            "Enter open the trace under the cursor ↑ ↓ move over its spans (steps)",
            "1 3 press 1, then 3: label 1.3 Step repetition on the span under the cursor",
            "] go to the next suggestion: a accepts it, x rejects it",
            "D finish the trace, so that your labels count",
            "u undo the last change, also after a restart",
            "? all keys of a screen; press it now to read them",
        )
        assert saved not in text_of(on)  # the question for the name has said it
        await on.press("?")
        on.screen(HelpScreen)
        await on.press("escape", "enter")
        assert on.lines[-1].startswith(
            " 1 3 label  ] suggestion  l modes  m note  D finish  / search  z read"
        )
        await on.press("j", "1")
        await on.until(lambda: "╭─ System design issues ─" in on.text)
        assert not missing(
            on.text,
            "│ 3  1.3 Step repetition                   │",
            " label 1▁ · second digit · Esc cancels · - before the digits: absent, _: unsure",
        )
        await on.press("3")
        assert on.labels == {("1.3", 2, 2)}
        assert on.lines[-1].startswith(" 1.3 Step repetition on #2 ")
        await on.press("]")
        assert not missing(text_of(on), "2.6 Reasoning-action mismatch rules judge · sure 80% · #9")
        assert "] suggestion  a accept  x reject  e edit  l modes" in on.lines[-1]
        await on.press("a", "u")
        assert "undone: accepted 2.6 Reasoning-action mismatch on #9" in on.lines[-1]
        await on.press("z")
        assert on.lines[-1].startswith(" Space page down  ) next span  z back")
        await on.press("z", "T")
        await on.until(lambda: "╰─ Enter labels  Space folds ─" in on.text)
        await on.press("escape", "M")
        assert "Enter goes there  e edit  ⌫ remove" in on.text
        await on.press("escape", "D")
        assert not missing(
            on.text,
            "Finish? ",
            "of 12 spans read ─",
            "1 unanswered suggestion: Esc, then ] goes to the next one.",
            "Open (no verdict): 13 of 14 modes",
            "o  finish; modes left open do not count in agreement  ↵",
            "W  set open modes absent and finish: only if you looked for each",
        )
        await on.press("o")
        assert on.session.finished
        assert not missing(
            on.text,
            "· 13 modes left open · u undoes it",
            "1 suggestion unanswered · } next trace",
        )
        await on.press("}")
        assert not on.session.finished
    async with stage(tmp_path / "runs", annotator=None, welcomed=False) as on:
        on.screen(LibraryScreen)
        assert "1 of 2 finished" in on.lines[0]


async def test_the_key_that_closes_the_welcome_does_nothing_else(small: Path) -> None:
    async with stage(small, welcomed=False) as on:
        assert not missing(text_of(on), "↑ ↓ move over the spans (steps) of the trace")
        assert "open the trace" not in text_of(on)
        await on.press("1", "3")
        assert on.app.screen is on.annotate
        assert on.labels == set()


async def test_the_samples_name_their_annotators(tmp_path: Path) -> None:
    write_runs(tmp_path / "samples", "one", "two")
    with closing(Workspace.open(samples_workspace_path())) as store:
        for name in ("mira", "tomas"):
            store.add_annotator(name, AnnotatorKind.HUMAN)
    async with stage(tmp_path / "samples", samples=True, annotator=None) as on:
        assert "with labels of sample annotators mira and tomas." in text_of(on)
        assert "samples.db" in text_of(on)


async def test_another_annotator_takes_over(tmp_path: Path) -> None:
    write_runs(tmp_path / "runs", "one", "two")
    async with stage(tmp_path / "runs", workspace=tmp_path / "w.db", annotator=None) as on:
        await on.press(*"ann", "enter", "enter", "j", "1", "3")
        assert on.labels == {("1.3", 2, 2)}
        await on.press(":", *"another annotator", "enter")
        on.screen(NameScreen)
        assert "Esc cancels" in text_of(on)
        await on.press("escape")
        assert on.session.annotator == "ann"
        await on.press("&", *"ann", "enter")
        assert "You already label as ann" in on.notices
        await on.press("&", *"bob", "enter")
        assert "You label as bob now" in on.notices
        assert (on.session.annotator, on.labels) == ("bob", set())
        await on.press("2", "6", "escape", "o", "j", "k", "j", "&", *"cat", "enter")
        assert not missing(on.lines[0], "by name", "cat")
        assert "▌○ two" in on.text
        with closing(Workspace.open(tmp_path / "w.db")) as store:
            assert sorted(label.annotator for label in store.labels()) == ["ann", "bob"]
    async with stage(tmp_path / "runs", workspace=tmp_path / "w.db", annotator=None) as on:
        assert "cat" in on.lines[0]
