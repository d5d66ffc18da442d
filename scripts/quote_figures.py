"""Print how often the quote check accepts honestly edited quotes, and altered quotes.

    python scripts/quote_figures.py [--half held-out|tuning] [--seed N] [--per-kind N] [--json]
                                    [--misses] [--corpus FOLDER]

The script draws passages of the traces under a folder and edits them, honestly or so that the
meaning changes. It then locates each as the quote of a judge, half of them with a wrong number of
the span. A trace belongs to one half, by its content and the seed. Read single cases (``--misses``)
and choose limits on the tuning half only; publish the figures of the held-out half. Altered quotes
that are in the trace by chance are left out.
"""

from __future__ import annotations

import argparse
import csv
import html
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Final

from mast_tui.judges.llm.prompt.redacted_view import RedactedView
from mast_tui.judges.quote_anchoring import Locator, QuoteLocation
from mast_tui.labels import Evidence, QuoteCounts
from mast_tui.redaction.engine import Redaction
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Trace

ROOT: Final = Path(__file__).resolve().parents[1]
SAMPLES: Final = ROOT / "sample_traces"
CORPUS: Final = ROOT.parent / "shared" / "corpus"

KINDS: Final = ("exact", "spacing", "reworded", "in_parts", "altered", "not_found")
_TRIES: Final = 30
_TRACES_OF_A_FILE: Final = 12
_BIGGEST_FILE: Final = 3_000_000

_WORD: Final = re.compile(r"[^\W\d_]+")
_NUMBER: Final = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")
_VERB: Final = re.compile(
    r"\b(?:is|are|was|were|will|can|could|should|would|does|did|has|have)\b(?! not|n't)"
)
_NEGATION: Final = re.compile(r"(?:\b(?:not|never|no|without)\b |n't\b)", re.IGNORECASE)
_NAME: Final = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{3,}\b|\b[a-z]+_[a-z_]+\b|\b[a-z]+[A-Z]\w+\b")
_FILLER: Final = re.compile(
    "th(?:at|is|eir|ey|ere|em|en|an)|with|from|have|been|w(?:ere|hen|hat|hich|ill|ould)|could"
    "|should|into|your|about|also|only|just|does",
    re.IGNORECASE,
)
_OPPOSITES: Final = """
    success/failure successfully/unsuccessfully succeeded/failed first/last true/false yes/no
    valid/invalid correct/incorrect able/unable increase/decrease more/less enabled/disabled
    open/closed start/stop high/low found/missing all/none always/never up/down any/no
    healthy/unhealthy available/unavailable passed/failed right/wrong good/bad new/old start/end
    add/remove allow/deny complete/incomplete with/without can/cannot known/unknown before/after
    minimum/maximum most/least many/few greater/smaller must/may should/might each/some both/neither
    and/or if/unless
"""
_OPPOSITE: Final[dict[str, str]] = {
    word: opposite
    for pair in re.findall(r"(\w+)/(\w+)", _OPPOSITES)
    for word, opposite in (pair, reversed(pair))
}
_QUALIFIER: Final = re.compile(
    r"\b(?:only|almost|may|might|should|could|if|probably|likely|some|partially|about|at least|"
    r"up to|possible|expected|would|can|must|most|any|first|last|potential) ",
    re.IGNORECASE,
)
_SPEAKERS: Final = ("Assistant: ", "Agent: ", "User: ", "**Assistant:** ", "Tool result: ")


