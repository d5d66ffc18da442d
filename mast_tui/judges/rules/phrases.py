"""Patterns made of lists of phrases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mast_tui.judges.rules.steps import Quote, RuleStep
from mast_tui.judges.rules.walk import Walk
from mast_tui.labels import Finding


def any_of(*phrases: str) -> re.Pattern[str]:
    """Make a pattern that matches any of the phrases as whole words, in any case.

    A phrase is a regular expression. A space in it matches any white space, and ``'`` matches
    either apostrophe.
    """
    alternatives = "|".join(phrase.replace(" ", r"\s+").replace("'", "['’]") for phrase in phrases)
    return re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)", re.IGNORECASE)


def last_sentence(
    step: RuleStep, phrases: re.Pattern[str], *, without: re.Pattern[str] | None = None
) -> Quote | None:
    """Return the last of an agent's own sentences that contains one of the phrases, or None.

    Args:
        step: The step with the sentences.
        phrases: The phrases.
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
        phrases: The phrases; a sentence of the message must contain one of them.
        reason: The rest of the rationale, after the number of the message.
        confidence: The confidence of a finding.
        without: Phrases that the sentence must not contain.
        every: True to suggest each such message, not only the first.
    """

    mode: str
    phrases: re.Pattern[str]
    reason: str
    confidence: float
    without: re.Pattern[str] | None = None
    every: bool = False

    def __call__(self, walk: Walk) -> Iterator[Finding]:
        """Yield a finding on the first message with a phrase, or on all with ``every``."""
        for step in walk.steps:
            quote = last_sentence(step, self.phrases, without=self.without)
            if quote is None or not step.is_statement:
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
