"""1.3 Step repetition: the same call, the same view or the same message again.

A call counts if nothing has changed in between. Agents such as Magentic-One's report in a message
their action and the view of their window after it. The same action with the same view, without
another view in between, had no effect.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mast_tui.judges.rules.effects import Effect
from mast_tui.judges.rules.steps import VIEW_HEADER, RuleStep, is_view
from mast_tui.judges.rules.walk import Call, Walk, answer_of, is_output
from mast_tui.judges.word_comparison import WordLikeness, compare
from mast_tui.labels import Finding
from mast_tui.traces.model import Role, SpanKind

MODE: Final = "step_repetition"

_SIMILAR_COMMAND: Final = 85.0
"""The similarity of two commands with the same names from which they count as nearly equal."""

_LOOK_BACK: Final = 12
_FAIR_WAITS: Final = 2
"""The number of repetitions after a wait that are fair while a change may still take effect."""

_SAME_ANSWER: Final = 90.0
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
_NAME_PATTERN: Final = re.compile(r"[A-Za-z0-9_.#/:@-]*[A-Za-z0-9_]")
_SPACE: Final = re.compile(r"[\s\"'`]+")
_DIGITS: Final = re.compile(r"\d+(?:\.\d+)?")
_LEAST_CONFIDENCE: Final = 0.5
_MOST_LISTED: Final = 6
"""The most calls that a rationale lists."""


@dataclass(slots=True)
class _Chain:
    """Calls that repeat each other with the same answer, without a change in between.

    Attributes:
        first: The first call.
        plain_command: Its command without the presentation of the output.
        answer: The last answer; None without a result.
        seen_doubts: The calls of unknown effect before the last call of the chain.
        fair: The first call follows a change, so that repetitions after a wait are fair.
        watches: The call directly before the first one was a change.
        identical: The repetitions with the same command.
        similar: The repetitions with nearly the same command.
        waits: The number of fair repetitions.
        doubts: The number of calls of unknown effect between the calls of the chain.
        moving: The answers differ in their numbers, and the calls follow each other directly,
            without a wait.
    """

    first: Call
    plain_command: str
    answer: str | None
    seen_doubts: int
    fair: bool
    watches: bool
    identical: list[Call] = field(default_factory=list)
    similar: list[Call] = field(default_factory=list)
    waits: int = 0
    doubts: int = 0
    moving: bool = False

    @property
    def repetitions(self) -> list[Call]:
        """All identical and nearly equal repetitions, in their order."""
        return sorted([*self.identical, *self.similar], key=lambda call: call.index)

    @property
    def confidence(self) -> float:
        """The confidence that the repetitions had no use."""
        confidence = min(0.9, 0.6 + 0.15 * len(self.repetitions)) - 0.1 * min(self.doubts, 3)
        if self.answer is None:
            confidence -= 0.15
        if self.moving:
            confidence -= 0.25
        elif not self.identical:
            confidence -= 0.1
        return confidence

    @property
    def last(self) -> Call:
        """The last call of the chain."""
        return max(
            [*self.identical, *self.similar], key=lambda call: call.index, default=self.first
        )


@dataclass(slots=True)
class _Memory:
    """The calls since the last change.

    Attributes:
        after_change: There was a change before them.
        doubts: The number of calls of unknown effect, which may be changes.
        chains: The chains by agent, tool, and names in the command.
    """

    after_change: bool = False
    doubts: int = 0
    chains: dict[tuple[str, str, frozenset[str]], list[_Chain]] = field(
        default_factory=lambda: defaultdict(list)
    )


def find_same(walk: Walk) -> Iterator[Finding]:
    """Yield findings on the calls that repeat an earlier call exactly, with the same answer."""
    repetitions = [
        (call, chain)
        for chain in _find_chains(walk)
        if not chain.moving and chain.answer is not None
        for call in chain.identical
    ]
    yield from _block_findings(walk, repetitions, "with the same answer")


def find_similar(walk: Walk) -> Iterator[Finding]:
    """Yield findings on calls that nearly repeat an earlier call.

    Their commands are similar, or their answers differ in numbers only.
    """
    moving: list[tuple[Call, _Chain]] = []
    unanswered: list[tuple[Call, _Chain]] = []
    similar: list[tuple[Call, _Chain]] = []
    for chain in _find_chains(walk):
        if chain.moving:
            if len(chain.repetitions) >= _FEWEST_IN_A_ROW:
                moving += [(call, chain) for call in chain.repetitions]
        elif chain.answer is None:
            unanswered += [(call, chain) for call in chain.repetitions]
        else:
            similar += [(call, chain) for call in chain.similar]
    yield from _block_findings(
        walk, moving, "without a wait, and the answers differ in numbers only"
    )
    yield from _block_findings(walk, unanswered, "with no result shown")
    yield from _block_findings(walk, similar, "with the same answer")


def _find_chains(walk: Walk) -> list[_Chain]:
    """Return the chains of repeated calls, in the order of their first calls.

    A call without a repetition is a chain too. A change ends all chains, and a new request of the
    user ends the chains of calls that read.
    """
    memory = _Memory()
    chains: list[_Chain] = []
    has_waited = False
    previous: Call | None = None
    request_indices = deque(_request_indices(walk))
    for call in walk.calls:
        while request_indices and request_indices[0] < call.index:
            request_indices.popleft()
            _forget_reads(memory)
        if _WAITING.search(call.command) is not None or _has_pause_between(previous, call):
            has_waited = True
        if not call.works:
            continue
        plain_command = _SPACE.sub(" ", _PRESENTATION.sub(" ", call.command)).strip()
        answer = answer_of(call.result) if call.result is not None else None
        key = (call.agent, call.tool, frozenset(_NAME_PATTERN.findall(plain_command)))
        direct_predecessor = None if has_waited else previous
        chain = _take_continued_chain(memory.chains[key], plain_command, answer, direct_predecessor)
        if chain is not None:
            chain.answer = answer
            _add_repetition(chain, call, plain_command, memory.doubts, has_waited)
        if call.changed:
            # After a change every call has a use again, except the same change again.
            memory = _Memory(after_change=True)
        if chain is None:
            watches = memory.after_change and previous is not None and previous.changed
            chain = _Chain(call, plain_command, answer, memory.doubts, memory.after_change, watches)
            chains.append(chain)
        memory.chains[key].append(chain)
        memory.doubts += call.effect is Effect.UNKNOWN
        previous = call
        has_waited = False
    return chains


def _request_indices(walk: Walk) -> Iterator[int]:
    """Yield the indices of new user messages; one that the agent's harness repeats is not new."""
    result_indices = {call.result.index for call in walk.calls if call.result is not None}
    earlier_texts: set[str] = set()
    for step in walk.steps:
        if step.span.role is not Role.USER or step.index in result_indices or is_output(step):
            continue
        text = " ".join(step.text.split())
        if text not in earlier_texts:
            earlier_texts.add(text)
            yield step.index


