"""Regular expressions: found as Python finds them, and never able to hold anything up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from errno import EAGAIN
from pathlib import Path

import pytest

from mast_tui.traces.search import pattern_child
from mast_tui.traces.search.pattern import InvalidPattern, Pattern
from mast_tui.traces.search.text_search import TextSearch, TooSlow
from tests.ui.build import SmallTrace

ENDLESS = "(a+)+$"
ON = "a" * 60 + "!"
"""Together they take longer than anyone lives."""


@pytest.fixture
def patterns() -> Iterator[list[Pattern]]:
    """Patterns that are closed at the end."""
    made: list[Pattern] = []
    yield made
    for pattern in made:
        pattern.close()


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("err(or)?", "an Error, an err\nand ERRORS"),
        ("Err", "an Error, an err"),
        (r"\S+@\W", "who@ there"),
        ("^b.*$", "a\nbcd\nbe"),
        ("x*", "aaxxaxa"),
        ("日.|🙂", "a日本 🙂"),
        (r"\d{3}", "404 1234567"),
    ],
)
def test_a_pattern_stands_where_python_finds_it(
    patterns: list[Pattern], pattern: str, text: str
) -> None:
    patterns.append(Pattern(pattern))
    flags = re.MULTILINE | (0 if pattern == "Err" else re.IGNORECASE)
    wanted = [m.span() for m in re.finditer(pattern, text, flags) if m.group()]
    assert wanted
    assert list(patterns[0].places(text)) == wanted
    assert patterns[0].count(text, tuple) == len(wanted)
    assert patterns[0].count("nothing", lambda: ("a row", text)) == 1


@pytest.mark.parametrize("text", ["(", "a{2,1}", "[z-a]", "(?P<a>b)(?P<a>c)", "*", "\\"])
def test_what_is_no_pattern_is_said(text: str) -> None:
    with pytest.raises(InvalidPattern, match=r"\w"):
        Pattern(text)


@pytest.mark.filterwarnings("error")
def test_a_pattern_that_python_warns_of_is_taken_in_silence(patterns: list[Pattern]) -> None:
    patterns.append(Pattern("[[a]"))
    assert patterns[0].count("[a", tuple) == 2


def test_a_pattern_without_end_is_given_up_and_the_next_text_is_looked_at(
    patterns: list[Pattern],
) -> None:
    patterns.append(Pattern(ENDLESS, seconds=0.02))
    with pytest.raises(TooSlow):
        patterns[0].count(ON, tuple)
    with pytest.raises(TooSlow):
        patterns[0].places(ON)
    assert patterns[0].count("aaa", tuple) == 1


def test_a_search_ends_after_a_few_texts_that_take_too_long(patterns: list[Pattern]) -> None:
    patterns.append(Pattern(ENDLESS, seconds=0.02))
    search = TextSearch(SmallTrace("aa", ON, "aaa", ON, ON, "a"), patterns[0], 0)
    found = search.step()
    assert found is not None
    assert found.hits == ((0, 1), (2, 1))
    assert search.too_slow == [1, 3, 4]
    assert search.given_up
    assert search.step() is None


def test_a_closed_pattern_finds_nothing(patterns: list[Pattern]) -> None:
    pattern = Pattern("a")
    assert pattern.count("aa", tuple) == 2
    pattern.close()
    assert pattern.count("aa", tuple) == 0
    assert list(pattern.places("aa")) == []
    pattern.close()


def test_lone_surrogates_and_nulls_are_only_characters(patterns: list[Pattern]) -> None:
    patterns.append(Pattern("a.b"))
    assert patterns[0].places("\ud800 a\0b") == [(2, 5)]


def test_a_process_that_cannot_be_begun_is_no_end_of_the_search(
    patterns: list[Pattern], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_args: object, **_options: object) -> None:
        raise BlockingIOError(EAGAIN, "Resource temporarily unavailable")

    patterns.append(Pattern("a"))
    with monkeypatch.context() as changed:
        changed.setattr("mast_tui.traces.search.pattern.Popen", refused)
        with pytest.raises(TooSlow):
            patterns[0].places("banana")
    assert len(patterns[0].places("banana")) == 3


@pytest.mark.parametrize("ends", ["", "sys.exit(1)"])
def test_a_process_that_complains_at_length_is_not_waited_for(
    patterns: list[Pattern], ends: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = Path(pattern_child.__file__).read_text("utf-8")
    complains = f"sys.stderr.write('x' * (1 << 20))\n    {ends or 'pass'}\n    serve("
    noisy = tmp_path / "noisy.py"
    noisy.write_text(child.replace("    serve(", f"    {complains}"), "utf-8")
    monkeypatch.setattr(pattern_child, "__file__", str(noisy))
    patterns.append(Pattern("a"))
    if ends:
        with pytest.raises(TooSlow):
            patterns[0].places("banana")
    else:
        assert len(patterns[0].places("banana")) == 3
