"""Statements of an agent about its work: finished, verified, given up, and announced steps.

Each is recognised in a single sentence, so that 'the task is done' and 'once it is done' differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mast_tui.judges.rules.commands import word_set
from mast_tui.judges.rules.walk import Quote, RuleStep, Walk
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


_WORK: Final = (
    "(?:task|incident|outage|issue|problem|request|work|investigation|diagnosis|analysis|report|job"
    "|goal|objective|migration|rollout|fix|order|case|implementation|project|solution|review"
    "|everything|all)"
)
_BE: Final = "(?:is|are|was|were|has been|have been)"
_HAVE: Final = "(?:(?:I|we)(?:'ve| have)?)"
_HOW: Final = (
    "(?:(?:now|fully|successfully|already|all|therefore|thus|also|both|completely|finally) )*"
)
_ENDED: Final = "(?:completed?|done|finished|resolved|fixed|closed|solved|mitigated|over|delivered)"

_FINISHED: Final = any_of(
    rf"{_WORK}(?:[^.!?\n]{{0,60}}?) {_BE} {_HOW}{_ENDED}",
    rf"\A\W*[^.!?\n]{{1,80}}? {_BE} {_HOW}(?:resolved|fixed|solved|mitigated|all done)",
    rf"{_HAVE} {_HOW}(?:completed|finished|resolved|solved|fixed)",
    r"(?:I am|I'm|we are|we're) (?:all )?(?:done|finished)",
    r"all set",
    r"no (?:further|more|other) (?:actions?|work|steps?|changes?) (?:(?:is|are) )?"
    r"(?:needed|required|necessary)",
    r"nothing (?:else|more|further|left)(?:[^.!?\n]{0,30}) (?:needed|required|(?:to|be) do(?:ne)?)",
    rf"(?:this|that) (?:concludes|completes|closes) (?:the|my|our|this) (?:\w+ )?{_WORK}",
    r"(?-i:TERMINATE)",
)
_BARE_DONE: Final = any_of(
    rf"\A\W*(?:(?:{_WORK}|<INFO>|all) )?{_HOW}(?:done|finished|completed?|resolved|solved|fixed)"
    r"(?=\W*\Z|[:,—-])",
    r"\A\W*final answer",
)
_GOOD: Final = (
    "(?:healthy|restored|recovered|normal|up and running|working|operational|stable|valid|correct"
    "|verified|confirmed|validated|in place|cleared|successful|green|complete)"
)
_WORKS: Final = any_of(
    rf"{_BE} {_HOW}(?:back (?:to )?)?{_GOOD}",
    r"successfully \w+ed",
    r"works|passes|succeeds|recovered|verified",
    r"(?:all )?(?:tests|checks) (?:now )?pass(?:ed)?",
    rf"{_HAVE} (?:\w+ )?(?:verified|confirmed|validated|checked)",
    r"back to normal",
)
_QUALIFIED: Final = any_of(
    r"not|never|cannot|\w+n't|no longer sure|once|if|when|whether|until|unless|should|would|could"
    r"|may|might|will|\w+'ll|shall|going to|(?:needs?|has|have) to|must|before|almost|nearly"
    r"|partly|partially|except|but|however|although|assuming|expected|to be|remaining|after"
    r"|make sure|ensure|please|only|yet",
    r"[^?]*\?\W*\Z",
)
_PLANS_MORE: Final = any_of(
    r"let(?: me|'s)|next|(?:I|we)(?:'ll| will)|going to|now (?:I|we|to|for)|remaining"
    r"|still (?:need|have)|then I|before (?:I|closing|finishing)|to do",
)
_ACHIEVE: Final = (
    "(?:complete|continue|proceed|resolve|fix|determine|identify|find|finish|solve|access|reach"
    "|bring|go further)"
)
_GIVES_UP: Final = any_of(
    rf"(?:I|we) (?:(?:am|was|are|were) )?(?:not able|unable) to {_ACHIEVE}",
    rf"(?:I|we) (?:cannot|can't|could not|couldn't) {_ACHIEVE}",
    r"giv(?:e|ing) (?:it )?up",
    r"I(?:'ll| will)? (?:stop|end|leave (?:it|this)) (?:here|there|at (?:this|that))",
    r"out of (?:ideas|options)",
    r"leav(?:e|ing) (?:it|this) (?:here|as (?:it )?is|open)",
    r"stopping here",
)
_OPEN: Final = any_of(
    r"(?:is|are|has|have) (?:still )?not (?:yet )?(?:been )?(?:resolved|fixed|recovered|completed?"
    r"|done|finished|confirmed|solved|identified|verified)",
    r"(?:still|remains?) (?:un\w+ed|open|failing|fails|broken|down|firing|erroring|crash\w*|pending"
    r"|above|elevated|high|unavailable|unhealthy|unknown|missing|degraded|red|stuck|not \w+)",
    r"(?:further|more|additional) (?:investigation|work|debugging|analysis|time) (?:is|are|will be"
    r"|would be|may be) (?:needed|required|necessary)",
    r"(?:hasn't|has not) (?:recovered|cleared|helped|changed|come back)",
)

_SOON: Final = (
    "(?:(?:now|first|then|just|quickly|also|simply|next|therefore|instead|try to|start by"
    "|begin by) )*"
)
_ANNOUNCED: Final = any_of(
    r"(?:I'll|I will|(?:I'm|I am) going to|let me|let's|we'll|we will|next step is to|now I) "
    rf"{_SOON}"
    r"(?P<verb>[a-z]+)[^;!?\n]*",
    rf"(?:I'm|I am) {_SOON}(?P<doing>[a-z]+)ing[^;!?\n]*",
)
_CONDITION: Final = any_of(
    r"if|once|when|after|until|unless|before|then|would|could|might|later|finally|eventually"
    r"|in case"
)
"""Words that make an announcement conditional or later."""

_WORKING_VERBS: Final = word_set(
    "check look inspect read examine list get query view fetch search count compare verify describe"
    " tail review gather collect find investigate observe"
    " restart delete patch apply scale roll rollback revert edit write fix update set remove"
    " increase decrease raise lower disable enable flush purge drain cordon cancel refund"
    " exchange return book create send modify change stop kill deploy reset bump touch"
    " mitigate adjust run call use execute invoke"
)
"""Verbs of work. Others, such as 'wait', 'explain' or 'end', announce no step."""


def _finished_sentence(step: RuleStep) -> Quote | None:
    """Return the last sentence that calls the work finished, or None.

    A bare 'Done' counts as the last or first sentence.
    """
    quote = last_sentence(step, _FINISHED, without=_QUALIFIED)
    if quote is not None or not step.sentences:
        return quote
    for start, sentence in (step.sentences[-1], step.sentences[0]):
        if _BARE_DONE.search(sentence):
            return step.quote(start, start + len(sentence))
    return None


def says_finished(step: RuleStep) -> bool:
    """Check whether a step calls the whole work finished and plans no more work."""
    return _finished_sentence(step) is not None and not _PLANS_MORE.search(step.own_text)


def claims_success(step: RuleStep) -> Quote | None:
    """Return the last sentence that claims that the work is finished, works, or was verified."""
    return _finished_sentence(step) or last_sentence(step, _WORKS, without=_QUALIFIED)


def gives_up(step: RuleStep) -> Quote | None:
    """Return the last sentence in which the agent gives up."""
    return last_sentence(step, _GIVES_UP)


def leaves_open(step: RuleStep) -> Quote | None:
    """Return the last sentence that calls the problem unsolved or the work incomplete."""
    return last_sentence(step, _OPEN)


def announces_step(step: RuleStep) -> Quote | None:
    """Return the last words that announce a next step of work.

    An announcement under a condition or for later does not count.
    """
    quote = None
    for start, sentence in step.sentences:
        for match in _ANNOUNCED.finditer(sentence):
            stem = match["doing"]
            # ``check`` for checking, ``make`` for making, ``run`` for running.
            verbs = (match["verb"],) if stem is None else (stem, f"{stem}e", stem[:-1])
            is_work = any(verb.lower() in _WORKING_VERBS for verb in verbs)
            if is_work and not _CONDITION.search(sentence[: match.start()]):
                quote = step.quote(start + match.start(), start + match.end())
    return quote
