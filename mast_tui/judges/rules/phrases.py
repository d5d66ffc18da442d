"""Phrases as patterns: lists of ways to say a thing, written almost as they are said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mast_tui.judges.rules.steps import Quote, Step


@dataclass(frozen=True, slots=True)
class Phrases:
    """A pattern, and a cheap one that is found wherever the first is: most sentences fail it."""

    pattern: re.Pattern[str]
    hint: re.Pattern[str] | None

    def search(self, text: str) -> re.Match[str] | None:
        """The first match in the text, or None."""
        if self.hint is not None and self.hint.search(text.lower()) is None:
            return None
        return self.pattern.search(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """All matches in the text, in order."""
        if self.hint is None or self.hint.search(text.lower()) is not None:
            yield from self.pattern.finditer(text)


def any_of(*phrases: str, hint: str | None = None) -> Phrases:
    """A pattern that finds any of the phrases as whole words, in any case.

    A phrase is a regular expression in which a space stands for any white space and ``'`` for
    either apostrophe. ``hint`` is a plain expression for the lower-case text: parts of which
    every phrase has one.
    """
    either = "|".join(phrase.replace(" ", r"\s+").replace("'", "['’]") for phrase in phrases)
    return Phrases(
        re.compile(rf"(?<!\w)(?:{either})(?!\w)", re.IGNORECASE),
        re.compile(hint) if hint is not None else None,
    )


def last_sentence(step: Step, wanted: Phrases, *, without: Phrases | None = None) -> Quote | None:
    """The last sentence of the agent's own words with a phrase and without another, or None."""
    found = None
    for start, sentence in step.sentences:
        if wanted.search(sentence) and not (without is not None and without.search(sentence)):
            found = step.quote(start, start + len(sentence))
    return found
