"""Rules on mode 1.3 Step repetition: the same call, the same view or the same message again.

A repeated call counts if nothing changed in between. Some browsing agents report their action and
the view after it in a message. The same action with the same view again had no effect.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mast_tui.counts import counted
from mast_tui.judges.rules.effects import Effect
from mast_tui.judges.rules.walk import VIEW_HEADER, Call, RuleStep, Walk
from mast_tui.judges.word_comparison import WordLikeness, compare
from mast_tui.labels import Finding
from mast_tui.traces.model import Role, SpanKind

MODE: Final = "step_repetition"

_FAIR_WAITS: Final = 2
"""The most repetitions after a wait that are fair, because a change may still take effect."""

_LONG_PAUSE: Final = 45.0
"""The seconds between two calls that count as a wait."""

# Comments and the presentation of the output do not make another command.
_PRESENTATION: Final = re.compile(
    r"\|\s*(?:head|tail|less|cat)\b(?:\s+-\w*\s*\d*)?|--(?:tail|limit|max-count)[ =]\d+"
    r"|-o[ =]?(?:wide|name)\b|2>&1|2>/dev/null|--no-(?:headers|pager)|--color\S*"
    r"|\bsleep\s+[\d.]+\w?\s*(?:&&|;)|(?m:^\s*#[^\n]*)"
)
_WAITING: Final = re.compile(r"\bsleep\s+[\d.]+|--timeout[ =]|\bwatch\b|\bwait\b")
_SPACE: Final = re.compile(r"[\s\"'`]+")
_FOLDER: Final = re.compile(r"\"(?:workdir|cwd|work_dir|working_dir)\":\s*\"([^\"]*)\"")
_LEAST_CONFIDENCE: Final = 0.58
_MOST_LISTED: Final = 6
"""The most calls that a rationale lists."""


@dataclass(slots=True)
class _Chain:
    """Calls with the same command and the same answer, without a change in between.

    Attributes:
        first: The first call.
        after_change: True if a change precedes the first call, so that a repetition after a wait is
            fair.
        unknown_before: The number of calls of unknown effect in the run before the first call.
        unknown_count: The number of such calls from the first call to the last repetition.
        repetitions: The later calls, without those after a fair wait.
        waits: The number of calls after a fair wait.
    """

    first: Call
    after_change: bool
    unknown_before: int
    unknown_count: int = 0
    repetitions: list[Call] = field(default_factory=list)
    waits: int = 0

    @property
    def confidence(self) -> float:
        """The confidence that the repetitions had no use."""
        return min(0.9, 0.6 + 0.15 * len(self.repetitions)) - 0.1 * min(self.unknown_count, 3)

    @property
    def may_wait(self) -> bool:
        """True if a repetition after a wait is fair, because a change may still take effect."""
        return self.after_change and not self.repetitions and self.waits < _FAIR_WAITS


class _Repetition(NamedTuple):
    """A call that repeats the first call of a chain."""

    call: Call
    chain: _Chain


def find_same(walk: Walk) -> Iterator[Finding]:
    """Yield a finding for each block of calls that repeat earlier calls.

    Between the calls of a block are only calls that think, wait or hand over. Two calls that
    alternate form one block.
    """
    block: list[_Repetition] = []
    for repetition in _useless_repetitions(walk):
        if block and walk.calls_between(block[-1].call.index, repetition.call.index):
            yield _block_finding(walk, block)
            block = []
        block.append(repetition)
    if block:
        yield _block_finding(walk, block)


def _useless_repetitions(walk: Walk) -> list[_Repetition]:
    """Return the repetitions that had probably no use, in the order of the run."""
    repetitions = [
        _Repetition(call, chain)
        for chain in _find_chains(walk)
        if chain.first.result is not None and chain.confidence >= _LEAST_CONFIDENCE
        for call in chain.repetitions
    ]
    return sorted(repetitions, key=lambda repetition: repetition.call.index)


def _block_finding(walk: Walk, block: Sequence[_Repetition]) -> Finding:
    calls = [repetition.call for repetition in block]
    chains = [repetition.chain for repetition in block]
    first_numbers = list(dict.fromkeys(chain.first.step.number for chain in chains))
    numbers = ", ".join(call.step.number for call in calls[:_MOST_LISTED])
    if len(calls) > _MOST_LISTED:
        numbers += " …"
    times = f"{len(calls)} repetitions"
    if len(first_numbers) == 1:
        # The block may have only some of the repetitions of its chain.
        times = _repetitions_phrase(len(calls), len(chains[0].repetitions))
    return walk.finding(
        MODE,
        (calls[0].index, calls[-1].last_index),
        calls[0].quote(),
        f"{numbers}: {'' if len(first_numbers) == 1 else 'each '}the same call as "
        f"{' or '.join(first_numbers[:_MOST_LISTED])}, with the same answer, and no change in "
        f"between ({times}).",
        max(chain.confidence for chain in chains),
    )


def _find_chains(walk: Walk) -> list[_Chain]:
    """Return the chains, each a call with its repetitions, in the order of their first calls.

    A call without a repetition is a chain too.
    """
    collector = _ChainCollector()
    request_indices = frozenset(_request_indices(walk))
    for step, call in walk.steps_with_calls():
        if step.index in request_indices or step.has_picture:
            collector.end_chains(Effect.CHANGES)
        if call is not None:
            collector.add(call)
    return collector.chains


class _ChainCollector:
    """The chains of the calls of a run so far.

    A change ends all chains. A new request of the user ends the chains of calls without a change,
    and so does a picture, which may show another result. A call of unknown effect ends the chains
    of calls that read.
    """

    def __init__(self) -> None:
        self.chains: list[_Chain] = []
        self._open_chains = defaultdict[Effect, dict[tuple[str, str, str, str], _Chain]](dict)
        """The chains that a call may continue, by effect, then by agent, tool, plain command and
        folder."""
        self._unknown_count = 0
        self._after_change = False
        self._has_waited = False
        """True after a wait until the next call that works."""
        self._previous: Call | None = None

    def end_chains(self, least_effect: Effect) -> None:
        """End the chains of calls with a weaker effect."""
        for effect, chains in self._open_chains.items():
            if effect < least_effect:
                chains.clear()

    def add(self, call: Call) -> None:
        """Add the next call to its chain, or begin a chain with it."""
        if _WAITING.search(call.command) is not None or _has_pause_between(self._previous, call):
            self._has_waited = True
        if not call.works:
            return
        plain_command = _SPACE.sub(" ", _PRESENTATION.sub(" ", call.command)).strip()
        folder = _FOLDER.search(call.step.head)
        key = (call.agent, call.tool, plain_command, "" if folder is None else folder[1])
        chain = self._open_chains[call.effect].get(key)
        if call.changed:
            # After a change, every call may have a new result, except the same change again.
            self._open_chains.clear()
            self._after_change = True
        elif call.effect is Effect.UNKNOWN:
            self.end_chains(Effect.UNKNOWN)
        # A call with another answer was of use.
        if chain is None or chain.first.answer != call.answer:
            chain = _Chain(call, self._after_change, self._unknown_count)
            self.chains.append(chain)
        elif self._has_waited and chain.may_wait:
            chain.waits += 1
        else:
            chain.repetitions.append(call)
            chain.unknown_count = self._unknown_count - chain.unknown_before
        self._open_chains[call.effect][key] = chain
        # Such a call may have changed something, so later repetitions are less certain.
        self._unknown_count += call.effect is Effect.UNKNOWN
        self._previous = call
        self._has_waited = False


def _request_indices(walk: Walk) -> Iterator[int]:
    """Yield the indices of the user's new messages, without repetitions by the harness."""
    result_indices = {call.result.index for call in walk.calls if call.result is not None}
    earlier_texts: set[str] = set()
    for step in walk.steps:
        # Some harnesses send results of calls and output of code as messages of the user.
        if step.span.role is not Role.USER or step.index in result_indices or step.is_output:
            continue
        text = " ".join(step.text.split())
        if text not in earlier_texts:
            earlier_texts.add(text)
            yield step.index


