"""Two runs of one task side by side: which steps belong together, and where the runs part."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, pairwise, zip_longest
from typing import Final, NamedTuple

import numpy as np
from rapidfuzz.distance import LCSseq
from rapidfuzz.fuzz import ratio
from rapidfuzz.process import cdist

from mast_tui.traces.model import Role, Span, SpanKind, Trace

COMPARED_CHARS: Final = 2000
"""Of longer texts only the beginning is compared, in code points."""

ALIKE: Final = 60.0
"""From which per cent of likeness on two steps of one kind are the same step, done otherwise."""

SAME_WORDS: Final = 90.0
"""The likeness in per cent from which on two messages count as the same."""

LATE_MATCH_WEIGHT: Final = 1.2
"""The weight of a likeness after the fork; a difference before it has 1. Between 1.2 and 2 planted
forks are found equally often."""

MOST_PAIRS: Final = 40_000
"""In longer stretches without a step in common, steps are put together by kind and tool alone."""

_SPACE: Final = re.compile(r"\s+")
_CHANCE: Final = re.compile(r"\b0x[0-9a-f]+\b|\b[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b|\d+")
"""The parts of tools' answers that differ from run to run: ids, times, counts."""


class Likeness(StrEnum):
    """The kinds of likeness of two runs at one row."""

    SAME = "same"
    CHANGED = "changed"
    """Steps of one kind and tool, or two answers to one call, with another text."""
    OTHER = "other"
    """Two steps without anything in common, side by side."""
    ONLY_A = "only_a"
    ONLY_B = "only_b"


class Pair(NamedTuple):
    """A place in both runs: the indices of the spans, None where a run has none there."""

    a: int | None
    b: int | None
    likeness: Likeness


@dataclass(frozen=True, slots=True)
class RunAlignment:
    """Two runs side by side.

    Attributes:
        pairs: All places, in an order that is that of either run.
        actions: For each place whether an agent does something there, by a call or in words.
        first: The first place where agents do something else; None where they never do.
        fork: The place where the runs part; None where they stay together to the end. It is the
            one action from which on they differ, with the fewest exceptions on both sides.
        cause: The last place before the fork where one question was answered otherwise, if no
            action stands between the two; None where there is none.
    """

    pairs: Sequence[Pair]
    actions: Sequence[bool]
    first: int | None
    fork: int | None
    cause: int | None

    def alike(self, begin: int, end: int | None = None) -> tuple[int, int]:
        """Count the actions that are the same in both runs.

        Args:
            begin: The first row.
            end: The row after the last; None for all up to the last.

        Returns:
            The number of same actions, and the number of all actions.
        """
        same = [
            pair.likeness is Likeness.SAME
            for pair, acts in zip(self.pairs[begin:end], self.actions[begin:end], strict=True)
            if acts
        ]
        return sum(same), len(same)


def align(a: Trace, b: Trace) -> RunAlignment:
    """Put the steps of two runs side by side.

    Steps that say the same are put together first (the longest common subsequence); between them
    those of the same kind, tool and much the same text. Ids, times and counts in what tools answer
    are no difference, and neither is wording: what an agent says much alike is the same.

    Args:
        a: A run, read to its end.
        b: Another, read to its end.

    Raises:
        OSError: A text cannot be read any more.
    """
    steps_a = _steps(a)
    steps_b = _steps(b)
    pairs = list(_pairs(steps_a, steps_b))
    actions = [
        (pair.a is not None and steps_a[pair.a].acts)
        or (pair.b is not None and steps_b[pair.b].acts)
        for pair in pairs
    ]
    unlike = [
        acts and pair.likeness is not Likeness.SAME
        for pair, acts in zip(pairs, actions, strict=True)
    ]
    alike = [acts and not differs for acts, differs in zip(actions, unlike, strict=True)]
    first = next((position for position, differs in enumerate(unlike) if differs), None)
    fork = _fork(pairs, unlike, alike)
    return RunAlignment(pairs, actions, first, fork, _cause(pairs, actions, fork))


def is_action(span: Span) -> bool:
    """Return whether an agent acts in a step: it calls a tool, or says something."""
    return span.kind is SpanKind.TOOL_CALL or (
        span.kind is SpanKind.MESSAGE and span.role is Role.AGENT
    )