def _forget_reads(memory: _Memory) -> None:
    """Remove all chains except those of changes: after a new request, reading again has a use."""
    for key, chains in list(memory.chains.items()):
        memory.chains[key] = [chain for chain in chains if chain.first.effect is Effect.CHANGES]


def _has_pause_between(previous: Call | None, call: Call) -> bool:
    """Check whether the times in the trace show a wait between two calls."""
    if previous is None or previous.step.span.start is None or call.step.span.start is None:
        return False
    return call.step.span.start - previous.step.span.start > _LONG_PAUSE


def _take_continued_chain(
    chains: list[_Chain], plain_command: str, answer: str | None, direct_predecessor: Call | None
) -> _Chain | None:
    """Remove the last chain with the same or nearly the same command from ``chains``.

    - If the call has the same answer, it continues the chain.
    - If its answer differs in numbers only, it continues the chain if it follows the chain's last
      call directly. The chain is then ``moving``.
    - Any other answer ends the chain, because the call had a use.

    Args:
        chains: The chains of calls with the same tool and names.
        plain_command: The command without its presentation.
        answer: The answer, or None without a result.
        direct_predecessor: The previous call, if there was no wait after it.

    Returns:
        The chain that the call continues, or None.
    """
    from rapidfuzz import fuzz

    for chain in reversed(chains[-_LOOK_BACK:]):
        if (
            plain_command == chain.plain_command
            or fuzz.ratio(plain_command, chain.plain_command) >= _SIMILAR_COMMAND
        ):
            chains.remove(chain)
            if chain.answer == answer:
                return chain
            may_move = chain.last is direct_predecessor and not chain.watches
            if may_move and _differ_in_numbers(chain.answer, answer):
                chain.moving = True
                return chain
            return None
    return None


def _differ_in_numbers(answer: str | None, other: str | None) -> bool:
    """Check whether two answers are nearly the same without their numbers."""
    from rapidfuzz import fuzz

    if answer is None or other is None:
        return False
    return fuzz.ratio(_DIGITS.sub("0", answer), _DIGITS.sub("0", other)) >= _SAME_ANSWER


def _add_repetition(
    chain: _Chain, call: Call, plain_command: str, doubts: int, has_waited: bool
) -> None:
    """Add a call to the repetitions of a chain; a fair repetition is only counted."""
    if has_waited and chain.fair and not chain.repetitions and chain.waits < _FAIR_WAITS:
        chain.waits += 1
        return
    chain.doubts += doubts - chain.seen_doubts
    chain.seen_doubts = doubts
    if plain_command == chain.plain_command:
        chain.identical.append(call)
    else:
        chain.similar.append(call)


