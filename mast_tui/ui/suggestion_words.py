"""A suggestion in words: whose it is, how sure, where, and what became of its evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from mast_tui.labels import JUDGE_PREFIX, Match
from mast_tui.safe_text import one_line
from mast_tui.ui.place_words import IndexOf, place_words

if TYPE_CHECKING:
    from mast_tui.labels import Evidence
    from mast_tui.session import Suggestion

NOT_FOUND: Final = "✗"
MENDED: Final = "↷"
ALMOST: Final = "≈"
DECISIVE: Final = "!"

MOST_OF_A_NAME: Final = 40
"""Code points of a judge's name that are shown beside a suggestion."""

MOST_OF_A_QUOTE: Final = 300
"""Code points of a quote that was not found."""


def judge_name(judge: str) -> str:
    """A judge without what all their names begin with; the prompt's hash stays whole."""
    name = judge.removeprefix(JUDGE_PREFIX)
    model, at, prompt = name.rpartition("@")
    if not at or len(name) <= MOST_OF_A_NAME:
        return one_line(name, MOST_OF_A_NAME)
    prompt = one_line(prompt, MOST_OF_A_NAME // 2)
    return f"{one_line(model, MOST_OF_A_NAME - 1 - len(prompt))}@{prompt}"


def source_words(suggestion: Suggestion, index_of: IndexOf) -> str:
    """Who suggests it, how sure, and where, in one line."""
    words = [judge_name(suggestion.judge)]
    if suggestion.confidence is not None:
        words.append(f"{suggestion.confidence:.2f}")
    return f"{'  '.join(words)} · {place_words(suggestion.target, index_of)}"


def warnings_on(suggestion: Suggestion, index_of: IndexOf) -> tuple[str, ...]:
    """What a person must know before trusting a suggestion, a line each, fit for display.

    Nothing where its words stand exactly where the judge said, or nothing is quoted.
    """
    lines = [*_of_evidence(suggestion.evidence, index_of)] if suggestion.evidence else []
    if suggestion.decisive:
        lines.append(f"{DECISIVE} decisive for the outcome, says the judge")
    return tuple(lines)


def _of_evidence(evidence: Evidence, index_of: IndexOf) -> Iterator[str]:
    if not evidence.found:
        quote = one_line(evidence.quote, MOST_OF_A_QUOTE)
        yield f"{NOT_FOUND} quote not in the trace: “{quote}”"
        return
    if evidence.named is not None:
        places = [_span(key, index_of) for key in dict.fromkeys(evidence.named)]
        there = "elsewhere" if evidence.key is None else f"in {_span(evidence.key, index_of)}"
        yield (
            f"{MENDED} place mended: the judge named {' to '.join(places)}, the words stand {there}"
        )
    if evidence.match is Match.FUZZY:
        yield f"{ALMOST} quote found in other words"


def _span(key: str, index_of: IndexOf) -> str:
    index = index_of(key)
    return one_line(key, 24) if index is None else f"#{index + 1}"