class _Step(NamedTuple):
    """A span as it is compared. Equal steps have the same ``signature``.

    ``call`` is the index of the call that a result answers, where it is known.
    """

    head: tuple[SpanKind, Role, str | None]
    text: str
    signature: int
    acts: bool
    call: int | None


def _steps(trace: Trace) -> Sequence[_Step]:
    return [_step(trace, trace.span(index), trace.text(index)) for index in range(len(trace))]


def _step(trace: Trace, span: Span, text: str) -> _Step:
    text = _SPACE.sub(" ", text[:COMPARED_CHARS]).strip()
    if span.kind is SpanKind.TOOL_RESULT:
        text = _CHANCE.sub("0", text)
    head = (span.kind, span.role, span.name)
    call = None
    if span.kind is SpanKind.TOOL_RESULT and span.parent is not None:
        call = trace.index_of(span.parent)
    return _Step(head, text, hash((head, text)), is_action(span), call)


def _pairs(steps_a: Sequence[_Step], steps_b: Sequence[_Step]) -> Iterator[Pair]:
    matches = _common([step.signature for step in steps_a], [step.signature for step in steps_b])
    same = dict(matches)
    for (a, b), (next_a, next_b) in pairwise([(-1, -1), *matches, (len(steps_a), len(steps_b))]):
        if a >= 0:
            yield Pair(a, b, Likeness.SAME)
        gap = _Gap(steps_a, steps_b, range(a + 1, next_a), range(b + 1, next_b), same)
        yield from gap.pairs()


def _common(signatures_a: Sequence[int], signatures_b: Sequence[int]) -> Sequence[tuple[int, int]]:
    """Return the indices of a longest common subsequence."""
    return [
        (block.src_start + step, block.dest_start + step)
        for block in LCSseq.opcodes(signatures_a, signatures_b)
        if block.tag == "equal"
        for step in range(block.src_end - block.src_start)
    ]


@dataclass(frozen=True, slots=True)
class _Gap:
    """The steps between two steps that are the same in both runs; ``same`` has all that are."""

    steps_a: Sequence[_Step]
    steps_b: Sequence[_Step]
    in_a: range
    in_b: range
    same: Mapping[int, int]

    def pairs(self) -> Iterator[Pair]:
        """Yield pairs of the steps that most likely belong together."""
        steps_a = self.steps_a
        steps_b = self.steps_b
        in_a = self.in_a
        in_b = self.in_b
        if len(in_a) * len(in_b) <= MOST_PAIRS:
            matches = self._likeliest()
        else:
            heads = _common(
                [hash(steps_a[a].head) for a in in_a], [hash(steps_b[b].head) for b in in_b]
            )
            matches = [(in_a[a], in_b[b]) for a, b in heads]
        ends = [(in_a.start - 1, in_b.start - 1), *matches, (in_a.stop, in_b.stop)]
        for (a, b), (next_a, next_b) in pairwise(ends):
            if a >= in_a.start:
                yield Pair(a, b, _likeness(steps_a[a], steps_b[b]))
            for left, right in zip_longest(range(a + 1, next_a), range(b + 1, next_b)):
                alone = Likeness.ONLY_A if right is None else Likeness.ONLY_B
                yield Pair(left, right, alone if None in (left, right) else Likeness.OTHER)

    def _likeliest(self) -> Sequence[tuple[int, int]]:
        """Return the pairs that together are most alike, in the order of both runs.

        Needleman and Wunsch (1970), without a price for gaps: a pair counts by how far its
        likeness is above ``ALIKE``, two answers to the same call in any case.
        """
        left = [self.steps_a[a] for a in self.in_a]
        right = [self.steps_b[b] for b in self.in_b]
        if not left or not right:
            return []
        heads = {step.head: number for number, step in enumerate((*left, *right))}
        same_head = np.equal.outer(*([heads[step.head] for step in side] for side in (left, right)))
        worth = cdist([step.text for step in left], [step.text for step in right], scorer=ratio)
        gain = np.where(same_head & (worth >= ALIKE), worth - ALIKE + 1, 0.0)
        asked = [-1 if step.call is None else self.same.get(step.call, -1) for step in left]
        answered = [-2 if step.call is None else step.call for step in right]
        gain[np.equal.outer(asked, answered)] = 100.0
        best = np.zeros((len(left) + 1, len(right) + 1))
        for row in range(len(left) - 1, -1, -1):
            paired = np.where(gain[row] > 0, gain[row] + best[row + 1, 1:], 0.0)
            skipped = np.maximum(paired, best[row + 1, :-1])
            best[row, :-1] = np.maximum.accumulate(skipped[::-1])[::-1]
        matches = []
        row = 0
        column = 0
        while row < len(left) and column < len(right):
            value = gain[row, column]
            if value and best[row, column] == value + best[row + 1, column + 1]:
                matches.append((self.in_a[row], self.in_b[column]))
                row = row + 1
                column = column + 1
            elif best[row, column] == best[row + 1, column]:
                row += 1
            else:
                column += 1
        return matches


