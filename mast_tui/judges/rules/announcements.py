"""What an agent says that it will do next, or that it will not do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mast_tui.judges.rules.phrases import any_of
from mast_tui.judges.rules.steps import Quote, Step, sentences

_FIRST: Final = "(?:(?:now|first|then|just|quickly|also|simply|next|therefore|instead|try to|start by|begin by) )*"
_ANNOUNCED: Final = any_of(
    rf"(?:I'll|I will|(?:I'm|I am) going to|let me|let's|we'll|we will|next step is to|now I) {_FIRST}"
    r"(?P<verb>[a-z]+)(?P<about>[^;!?\n]*)",
    rf"(?:I'm|I am) {_FIRST}(?P<doing>[a-z]+ing)(?P<about2>[^;!?\n]*)",
)
_REFUSED: Final = any_of(
    r"(?:I|we|let's|I'll|we'll) (?:(?:will|must|should|shall) )?(?:not|won't|mustn't|shouldn't) "
    r"(?P<verb>[a-z]+)(?P<about>[^.;!?\n]*)",
)


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
    for start, sentence in sentences(step):
        for match in _ANNOUNCED.finditer(sentence):
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
    """The verb of an ``-ing`` form, as far as spelling tells: ``running`` is ``run``."""
    stem = doing[:-3]
    if len(stem) > 2 and stem[-1] == stem[-2] and stem[-1] not in "ls":
        return stem[:-1]
    return stem
