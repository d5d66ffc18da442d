"""1.3 Step repetition: the same call again without a change in between."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from mast_tui.judges.rules.effects import Effect
from mast_tui.judges.rules.walk import Call, Walk, answer_of, is_output
from mast_tui.labels import Finding
from mast_tui.traces.model import Role

MODE: Final = "step_repetition"

_ALIKE: Final = 85.0
"""Similarity of two commands with the same names in them from which they count as nearly equal."""

_LOOK_BACK: Final = 12
_FAIR_WAITS: Final = 2
"""So many repetitions after waiting are fair while a change may still take effect."""

_SAME_BUT_NUMBERS: Final = 90.0
"""Similarity of two answers without their numbers from which they tell the same story."""

_FEWEST_IN_A_ROW: Final = 2
_LONG_PAUSE: Final = 45.0
"""Seconds between two calls that count as waiting."""

# How output is cut or shown, and comments, make no other question of a command.
_PRESENTATION: Final = re.compile(
    r"\|\s*(?:head|tail|less|cat)\b(?:\s+-\w*\s*\d*)?|--(?:tail|limit|max-count)[ =]\d+"
    r"|-o[ =]?(?:wide|name)\b|2>&1|2>/dev/null|--no-(?:headers|pager)|--color\S*"
    r"|\bsleep\s+[\d.]+\w?\s*(?:&&|;)|(?m:^\s*#[^\n]*)"
)
_WAITING: Final = re.compile(r"\bsleep\s+[\d.]+|--timeout[ =]|\bwatch\b|\bwait\b")
_NAME: Final = re.compile(r"[A-Za-z0-9_.#/:@-]*[A-Za-z0-9_]")
_SPACE: Final = re.compile(r"[\s\"'`]+")
_DIGITS: Final = re.compile(r"\d+(?:\.\d+)?")
_LEAST_CONFIDENCE: Final = 0.5


@dataclass(slots=True)
class _Chain:
    """Calls that repeat each other with the same answer and nothing changed between.

    ``waits`` counts the fair ones among them, ``doubts`` the calls between of which nobody
    knows what they do. In a ``moving`` chain the answers differ in their numbers; such calls
    stand in a row, with no wait and nothing else between.
    """

    first: Call
    plain: str
    answer: str | None
    seen_doubts: int
    fair: bool
    watches: bool
    exact: list[Call] = field(default_factory=list)
    alike: list[Call] = field(default_factory=list)
    waits: int = 0
    doubts: int = 0
    moving: bool = False

    @property
    def again(self) -> list[Call]:
        """All repetitions in their order: those to the letter (``exact``), and the others."""
        return sorted([*self.exact, *self.alike], key=lambda call: call.index)

    @property
    def confidence(self) -> float:
        """How sure it is that the repetitions brought nothing."""
        confidence = min(0.9, 0.6 + 0.15 * len(self.again)) - 0.1 * min(self.doubts, 3)
        near = not self.exact and not self.moving
        return confidence - 0.15 * (self.answer is None) - 0.25 * self.moving - 0.1 * near

    @property
    def last(self) -> Call:
        again = self.again
        return again[-1] if again else self.first


@dataclass(slots=True)
class _Memory:
    """What has been asked since the world last changed."""

    after_change: bool = False
    doubts: int = 0
    chains: dict[tuple[str, str, frozenset[str]], list[_Chain]] = field(
        default_factory=lambda: defaultdict(list)
    )


def find_same(walk: Walk) -> Iterator[Finding]:
    """Suggest the calls that were made before, word for word, and had the same answer then."""
    again = [
        (call, chain)
        for chain in _chains(walk)
        if not chain.moving and chain.answer is not None
        for call in chain.exact
    ]
    yield from _findings(walk, again, "with the same answer")


def find_similar(walk: Walk) -> Iterator[Finding]:
    """Suggest calls that are nearly a former one, or whose answers differ in numbers only."""
    chains = _chains(walk)
    moving = [c for c in chains if c.moving and len(c.again) >= _FEWEST_IN_A_ROW]
    unanswered = [c for c in chains if not c.moving and c.answer is None]
    alike = [c for c in chains if not c.moving and c.answer is not None]
    yield from _findings(
        walk,
        [(call, chain) for chain in moving for call in chain.again],
        "without a wait, and the answers differ in numbers only",
    )
    yield from _findings(
        walk,
        [(call, chain) for chain in unanswered for call in chain.again],
        "with no result shown",
    )
    yield from _findings(
        walk,
        [(call, chain) for chain in alike for call in chain.alike],
        "with the same answer",
    )


def _chains(walk: Walk) -> list[_Chain]:
    memory = _Memory()
    chains: list[_Chain] = []
    waited = False
    before: Call | None = None
    requests = deque(_requests(walk))
    for call in walk.calls:
        while requests and requests[0] < call.index:
            requests.popleft()
            _ask_anew(memory)
        waited = waited or _WAITING.search(call.command) is not None or _paused(before, call)
        if not call.works:
            continue
        plain = _SPACE.sub(" ", _PRESENTATION.sub(" ", call.command)).strip()
        answer = answer_of(call.result) if call.result is not None else None
        key = (call.agent, call.tool, frozenset(_NAME.findall(plain)))
        in_a_row = before if not waited else None
        chain = _chain_for(memory.chains[key], plain, answer, in_a_row)
        if chain is not None:
            chain.answer = answer
            _go_on(chain, call, plain, memory.doubts, waited)
        if call.changed:
            # From here on everything may be asked again; the same change once more is no change.
            memory = _Memory(after_change=True)
        if chain is None:
            watches = memory.after_change and before is not None and before.changed
            chain = _Chain(call, plain, answer, memory.doubts, memory.after_change, watches)
            chains.append(chain)
        memory.chains[key].append(chain)
        memory.doubts += call.effect is Effect.UNKNOWN
        before, waited = call, False
    return chains


def _requests(walk: Walk) -> Iterator[int]:
    """Where a person says something new; what a harness says again and again is nothing new."""
    results = {call.result.index for call in walk.calls if call.result is not None}
    said: set[str] = set()
    for step in walk.steps:
        if step.span.role is not Role.USER or step.index in results or is_output(step):
            continue
        words = " ".join(step.text.split())
        if words not in said:
            said.add(words)
            yield step.index


def _ask_anew(memory: _Memory) -> None:
    """Let everything be looked up again: somebody has asked for something. What is done again
    without need stays a repetition."""
    for key, chains in list(memory.chains.items()):
        memory.chains[key] = [one for one in chains if one.first.effect is Effect.CHANGES]


def _paused(before: Call | None, call: Call) -> bool:
    """Whether the source's clock shows a wait between two calls."""
    if before is None or before.step.span.start is None or call.step.span.start is None:
        return False
    return call.step.span.start - before.step.span.start > _LONG_PAUSE


