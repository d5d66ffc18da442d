"""Phrases as patterns: lists of ways to say a thing, written almost as they are said."""

from __future__ import annotations

import re

from mast_tui.judges.rules.steps import Quote, Step, sentences


def any_of(*phrases: str) -> re.Pattern[str]:
    """A pattern that finds any of the phrases as whole words, in any case.

    A phrase is a regular expression in which a space stands for any white space and ``'`` for
    either apostrophe.
    """
    either = "|".join(phrase.replace(" ", r"\s+").replace("'", "['’]") for phrase in phrases)
    return re.compile(rf"(?<!\w)(?:{either})(?!\w)", re.IGNORECASE)


def last_sentence(
    step: Step, wanted: re.Pattern[str], *, without: re.Pattern[str] | None = None
) -> Quote | None:
    """The last sentence of the agent's own words with a phrase and without another, or None."""
    found = None
    for start, sentence in sentences(step):
        if wanted.search(sentence) and not (without is not None and without.search(sentence)):
            found = step.quote(start, start + len(sentence))
    return found