def _has_pause_between(previous: Call | None, call: Call) -> bool:
    """Check whether the times in the trace show a wait between two calls."""
    if previous is None or previous.step.span.start is None or call.step.span.start is None:
        return False
    return call.step.span.start - previous.step.span.start > _LONG_PAUSE


def _repetitions_phrase(count: int, total: int) -> str:
    phrase = counted(total, "repetition")
    return phrase if count == total else f"{count} of {phrase}"


_VISIT_REMARK: Final = re.compile(r"\bYou previously visited this page [^\n]*")
_VIEW_BODY_CHARS: Final = 800
_SAME_VIEW_BODY: Final = 95.0


class _View(NamedTuple):
    """A view of a page, as a browsing tool describes it.

    Attributes:
        step: The step with the description.
        header: The action and the position on the page.
        body: The beginning of the page's text.
    """

    step: RuleStep
    header: str
    body: str


def find_same_view(walk: Walk) -> Iterator[Finding]:
    """Yield a finding on each view of a page that equals the previous view of the same agent."""
    previous_views: dict[str, _View] = {}
    for step in walk.steps:
        header_match = VIEW_HEADER.match(step.head) if step.is_message else None
        if header_match is None:
            continue
        header = " ".join(_VISIT_REMARK.sub("", header_match[0]).split())
        body = " ".join(step.head[header_match.end() :].split())[:_VIEW_BODY_CHARS]
        previous_view = previous_views.get(step.span.agent)
        if (
            previous_view is None
            or previous_view.header != header
            or not _is_same_view_body(previous_view.body, body)
        ):
            previous_views[step.span.agent] = _View(step, header, body)
            continue
        yield walk.finding(
            MODE,
            (step.index, step.index),
            step.quote(0, header_match.end()),
            f"{step.number}: {step.span.agent} has the same view again as in "
            f"{previous_view.step.number}, and had no other in between.",
            0.7,
        )


