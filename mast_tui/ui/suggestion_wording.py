"""A suggestion in words: whose it is, how sure, where, and what became of its evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_tui.labels import JUDGE_PREFIX, Match
from mast_tui.safe_text import one_line
from mast_tui.ui.wording import IndexOf, place_words

if TYPE_CHECKING:
    from mast_tui.labels import Evidence
    from mast_tui.session import Suggestion

NOT_FOUND: Final = "✗"
ALTERED: Final = "≠"
IN_PARTS: Final = "⋯"
REWORDED: Final = "≈"
MENDED: Final = "↷"
DECISIVE: Final = "!"

MOST_OF_A_NAME: Final = 40
"""Code points of a judge's name that are shown beside a suggestion."""

MOST_OF_A_QUOTE: Final = 300
"""Code points of a quote that was not found."""

MOST_OF_A_WORDING: Final = 4_000
"""Code points of a quote that is shown beside what stands in the trace."""

_QUOTED: Final = re.compile(r"[“\"`‘].*?[”\"`’]")
_WORD: Final = re.compile(r"(?<![\w#/.-])[a-z]+(?![\w/.-]*[\d/_.-]\w)")
_WORDS_ALIKE: Final = 5
"""Words by which a rule's reasons are known again."""

_BESIDE: Final = 36
"""Code points that are shown on each side of words that differ."""

_LEFT_OUT: Final = "[…]"
_DIFFERENCES_NAMED: Final = 4
_MOST_OF_A_DIFFERENCE: Final = 80


@dataclass(frozen=True, slots=True)
class SuggestionLine:
    """A line fit for display; ``lit`` are the parts of it that differ from another one.

    ``warns``: it says something, and does not only show what was written.
    """

    text: str
    lit: tuple[tuple[int, int], ...] = ()
    warns: bool = True