def _block_findings(
    walk: Walk, repetitions: Iterable[tuple[Call, _Chain]], answer: str
) -> Iterator[Finding]:
    """Yield a finding for each block of repetitions without other working calls in between.

    Two calls that alternate form one block.

    Args:
        walk: The steps of the trace.
        repetitions: The repetitions with their chains.
        answer: The description of the answers.
    """
    likely_repetitions = [
        (call, chain) for call, chain in repetitions if chain.confidence >= _LEAST_CONFIDENCE
    ]
    likely_repetitions.sort(key=lambda repetition: repetition[0].index)
    for block in _group_by_block(walk, likely_repetitions):
        calls = [call for call, _ in block]
        chains = [chain for _, chain in block]
        first_numbers = list(dict.fromkeys(chain.first.step.number for chain in chains))
        numbers = ", ".join(call.step.number for call in calls[:_MOST_LISTED])
        if len(calls) > _MOST_LISTED:
            numbers += " …"
        is_exact = all(
            any(call is identical for identical in chain.identical) for call, chain in block
        )
        likeness = "the same call" if is_exact else "nearly the same call"
        times = f"{len(calls)} calls"
        if len(first_numbers) == 1:
            times = _times_phrase(len(calls), len(chains[0].repetitions))
        yield walk.finding(
            MODE,
            (calls[0].index, calls[-1].last_index),
            calls[0].quote(),
            f"{numbers}: {likeness} as {', '.join(first_numbers[:_MOST_LISTED])}, {answer}, and "
            f"no change in between ({times}).",
            max(chain.confidence for chain in chains),
        )


def _group_by_block(
    walk: Walk, repetitions: Iterable[tuple[Call, _Chain]]
) -> list[list[tuple[Call, _Chain]]]:
    """Group repetitions into blocks without other working calls in between.

    The repetitions are in the order of their calls.
    """
    blocks: list[list[tuple[Call, _Chain]]] = []
    last_index = 0
    for call, chain in repetitions:
        if blocks and not walk.calls_between(last_index, call.index):
            blocks[-1].append((call, chain))
        else:
            blocks.append([(call, chain)])
        last_index = call.index
    return blocks


def _times_phrase(count: int, total: int) -> str:
    phrase = "once more" if count == 1 else f"{count} times more"
    return phrase if count == total else f"{phrase} of {total}"


_VISIT_REMARK: Final = re.compile(r"\bYou previously visited this page [^\n]*")
_VIEW_BODY_CHARS: Final = 800
_SAME_VIEW_BODY: Final = 95.0


class _View(NamedTuple):
    """A view: its step, the action and the position on the page, and the beginning of its text."""

    step: RuleStep
    header: str
    body: str


def find_same_view(walk: Walk) -> Iterator[Finding]:
    """Yield a finding on each view that equals the last view of its agent."""
    last_views: dict[str, _View] = {}
    for step in walk.steps:
        header_match = VIEW_HEADER.match(step.head) if step.is_message else None
        if header_match is None:
            continue
        header = " ".join(_VISIT_REMARK.sub("", header_match[0]).split())
        body = " ".join(step.head[header_match.end() :].split())[:_VIEW_BODY_CHARS]
        last_view = last_views.get(step.span.agent)
        if (
            last_view is None
            or last_view.header != header
            or not _is_same_view_body(last_view.body, body)
        ):
            last_views[step.span.agent] = _View(step, header, body)
            continue
        yield walk.finding(
            MODE,
            (step.index, step.index),
            step.quote(0, header_match.end()),
            f"{step.number}: {step.span.agent} has the same view again as in "
            f"{last_view.step.number}, and had no other in between.",
            0.7,
        )


def _is_same_view_body(body: str, other: str) -> bool:
    from rapidfuzz import fuzz

    return body == other or fuzz.ratio(body, other, score_cutoff=_SAME_VIEW_BODY) > 0


_SAME_WORDS: Final = 95.0
"""The similarity of two messages from which their words are compared one by one."""

_LENGTH_PARTS: Final = 20
"""Messages that are the same differ in length by at most one part in so many."""

_SHORTEST_MESSAGE: Final = 80
_FEWEST_MESSAGES: Final = 3
_LONG_MESSAGE: Final = 600
"""The length from which a message counts as repeated the second time; a shorter message the third
time."""

_COMPARED_MESSAGE_CHARS: Final = 800
_MESSAGE_LOOK_BACK: Final = 12
"""The number of an agent's last different messages with which a new one is compared."""