def _chain_for(
    chains: list[_Chain], plain: str, answer: str | None, in_a_row: Call | None
) -> _Chain | None:
    """The chain that a call goes on with, taken out of ``chains``.

    Where the answer has changed, the old chain ends: it was worth asking again. Only where the
    call before, ``in_a_row``, asked the same a moment ago, a change of numbers alone is none.
    """
    from rapidfuzz import fuzz

    for chain in reversed(chains[-_LOOK_BACK:]):
        if plain == chain.plain or fuzz.ratio(plain, chain.plain) >= _ALIKE:
            chains.remove(chain)
            if chain.answer == answer:
                return chain
            moves = chain.last is in_a_row and not chain.watches
            if moves and _differ_in_numbers(chain.answer, answer):
                chain.moving = True
                return chain
            return None
    return None


def _differ_in_numbers(one: str | None, other: str | None) -> bool:
    from rapidfuzz import fuzz

    if one is None or other is None:
        return False
    return fuzz.ratio(_DIGITS.sub("0", one), _DIGITS.sub("0", other)) >= _SAME_BUT_NUMBERS


def _go_on(chain: _Chain, call: Call, plain: str, doubts: int, waited: bool) -> None:
    if waited and chain.fair and not chain.again and chain.waits < _FAIR_WAITS:
        chain.waits += 1
        return
    chain.doubts += doubts - chain.seen_doubts
    chain.seen_doubts = doubts
    (chain.exact if plain == chain.plain else chain.alike).append(call)


def _findings(walk: Walk, again: Iterable[tuple[Call, _Chain]], answer: str) -> Iterator[Finding]:
    """A finding for each block of repetitions that follow each other, with no other work between.

    Two questions that are asked in turns, again and again, are one block.
    """
    sure = [(call, chain) for call, chain in again if chain.confidence >= _LEAST_CONFIDENCE]
    for block in _blocks(walk, sorted(sure, key=lambda one: one[0].index)):
        calls = [call for call, _ in block]
        first = list(dict.fromkeys(chain.first.step.number for _, chain in block))
        numbers = ", ".join(call.step.number for call in calls[:6])
        more = " …" if len(calls) > 6 else ""
        of_all = len(block[0][1].again)
        to_the_letter = all(any(call is one for one in chain.exact) for call, chain in block)
        what = "the same call" if to_the_letter else "nearly the same call"
        times = f"{len(calls)} calls" if len(first) > 1 else _times(len(calls), of_all)
        yield walk.finding(
            MODE,
            (calls[0].index, calls[-1].last_index),
            calls[0].quote(),
            f"{numbers}{more}: {what} as {', '.join(first[:6])}, {answer}; nothing was changed in "
            f"between ({times}).",
            max(chain.confidence for _, chain in block),
        )


def _blocks(walk: Walk, again: Iterable[tuple[Call, _Chain]]) -> list[list[tuple[Call, _Chain]]]:
    blocks: list[list[tuple[Call, _Chain]]] = []
    for call, chain in again:
        if blocks and not walk.calls_between(blocks[-1][-1][0].index, call.index):
            blocks[-1].append((call, chain))
        else:
            blocks.append([(call, chain)])
    return blocks


def _times(times: int, of_all: int) -> str:
    told = "once more" if times == 1 else f"{times} times more"
    return told if times == of_all else f"{told} of {of_all}"
