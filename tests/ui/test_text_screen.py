"""Texts beside the trace: the answer key, time and tokens, files, and results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.model import AnswerKey
from mast_tui.ui.annotate.text_screen import TextScreen
from mast_tui.ui.text.answer_page import TITLES, hidden_sentence, page_of
from tests.cli.conftest import configure
from tests.ui.stage import Stage, call, missing, result, shown_key, stage, write_trace

TRUTH = "the pod was out of memory"


def text_of(on: Stage) -> str:
    return on.screen(TextScreen).lines.text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    actions = [{"name": "describe", "kwargs": {"pod": "checkout-2", "lines": [1, 2]}}]
    return write_trace(
        tmp_path / "run.json",
        expected_actions=actions,
        ground_truth=TRUTH,
        reward=0.25,
        gold_patch=["--- a/limits", "+++ b/limits", "@@ -1 +1 @@", "-64Mi", "+128Mi"],
    )


def test_the_answer_page_has_sections_under_headings() -> None:
    assert TITLES.keys() == set(AnswerKey._fields)
    key = AnswerKey(
        expected_actions=(("book", '{\n  "seat": 4,\n  "who": "Ann"\n}'), ("pay", "{}")),
        reference=(("target", "12"),),
        step_scores=(("k", "wrong"), ("gone", "right")),
        tests=(("passed", "a\r\nb"),),
        other=(("tags", '[\n  "x"\n]'), ("needs", json.dumps(["a b " * 12, "c d " * 12]))),
    )
    page = page_of(key, lambda key: 4 if key == "k" else None)
    assert page.text.split("\n") == [
        *("Expected actions (2)", "1. book", "     seat: 4", "     who: Ann", "2. pay", ""),
        *("Reference answer", "target: 12", ""),
        *("Scores of steps", "#5: wrong", "gone: right", ""),
        *("Tests (1)", "passed:", "a", "b", ""),
        *("Other data of the benchmark", 'tags: ["x"]'),
        *("needs:", "- " + "a b " * 12, "- " + "c d " * 12),
    ]
    headings = [page.text[p.start : p.end] for p in page.parts if p.name == "heading"]
    assert [heading.partition(" (")[0] for heading in headings] == [
        TITLES[name] for name, _value in key.sections()
    ]
    assert {"target:", "passed:"} <= {page.text[p.start : p.end] for p in page.parts}


async def test_the_answer_key_is_shown_searched_and_copied(path: Path) -> None:
    async with stage(path) as on:
        await on.press("i")
        text = text_of(on)
        assert text.startswith("Expected actions (1)\n1. describe\n     pod: checkout-2")
        assert not missing(text, "     lines: [1, 2]", f"ground_truth: {TRUTH}", "reward: 0.25")
        assert "-64Mi\n+128Mi" in text
        await on.press("i")
        assert on.app.screen is on.annotate
        await on.press("i", "/", *"LIMITS")
        assert "1 of 2" in on.text
        await on.press("enter", "n")
        assert "2 of 2" in on.text
        await on.press("n")
        assert "1 of 2" in on.text
        await on.press("N")
        assert "2 of 2" in on.text
        await on.press("escape")
        assert isinstance(on.app.screen, TextScreen)
        await on.press("/", *"nowhere")
        assert "no match for “nowhere”" in on.text
        await on.press("escape")
        assert "Esc closes" in on.lines[-1]
        await on.press("escape")
        assert not on.app.screen.is_modal
        await on.press("i", "y")
        assert on.app.clipboard == text_of(on)
        assert "the answer key" in on.message


async def test_blind_annotators_see_the_answer_key_after_revealing(path: Path) -> None:
    async with stage(path, blind=True) as on:
        await on.press("G", "s")
        assert "No file is known to have changed" in on.message
        await on.press("i")
        assert on.app.screen is on.annotate
        assert on.message == hidden_sentence(shown_key)
        assert TRUTH not in on.text
        await on.press("D", "o")
        assert on.session.finished
        await on.press("i")
        assert on.app.screen is on.annotate
        assert on.message == hidden_sentence(shown_key)
        await on.press("r", "y")
        assert "i shows the answer key" in on.message
        await on.press("i")
        assert TRUTH in text_of(on)


async def test_a_trace_without_answer_key(tmp_path: Path) -> None:
    async with stage(write_trace(tmp_path / "bare.json"), size=(80, 24)) as on:
        await on.press("i")
        assert not missing(on.text, "This trace has no answer key.", "outcomes.csv")
        await on.press("escape")
        assert on.app.screen is on.annotate


async def test_sums_of_time_tokens_and_prices(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 500}
    steps = [
        {"role": "user", "content": "Go", "timestamp": 100},
        {"role": "assistant", "content": "I go.", "timestamp": 160, "usage": usage},
    ]
    path = write_trace(tmp_path / "run.json", steps, model="m-1")
    async with stage(path) as on:
        await on.press("$")
        assert not missing(text_of(on), "1m00s    1,000,000             500", "no prices for m-1")
        await on.press("$")
        assert on.app.screen is on.annotate
        configure('[judge.prices."m-1"]\ninput = 2.0\noutput = 10.0\n')
        await on.press("$")
        assert "500     2" in text_of(on)
        assert "no prices" not in text_of(on)


async def test_files_are_shown_as_of_the_open_step(tmp_path: Path) -> None:
    steps = [
        {"role": "user", "content": "Go"},
        call(1, "Write", json.dumps({"file_path": "/a.py", "content": "x = 1\n"})),
        result(1, "ok"),
        call(2, "Edit", json.dumps({"file_path": "/a.py", "old_string": "1", "new_string": "2"})),
        result(2, "ok"),
    ]
    path = write_trace(tmp_path / "run.json", steps, reward=0.25)
    async with stage(path) as on:
        await on.press("s")
        assert "Files and results up to #1" in on.text
        assert "the last in" not in on.text
        await on.press("escape", "G", "k", "k", "s")
        assert not missing(on.text, "1 change, the last in #2", "result")
        await on.press("enter")
        assert text_of(on).split("\n")[-1] == "x = 1"
        await on.press("enter")
        assert on.app.screen is on.annotate
        assert on.annotate.index == 1
        await on.press("G", "s")
        await on.press("enter")
        assert text_of(on).split("\n") == [
            *("/a.py", "", "Change in #4", "-1", "+2", ""),
            *("Change in #2", "@@ all of it @@", "+x = 1", ""),
            *("The whole file, unless a command has changed it otherwise", "x = 2"),
        ]
        await on.press("s")
        assert on.app.screen is on.annotate
        await on.press("s")
        await on.press(*"rewards", "enter")
        assert "reward: 0.25" in text_of(on)


async def test_a_long_answer_key_is_scrolled(tmp_path: Path) -> None:
    truth = "\n".join(f"line {number}" for number in range(200))
    async with stage(write_trace(tmp_path / "long.json", ground_truth=truth)) as on:
        await on.press("i", "G")
        assert "line 199" in on.text
        await on.press("g")
        assert "line 0" in on.text
        await on.press("j", "pagedown")
        assert "line 0\n" not in on.text
        assert "Reference answer" not in on.text
