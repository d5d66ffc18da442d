"""The text of a suggestion: its judge, confidence, target, and evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from mast_tui.labels import JUDGE_PREFIX, Match
from mast_tui.safe_text import one_line
from mast_tui.ui.wording import IndexOf, place_text, span_text

if TYPE_CHECKING:
    from mast_tui.labels import Evidence
    from mast_tui.session import Suggestion

NOT_FOUND: Final = "✗"
ALTERED: Final = "≠"
IN_PARTS: Final = "⋯"
REWORDED: Final = "≈"
MOVED: Final = "↷"
DECISIVE: Final = "!"

OWN_JUDGES: Final = ("rules", "twins")
"""The judges that come with the app. Their names are shown without the version."""

MAX_NAME_CHARS: Final = 40
"""The most code points of a judge's name."""

MAX_QUOTE_CHARS: Final = 300
"""The most code points of a quote that was not found."""

MAX_WORDING_CHARS: Final = 4_000
"""The most code points of a quote that are compared with the trace."""

_QUOTED: Final = re.compile(r"[“\"`‘].*?[”\"`’]")
_WORD: Final = re.compile(r"(?<![\w#/.-])[a-z]+(?![\w/.-]*[\d/_.-]\w)")
_RULE_WORDS: Final = 5
"""The number of words of a reason that identify its rule."""

_CONTEXT: Final = 36
"""The code points shown on each side of a difference."""

_LEFT_OUT: Final = "[…]"
_MAX_DIFFERENCES: Final = 4
_MAX_DIFFERENCE_CHARS: Final = 80


class SuggestionLine(Struct, frozen=True):
    """A line fit for display.

    Attributes:
        text: The line.
        highlights: The ranges of the line that differ from another line.
        warns: False if the line is no warning.
    """

    text: str
    highlights: tuple[tuple[int, int], ...] = ()
    warns: bool = True