def judge_name(judge: str) -> str:
    """A judge without what all their names begin with; the prompt's hash stays whole."""
    name = judge.removeprefix(JUDGE_PREFIX)
    model, at, prompt = name.rpartition("@")
    if not at or len(name) <= MOST_OF_A_NAME:
        return one_line(name, MOST_OF_A_NAME)
    prompt = one_line(prompt, MOST_OF_A_NAME // 2)
    return f"{one_line(model, MOST_OF_A_NAME - 1 - len(prompt))}@{prompt}"


def rule_words(rationale: str) -> str:
    """The words with which a rule begins each of its reasons, without what they are about.

    A judge's labels do not say which of its rules they came from; its rules say the same of each
    place, but for numbers, names and quotes.
    """
    return " ".join(_WORD.findall(_QUOTED.sub(" ", rationale))[:_WORDS_ALIKE])


def source_words(suggestion: Suggestion, index_of: IndexOf) -> str:
    """Who suggests it, how sure, and where, in one line."""
    words = [judge_name(suggestion.judge)]
    if suggestion.confidence is not None:
        words.append(f"{suggestion.confidence:.2f}")
    return f"{'  '.join(words)} · {place_words(suggestion.target, index_of)}"


def warnings_on(suggestion: Suggestion, index_of: IndexOf) -> tuple[SuggestionLine, ...]:
    """What a person must know before trusting a suggestion, a line each.

    Nothing where its words stand exactly where the judge said, or nothing is quoted.
    """
    lines = [*_of_evidence(suggestion.evidence, index_of)] if suggestion.evidence else []
    if suggestion.remedy:
        lines.append(
            SuggestionLine(f"{DECISIVE} decisive step: put right, it would have saved the run")
        )
        lines.append(
            SuggestionLine(f"instead: {one_line(suggestion.remedy, MOST_OF_A_QUOTE)}", warns=False)
        )
    elif suggestion.decisive:
        lines.append(SuggestionLine(f"{DECISIVE} decisive for the outcome, says the judge"))
    return tuple(lines)


def _of_evidence(evidence: Evidence, index_of: IndexOf) -> Iterator[SuggestionLine]:
    if not evidence.placed:
        quote = one_line(evidence.quote, MOST_OF_A_QUOTE)
        yield SuggestionLine(f"{NOT_FOUND} quote not in the trace: “{quote}”")
        return
    if evidence.named is not None:
        places = [_span(key, index_of) for key in dict.fromkeys(evidence.named)]
        there = "elsewhere" if evidence.key is None else f"in {_span(evidence.key, index_of)}"
        named = " to ".join(places)
        yield SuggestionLine(
            f"{MENDED} place mended: the judge named {named}, the words stand {there}"
        )
    if evidence.match is Match.FUZZY:
        yield SuggestionLine(f"{REWORDED} quote found in other words, which nobody has compared")
    elif evidence.match is Match.IN_PARTS:
        yield SuggestionLine(f"{IN_PARTS} quote in parts: what stands between them is left out")
        if evidence.wording is not None:
            yield _wording("judge", evidence.wording[:MOST_OF_A_WORDING], ())
    elif evidence.match in (Match.REWORDED, Match.ALTERED):
        yield from _of_words(evidence, evidence.match)


def _of_words(evidence: Evidence, match: Match) -> Iterator[SuggestionLine]:
    """Yield the differences between a quote and the text of the trace, and both wordings."""
    altered = match is Match.ALTERED
    sign = f"{ALTERED if altered else REWORDED} {match.value}"
    if evidence.wording is None:
        yield SuggestionLine(f"{sign} quote")
        return
    # Start-up: few suggestions quote in other words, and the import takes time.
    from mast_tui.judges.word_comparison import compare

    quoted = evidence.wording[:MOST_OF_A_WORDING]
    original = evidence.quote[:MOST_OF_A_WORDING]
    comparison = compare(quoted, original, in_parts=True)
    differences = [each for each in comparison.differences if each.altering or not altered]
    named = [
        _difference(quoted[slice(*each.quote_range)], original[slice(*each.text_range)])
        for each in differences[:_DIFFERENCES_NAMED]
    ]
    if len(differences) > len(named):
        named.append(f"and {len(differences) - len(named)} more")
    yield SuggestionLine(f"{sign}: {'; '.join(named)}" if named else f"{sign} quote")
    yield _wording("judge", quoted, [each.quote_range for each in differences])
    yield _wording("trace", original, [each.text_range for each in differences])


def _difference(quoted: str, original: str) -> str:
    added = one_line(quoted, _MOST_OF_A_DIFFERENCE)
    omitted = one_line(original, _MOST_OF_A_DIFFERENCE)
    if not omitted:
        return f"“{added}” put in"
    return f"{added} → {omitted}" if added else f"“{omitted}” left out"


def _wording(whose: str, words: str, lit: Sequence[tuple[int, int]]) -> SuggestionLine:
    """A wording on one line, with the places in it that are lit.

    Of what both wordings have alike only that beside the differences is shown.
    """
    text = f"{whose}: “"
    shown = []
    at = 0
    for start, end in lit:
        text += one_line(_beside(words[at:start], after=at > 0))
        begin = len(text)
        text += one_line(words[start:end])
        if begin < len(text):
            shown.append((begin, len(text)))
        at = end
    rest = _beside(words[at:], after=True, before=False) if lit else words
    return SuggestionLine(f"{text}{one_line(rest)}”", tuple(shown), warns=False)


def _beside(words: str, *, after: bool, before: bool = True) -> str:
    """What of words that are alike stands after a difference, and what before the next one."""
    if len(words) <= 2 * _BESIDE + len(_LEFT_OUT):
        return words
    head = words[:_BESIDE].rsplit(None, 1)[0] + " " if after else ""
    tail = " " + words[-_BESIDE:].split(None, 1)[-1] if before else ""
    return f"{head}{_LEFT_OUT}{tail}"


def _span(key: str, index_of: IndexOf) -> str:
    index = index_of(key)
    return one_line(key, 24) if index is None else f"#{index + 1}"