_SHARED_BY: Final = 2
"""The number of agents from which a sentence of all of them is a part of a shared prompt."""


@dataclass(frozen=True, slots=True)
class _Message:
    """A message of an agent.

    Attributes:
        step: The step of the message.
        text: Its sentences, without those of a shared prompt.
        event_count: The number of events by other agents and tools before it.
    """

    step: RuleStep
    text: str
    event_count: int


def find_repeated_message(walk: Walk) -> Iterator[Finding]:
    """Yield a finding on each message of an agent that repeats an earlier one."""
    for group in _message_groups(walk):
        first, *repetitions = group
        # A short message is repeated by chance more often.
        fewest_messages = 2 if len(first.text) >= _LONG_MESSAGE else _FEWEST_MESSAGES
        if len(group) < fewest_messages:
            continue
        for message in repetitions:
            quote = message.step.first_sentence()
            if quote is not None:
                yield walk.finding(
                    MODE,
                    (message.step.index, message.step.index),
                    quote,
                    f"{message.step.number}: {first.step.span.agent} repeats {first.step.number} "
                    f"almost word for word ({len(group)} times in all).",
                    min(0.85, 0.4 + 0.1 * len(group)),
                )


def _message_groups(walk: Walk) -> list[list[_Message]]:
    """Group the messages of each agent that are the same.

    A message counts only if there are events by others between it and the last message of its
    group. Without such an event, the log has printed one message twice.
    """
    agents_by_sentence = _agents_of_sentences(walk)
    groups_by_agent: dict[str, list[list[_Message]]] = defaultdict(list)
    event_counter = _EventCounter()
    for step in walk.steps:
        event_counter.add(step)
        text = " ".join(
            sentence
            for _, sentence in step.sentences
            if len(agents_by_sentence[sentence]) < _SHARED_BY
        )
        is_own = step.is_message and not is_output(step) and not is_view(step)
        if not is_own or len(text) < _SHORTEST_MESSAGE:
            continue
        groups = groups_by_agent[step.span.agent]
        message = _Message(step, text, event_counter.count_by_others(step.span.agent))
        for group in reversed(groups[-_MESSAGE_LOOK_BACK:]):
            last_message = group[-1]
            if _is_same_message(last_message.text, text):
                if message.event_count > last_message.event_count:
                    group.append(message)
                break
        else:
            groups.append([message])
    return list(itertools.chain.from_iterable(groups_by_agent.values()))


class _EventCounter:
    """The number of different events by agent; an event that is logged again counts once."""

    def __init__(self) -> None:
        self._counted_events: set[tuple[str, str]] = set()
        self._count_by_agent: dict[str, int] = defaultdict(int)
        """The number of messages and thoughts by agent; other events are under an empty name."""

    def add(self, step: RuleStep) -> None:
        """Count a step, unless it is a log or repeats an earlier step."""
        event = (step.span.agent, step.head)
        if step.span.kind is not SpanKind.LOG and event not in self._counted_events:
            self._counted_events.add(event)
            self._count_by_agent[step.span.agent if step.is_speech else ""] += 1

    def count_by_others(self, agent: str) -> int:
        """Return the number of messages of other agents, and of all calls and results."""
        return sum(count for other, count in self._count_by_agent.items() if other != agent)


def _agents_of_sentences(walk: Walk) -> Mapping[str, set[str]]:
    """Return the agents that use each sentence in a message, by sentence."""
    agents_by_sentence: dict[str, set[str]] = defaultdict(set)
    for step in walk.steps:
        if step.is_message:
            for _, sentence in step.sentences:
                agents_by_sentence[sentence].add(step.span.agent)
    return agents_by_sentence


def _is_same_message(text: str, other: str) -> bool:
    """Check whether two messages are similar and have no different number, name or negation.

    Of long messages, both ends are compared.
    """
    if _LENGTH_PARTS * abs(len(text) - len(other)) > max(len(text), len(other)):
        return False
    if not _is_same_part(text[:_COMPARED_MESSAGE_CHARS], other[:_COMPARED_MESSAGE_CHARS]):
        return False
    if max(len(text), len(other)) <= _COMPARED_MESSAGE_CHARS:
        return True
    return _is_same_part(text[-_COMPARED_MESSAGE_CHARS:], other[-_COMPARED_MESSAGE_CHARS:])


def _is_same_part(part: str, other_part: str) -> bool:
    """Check whether two parts of messages are similar, and no word changes the meaning."""
    from rapidfuzz import fuzz

    if part == other_part:
        return True
    return (
        fuzz.ratio(part, other_part, score_cutoff=_SAME_WORDS) > 0
        and compare(part, other_part).likeness is not WordLikeness.ALTERED
        and compare(other_part, part).likeness is not WordLikeness.ALTERED
    )