def judge_name(judge: str) -> str:
    """Return the name of a judge without its prefix.

    A long name is shortened before ``@``, which keeps the hash of the prompt.
    """
    name = judge.removeprefix(JUDGE_PREFIX)
    model, separator, prompt_hash = name.rpartition("@")
    if not separator or len(name) <= MAX_NAME_CHARS:
        return one_line(name, MAX_NAME_CHARS)
    prompt_hash = one_line(prompt_hash, MAX_NAME_CHARS // 2)
    return f"{one_line(model, MAX_NAME_CHARS - 1 - len(prompt_hash))}@{prompt_hash}"


def name_without_version(judge: str) -> str:
    """Return a judge's name without the version of its rules or the hash of its prompt."""
    return judge_name(judge).rpartition("@")[0] or judge_name(judge)


def rule_text(rationale: str) -> str:
    """Return the words that identify the rule that gave a reason.

    Labels do not name rules. The reason of a rule varies only in numbers, names and quotes, which
    are left out.
    """
    return " ".join(_WORD.findall(_QUOTED.sub(" ", rationale))[:_RULE_WORDS])


def suggestion_source_text(suggestion: Suggestion, index_of: IndexOf) -> str:
    """Return the judge of a suggestion, its confidence and its target in one line.

    Args:
        suggestion: The suggestion.
        index_of: Returns the index of a span key, or None.
    """
    name = judge_name(suggestion.judge)
    name_without_version = name.partition("@")[0]
    if name_without_version in OWN_JUDGES:
        # The no-break space keeps both words on one line of a narrow panel.
        name = f"{name_without_version}\u00a0judge"
    parts = [name]
    if suggestion.confidence is not None:
        parts.append(f"sure {suggestion.confidence:.0%}")
    parts.append(place_text(suggestion.target, index_of))
    return " · ".join(parts)


def warnings_on(suggestion: Suggestion, index_of: IndexOf) -> tuple[SuggestionLine, ...]:
    """Return the doubts about a suggestion's quote, and its role for the outcome, as lines.

    Args:
        suggestion: The suggestion.
        index_of: Returns the index of a span key, or None.

    Returns:
        The lines; none for an exact quote at a step that is not decisive.
    """
    lines: list[SuggestionLine] = []
    if suggestion.evidence:
        lines += _evidence_lines(suggestion.evidence, index_of)
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
    """Yield a line for each doubt about the quote."""
    if not evidence.placed:
        quote = one_line(evidence.quote, MAX_QUOTE_CHARS)
        yield SuggestionLine(f"{NOT_FOUND} quote not in the trace: “{quote}”")
        return
    if evidence.misnamed_spans is not None:
        named_spans = [span_text(key, index_of) for key in dict.fromkeys(evidence.misnamed_spans)]
        position = "elsewhere"
        if evidence.key is not None:
            position = f"in {span_text(evidence.key, index_of)}"
        yield SuggestionLine(
            f"{MOVED} place moved: the judge named {' to '.join(named_spans)}, "
            f"the quote is {position}"
        )
    if evidence.match is Match.FUZZY:
        yield SuggestionLine(
            f"{REWORDED} quote found in other words; the wordings were not compared"
        )
    elif evidence.match is Match.IN_PARTS:
        yield SuggestionLine(f"{IN_PARTS} quote in parts: the text between them is left out")
        if evidence.wording is not None:
            yield _wording_line("judge", evidence.wording[:MAX_WORDING_CHARS], ())
    elif evidence.match in (Match.REWORDED, Match.ALTERED):
        yield from _difference_lines(evidence, evidence.match)


def _difference_lines(evidence: Evidence, match: Match) -> Iterator[SuggestionLine]:
    """Yield the differences between a quote and the text of the trace, and both wordings.

    For an altered quote, only differences of meaning count.
    """
    is_altered = match is Match.ALTERED
    match_text = f"{ALTERED if is_altered else REWORDED} {match.value}"
    if evidence.wording is None:
        yield SuggestionLine(f"{match_text} quote")
        return
    # The import would delay the start, and is rarely needed.
    from mast_tui.judges.word_comparison import compare

    judge_wording = evidence.wording[:MAX_WORDING_CHARS]
    trace_wording = evidence.quote[:MAX_WORDING_CHARS]
    differences = [
        difference
        for difference in compare(judge_wording, trace_wording, in_parts=True).differences
        if difference.alters_meaning or not is_altered
    ]
    texts = [
        _difference_text(
            judge_wording[slice(*difference.quote_range)],
            trace_wording[slice(*difference.text_range)],
        )
        for difference in differences
    ]
    if len(texts) > _MAX_DIFFERENCES:
        texts[_MAX_DIFFERENCES:] = [f"and {len(texts) - _MAX_DIFFERENCES} more"]
    yield SuggestionLine(f"{match_text}: {'; '.join(texts)}" if texts else f"{match_text} quote")
    yield _wording_line("judge", judge_wording, [d.quote_range for d in differences])
    yield _wording_line("trace", trace_wording, [d.text_range for d in differences])


def _difference_text(quoted: str, original: str) -> str:
    """Return the text about a part of a quote and the part of the original that it replaces.

    Either part may be empty.
    """
    quoted_part = one_line(quoted, _MAX_DIFFERENCE_CHARS)
    original_part = one_line(original, _MAX_DIFFERENCE_CHARS)
    if not original_part:
        return f"“{quoted_part}” put in"
    if not quoted_part:
        return f"“{original_part}” left out"
    return f"{quoted_part} → {original_part}"


def _wording_line(
    source: str, wording: str, differences: Sequence[tuple[int, int]]
) -> SuggestionLine:
    """Return a wording on one line, with its differences from another wording highlighted.

    Long text between differences is cut. Without differences, the whole wording is shown.
    """
    text = f"{source}: “"
    highlights = []
    shown_until = 0
    for start, end in differences:
        equal_text = wording[shown_until:start]
        text += one_line(_cut_equal_text(equal_text, after_difference=shown_until > 0))
        highlight_start = len(text)
        text += one_line(wording[start:end])
        if highlight_start < len(text):
            highlights.append((highlight_start, len(text)))
        shown_until = end
    remaining_text = wording[shown_until:]
    if differences:
        remaining_text = _cut_equal_text(
            remaining_text, after_difference=True, before_difference=False
        )
    return SuggestionLine(f"{text}{one_line(remaining_text)}”", tuple(highlights), warns=False)


def _cut_equal_text(text: str, *, after_difference: bool, before_difference: bool = True) -> str:
    """Return a text that two wordings share. If it is long, keep only the words beside a
    difference.

    Args:
        text: The text.
        after_difference: True to keep the beginning of the text.
        before_difference: True to keep the end of the text.
    """
    if len(text) <= 2 * _CONTEXT + len(_LEFT_OUT):
        return text
    begin = text[:_CONTEXT].rsplit(None, 1)[0] + " " if after_difference else ""
    end = " " + text[-_CONTEXT:].split(None, 1)[-1] if before_difference else ""
    return f"{begin}{_LEFT_OUT}{end}"
