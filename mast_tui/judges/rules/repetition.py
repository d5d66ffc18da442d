"""1.3 Step repetition: the same call again without a change in between."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from mast_tui.judges.rules.effects import Effect
from mast_tui.judges.rules.walk import Call, Walk, answer_of
from mast_tui.labels import Finding

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
    again: list[Call] = field(default_factory=list)
    waits: int = 0
    doubts: int = 0
    exact: bool = True
    moving: bool = False

    @property
    def last(self) -> Call:
        return self.again[-1] if self.again else self.first


@dataclass(slots=True)
class _Memory:
    """What has been asked since the world last changed."""

    after_change: bool = False
    doubts: int = 0
    chains: dict[tuple[str, str, frozenset[str]], list[_Chain]] = field(
        default_factory=lambda: defaultdict(list)
    )


def find(walk: Walk) -> Iterator[Finding]:
    """Suggest every chain of repeated calls."""
    for chain in _chains(walk):
        if (finding := _finding_of_chain(walk, chain)) is not None:
            yield finding


def _chains(walk: Walk) -> list[_Chain]:
    memory = _Memory()
    chains: list[_Chain] = []
    waited = False
    before: Call | None = None
    for call in walk.calls:
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
    chain.exact = chain.exact and plain == chain.plain
    chain.again.append(call)


def _finding_of_chain(walk: Walk, chain: _Chain) -> Finding | None:
    times = len(chain.again)
    if times < (_FEWEST_IN_A_ROW if chain.moving else 1):
        return None
    confidence = min(0.9, 0.6 + 0.15 * times) - 0.1 * min(chain.doubts, 3)
    confidence -= 0.15 * (chain.answer is None) + 0.1 * (not chain.exact) + 0.25 * chain.moving
    if confidence < _LEAST_CONFIDENCE:
        return None
    alike = "the same call" if chain.exact else "nearly the same call"
    numbers = ", ".join(call.step.number for call in chain.again[:6])
    answer = "with no result shown" if chain.answer is None else "with the same answer"
    if chain.moving:
        answer = "without a wait, and the answers differ only in their numbers"
    return walk.finding(
        MODE,
        (chain.again[0].index, chain.again[-1].last_index),
        chain.again[0].quote(),
        f"{numbers}{' …' if times > 6 else ''}: {alike} as {chain.first.step.number}, {answer}; "
        f"nothing was changed in between ({_times(times)}).",
        confidence,
    )


def _times(times: int) -> str:
    return "once more" if times == 1 else f"{times} times more"
