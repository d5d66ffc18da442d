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
"""The similarity of two commands with the same names from which they count as nearly equal."""

_LOOK_BACK: Final = 12
_FAIR_WAITS: Final = 2
"""The number of repetitions after a wait that are fair while a change may still take effect."""

_SAME_BUT_NUMBERS: Final = 90.0
"""The similarity of two answers, without their numbers, from which they count as the same."""

_FEWEST_IN_A_ROW: Final = 2
_LONG_PAUSE: Final = 45.0
"""The seconds between two calls that count as a wait."""

# Comments and the presentation of the output do not make it another command.
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
    """Calls that repeat each other with the same answer, without a change in between.

    ``waits`` counts the fair repetitions, ``doubts`` the calls of unknown effect in between. In a
    ``moving`` chain the answers differ in their numbers; its calls follow each other directly,
    without a wait.
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
    def repetitions(self) -> list[Call]:
        """All repetitions in their order, the exact ones and the nearly equal ones."""
        return sorted([*self.exact, *self.alike], key=lambda call: call.index)

    @property
    def confidence(self) -> float:
        """The confidence that the repetitions had no use."""
        confidence = min(0.9, 0.6 + 0.15 * len(self.repetitions)) - 0.1 * min(self.doubts, 3)
        only_alike = not self.exact and not self.moving
        return confidence - 0.15 * (self.answer is None) - 0.25 * self.moving - 0.1 * only_alike

    @property
    def last(self) -> Call:
        """The last call of the chain."""
        return max([*self.exact, *self.alike], key=lambda call: call.index, default=self.first)


@dataclass(slots=True)
class _Memory:
    """The chains of calls since the last change."""

    after_change: bool = False
    doubts: int = 0
    chains: dict[tuple[str, str, frozenset[str]], list[_Chain]] = field(
        default_factory=lambda: defaultdict(list)
    )


def find_same(walk: Walk) -> Iterator[Finding]:
    """Suggest the calls that repeat an earlier call exactly, with the same answer."""
    repetitions = [
        (call, chain)
        for chain in _chains(walk)
        if not chain.moving and chain.answer is not None
        for call in chain.exact
    ]
    yield from _findings(walk, repetitions, "with the same answer")


def find_similar(walk: Walk) -> Iterator[Finding]:
    """Suggest calls that nearly repeat an earlier one, or whose answers differ in numbers only."""
    chains = _chains(walk)
    moving = [
        chain for chain in chains if chain.moving and len(chain.repetitions) >= _FEWEST_IN_A_ROW
    ]
    unanswered = [chain for chain in chains if not chain.moving and chain.answer is None]
    alike = [chain for chain in chains if not chain.moving and chain.answer is not None]
    yield from _findings(
        walk,
        [(call, chain) for chain in moving for call in chain.repetitions],
        "without a wait, and the answers differ in numbers only",
    )
    yield from _findings(
        walk,
        [(call, chain) for chain in unanswered for call in chain.repetitions],
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
    previous: Call | None = None
    requests = deque(_requests(walk))
    for call in walk.calls:
        while requests and requests[0] < call.index:
            requests.popleft()
            _forget_reads(memory)
        waited = waited or _WAITING.search(call.command) is not None or _paused(previous, call)
        if not call.works:
            continue
        plain = _SPACE.sub(" ", _PRESENTATION.sub(" ", call.command)).strip()
        answer = answer_of(call.result) if call.result is not None else None
        key = (call.agent, call.tool, frozenset(_NAME.findall(plain)))
        in_a_row = previous if not waited else None
        chain = _chain_for(memory.chains[key], plain, answer, in_a_row)
        if chain is not None:
            chain.answer = answer
            _extend(chain, call, plain, memory.doubts, waited)
        if call.changed:
            # After a change every call has a use again, but for the same change once more.
            memory = _Memory(after_change=True)
        if chain is None:
            watches = memory.after_change and previous is not None and previous.changed
            chain = _Chain(call, plain, answer, memory.doubts, memory.after_change, watches)
            chains.append(chain)
        memory.chains[key].append(chain)
        memory.doubts += call.effect is Effect.UNKNOWN
        previous = call
        waited = False
    return chains


def _requests(walk: Walk) -> Iterator[int]:
    """Yield the indices of new user messages; a message that a harness repeats is not new."""
    results = {call.result.index for call in walk.calls if call.result is not None}
    texts: set[str] = set()
    for step in walk.steps:
        if step.span.role is not Role.USER or step.index in results or is_output(step):
            continue
        text = " ".join(step.text.split())
        if text not in texts:
            texts.add(text)
            yield step.index


def _forget_reads(memory: _Memory) -> None:
    """Forget all calls but changes: after a new request, reading again has a use."""
    for key, chains in list(memory.chains.items()):
        memory.chains[key] = [chain for chain in chains if chain.first.effect is Effect.CHANGES]


def _paused(previous: Call | None, call: Call) -> bool:
    """Check whether the times in the trace show a wait between two calls."""
    if previous is None or previous.step.span.start is None or call.step.span.start is None:
        return False
    return call.step.span.start - previous.step.span.start > _LONG_PAUSE


def _chain_for(
    chains: list[_Chain], plain: str, answer: str | None, in_a_row: Call | None
) -> _Chain | None:
    """Remove the chain that a call continues from ``chains``, and return it.

    A chain ends with a new answer, as the call had a use. A new answer that differs in numbers only
    continues the chain if the call follows the last one of the chain directly.

    Args:
        chains: The chains of calls with the same tool and names.
        plain: The command without its presentation.
        answer: The answer, or None without a result.
        in_a_row: The previous call, if there was no wait after it.
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


