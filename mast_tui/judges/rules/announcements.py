"""What an agent says that it will do next, or that it will not do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mast_tui.judges.rules.commands import words
from mast_tui.judges.rules.phrases import any_of
from mast_tui.judges.rules.steps import Quote, Step

_FIRST: Final = (
    "(?:(?:now|first|then|just|quickly|also|simply|next|therefore|instead|try to|start by"
    "|begin by) )*"
)
_ANNOUNCED: Final = any_of(
    r"(?:I'll|I will|(?:I'm|I am) going to|let me|let's|we'll|we will|next step is to|now I) "
    rf"{_FIRST}"
    r"(?P<verb>[a-z]+)(?P<about>[^;!?\n]*)",
    rf"(?:I'm|I am) {_FIRST}(?P<doing>[a-z]+ing)(?P<about2>[^;!?\n]*)",
)
_CONDITION: Final = any_of(
    r"if|once|when|after|until|unless|before|then|would|could|might|later|finally|eventually"
    r"|in case"
)
"""What makes of an announcement one for later, or for a case that may not come."""

_REFUSED: Final = any_of(
    r"(?:I|we|let's|I'll|we'll) (?:(?:will|must|should|shall) )?(?:not|won't|mustn't|shouldn't) "
    r"(?P<verb>[a-z]+)(?P<about>[^.;!?\n]*)",
)

LOOKING: Final = words(
    "check look inspect read examine list get query view fetch search count compare"
    " verify describe tail review gather collect find investigate observe"
)
CHANGING: Final = words(
    "restart delete patch apply scale roll rollback revert edit write fix update set remove"
    " increase decrease raise lower disable enable flush purge drain cordon cancel refund"
    " exchange return book create send modify change stop kill deploy reset bump touch"
    " mitigate adjust"
)
CALLING: Final = words("run call use execute invoke")
WORKING_VERBS: Final = LOOKING | CHANGING | CALLING
"""Verbs of work: to 'wait', 'explain' or 'end' is not to take a step."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """A step that an agent says it will take (or, ``refused``, will not take) next.

    ``verb`` is in lower case and without ``-ing``, ``about`` the rest of the sentence.
    """

    quote: Quote
    verb: str
    about: str
    refused: bool = False


def announcements(step: Step) -> list[Announcement]:
    """What the agent says that it will or will not do, in the order of the text."""
    found = []
    for start, sentence in step.spoken:
        for match in _ANNOUNCED.finditer(sentence):
            if _CONDITION.search(sentence[: match.start()]):
                continue
            verb = match["verb"] or _stem(match["doing"])
            if verb.lower() not in ("not", "never", "know", "see"):
                quote = step.quote(start + match.start(), start + match.end())
                about = match["about"] or match["about2"] or ""
                found.append(Announcement(quote, verb.lower(), about))
        for match in _REFUSED.finditer(sentence):
            quote = step.quote(start + match.start(), start + match.end())
            found.append(Announcement(quote, match["verb"].lower(), match["about"], refused=True))
    return found


def _stem(doing: str) -> str:
    """The verb of an ``-ing`` form, among the verbs of work: ``running`` is ``run``."""
    stem = doing[:-3].lower()
    for verb in (stem, f"{stem}e", stem[:-1]):
        if verb in WORKING_VERBS:
            return verb
    return stem