@dataclass(frozen=True, slots=True)
class QuotedTrace:
    """A trace to quote.

    Attributes:
        trace: The trace.
        texts: The texts of its spans.
        letters: The letters and digits of all texts, in lower case.
        vocabulary: The words of all traces.
    """

    trace: Trace
    texts: Sequence[str]
    letters: str
    vocabulary: Sequence[str]

    @property
    def locator(self) -> Locator:
        """A new locator."""
        return Locator(RedactedView(self.trace, Redaction.none()))


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a trace.

    Attributes:
        source: The trace.
        traces: All traces, as sources of other texts.
        span: The index of the span.
        start: The offset in the text of the span.
        quote: The text of the passage.
        random: The source of randomness for edits.
    """

    source: QuotedTrace
    traces: Sequence[QuotedTrace]
    span: int
    start: int
    quote: str
    random: Random

    @property
    def text(self) -> str:
        """The text of the whole span."""
        return self.source.texts[self.span]

    def foreign(self, length: int) -> str:
        """Return a text of another trace."""
        kind = QuoteKind("", lambda passage: passage.quote, length, length + 40)
        for _ in range(_TRIES):
            other = self.random.choice(self.traces)
            passage = _draw_passage(other, self.traces, self.random, kind)
            if passage is not None and other is not self.source:
                return passage.quote
        return "which nobody had written down in all of these words before it was asked for " * 4


Edit = Callable[[Passage], str | None]


@dataclass(frozen=True, slots=True)
class QuoteKind:
    """A kind of edit.

    Attributes:
        name: The name.
        edit: The edit; it returns None if it does not apply to a passage.
        shortest: The least length of a passage.
        longest: The greatest length of a passage.
        only: A pattern that passages match.
        check: Whether altered quotes that are in the trace are left out.
    """

    name: str
    edit: Edit
    shortest: int = 40
    longest: int = 260
    only: str | None = None
    check: bool = True


# Honest edits


def _joined(passage: Passage) -> str | None:
    return " ".join(passage.quote.split()) if "\n" in passage.quote else None


def _broken(passage: Passage) -> str | None:
    blanks = [" ", " ", "\n", "\n  "]
    words = passage.quote.split(" ")
    return "".join(word + passage.random.choice(blanks) for word in words).strip()


def _curly(passage: Passage) -> str | None:
    text = re.sub(r'(?<!\w)"', "“", passage.quote).replace('"', "”").replace("'", "’")
    return _changed(passage, re.sub(r"-", "–", text))


def _straight(passage: Passage) -> str | None:
    table = str.maketrans({"“": '"', "”": '"', "’": "'", "‘": "'", "—": "-", "–": "-"})
    return _changed(passage, passage.quote.translate(table))


def _case(passage: Passage) -> str | None:
    return _changed(passage, passage.quote[0].swapcase() + passage.quote[1:])


def _period(passage: Passage) -> str | None:
    return None if passage.quote[-1] in ".!?:;,…" else passage.quote + "."


def _no_period(passage: Passage) -> str | None:
    return _changed(passage, passage.quote.rstrip(".!?:;,"))


def _no_markdown(passage: Passage) -> str | None:
    text = re.sub(r"(?m)^[ \t]*(?:#{1,6}|[-*+>])[ \t]+", "", passage.quote)
    text = re.sub(r"\[([^\[\]\n]+)\]\([^()\s]+\)", r"\1", text)
    text = re.sub(r"\*\*|__|`|~~|(?<!\w)\*|\*(?!\w)", "", text).strip()
    return _changed(passage, text)


def _no_pipes(passage: Passage) -> str | None:
    text = re.sub(r"(?m)^[|:\- ]+$", "", passage.quote).replace("|", " ")
    return _changed(passage, " ".join(text.split()))


def _no_tags(passage: Passage) -> str | None:
    return _changed(passage, re.sub(r"</?[a-zA-Z][^<>\n]*>", "", passage.quote).strip())


def _escaped(passage: Passage) -> str | None:
    return _changed(passage, json.dumps(passage.quote)[1:-1])


def _unescaped(passage: Passage) -> str | None:
    text = passage.quote.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    return _changed(passage, text.strip())


def _reformatted(passage: Passage) -> str | None:
    return _changed(passage, re.sub(r'(?<=[":,{}\[\]]) (?=["{\[\d])', "", passage.quote))


def _escaped_twice(passage: Passage) -> str | None:
    return _changed(passage, html.escape(html.escape(passage.quote)))


def _agent_before(passage: Passage) -> str | None:
    agent = passage.source.trace.span(passage.span).agent
    role = passage.random.choice(("", " (thought)", " (to the user)", " [message]"))
    return f"{agent}{role}: {passage.quote}" if agent else None


def _without(passage: Passage, match: re.Match[str] | None) -> str | None:
    """Return the quote without a match and the blanks after it."""
    if match is None:
        return None
    return passage.quote[: match.start()] + passage.quote[match.end() :].lstrip(" ")


def _plain_word_left_out(passage: Passage) -> str | None:
    matches = [
        match
        for match in re.finditer(r"(?<=[a-z] )[a-z]{4,}(?= [a-z])", passage.quote)
        if _is_content_word(match[0])
        and match[0] not in _OPPOSITE
        and not _QUALIFIER.match(match[0] + " ")
        and not _NEGATION.match(match[0] + " ")
        and _is_inner(passage, match)
    ]
    return _without(passage, _choice(passage, matches))


HONEST: Final = (
    QuoteKind("as it is", lambda passage: passage.quote),
    QuoteKind("in “ ”", lambda passage: f"“{passage.quote}”"),
    QuoteKind("in a fence", lambda passage: f"```\n{passage.quote}\n```"),
    QuoteKind("lines joined", _joined, only="\n"),
    QuoteKind("lines broken elsewhere", _broken),
    QuoteKind(
        "no-break spaces", lambda passage: _changed(passage, passage.quote.replace(" ", "\u00a0"))
    ),
    QuoteKind("curly quotes, long dashes", _curly, only="['\"-]"),
    QuoteKind("straight quotes, short dashes", _straight, only="[“”’‘—–]"),
    QuoteKind("escaped as in JSON", _escaped, only='[\\n"—’“]'),
    QuoteKind("escapes of JSON gone", _unescaped, only=r"\\[nt\"]"),
    QuoteKind("JSON set otherwise", _reformatted, only=r'": ["{\[\d]'),
    QuoteKind("first letter's case", _case),
    QuoteKind("lower case", lambda passage: _changed(passage, passage.quote.lower())),
    QuoteKind("final period added", _period),
    QuoteKind("final period gone", _no_period, only=r"[.!?:]\s"),
    QuoteKind("markdown gone", _no_markdown, only=r"\*\*|`|(?m:^#+ )|(?m:^[-*] )"),
    QuoteKind("table pipes gone", _no_pipes, only=r"\|.*\|"),
    QuoteKind("tags gone", _no_tags, only=r"</?[a-z][^<>\n]*>"),
    QuoteKind(
        "`&lt;` for `<`",
        lambda passage: _changed(passage, html.escape(passage.quote)),
        only='[<>&"]',
    ),
    QuoteKind("`#12: ` before", lambda passage: f"#{passage.span + 1}: {passage.quote}"),
    QuoteKind("a speaker before", lambda passage: passage.random.choice(_SPEAKERS) + passage.quote),
    QuoteKind("`...` at the end", lambda passage: f"{passage.quote} ..."),
    QuoteKind("`&amp;lt;` for `<`", _escaped_twice, only='[<>&"]'),
    QuoteKind("the agent's name before", _agent_before),
)

# Between honest and altered, without a limit


def _note(passage: Passage) -> str | None:
    match = _inner_word(passage)
    return match and f"{passage.quote[: match.end()]} [the agent]{passage.quote[match.end() :]}"


def _typo(passage: Passage) -> str | None:
    match = _choice_of_words(passage, lambda word: len(word) >= 6 and word.islower())
    if match is None:
        return None
    offset = match.start() + passage.random.randrange(2, len(match[0]) - 2)
    swapped = passage.quote[offset + 1] + passage.quote[offset]
    return _changed(passage, passage.quote[:offset] + swapped + passage.quote[offset + 2 :])


def _other_form(passage: Passage) -> str | None:
    pattern = re.compile("[a-z]{4,}(?:ing|ed|s)")
    match = _choice_of_words(passage, lambda word: bool(pattern.fullmatch(word)))
    if match is None:
        return None
    stem = re.sub("(?:ing|ed|s)$", "", match[0])
    ending = passage.random.choice(
        [end for end in ("ing", "ed", "s", "") if stem + end != match[0]]
    )
    return _replaced(match, stem + ending)


def _small_word(passage: Passage) -> str | None:
    small = ["the", "a", "is", "was", "to", "of", "in", "on", "and", "but", "that", "this"]
    match = _any(passage, re.compile(rf"(?<=[\w,] )(?:{'|'.join(small)})(?= \w)"))
    if match is None:
        return None
    other = passage.random.choice([word for word in small if word != match[0]])
    return _replaced(match, other)


def _left_out(sign: str, *, head: int = 6, tail: int = 6) -> Edit:
    """Return an edit that puts a sign for all words but some at the head and the tail."""

    def edit(passage: Passage) -> str | None:
        matches = list(re.finditer(r"[^\W_]+", passage.quote))
        if len(matches) < 16:
            return None
        first = passage.quote[: matches[head - 1].end()]
        return f"{first} {sign} {passage.quote[matches[-tail].start() :]}"

    return edit


BETWEEN: Final = (
    QuoteKind("`[the agent]` put in", _note),
    QuoteKind("two letters turned", _typo),
    QuoteKind("another form of a word", _other_form),
    QuoteKind("a small word for another", _small_word),
    QuoteKind("a plain word left out", _plain_word_left_out),
)

PARTS: Final = (
    QuoteKind("`…` in the middle", _left_out("…"), 120, 280),
    QuoteKind("`...` in the middle", _left_out("..."), 120, 280),
    QuoteKind("`[...]` in the middle", _left_out("[...]"), 120, 280),
    QuoteKind("`…` before two words", _left_out("…", tail=2), 120, 280),
    QuoteKind("`…` after two words", _left_out("…", head=2), 120, 280),
)

# Altered


def _number(passage: Passage) -> str | None:
    match = _any(passage, _NUMBER)
    if match is None:
        return None
    digits = list(match[0])
    index = passage.random.choice([i for i, char in enumerate(digits) if char.isdigit()])
    digits[index] = passage.random.choice([n for n in "123456789" if n != digits[index]])
    return _replaced(match, "".join(digits))


def _digit_of_word(passage: Passage) -> str | None:
    match = _any(passage, re.compile(r"(?<=[A-Za-z_-])\d(?!\d)"))
    if match is None:
        return None
    other = passage.random.choice([n for n in "123456789" if n != match[0]])
    return _replaced(match, other)


def _point(passage: Passage) -> str | None:
    match = _any(passage, re.compile(r"(?<=\d)\.(?=\d)"))
    return match and _replaced(match, "")


def _negated(passage: Passage) -> str | None:
    match = _any(passage, _VERB)
    word = passage.random.choice((" not", " not", " never", " no longer"))
    return match and passage.quote[: match.end()] + word + passage.quote[match.end() :]


def _affirmed(passage: Passage) -> str | None:
    match = _any(passage, _NEGATION)
    return match and _changed(passage, _replaced(match, ""))


def _opposite(passage: Passage) -> str | None:
    match = _choice_of_words(passage, lambda word: word.lower() in _OPPOSITE)
    if match is None:
        return None
    other = _OPPOSITE[match[0].lower()]
    other = other.capitalize() if match[0][0].isupper() else other
    return _replaced(match, other)


def _name(passage: Passage) -> str | None:
    match = _any(passage, _NAME)
    if match is None:
        return None
    names = {name for text in passage.source.texts for name in _NAME.findall(text[:4_000])}
    other_names = sorted(name for name in names if name.lower() != match[0].lower())
    other = passage.random.choice(other_names) if other_names else "Montgomery"
    return _replaced(match, other)


def _near_name(passage: Passage) -> str | None:
    match = _any(passage, _NAME)
    if match is None:
        return None
    offset = passage.random.randrange(1, len(match[0]))
    if match[0][offset] == "_":
        return None
    letter = passage.random.choice([c for c in "aeiounrstlm" if c != match[0][offset].lower()])
    name = match[0][:offset] + letter + match[0][offset + 1 :]
    return _replaced(match, name)


def _near_word(passage: Passage) -> str | None:
    matches = [
        match
        for match in _WORD.finditer(passage.quote)
        if len(match[0]) >= 4 and match[0].islower()
    ]
    passage.random.shuffle(matches)
    for match in matches:
        near = [word for word in passage.source.vocabulary if _one_letter_apart(match[0], word)]
        if near:
            return _replaced(match, passage.random.choice(near))
    return None


def _one_letter_apart(word: str, other: str) -> bool:
    """Return whether two words differ in one letter, and are not forms of one word."""
    if len(word) != len(other) or word[0] != other[0] or word[:-2] == other[:-2]:
        return False
    return sum(a != b for a, b in zip(word, other, strict=True)) == 1


def _other_words(count: int) -> Edit:
    """Return an edit that replaces some words by other words of the trace."""

    def edit(passage: Passage) -> str | None:
        matches = _content_words(passage)
        if len(matches) < count:
            return None
        text = passage.quote
        chosen = passage.random.sample(matches, count)
        for match in sorted(chosen, key=lambda match: -match.start()):
            other = _other_word(passage, match[0])
            if other is None:
                return None
            text = text[: match.start()] + other + text[match.end() :]
        return text

    return edit


def _added(passage: Passage) -> str | None:
    match = _inner_word(passage)
    other = _other_word(passage)
    if match is None or other is None:
        return None
    return f"{passage.quote[: match.start()]}{other} {passage.quote[match.start() :]}"


def _qualified(passage: Passage) -> str | None:
    match = _any(passage, _QUALIFIER)
    if match is None or match.start() < 8 or match.end() > len(passage.quote) - 8:
        return None
    return _replaced(match, "")


def _inner(passage: Passage, pattern: re.Pattern[str]) -> re.Match[str] | None:
    """Return a match that is not at an edge of the quote."""
    matches = [match for match in pattern.finditer(passage.quote) if _is_inner(passage, match)]
    return _choice(passage, matches)


def _opposite_left_out(passage: Passage) -> str | None:
    alternatives = "|".join(sorted(_OPPOSITE.keys() - {"and"}))
    pattern = re.compile(rf"(?<=[a-z] )(?:{alternatives})(?= [a-z])")
    return _without(passage, _inner(passage, pattern))


def _turned(passage: Passage) -> str | None:
    matches = _content_words(passage)
    if len(matches) < 2:
        return None
    first, second = sorted(passage.random.sample(matches, 2), key=lambda match: match.start())
    if first[0].lower() == second[0].lower():
        return None
    middle = passage.quote[first.end() : second.start()]
    turned = f"{second[0]}{middle}{first[0]}"
    return passage.quote[: first.start()] + turned + passage.quote[second.end() :]


def _elsewhere(passage: Passage) -> str | None:
    return passage.foreign(len(passage.quote))


def _stock(passage: Passage) -> str | None:
    word = _other_word(passage)
    phrase = passage.random.choice(_STOCK)
    return word and phrase.format(word)


_STOCK: Final = (
    "The tests for {} passed, so the task is complete.",
    "I was unable to verify the {} and will proceed anyway.",
    "Error: failed to load {} after three attempts",
    "As you asked, I have updated the {} without asking again.",
    "I will skip checking the {} because it is not needed",
    "Everything about {} looks good to me, let us finish here.",
)


def _made_up_middle(passage: Passage) -> str | None:
    quarter = len(passage.quote) // 4
    middle = passage.foreign(len(passage.quote) // 2)
    return f"{passage.quote[:quarter]} {middle} {passage.quote[-quarter:]}"


def _put_in(passage: Passage) -> str | None:
    half = passage.quote.find(" ", len(passage.quote) // 2)
    return (
        half > 0 and f"{passage.quote[:half]} {passage.foreign(60)}{passage.quote[half:]}"
    ) or None


def _in_the_middle(edit: Edit) -> Edit:
    """Return an edit of the middle third of a long quote."""

    def edited(passage: Passage) -> str | None:
        third = len(passage.quote) // 3
        first = passage.quote.find(" ", third)
        last = passage.quote.find(" ", 2 * third)
        if not 0 < first < last:
            return None
        middle = edit(replace(passage, quote=passage.quote[first:last]))
        return middle and passage.quote[:first] + middle + passage.quote[last:]

    return edited


def _stitched(least: int, most: int, sign: str, *, swapped: bool = False) -> Edit:
    """Return an edit that joins half of a quote and a text up to ``most`` characters later."""

    def edit(passage: Passage) -> str | None:
        half = passage.quote.find(" ", len(passage.quote) // 2)
        end = passage.start + len(passage.quote)
        second_start = end + passage.random.randint(least, most)
        second_text = passage.text[second_start : second_start + 90]
        second = re.search(r"\s(\S.*\S)\s", second_text, re.DOTALL)
        if half <= 0 or second is None or len(second[1].split()) < 5:
            return None
        halves = [passage.quote[:half], second[1]]
        return sign.join(reversed(halves) if swapped else halves)

    return edit


def _altered_part(passage: Passage) -> str | None:
    shortened = _left_out("…")(passage)
    if shortened is None:
        return None
    head, _, quote = shortened.partition(" … ")
    tail = replace(passage, quote=quote)
    other = _opposite(tail) or _number(tail)
    return other and f"{head} … {other}"


ALTERED: Final = (
    QuoteKind("a number changed", _number, only=_NUMBER.pattern),
    QuoteKind("a digit in a name changed", _digit_of_word, only=r"[A-Za-z_-]\d\b"),
    QuoteKind("a decimal point gone", _point, only=r"\d\.\d", check=False),
    QuoteKind("a negation put in", _negated, only=_VERB.pattern),
    QuoteKind("a negation taken out", _affirmed, only=_NEGATION.pattern),
    QuoteKind("the opposite of a word", _opposite),
    QuoteKind("another name", _name, only=_NAME.pattern),
    QuoteKind("one letter of a name", _near_name, only=_NAME.pattern),
    QuoteKind("one letter of a word", _near_word),
    QuoteKind("another word", _other_words(1)),
    QuoteKind("three other words", _other_words(3)),
    QuoteKind("a word put in", _added),
    QuoteKind("a qualifier left out", _qualified, only=_QUALIFIER.pattern),
    QuoteKind(
        "a number left out",
        lambda passage: _without(passage, _inner(passage, _NUMBER)),
        only=_NUMBER.pattern,
    ),
    QuoteKind(
        "a name left out",
        lambda passage: _without(passage, _inner(passage, _NAME)),
        only=_NAME.pattern,
    ),
    QuoteKind("a word with an opposite left out", _opposite_left_out),
    QuoteKind("two words turned", _turned),
    QuoteKind("words of another trace", _elsewhere),
    QuoteKind("a stock phrase", _stock),
    QuoteKind("long: a made-up middle", _made_up_middle, 500, 700),
    QuoteKind("long: words put in", _put_in, 400, 700),
    QuoteKind("long: a number changed", _in_the_middle(_number), 400, 700, r"\d"),
    QuoteKind("long: a negation put in", _in_the_middle(_negated), 400, 700),
    QuoteKind("long: the opposite of a word", _in_the_middle(_opposite), 400, 700),
)

STITCHED: Final = (
    QuoteKind("`A … B`, less than 2,000 apart", _stitched(100, 1_500, " … "), 80, 200, check=False),
    QuoteKind(
        "`A … B`, more than 2,000 apart", _stitched(2_100, 9_000, " … "), 80, 200, check=False
    ),
    QuoteKind("`B … A`", _stitched(100, 5_000, " … ", swapped=True), 80, 200, check=False),
    QuoteKind("`A B`, nothing between", _stitched(100, 5_000, " "), 80, 200),
    QuoteKind("`A … B`, B altered", _altered_part, 120, 280),
)

GROUPS: Final = {
    "honest": HONEST,
    "between": BETWEEN,
    "parts": PARTS,
    "altered": ALTERED,
    "stitched": STITCHED,
}
TITLES: Final = {
    "honest": "honest edits",
    "between": "between the two",
    "parts": "parts left out",
    "altered": "altered or made up",
    "stitched": "halves of different sentences",
}


def _changed(passage: Passage, text: str) -> str | None:
    return text if text != passage.quote and text.strip() else None


def _any(passage: Passage, pattern: re.Pattern[str]) -> re.Match[str] | None:
    return _choice(passage, list(pattern.finditer(passage.quote)))


def _replaced(match: re.Match[str], text: str) -> str:
    """Return the quote with another text for a match."""
    return match.string[: match.start()] + text + match.string[match.end() :]


def _choice(passage: Passage, matches: Sequence[re.Match[str]]) -> re.Match[str] | None:
    return passage.random.choice(matches) if matches else None


def _choice_of_words(passage: Passage, fits: Callable[[str], bool]) -> re.Match[str] | None:
    return _choice(passage, [match for match in _WORD.finditer(passage.quote) if fits(match[0])])


def _content_words(passage: Passage) -> list[re.Match[str]]:
    return [match for match in _WORD.finditer(passage.quote) if _is_content_word(match[0])]


def _inner_word(passage: Passage) -> re.Match[str] | None:
    matches = [match for match in _content_words(passage) if _is_inner(passage, match)]
    return _choice(passage, matches)


def _is_inner(passage: Passage, match: re.Match[str]) -> bool:
    """Return whether a match is not at an edge of the quote."""
    return match.start() > 8 and match.end() < len(passage.quote) - 8


def _is_content_word(word: str) -> bool:
    return len(word) >= 4 and not _FILLER.fullmatch(word)


def _other_word(passage: Passage, word: str = "") -> str | None:
    """Return a word of the trace that does not begin as this word."""
    for _ in range(_TRIES):
        text = passage.random.choice(passage.source.texts)
        words = list(filter(_is_content_word, _WORD.findall(text[:4_000])))
        if words:
            other: str = passage.random.choice(words).lower()
            if other[:4] != word.lower()[:4]:
                return other
    return None


def letters_of(text: str) -> str:
    """Return the letters and digits of a text, in lower case."""
    return "".join(filter(str.isalnum, text.casefold()))


# Drawing and counting


def texts_under(folder: Path) -> list[QuotedTrace]:
    """Return the traces under a folder with at least two long texts."""
    traces = []
    vocabulary: list[str] = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or "truth" in path.name or path.stat().st_size > _BIGGEST_FILE:
            continue
        if path.suffix not in (".json", ".jsonl", ".eval", ".traj"):
            continue
        for trace in read_file(path, True).traces[:_TRACES_OF_A_FILE]:
            read_fully(trace)
            view = RedactedView(trace, Redaction.none())
            texts = [view.text(index) for index in range(len(view))]
            if sum(len(text) > 200 for text in texts) >= 2:
                letters = letters_of("\0".join(texts))
                traces.append(QuotedTrace(trace, texts, letters, vocabulary))
    all_texts = (text for trace in traces for text in trace.texts)
    words = {word for text in all_texts for word in _WORD.findall(text[:20_000])}
    vocabulary += sorted(word for word in words if word.islower() and 4 <= len(word) <= 12)
    return traces


def _half_of(text: QuotedTrace, seed: int) -> str:
    """Return the name of the half that a trace belongs to."""
    number = sha256(f"{seed} {text.trace.identity.content_hash}".encode()).digest()[0]
    return "held-out" if number % 2 else "tuning"


def _draw_passage(
    source: QuotedTrace, traces: Sequence[QuotedTrace], random: Random, kind: QuoteKind
) -> Passage | None:
    """Draw a passage for a kind of edit, from the start of a word to the end of a word."""
    span = random.randrange(len(source.texts))
    text = source.texts[span]
    length = random.randint(kind.shortest, kind.longest)
    if len(text) < length:
        return None
    start = random.randrange(len(text) - length + 1)
    if kind.only is not None:
        offsets = [match.start() for match in re.finditer(kind.only, text)][:2_000]
        if not offsets:
            return None
        start = max(0, random.choice(offsets) - random.randrange(5, length - 5))
    end = min(start + length, len(text))
    while 0 < start < end and not text[start - 1].isspace():
        start += 1
    while start < end < len(text) and not text[end].isspace():
        end -= 1
    quote = text[start:end].strip()
    if len(quote) < kind.shortest // 2 or sum(map(str.isalpha, quote)) < len(quote) // 3:
        return None
    if len(quote.split()) < 5:
        return None
    return Passage(source, traces, span, text.find(quote, start), quote, random)


@dataclass(slots=True)
class QuoteTally:
    """The results of the check on one kind of quotes, and how many located the passage."""

    counts: QuoteCounts = field(default_factory=QuoteCounts)
    right: int = 0

    def as_json(self) -> dict[str, int]:
        values = {name: getattr(self.counts, name) for name in KINDS}
        return {
            "n": self.counts.all,
            "found": self.counts.found,
            **values,
            "right": self.right,
        }


@dataclass(frozen=True, slots=True)
class QuoteCase:
    """A quote with its passage, the result of the check, and the text at the located range."""

    group: str
    kind: str
    quote: str
    source: str
    result: str
    located: str


def cases(
    texts: Sequence[QuotedTrace], kind: QuoteKind, count: int, seed: int
) -> Iterator[tuple[Passage, str]]:
    """Yield passages and their edited quotes.

    Args:
        texts: The traces.
        kind: The kind of edit.
        count: The greatest number of quotes.
        seed: The seed of the draws.
    """
    random = Random(f"{seed} {kind.name}")
    order = list(texts)
    random.shuffle(order)
    made = 0
    for turn in range(count * _TRIES):
        if made == count or not order:
            return
        passage = _draw_passage(order[turn % len(order)], texts, random, kind)
        quote = kind.edit(passage) if passage is not None else None
        if passage is not None and quote is not None:
            made += 1
            yield passage, quote


def measure(
    texts: Sequence[QuotedTrace], count: int, seed: int
) -> tuple[dict[str, dict[str, QuoteTally]], list[QuoteCase]]:
    """Check quotes of every kind.

    Args:
        texts: The traces.
        count: The greatest number of quotes of each kind.
        seed: The seed of the draws.

    Returns:
        The tallies by group and kind, and all cases.
    """
    tallies: dict[str, dict[str, QuoteTally]] = {}
    checked = []
    for group, kinds in GROUPS.items():
        for kind in kinds:
            tally = tallies.setdefault(group, {})[kind.name] = QuoteTally()
            for passage, quote in cases(texts, kind, count, seed):
                is_false = group in ("altered", "stitched") and kind.check
                # An altered quote may be in the trace elsewhere.
                if not is_false or letters_of(quote) not in passage.source.letters:
                    checked.append(_check(tally, group, kind.name, passage, quote))
    return tallies, checked


def _evidence(quote: str, location: QuoteLocation | None) -> Evidence:
    """Return the evidence of a finding with a quote at a location."""
    if location is None:
        return Evidence(key=None, quote=quote)
    return Evidence(
        key=str(location.index),
        quote=quote,
        char_start=location.match_range.start,
        char_end=location.match_range.end,
        match=location.match_range.match,
    )


def _check(tally: QuoteTally, group: str, kind: str, passage: Passage, quote: str) -> QuoteCase:
    """Locate a quote, in half of the cases with a wrong span number, and count the result."""
    texts = passage.source.texts
    span = passage.span
    if passage.random.random() < 0.5:
        span = min(max(span + passage.random.choice((-3, -2, -1, 1, 2, 3)), 0), len(texts) - 1)
    location = passage.source.locator.locate(quote, (span, span))
    counts = QuoteCounts.count([_evidence(quote, location)])
    tally.counts += counts
    located = ""
    if location is not None:
        located = texts[location.index][location.match_range.start : location.match_range.end]
        located_letters = letters_of(located)
        source_letters = letters_of(passage.quote)
        tally.right += located_letters in source_letters or source_letters in located_letters
    result = next(name for name in KINDS if getattr(counts, name))
    return QuoteCase(group, kind, quote, passage.quote, result, located)


def _accepted_share(tallies: dict[str, QuoteTally]) -> float:
    """Return the share of a group's quotes that the check accepts."""
    counts = sum((tally.counts for tally in tallies.values()), QuoteCounts())
    return counts.found / counts.all if counts.all else 0.0