def _differ_in_numbers(answer: str | None, other: str | None) -> bool:
    from rapidfuzz import fuzz

    if answer is None or other is None:
        return False
    return fuzz.ratio(_DIGITS.sub("0", answer), _DIGITS.sub("0", other)) >= _SAME_BUT_NUMBERS


def _extend(chain: _Chain, call: Call, plain: str, doubts: int, waited: bool) -> None:
    if waited and chain.fair and not chain.repetitions and chain.waits < _FAIR_WAITS:
        chain.waits += 1
        return
    chain.doubts += doubts - chain.seen_doubts
    chain.seen_doubts = doubts
    (chain.exact if plain == chain.plain else chain.alike).append(call)


def _findings(
    walk: Walk, repetitions: Iterable[tuple[Call, _Chain]], answer: str
) -> Iterator[Finding]:
    """Yield a finding for each block of repetitions without other working calls in between.

    Two calls that alternate form one block.
    """
    sure = [(call, chain) for call, chain in repetitions if chain.confidence >= _LEAST_CONFIDENCE]
    for block in _blocks(walk, sorted(sure, key=lambda pair: pair[0].index)):
        calls = [call for call, _ in block]
        first = list(dict.fromkeys(chain.first.step.number for _, chain in block))
        numbers = ", ".join(call.step.number for call in calls[:6])
        more = " …" if len(calls) > 6 else ""
        total = len(block[0][1].repetitions)
        is_exact = all(any(call is exact for exact in chain.exact) for call, chain in block)
        likeness = "the same call" if is_exact else "nearly the same call"
        times = f"{len(calls)} calls" if len(first) > 1 else _times(len(calls), total)
        yield walk.finding(
            MODE,
            (calls[0].index, calls[-1].last_index),
            calls[0].quote(),
            f"{numbers}{more}: {likeness} as {', '.join(first[:6])}, {answer}, and no change in "
            f"between ({times}).",
            max(chain.confidence for _, chain in block),
        )


def _blocks(
    walk: Walk, repetitions: Iterable[tuple[Call, _Chain]]
) -> list[list[tuple[Call, _Chain]]]:
    blocks: list[list[tuple[Call, _Chain]]] = []
    for call, chain in repetitions:
        if blocks and not walk.calls_between(blocks[-1][-1][0].index, call.index):
            blocks[-1].append((call, chain))
        else:
            blocks.append([(call, chain)])
    return blocks


def _times(times: int, total: int) -> str:
    phrase = "once more" if times == 1 else f"{times} times more"
    return phrase if times == total else f"{phrase} of {total}"