def _likeness(a: _Step, b: _Step) -> Likeness:
    """Compare two steps of one kind: calls must be equal, other texts much alike."""
    if a.text == b.text:
        return Likeness.SAME
    gist = a.head[0] is not SpanKind.TOOL_CALL and ratio(a.text, b.text) >= SAME_WORDS
    return Likeness.SAME if gist else Likeness.CHANGED


def _fork(pairs: Sequence[Pair], unlike: Sequence[bool], alike: Sequence[bool]) -> int | None:
    """Return the row at which two runs part, or None where it is best not to cut at all.

    The best cut has the fewest differences before it and the fewest likenesses after it. These
    count a little more, as two runs that have parted seldom do the same. Between two likenesses
    there are as many differences as the run with more of them has, so that one thing done in two
    ways counts once.
    """
    differences_before = [0]
    in_a = in_b = passed = 0
    for pair, differs, same in zip(pairs, unlike, alike, strict=True):
        if same:
            passed = passed + max(in_a, in_b)
            in_a = 0
            in_b = 0
        in_a += differs and pair.a is not None
        in_b += differs and pair.b is not None
        differences_before.append(passed + max(in_a, in_b))
    matches_after = list(accumulate(reversed(alike), initial=0))[::-1]
    errors = [
        wrong + LATE_MATCH_WEIGHT * missed
        for wrong, missed in zip(differences_before, matches_after, strict=True)
    ]
    cut = min(range(len(errors)), key=errors.__getitem__)
    return next((position for position in range(cut, len(unlike)) if unlike[position]), None)


def _cause(pairs: Sequence[Pair], actions: Sequence[bool], fork: int | None) -> int | None:
    """Return the last row before the fork, after the action before it, with another answer."""
    for position in range((fork or 0) - 1, -1, -1):
        if actions[position]:
            return None
        if pairs[position].likeness is Likeness.CHANGED:
            return position
    return None


def sentences(alignment: RunAlignment) -> Iterator[str]:
    """Yield sentences on whether two runs part, where, and how alike they are before and after."""
    if alignment.first is None:
        yield "The agents do the same in both."
        return
    if alignment.fork is None:
        alike, actions = alignment.alike(0)
        yield f"They stay together: {alike} of {actions} actions are the same."
        yield f"They first differ at {_pair_name(alignment.pairs[alignment.first])}."
        return
    alike_before, actions_before = alignment.alike(0, alignment.fork)
    alike_after, actions_after = alignment.alike(alignment.fork)
    rows = _pair_name(alignment.pairs[alignment.fork])
    if actions_before:
        yield (
            f"They part at {rows}. Before it {alike_before} of {actions_before} actions are the "
            f"same, from there on {alike_after} of {actions_after}."
        )
    else:
        yield (
            f"They part at the first action, {rows}: {alike_after} of {actions_after} are the same."
        )
    if alignment.cause is not None:
        rows = _pair_name(alignment.pairs[alignment.cause])
        yield f"Just before, one question was answered otherwise: {rows}."
    if alignment.first != alignment.fork:
        rows = _pair_name(alignment.pairs[alignment.first])
        yield f"They first differ at {rows}, and come together again."


def _pair_name(pair: Pair) -> str:
    sides = [
        f"{name} #{index + 1}"
        for name, index in (("A", pair.a), ("B", pair.b))
        if index is not None
    ]
    return " and ".join(sides)
