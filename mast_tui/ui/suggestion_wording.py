"""The text of a suggestion: its judge, confidence, target, and the state of its evidence."""

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
MOVED: Final = "↷"
DECISIVE: Final = "!"

MAX_NAME_CHARS: Final = 40
"""The most code points of a judge's name."""

MAX_QUOTE_CHARS: Final = 300
"""The most code points of a quote that was not found."""

MAX_WORDING_CHARS: Final = 4_000
"""The most code points of a quote that is compared with the trace."""

_QUOTED: Final = re.compile(r"[“\"`‘].*?[”\"`’]")
_WORD: Final = re.compile(r"(?<![\w#/.-])[a-z]+(?![\w/.-]*[\d/_.-]\w)")
_RULE_WORDS: Final = 5
"""The number of words that identify a rule by its reason."""

_CONTEXT: Final = 36
"""The code points that are shown on each side of a difference."""

_LEFT_OUT: Final = "[…]"
_MAX_DIFFERENCES: Final = 4
_MAX_DIFFERENCE_CHARS: Final = 80


@dataclass(frozen=True, slots=True)
class SuggestionLine:
    """A line fit for display.

    ``highlights`` are the parts that differ from another line. ``warns`` is false for a line that
    only shows a text.
    """

    text: str
    highlights: tuple[tuple[int, int], ...] = ()
    warns: bool = True


