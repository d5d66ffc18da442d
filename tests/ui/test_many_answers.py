"""Answering many suggestions at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from mast_tui.labels import Finding, ReviewAnswer
from mast_tui.traces.model import Trace
from mast_tui.ui.suggestion_wording import rule_text
from tests.session.build import review_of
from tests.ui.stage import CODES, Stage, finding, missing, read_trace, stage, suggest, write_trace

STEPS = [{"role": "user", "content": f"step {n}"} for n in range(30)]


def many_findings(trace: Trace) -> list[Finding]:
    why = "#{}: Navigator-{} repeats almost word for word “what {} said”; 3 times in all"
    repeats = [finding(trace, "1.3", n, n, why=why.format(n, n, "he" * n)) for n in range(1, 29)]
    same = "#29 is the same call as #{}, with the same answer"
    equal_calls = [finding(trace, "1.3", n, n, why=same.format(n)) for n in (29, 30)]
    early_end = replace(finding(trace, "3.1", 30, 30, why="#30: the end is early"), confidence=0.4)
    return [*repeats, *equal_calls, early_end]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Two traces, each with 31 suggestions."""
    for name in ("one", "two"):
        path = write_trace(
            tmp_path / "set" / f"{name}.json", [*STEPS, {"role": "user", "content": name}]
        )
        trace = read_trace(path)
        suggest(tmp_path / "w.db", trace, many_findings(trace))
    return tmp_path / "set", tmp_path / "w.db"


def pending(on: Stage) -> dict[str, int]:
    counts: dict[str, int] = {}
    for suggestion in on.annotate.suggestions.pending:
        counts[CODES[suggestion.mode]] = counts.get(CODES[suggestion.mode], 0) + 1
    return counts


def test_rules_are_recognized_by_common_words() -> None:
    first = "#372: Inner-Agent says “once” more what it said in #370, at src/a_b.py:3"
    second = "#9: another says “it all” more what it said in #1"
    assert rule_text(first) == "says more what it said"
    assert (rule_text(second), rule_text("#3 …")) == ("another says more what it", "")


ANSWERS: Final[Mapping[str, Mapping[str, int]]] = {
    "x": {"1.3": 2, "3.1": 1},
    "mx": {"3.1": 1},
    "bx": {},
    "sx": {},
    "sccx": {"3.1": 1},
    "a": {"1.3": 2, "3.1": 1},
    "rma": {"3.1": 1},
    "h": {"1.3": 2, "3.1": 1},
}
"""Keys in the dialog, and how many suggestions of each mode still wait afterwards."""


async def test_all_suggestions_of_a_rule_mode_or_judge_are_answered(
    files: tuple[Path, Path],
) -> None:
    folder, workspace = files
    async with stage(folder / "one.json", workspace=workspace) as on:
        assert "28 suggestions of 1.3 by this rule" in on.text
        for keys, left in ANSWERS.items():
            await on.press("X")
            assert not missing(on.text, ") 28 of", ") 30 of")
            await on.press(*keys)
            assert pending(on) == left, keys
            if keys == "h":
                assert all(review_of(on.session, s.id) is None for s in on.session.suggestions)
                continue
            answer = {"x": ReviewAnswer.REJECT, "a": ReviewAnswer.ACCEPT}[keys[-1]]
            reviews = [review_of(on.session, s.id) for s in on.session.suggestions]
            answers = [review.answer for review in reviews if review is not None]
            assert answers == [answer] * (31 - sum(left.values()))
            assert len(on.labels) == (len(answers) if answer is ReviewAnswer.ACCEPT else 0)
            assert f"{len(answers)} suggestions" in on.message
            await on.press("u")
            assert (pending(on), on.labels) == ({"1.3": 30, "3.1": 1}, set())
            await on.press("U")
            assert pending(on) == left
            await on.press("u", "g")
        await on.press("X", "w", "g")
        await on.press("[", "[")
        assert "3.1 Premature termination" in on.text
        await on.press("X", "s", "c")
        assert "confidence: at most 0.40" in on.text
        await on.press("x")
        assert pending(on) == {"1.3": 30}
        await on.undo_all()
        await on.press("]", "]")
        assert "Suggestion 3 of 31" in on.text
        await on.press("[", "x")
        assert "Suggestion 3 of 31" in on.text
        await on.press("x")
        assert "Suggestion 4 of 31" in on.text


async def test_hidden_suggestions_stay_hidden_on_other_traces(files: tuple[Path, Path]) -> None:
    folder, workspace = files
    async with stage(folder, workspace=workspace) as on:
        await on.press("enter", "X", "m", "h")
        assert pending(on) == {"3.1": 1}
        assert "30 suggestions hidden" in on.message
        assert "◌" not in on.row(1)
        assert "3.1 ◌" in on.row(30)
        await on.press("]")
        assert on.number == 30
        await on.press("x")
        assert "30 waiting suggestions hidden" in on.text
        await on.press(">")
        assert pending(on) == {"3.1": 1}
        await on.press("X", "w")
        assert pending(on) == {"1.3": 30, "3.1": 1}
        assert "1.3 ◌" in on.row(1)


async def test_an_answer_is_repeated_on_opened_traces(files: tuple[Path, Path]) -> None:
    folder, workspace = files
    async with stage(folder, workspace=workspace) as on:
        await on.press("enter", "X", "m", "q")
        assert "each that you open from now on" in on.text
        await on.press("x")
        assert pending(on) == {"3.1": 1}
        assert "the same on each trace you open" in on.message
        await on.press(">")
        assert pending(on) == {"3.1": 1}
        assert "as on earlier traces" in on.message
        reviews = [review_of(on.session, s.id) for s in on.session.suggestions]
        assert [r.answer for r in reviews if r is not None] == [ReviewAnswer.REJECT] * 30
        await on.press("u")
        assert pending(on) == {"1.3": 30, "3.1": 1}
        await on.press("<", ">")
        assert pending(on) == {"1.3": 30, "3.1": 1}, "what was taken back stays so"
        await on.press("X", "w")
        assert "answering on later traces has stopped" in on.message


async def test_repeated_answers_end_and_spare_finished_traces(files: tuple[Path, Path]) -> None:
    folder, workspace = files
    async with stage(folder, workspace=workspace) as on:
        await on.press("enter", "X", "m", "q", "x", "X", "w", ">")
        assert pending(on) == {"1.3": 30, "3.1": 1}
    async with stage(folder / "two.json", workspace=workspace) as on:
        await on.press("G")
        await on.press("D")
        await on.press("o")  # the question about spans that were not read, or about suggestions
        assert on.session.finished
    async with stage(folder, workspace=workspace) as on:
        await on.press("enter", "X", "m", "q", "x", ">")
        assert on.session.finished
        assert "as on earlier traces" not in on.message
        assert not any(review_of(on.session, s.id) for s in on.session.suggestions)


async def test_a_judge_without_findings_is_named(tmp_path: Path, workspace: Path) -> None:
    path = write_trace(tmp_path / "t.json")
    suggest(workspace, read_trace(path), [])
    async with stage(path, workspace=workspace) as on:
        assert "The rules judge found nothing." in on.text
        await on.press("X")
        assert on.message == "The rules judge found nothing."
        await on.press("e")
        assert "#1 has no label of yours · The rules judge found" in on.message
    async with stage(path, workspace=workspace, blind=True) as on:
        assert "found nothing" not in on.text
        await on.press("X")
        assert "found nothing" not in on.text
