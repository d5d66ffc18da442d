"""Patterns made of lists of phrases, written nearly as they are read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mast_tui.judges.rules.steps import Quote, RuleStep, is_view
from mast_tui.judges.rules.walk import Walk, is_output
from mast_tui.labels import Finding


@dataclass(frozen=True, slots=True)
class Phrases:
    """A pattern, with a cheap pattern that most texts without a match fail.

    Attributes:
        pattern: The pattern.
        hint: The cheap pattern, which matches the lower case of each text with a match; or None.
    """

    pattern: re.Pattern[str]
    hint: re.Pattern[str] | None

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match in a text, or None."""
        if self.hint is not None and self.hint.search(text.lower()) is None:
            return None
        return self.pattern.search(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Yield all matches in a text, in order."""
        if self.hint is None or self.hint.search(text.lower()) is not None:
            yield from self.pattern.finditer(text)


def any_of(*phrases: str, hint: str | None = None) -> Phrases:
    """Make a pattern that matches any of the phrases as whole words, in any case.

    Args:
        phrases: Regular expressions, in which a space matches any white space and ``'`` either
            apostrophe.
        hint: A cheap expression that matches a part of every phrase in lower case.
    """
    alternatives = "|".join(phrase.replace(" ", r"\s+").replace("'", "['’]") for phrase in phrases)
    return Phrases(
        re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)", re.IGNORECASE),
        None if hint is None else re.compile(hint),
    )


def last_sentence(
    step: RuleStep, phrases: Phrases, *, without: Phrases | None = None
) -> Quote | None:
    """Return the last of an agent's own sentences with one of some phrases, or None.

    Args:
        step: The step with the sentences.
        phrases: The phrases; the sentence contains at least one of them.
        without: Phrases that the sentence must not contain.
    """
    for start, sentence in reversed(step.sentences):
        if phrases.search(sentence) and (without is None or not without.search(sentence)):
            return step.quote(start, start + len(sentence))
    return None


@dataclass(frozen=True, slots=True)
class Saying:
    """A rule that suggests messages with a phrase.

    Args:
        mode: The slug of the mode.
        phrases: The phrases, of which a sentence of the message has at least one.
        reason: The rest of the rationale, after the number of the message.
        confidence: The confidence of a finding.
        without: Phrases that the sentence does not have.
        every: True if each such message is suggested, not only the first.
    """

    mode: str
    phrases: Phrases
    reason: str
    confidence: float
    without: Phrases | None = None
    every: bool = False

    def __call__(self, walk: Walk) -> Iterator[Finding]:
        """Yield a finding on the first message of the run with a phrase, or every one."""
        for step in walk.steps:
            quote = last_sentence(step, self.phrases, without=self.without)
            if quote is None or not step.is_message or is_output(step) or is_view(step):
                continue
            yield walk.finding(
                self.mode,
                (step.index, step.index),
                quote,
                f"{step.number} {self.reason}",
                self.confidence,
            )
            if not self.every:
                return