def rows_of(tallies: dict[str, dict[str, QuoteTally]]) -> Iterator[tuple[object, ...]]:
    """Yield the rows of the table in docs/simulations/quotes.csv, its header first."""
    yield "group", "edit", "quotes", "found", *KINDS
    for group, kinds in tallies.items():
        for name, tally in kinds.items():
            counts = tally.counts
            if counts.all:
                by_kind = [getattr(counts, kind) for kind in KINDS]
                edit = name.replace("`", "")
                yield TITLES[group], edit, counts.all, counts.found, *by_kind


def _print_misses(checked: Sequence[QuoteCase]) -> None:
    """Print the rejected honest quotes and the accepted altered quotes."""
    accepted = ("exact", "spacing", "reworded")
    for case in checked:
        right_results = accepted if case.group != "parts" else ("in_parts", *accepted)
        is_honest = case.group in ("honest", "parts")
        if case.group != "between" and (case.result in right_results) != is_honest:
            print(f"\n{case.group} · {case.kind} · {case.result}")
            print(f"  quote  {case.quote!r}\n  source {case.source!r}\n  shown  {case.located!r}")


def main(arguments: list[str]) -> None:
    """Print the figures of one half of the traces."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--half", choices=("held-out", "tuning"), default="held-out")
    parser.add_argument("--seed", type=int, default=11, help="of halves, passages and edits")
    parser.add_argument("--per-kind", type=int, default=60, help="quotes of each kind")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--misses", action="store_true", help="print wrong results")
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="a folder of traces")
    options = parser.parse_args(arguments)
    folder = options.corpus if options.corpus.is_dir() else SAMPLES
    texts = [text for text in texts_under(folder) if _half_of(text, options.seed) == options.half]
    tallies, checked = measure(texts, options.per_kind, options.seed)
    if options.json:
        document = {
            "half": options.half,
            "traces": len(texts),
            "groups": {
                group: {
                    "found_share": _accepted_share(kinds),
                    "kinds": {name: tally.as_json() for name, tally in kinds.items()},
                }
                for group, kinds in tallies.items()
            },
        }
        print(json.dumps(document, indent=2, ensure_ascii=False))
        return
    csv.writer(sys.stdout, lineterminator="\n").writerows(rows_of(tallies))
    if options.misses:
        _print_misses(checked)


if __name__ == "__main__":
    main(sys.argv[1:])
