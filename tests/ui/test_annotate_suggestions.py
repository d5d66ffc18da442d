"""Suggestions on the annotate screen: moving between them and answering by one key."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from mast_tui.labels import Evidence, Finding, Match, Origin, ReviewAnswer
from tests.session.build import review_of
from tests.ui.stage import SLUGS, Stage, finding, missing, read_trace, stage, suggest, with_evidence


@pytest.fixture
def judged(small: Path, workspace: Path) -> Path:
    """A workspace with three suggestions of a judge on the small trace."""
    trace = read_trace(small)
    suggest(
        workspace,
        trace,
        [
            finding(trace, "1.3", 3, 8, quote="checkout-2 Crash", why="the same call thrice"),
            finding(trace, "1.1", 10, 10),
            finding(trace, "3.2", 12, 12, quote="fast again"),
        ],
    )
    return workspace


def answers(on: Stage) -> list[ReviewAnswer | None]:
    reviews = [review_of(on.session, s.id) for s in on.session.suggestions]
    return [None if review is None else review.answer for review in reviews]


async def test_moving_between_suggestions_and_keys_that_do_not_answer(
    small: Path, judged: Path
) -> None:
    async with stage(small, workspace=judged) as on:
        assert "3 wait for an answer" in on.text
        for forth, back in ("][", ".,"):
            await on.press("g")
            seen = []
            for _ in range(4):
                await on.press(forth)
                seen.append(on.number)
            # The first one's evidence is in the last span of its range.
            assert seen == [8, 10, 12, 8]
            assert not missing(on.text, "Suggestion 1 of 3", "the same call thrice")
            seen = []
            for _ in range(3):
                await on.press(back)
                seen.append(on.number)
            assert seen == [12, 10, 8]
        for key in "ax":
            await on.press("g", key)
            assert (answers(on), on.number) == ([None, None, None], 8)
        await on.press("g")
        await on.press("]", "a", "x", "u", "u")
        assert (answers(on), on.labels, on.number) == ([None, None, None], set(), 8)
        await on.press("U")
        assert on.labels == {("1.3", 3, 8)}
        await on.press("u", "g")
        await on.press("]", "k", "e", "k", "escape")
        assert (on.number, on.annotate.state.selection.is_plain) == (7, True)
        await on.press("a")
        assert (on.labels, on.number) == ({("1.3", 3, 8)}, 10)
        await on.press("u")
        await on.press("G", "1", "1")
        assert (answers(on), on.session.labels[0].origin) == ([None, None, None], Origin.MANUAL)


async def test_one_key_answers_and_goes_on(small: Path, judged: Path) -> None:
    async with stage(small, workspace=judged) as on:
        await on.press("]", "a")
        assert (on.number, on.labels) == (10, {("1.3", 3, 8)})
        assert on.session.labels[0].origin is Origin.ACCEPTED
        await on.press("x")
        assert (on.number, on.labels) == (12, {("1.3", 3, 8)})
        await on.press("a")
        assert on.labels == {("1.3", 3, 8), ("3.2", 12, 12)}
        assert answers(on) == [ReviewAnswer.ACCEPT, ReviewAnswer.REJECT, ReviewAnswer.ACCEPT]
        # A rejection says nothing about the mode.
        assert on.session.verdict(SLUGS["1.1"]) is None
        assert "all suggestions answered" in on.message
        await on.press("]")
        assert "All suggestions on this trace are answered" in on.message


async def test_suggestions_are_accepted_and_edited(small: Path, judged: Path) -> None:
    async with stage(small, workspace=judged) as on:
        await on.press("G", "3", "2", "a")
        assert (on.labels, on.session.labels[0].origin) == ({("3.2", 12, 12)}, Origin.MANUAL)
        await on.undo_all()
        await on.press("]", "e")
        assert (on.number, on.annotate.timeline.range) == (8, (2, 7))
        assert "edit" in on.lines[-1]
        await on.press("j")  # beyond the suggestion
        assert "Editing suggestion" in on.text
        await on.press("k", "k", "k", "1", "5")
        assert on.labels == {("1.5", 3, 6)}
        assert {x.origin for x in on.session.labels} == {Origin.EDITED}
        assert (answers(on)[0], on.number) == (ReviewAnswer.EDIT, 10)
        await on.undo_all()
        await on.press("]", "]", "e", "t", "1", "1")
        assert on.labels == {("1.1", 0, 0)}
        await on.press("e", "w", "v", "w", "3", "3")
        quote = next(x.target for x in on.session.labels if x.target.quote)
        assert quote.quote == "Done:"
        assert answers(on) == [None, ReviewAnswer.EDIT, ReviewAnswer.EDIT]


NOT_THERE = Finding(
    SLUGS["2.6"], None, None, "made up", 0.9, evidence=Evidence(key=None, quote="never said")
)


async def test_suggestions_without_found_quote_come_last(small: Path, workspace: Path) -> None:
    trace = read_trace(small)
    key = trace.span(1).key
    suggest(
        workspace,
        trace,
        [
            NOT_THERE,
            replace(with_evidence(NOT_THERE, key=key), mode=SLUGS["1.2"], first=key, last=key),
            finding(trace, "1.1", 10, 10),
            finding(trace, "3.2", 12, 12, quote="fast again"),
        ],
    )
    async with stage(small, workspace=workspace) as on:
        seen = []
        for _ in range(5):
            await on.press("]")
            seen.append((on.number, "quote not in the trace" in on.text))
        assert seen[:2] == [(10, False), (12, False)]
        assert (sorted(seen[2:4]), seen[4]) == ([(1, True), (2, True)], (10, False))
        # The last that can be checked is answered: those that cannot follow, then the first.
        await on.press("G", "a")
        assert "quote not in the trace: “never said”" in on.annotate.suggestions.panels[1].text
        await on.press("x", "a")
        assert (on.labels, on.number) == ({("3.2", 12, 12), ("1.2", 2, 2)}, 10)
        await on.press("e", "1", "3")
        assert on.labels == {("3.2", 12, 12), ("1.2", 2, 2), ("1.3", 10, 10)}
        assert not on.session.pending


async def test_an_altered_quote_shows_both_wordings(small: Path, workspace: Path) -> None:
    trace = read_trace(small)
    altered = finding(trace, "1.3", 8, 8, quote="checkout-2 CrashLoopBackOff")
    altered = with_evidence(altered, match=Match.ALTERED, wording="checkout-3 CrashLoopBackOff")
    pieced = finding(trace, "3.2", 12, 12, quote="fast again")
    pieced = with_evidence(pieced, match=Match.IN_PARTS, wording="fast … again")
    suggest(workspace, trace, [NOT_THERE, altered, finding(trace, "1.1", 10, 10), pieced])
    async with stage(small, workspace=workspace) as on:
        seen = []
        for _ in range(5):
            await on.press("]")
            seen.append(on.number)
        assert seen == [10, 12, 8, 1, 10]
        await on.press("[", "[")
        panel = on.annotate.suggestions.panels[1]
        assert "≠ altered: 3 → 2\njudge: “checkout-3 Crash" in panel.text
        assert "\ntrace: “checkout-2 CrashLoopBackOff”" in panel.text
        lit = [panel.text[h.start : h.end] for h in panel.highlights if h.name == "match"]
        assert lit == ["3", "2"]
        # What is accepted are the words of the trace, and the way goes on to the one that is left
        # in doubt.
        await on.press("a")
        (label,) = on.session.labels
        assert label.target.quote == "checkout-2 CrashLoopBackOff"
        assert "quote not in the trace" in on.text
