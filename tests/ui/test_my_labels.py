"""The list of one's own labels, verdicts and notes on a trace."""

from __future__ import annotations

from pathlib import Path

from mast_tui.labels import ReviewAnswer, VerdictValue
from tests.session.build import review_of
from tests.ui.stage import SLUGS, Stage, finding, read_trace, stage, suggest


def listed_labels(on: Stage) -> str:
    mine = on.annotate.my_labels
    assert mine is not None
    rows = [mine.render_row(row, 60).text.strip() for row in range(mine.row_count)]
    return "\n".join(rows)


def label_at_cursor(on: Stage) -> str:
    mine = on.annotate.my_labels
    assert mine is not None
    return mine.render_row(mine.cursor, 60).text


async def test_labels_verdicts_and_notes_are_listed(small: Path, workspace: Path) -> None:
    trace = read_trace(small)
    suggest(workspace, trace, [finding(trace, "1.5", 1, 1), finding(trace, "3.1", 3, 4)])
    async with stage(small, workspace=workspace) as on:
        await on.press("a", "e", "3", "3", "g", "m", *"too early", "enter", "j")
        await on.press("2", "6", "c", "c", "f", "m", *"the same twice", "enter")
        await on.press("w", "v", "w", "1", "1", "t", "1", "2", "j", "v", "j", "2", "3")
        await on.press("G", "m", *"ends well", "enter", "-", "2", "1", "_", "2", "2")
        await on.press("M")
        assert on.annotate.focused is on.annotate.my_labels
        rows = (
            listed_labels(on)
            .replace(" by\nhand", " by hand")
            .replace("rules,\n", "rules, ")
            .replace("…", "ns")
            .splitlines()
        )
        assert rows[:-2] == [
            *("▌1.2 Disobey role specification", "the whole trace · by hand"),
            *("1.5 Unaware of termination conditions", "#1 · suggested by rules, accepted"),
            *("✎ too early", "1.1 Disobey task specification", "#2 · by hand", "“I look”"),
            *("2.6 Reasoning-action mismatch", "#2 · fatal · fairly sure · by hand"),
            *("✎ the same twice", "2.3 Task derailment", "#3 to #4 · by hand"),
            *("3.3 Incorrect verification", "#3 to #4 · suggested by rules, edited"),
            *("✎ note on #12", "ends well"),
        ]
        assert [row.split()[0 :: len(row.split()) - 1] for row in rows[-2:]] == [
            ["2.1", "absent"],
            ["2.2", "unsure"],
        ]
        for part in ("My labels · 6 · 1 note on spans", "by hand", "fairly sure", "✎"):
            assert part in on.text


async def test_the_list_follows_new_labels(small: Path) -> None:
    async with stage(small) as on:
        await on.press("M")
        assert "No labels on this trace" in on.text
        await on.press("escape", "j", "j", "2", "6", "j", "3", "1")
        await on.press("M", "j")
        assert "3.1" in label_at_cursor(on)
        await on.press("escape", "g", "1", "3")
        assert listed_labels(on).startswith("1.3")
        # It opens on what stands under the cursor of the timeline.
        await on.press("M")
        assert "1.3" in label_at_cursor(on)
        await on.press("escape", "G", "M")
        assert "1.3" in label_at_cursor(on)
        assert len(on.labels) == 3


async def test_enter_goes_to_the_place_and_escape_to_the_timeline(small: Path) -> None:
    async with stage(small, size=(80, 24)) as on:
        await on.press("1", "3", "G", "2", "6", "m", *"x", "enter", "k", "m", *"y", "enter")
        await on.press("-", "1", "1", "M", "g", "enter")
        assert (on.number, on.annotate.focused) == (1, on.annotate.timeline)
        await on.press("M", "j", "enter")
        assert on.number == 12
        await on.press("M", "j", "enter")
        assert on.number == 11
        screen = on.app.screen
        await on.press("M", "escape")
        assert (on.app.screen, on.annotate.focused) == (screen, on.annotate.timeline)
        await on.press("M", "M")
        assert not on.annotate.has_class("-mine")
        assert on.annotate.focused is on.annotate.timeline
        await on.press("g", "j", "j", "1", "3")
        assert "3× in a row" in on.row(3)
        await on.press("M")  # leaves no room for both
        assert on.row(3).rstrip().endswith("1.3 ●")


async def test_keys_act_on_the_label_at_the_cursor(small: Path) -> None:
    async with stage(small) as on:
        await on.press(
            "1", "3", "2", "6", "G", "3", "1", "m", *"y", "enter", "k", "m", *"z", "enter"
        )
        await on.press("-", "1", "1", "M", "g", "c", "f", "m", *"why", "enter")
        (first,) = [label for label in on.session.labels if label.mode == SLUGS["1.3"]]
        assert (first.mode, first.confidence, first.note) == (SLUGS["1.3"], 1.0, "why")
        assert str(first.severity) == "fatal"
        assert on.annotate.focused is on.annotate.my_labels
        await on.press("j", "backspace")
        assert on.labels == {("1.3", 1, 1), ("3.1", 12, 12)}
        assert "3.1" in label_at_cursor(on)
        await on.press("j", "m", "backspace", "enter")
        assert not on.session.span_notes
        assert "1.1" in label_at_cursor(on)
        await on.press("f")
        assert on.message == "A mode that is absent has no severity"
        await on.press("backspace")
        assert on.session.verdict(SLUGS["1.1"]) is None
        await on.press("u", "u")
        assert on.session.verdict(SLUGS["1.1"]) is VerdictValue.ABSENT
        assert list(on.session.span_notes.values()) == ["z"]


async def test_accepted_labels_in_the_list(small: Path, workspace: Path) -> None:
    trace = read_trace(small)
    suggest(workspace, trace, [finding(trace, "1.5", 1, 1)])
    async with stage(small, workspace=workspace) as on:
        await on.press("]", "a")
        review = review_of(on.session, on.session.suggestions[0].id)
        assert review is not None
        assert review.answer is ReviewAnswer.ACCEPT
        await on.press("M", "backspace")
        assert len(on.session.pending) == 1
        await on.press("u")
    async with stage(small, workspace=workspace, blind=True) as on:
        await on.press("M")
        assert "#1 · accepted" in listed_labels(on)
        assert "rules" not in listed_labels(on)
    async with stage(small, workspace=workspace) as on:
        assert on.notices == ["You work blind, as last time: mast-tui --assisted shows suggestions"]
