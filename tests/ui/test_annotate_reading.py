"""Navigation in a trace: folds, search, places by name, and the queue."""

from __future__ import annotations

from pathlib import Path

from mast_tui.traces.library import samples_folder
from mast_tui.ui.annotate.screen import AnnotateScreen
from mast_tui.ui.library.screen import LibraryScreen
from tests.ui.stage import Message, Stage, call, result, stage, write_runs, write_trace

LONG = "a row of many words that no timeline can show whole, whatever its width " * 4


def repeated_messages(times: int) -> list[Message]:
    steps: list[Message] = [{"role": "user", "content": LONG}]
    for number in range(times):
        steps += [call(number, "look", f'{{"at": "{LONG}"}}'), result(number, LONG)]
    return [*steps, {"role": "assistant", "content": LONG}]


async def test_equal_steps_are_folded(small: Path) -> None:
    async with stage(small) as on:
        await on.press("j", "j", "space")
        assert on.annotate.timeline.row_count == 7 + 2
        assert "×2 the same again" in on.text
        assert on.number == 3
        await on.press("j", "j", "1", "3")
        assert on.labels == {("1.3", 3, 8)}
        # The next row is the one after the run.
        await on.press("j", "1", "1")
        assert ("1.1", 9, 9) in on.labels
        await on.press("k", "space")
        assert on.annotate.timeline.row_count == 12
        assert all("1.3 ●" in on.row(number) for number in range(3, 9))
        await on.press("g", "space")
        assert "Nothing to fold at" in on.message
        await on.undo_all()
        await on.press("j", "j", "space")
        await on.press(":", "7", "enter")
        assert (on.number, on.annotate.timeline.row_count) == (7, 12)


async def test_a_read_member_counts_for_its_fold(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "long.json", repeated_messages(4))
    async with stage(path) as on:
        await on.press("j", "space")
        await on.press("G")
        await on.press("D")
        assert "Not read" not in on.text
        assert on.session.finished
    async with stage(path, annotator="bob") as on:
        for key in "jjGD":
            await on.press(key)
        assert "Not read: #4 to #9" in on.text


async def spans_after(on: Stage, *keys: str) -> list[int]:
    seen = []
    for key in keys:
        await on.press(key)
        seen.append(on.number)
    return seen


async def test_search_while_typing(small: Path) -> None:
    async with stage(small) as on:
        await on.press("/", "r")
        assert on.number == 1
        await on.press(*"estart")
        assert on.number == 1
        assert "1 of 4" in on.message
        await on.press("enter")
        assert await spans_after(on, "n", "n", "n", "n", "N", "N") == [9, 10, 11, 1, 11, 10]
        await on.press("escape")
        assert not on.annotate.state.hits
        assert on.number == 10
        # Escape forgets what was looked for: n asks anew.
        await on.press("n", *"crashes", "enter")
        assert (on.number, on.labels) == (9, set())
        await on.press("escape", "g")
        await on.press("/", *"The", "enter")
        assert [i + 1 for i in on.annotate.state.hits.indices] == [9]
        await on.press("escape", "/", *"the", "enter")
        assert [i + 1 for i in on.annotate.state.hits.indices] == [1, 2, 9, 12]
        await on.press("escape", "g")
        for burst in ("/13", "/1326a-x", '/t13v"'):
            await on.press(*burst)
            assert (on.annotate.state.needle, on.labels) == (burst[1:], set())
            assert not on.session.verdicts
            await on.press("escape")
        await on.press("g", *"/13", "enter", "1", "3")
        assert on.labels == {("1.3", on.number, on.number)}
        await on.press("u", "escape", "g")
        await on.press("/", *"zebra", "enter")
        assert "No span contains “zebra”" in on.message
        await on.press("n")
        assert "No span contains “zebra”" in on.message
        await on.press("escape", "escape")
        assert isinstance(on.app.screen, LibraryScreen)


async def test_going_to_numbers_keys_and_actions(small: Path) -> None:
    async with stage(small) as on:
        trace = on.trace
        await on.press(":", "9", "enter")
        assert on.number == 9
        await on.press(":", *"#12", "enter")
        assert on.number == 12
        for index in (0, 5, 11):
            await on.press(":", *trace.span(index).key, "enter")
            assert on.number == index + 1
        await on.press(":", *"whole trace", "enter")
        assert on.annotate.state.selection.whole_trace
        await on.press("escape", ":", *"99", "enter")
        assert on.number == 12
        assert "99" in on.lines[-1]


async def test_the_queue_is_the_filtered_library_both_ways(tmp_path: Path) -> None:
    write_runs(tmp_path / "runs", "run-a", "pear", "run-b", "run-c")
    async with stage(tmp_path / "runs") as on:
        await on.press("/", *"run-", "enter", "enter")
        seen = []
        for key in ("}", ">", "}", "{", "<"):
            seen.append(on.trace.path.stem[-1])
            await on.press(key)
        assert seen == ["a", "b", "c", "a", "c"]
        workspace = on.session.workspace
        await on.press("L")
        assert not workspace.passes()  # a trace that is only passed through is not begun
        await on.press("escape", "enter")
        await on.press("j")
        await on.press("escape")
        assert len(workspace.passes()) == 1
        assert isinstance(on.app.screen, LibraryScreen)


async def test_escape_leaves_one_mode_at_a_time() -> None:
    async with stage(samples_folder() / "ad-restart-loop.jsonl", size=(80, 24)) as on:
        await on.press("T", "v", "escape")
        assert on.annotate.has_class("-drawer")
        await on.press("escape")
        assert not on.annotate.has_class("-drawer")
        assert isinstance(on.app.screen, AnnotateScreen)
        await on.press("escape")
        assert isinstance(on.app.screen, LibraryScreen)


async def test_keys_after_enter_go_to_the_next_dialog(small: Path) -> None:
    async with stage(small) as on:
        await on.press(":", "9", "enter", "1", "3")
        assert on.labels == {("1.3", 9, 9)}
        await on.press("m", *"twice", "enter", "j", "l", *"premature", "enter", "2", "6")
        assert on.labels == {("1.3", 9, 9), ("3.1", 10, 10), ("2.6", 10, 10)}
        assert [label.note for label in on.session.labels if label.note] == ["twice"]