def _is_same_view_body(body: str, other: str) -> bool:
    from rapidfuzz import fuzz

    return body == other or fuzz.ratio(body, other, score_cutoff=_SAME_VIEW_BODY) > 0


_SAME_WORDS: Final = 95.0
"""The similarity (0 to 100) of two messages from which they are compared word by word."""

_LENGTH_PARTS: Final = 20
"""The lengths of equal messages differ by at most one part in 20 of the longer one."""

_SHORTEST_MESSAGE: Final = 80
_FEWEST_MESSAGES: Final = 3
_LONG_MESSAGE: Final = 600
"""The length from which a message counts when it appears twice. A shorter message must appear three
times."""

_COMPARED_MESSAGE_CHARS: Final = 800
_MESSAGE_LOOK_BACK: Final = 12
"""The number of an agent's last different messages with which a new one is compared."""

_SHARED_BY: Final = 2
"""The number of agents that shows that their common sentence is from a shared prompt."""


class _Message(NamedTuple):
    """A message of an agent.

    Attributes:
        step: The step of the message.
        text: Its sentences, without those of a shared prompt.
        events_by_others: The number of different events by other agents and tools before it.
    """

    step: RuleStep
    text: str
    events_by_others: int


def find_repeated_message(walk: Walk) -> Iterator[Finding]:
    """Yield a finding on each message of an agent that repeats an earlier message."""
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
    """Group the similar messages of each agent.

    A message joins a group only if others acted after the last message of the group. Otherwise one
    message was logged twice.
    """
    agents_by_sentence = _agents_of_sentences(walk)
    groups_by_agent: dict[str, list[list[_Message]]] = defaultdict(list)
    # An event that is logged again counts once. The agent of calls and results is "".
    counted_events: set[tuple[str, str]] = set()
    events_by_agent: Counter[str] = Counter()
    for step in walk.steps:
        agent = step.span.agent
        if step.span.kind is not SpanKind.LOG and (agent, step.head) not in counted_events:
            counted_events.add((agent, step.head))
            events_by_agent[agent if step.is_speech else ""] += 1
        text = " ".join(
            sentence
            for _, sentence in step.sentences
            if len(agents_by_sentence[sentence]) < _SHARED_BY  # not a part of a shared prompt
        )
        if not step.is_statement or len(text) < _SHORTEST_MESSAGE:
            continue
        groups = groups_by_agent[agent]
        events_by_others = events_by_agent.total() - events_by_agent[agent]
        message = _Message(step, text, events_by_others)
        for group in reversed(groups[-_MESSAGE_LOOK_BACK:]):
            last_message = group[-1]
            if _is_same_message(last_message.text, text):
                if message.events_by_others > last_message.events_by_others:
                    group.append(message)
                break
        else:
            groups.append([message])
    return list(itertools.chain.from_iterable(groups_by_agent.values()))


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
    longer_length = max(len(text), len(other))
    length_difference = abs(len(text) - len(other))
    if length_difference * _LENGTH_PARTS > longer_length:
        return False
    if not _is_same_part(text[:_COMPARED_MESSAGE_CHARS], other[:_COMPARED_MESSAGE_CHARS]):
        return False
    if longer_length <= _COMPARED_MESSAGE_CHARS:
        return True
    return _is_same_part(text[-_COMPARED_MESSAGE_CHARS:], other[-_COMPARED_MESSAGE_CHARS:])


def _is_same_part(part: str, other_part: str) -> bool:
    """Check whether two parts of messages are similar, and no word changes the meaning."""
    from rapidfuzz import fuzz

    if part == other_part:
        return True
    # Compared in both directions, because ``compare`` ignores words at the ends of its second text.
    return (
        fuzz.ratio(part, other_part, score_cutoff=_SAME_WORDS) > 0
        and compare(part, other_part).likeness is not WordLikeness.ALTERED
        and compare(other_part, part).likeness is not WordLikeness.ALTERED
    )