def judge_name(judge: str) -> str:
    """Return the name of a judge without its prefix.

    A long name is shortened; the hash of the prompt stays whole.
    """
    name = judge.removeprefix(JUDGE_PREFIX)
    model, separator, prompt = name.rpartition("@")
    if not separator or len(name) <= MAX_NAME_CHARS:
        return one_line(name, MAX_NAME_CHARS)
    prompt = one_line(prompt, MAX_NAME_CHARS // 2)
    return f"{one_line(model, MAX_NAME_CHARS - 1 - len(prompt))}@{prompt}"


def rule_words(rationale: str) -> str:
    """Return the words that identify the rule that gave a reason.

    The labels of a judge do not name its rules. A rule gives the same reason everywhere, except for
    numbers, names and quotes, which are left out here.
    """
    return " ".join(_WORD.findall(_QUOTED.sub(" ", rationale))[:_RULE_WORDS])


def source_words(suggestion: Suggestion, index_of: IndexOf) -> str:
    """Return the judge of a suggestion, its confidence and its target, in one line.

    Args:
        suggestion: The suggestion.
        index_of: Returns the index of a span key, or None.
    """
    parts = [judge_name(suggestion.judge)]
    if suggestion.confidence is not None:
        parts.append(f"{suggestion.confidence:.2f}")
    return f"{'  '.join(parts)} · {place_words(suggestion.target, index_of)}"


def warnings_on(suggestion: Suggestion, index_of: IndexOf) -> tuple[SuggestionLine, ...]:
    """Return what the user must know before trusting a suggestion, a line each.

    Args:
        suggestion: The suggestion.
        index_of: Returns the index of a span key, or None.

    Returns:
        The lines; empty if the quote is exactly at its place, or if nothing is quoted.
    """
    lines = [*_evidence_lines(suggestion.evidence, index_of)] if suggestion.evidence else []
    if suggestion.remedy:
        lines.append(
            SuggestionLine(f"{DECISIVE} decisive step: its correction would have saved the run")
        )
        lines.append(
            SuggestionLine(f"instead: {one_line(suggestion.remedy, MAX_QUOTE_CHARS)}", warns=False)
        )
    elif suggestion.decisive:
        lines.append(SuggestionLine(f"{DECISIVE} decisive for the outcome, says the judge"))
    return tuple(lines)


def _evidence_lines(evidence: Evidence, index_of: IndexOf) -> Iterator[SuggestionLine]:
    """Yield a line for each doubt about the quote: not found, moved, or differing."""
    if not evidence.placed:
        quote = one_line(evidence.quote, MAX_QUOTE_CHARS)
        yield SuggestionLine(f"{NOT_FOUND} quote not in the trace: “{quote}”")
        return
    if evidence.named is not None:
        spans = [_span(key, index_of) for key in dict.fromkeys(evidence.named)]
        position = "elsewhere" if evidence.key is None else f"in {_span(evidence.key, index_of)}"
        named = " to ".join(spans)
        yield SuggestionLine(
            f"{MOVED} place moved: the judge named {named}, the quote is {position}"
        )
    if evidence.match is Match.FUZZY:
        yield SuggestionLine(f"{REWORDED} quote found in other words, which were not compared")
    elif evidence.match is Match.IN_PARTS:
        yield SuggestionLine(f"{IN_PARTS} quote in parts: the text between them is left out")
        if evidence.wording is not None:
            yield _wording("judge", evidence.wording[:MAX_WORDING_CHARS], ())
    elif evidence.match in (Match.REWORDED, Match.ALTERED):
        yield from _difference_lines(evidence, evidence.match)


def _difference_lines(evidence: Evidence, match: Match) -> Iterator[SuggestionLine]:
    """Yield the differences between a quote and the text of the trace, and both wordings."""
    altered = match is Match.ALTERED
    sign = f"{ALTERED if altered else REWORDED} {match.value}"
    if evidence.wording is None:
        yield SuggestionLine(f"{sign} quote")
        return
    # Start-up: rarely needed, and the import takes time.
    from mast_tui.judges.word_comparison import compare

    quoted = evidence.wording[:MAX_WORDING_CHARS]
    original = evidence.quote[:MAX_WORDING_CHARS]
    comparison = compare(quoted, original, in_parts=True)
    differences = [
        difference for difference in comparison.differences if difference.altering or not altered
    ]
    named = [
        _difference(quoted[slice(*difference.quote_range)], original[slice(*difference.text_range)])
        for difference in differences[:_MAX_DIFFERENCES]
    ]
    if len(differences) > len(named):
        named.append(f"and {len(differences) - len(named)} more")
    yield SuggestionLine(f"{sign}: {'; '.join(named)}" if named else f"{sign} quote")
    yield _wording("judge", quoted, [difference.quote_range for difference in differences])
    yield _wording("trace", original, [difference.text_range for difference in differences])


def _difference(quoted: str, original: str) -> str:
    added = one_line(quoted, _MAX_DIFFERENCE_CHARS)
    omitted = one_line(original, _MAX_DIFFERENCE_CHARS)
    if not omitted:
        return f"“{added}” put in"
    return f"{added} → {omitted}" if added else f"“{omitted}” left out"


def _wording(source: str, wording: str, highlights: Sequence[tuple[int, int]]) -> SuggestionLine:
    """Return a wording on one line, with highlighted parts.

    Text that both wordings share is shown only beside the differences.
    """
    text = f"{source}: “"
    displayed_highlights = []
    end_of_last = 0
    for start, end in highlights:
        text += one_line(_with_ellipsis(wording[end_of_last:start], after_last=end_of_last > 0))
        begin = len(text)
        text += one_line(wording[start:end])
        if begin < len(text):
            displayed_highlights.append((begin, len(text)))
        end_of_last = end
    tail = (
        _with_ellipsis(wording[end_of_last:], after_last=True, before_next=False)
        if highlights
        else wording
    )
    return SuggestionLine(f"{text}{one_line(tail)}”", tuple(displayed_highlights), warns=False)


def _with_ellipsis(shared: str, *, after_last: bool, before_next: bool = True) -> str:
    """Return shared text without its middle: the part after a difference, and that before one."""
    if len(shared) <= 2 * _CONTEXT + len(_LEFT_OUT):
        return shared
    head = shared[:_CONTEXT].rsplit(None, 1)[0] + " " if after_last else ""
    tail = " " + shared[-_CONTEXT:].split(None, 1)[-1] if before_next else ""
    return f"{head}{_LEFT_OUT}{tail}"


def _span(key: str, index_of: IndexOf) -> str:
    index = index_of(key)
    return one_line(key, 24) if index is None else f"#{index + 1}"
