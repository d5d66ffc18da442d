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
_RUN_SPECIFIC: Final = re.compile(r"\b0x[0-9a-f]+\b|\b[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b|\d+")
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
    """A row of two runs side by side: the indices of the spans, None if a run has none there."""

    a: int | None
    b: int | None
    likeness: Likeness


@dataclass(frozen=True, slots=True)
class RunAlignment:
    """Two runs side by side.

    Attributes:
        pairs: All rows; each run keeps its own order.
        actions: For each row True if an agent acts there, by a call or in words.
        first: The first row at which the agents act differently; None if there is none.
        fork: The row at which the runs part; None if they stay together to the end. Before this
            action the runs are alike, from it on they differ, with as few exceptions as possible.
        cause: The last row before the fork at which one question got two answers, if no action
            is between the two; None if there is none.
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
        likenesses = [
            pair.likeness
            for pair, acts in zip(self.pairs[begin:end], self.actions[begin:end], strict=True)
            if acts
        ]
        return likenesses.count(Likeness.SAME), len(likenesses)


def align(a: Trace, b: Trace) -> RunAlignment:
    """Put the steps of two runs side by side.

    Equal steps are paired first (the longest common subsequence). Between them, steps of the same
    kind and tool with similar texts are paired. Ids, times and counts in the answers of tools make
    no difference, and two similar messages of agents count as the same.

    Args:
        a: A run, read to its end.
        b: Another run, read to its end.

    Raises:
        OSError: A text cannot be read any more.
    """
    steps_a = _compared_steps(a)
    steps_b = _compared_steps(b)
    pairs = list(_aligned_pairs(steps_a, steps_b))
    actions = [
        (pair.a is not None and steps_a[pair.a].acts)
        or (pair.b is not None and steps_b[pair.b].acts)
        for pair in pairs
    ]
    differs = [
        acts and pair.likeness is not Likeness.SAME
        for pair, acts in zip(pairs, actions, strict=True)
    ]
    matches = [
        acts and pair.likeness is Likeness.SAME for pair, acts in zip(pairs, actions, strict=True)
    ]
    first = differs.index(True) if True in differs else None
    fork = _fork_row(pairs, differs, matches)
    return RunAlignment(pairs, actions, first, fork, _cause_row(pairs, actions, fork))


def is_action(span: Span) -> bool:
    """Return whether an agent acts in a step: it calls a tool, or says something."""
    return span.kind is SpanKind.TOOL_CALL or (
        span.kind is SpanKind.MESSAGE and span.role is Role.AGENT
    )


class _ComparedStep(NamedTuple):
    """A span in the form in which it is compared.

    Attributes:
        head: The kind, role and tool of the span.
        text: The beginning of its text, without parts that differ from run to run.
        signature: A hash of the head and the text.
        acts: True if an agent acts in the step.
        call: The index of the call that a result answers; None if it is unknown.
    """

    head: tuple[SpanKind, Role, str | None]
    text: str
    signature: int
    acts: bool
    call: int | None


def _compared_steps(trace: Trace) -> Sequence[_ComparedStep]:
    return [
        _compared_step(trace, trace.span(index), trace.text(index)) for index in range(len(trace))
    ]


def _compared_step(trace: Trace, span: Span, text: str) -> _ComparedStep:
    """Return a span in the form in which it is compared."""
    text = _SPACE.sub(" ", text[:COMPARED_CHARS]).strip()
    if span.kind is SpanKind.TOOL_RESULT:
        text = _RUN_SPECIFIC.sub("0", text)
    head = (span.kind, span.role, span.name)
    call = None
    if span.kind is SpanKind.TOOL_RESULT and span.parent is not None:
        call = trace.index_of(span.parent)
    return _ComparedStep(head, text, hash((head, text)), is_action(span), call)


def _aligned_pairs(
    steps_a: Sequence[_ComparedStep], steps_b: Sequence[_ComparedStep]
) -> Iterator[Pair]:
    """Yield the rows of two runs: the same steps, and between them the rows of each gap."""
    matches = _common_subsequence(
        [step.signature for step in steps_a], [step.signature for step in steps_b]
    )
    same_steps = dict(matches)
    for (a, b), (next_a, next_b) in pairwise([(-1, -1), *matches, (len(steps_a), len(steps_b))]):
        if a >= 0:
            yield Pair(a, b, Likeness.SAME)
        gap = _Gap(steps_a, steps_b, range(a + 1, next_a), range(b + 1, next_b), same_steps)
        yield from gap.pairs()


def _common_subsequence(
    signatures_a: Sequence[int], signatures_b: Sequence[int]
) -> Sequence[tuple[int, int]]:
    """Return the pairs of indices of a longest common subsequence."""
    return [
        (block.src_start + step, block.dest_start + step)
        for block in LCSseq.opcodes(signatures_a, signatures_b)
        if block.tag == "equal"
        for step in range(block.src_end - block.src_start)
    ]


@dataclass(frozen=True, slots=True)
class _Gap:
    """The steps between two pairs of equal steps.

    Attributes:
        steps_a: All steps of the first run.
        steps_b: All steps of the second run.
        in_a: The indices of the steps in the gap, in the first run.
        in_b: The indices of the steps in the gap, in the second run.
        same: The equal steps of the whole runs: the index in the second run by that in the first.
    """

    steps_a: Sequence[_ComparedStep]
    steps_b: Sequence[_ComparedStep]
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
            matches = self._best_matches()
        else:
            head_matches = _common_subsequence(
                [hash(steps_a[a].head) for a in in_a], [hash(steps_b[b].head) for b in in_b]
            )
            matches = [(in_a[a], in_b[b]) for a, b in head_matches]
        ends = [(in_a.start - 1, in_b.start - 1), *matches, (in_a.stop, in_b.stop)]
        for (a, b), (next_a, next_b) in pairwise(ends):
            if a >= in_a.start:
                yield Pair(a, b, _step_likeness(steps_a[a], steps_b[b]))
            for index_a, index_b in zip_longest(range(a + 1, next_a), range(b + 1, next_b)):
                likeness = Likeness.OTHER
                if index_b is None:
                    likeness = Likeness.ONLY_A
                elif index_a is None:
                    likeness = Likeness.ONLY_B
                yield Pair(index_a, index_b, likeness)

    def _best_matches(self) -> Sequence[tuple[int, int]]:
        """Return the pairs with the greatest sum of gains, in the order of both runs.

        This is the algorithm of Needleman and Wunsch (1970) without a cost of gaps. The gain of a
        pair grows with its likeness above ``ALIKE``; two answers to the same call gain most.
        """
        left_steps = [self.steps_a[a] for a in self.in_a]
        right_steps = [self.steps_b[b] for b in self.in_b]
        if not left_steps or not right_steps:
            return []
        head_numbers = {
            step.head: number for number, step in enumerate((*left_steps, *right_steps))
        }
        has_same_head = np.equal.outer(
            [head_numbers[step.head] for step in left_steps],
            [head_numbers[step.head] for step in right_steps],
        )
        likeness = cdist(
            [step.text for step in left_steps], [step.text for step in right_steps], scorer=ratio
        )
        gain = np.where(has_same_head & (likeness >= ALIKE), likeness - ALIKE + 1, 0.0)
        # The calls as indices in the second run; unknown calls must not equal each other.
        left_calls = [
            -1 if step.call is None else self.same.get(step.call, -1) for step in left_steps
        ]
        right_calls = [-2 if step.call is None else step.call for step in right_steps]
        gain[np.equal.outer(left_calls, right_calls)] = 100.0
        best_sum = np.zeros((len(left_steps) + 1, len(right_steps) + 1))
        for row in range(len(left_steps) - 1, -1, -1):
            if_paired = np.where(gain[row] > 0, gain[row] + best_sum[row + 1, 1:], 0.0)
            row_sums = np.maximum(if_paired, best_sum[row + 1, :-1])
            best_sum[row, :-1] = np.maximum.accumulate(row_sums[::-1])[::-1]
        matches = []
        row = 0
        column = 0
        while row < len(left_steps) and column < len(right_steps):
            pair_gain = gain[row, column]
            if pair_gain and best_sum[row, column] == pair_gain + best_sum[row + 1, column + 1]:
                matches.append((self.in_a[row], self.in_b[column]))
                row += 1
                column += 1
            elif best_sum[row, column] == best_sum[row + 1, column]:
                row += 1
            else:
                column += 1
        return matches


def _step_likeness(a: _ComparedStep, b: _ComparedStep) -> Likeness:
    """Return ``SAME`` for equal calls and for other similar texts of one kind, else ``CHANGED``."""
    if a.text == b.text:
        return Likeness.SAME
    kind, _, _ = a.head
    is_similar = kind is not SpanKind.TOOL_CALL and ratio(a.text, b.text) >= SAME_WORDS
    return Likeness.SAME if is_similar else Likeness.CHANGED


def _fork_row(
    pairs: Sequence[Pair], differs: Sequence[bool], matches: Sequence[bool]
) -> int | None:
    """Return the row at which two runs part, None if they stay together.

    The best cut has few differences before it and few matches after it. A match after the cut
    weighs a little more, as two runs that have parted seldom act the same. Between two matches,
    only the differences of the run with more of them count: an action done in two ways counts once.

    Args:
        pairs: The rows.
        differs: For each row True if the agents act differently.
        matches: For each row True if the agents act the same.
    """
    differences_before = [0]
    earlier_count = 0
    count_a = 0
    count_b = 0
    for pair, is_difference, is_match in zip(pairs, differs, matches, strict=True):
        if is_match:
            earlier_count += max(count_a, count_b)
            count_a = 0
            count_b = 0
        if is_difference:
            count_a += pair.a is not None
            count_b += pair.b is not None
        differences_before.append(earlier_count + max(count_a, count_b))
    matches_after = list(accumulate(reversed(matches), initial=0))[::-1]
    errors = [
        difference_count + LATE_MATCH_WEIGHT * match_count
        for difference_count, match_count in zip(differences_before, matches_after, strict=True)
    ]
    cut = min(range(len(errors)), key=errors.__getitem__)
    return next((row for row in range(cut, len(differs)) if differs[row]), None)


def _cause_row(pairs: Sequence[Pair], actions: Sequence[bool], fork: int | None) -> int | None:
    """Return the last row before the fork at which a question got two answers.

    Return None if an action is nearer to the fork, or if there is no such row.
    """
    for row in range((fork or 0) - 1, -1, -1):
        if actions[row]:
            return None
        if pairs[row].likeness is Likeness.CHANGED:
            return row
    return None


def sentences(alignment: RunAlignment) -> Iterator[str]:
    """Yield sentences that say at which row two runs part, and count the same actions around it."""
    if alignment.first is None:
        yield "The agents do the same in both."
        return
    if alignment.fork is None:
        same_count, action_count = alignment.alike(0)
        yield f"They stay together: {same_count} of {action_count} actions are the same."
        yield f"They first differ at {_pair_name(alignment.pairs[alignment.first])}."
        return
    same_before, actions_before = alignment.alike(0, alignment.fork)
    same_after, actions_after = alignment.alike(alignment.fork)
    rows = _pair_name(alignment.pairs[alignment.fork])
    if actions_before:
        yield (
            f"They diverge at {rows}. Before it {same_before} of {actions_before} actions are "
            f"the same, from there on {same_after} of {actions_after}."
        )
    else:
        yield (
            f"They diverge at the first action, {rows}: {same_after} of {actions_after} are "
            "the same."
        )
    if alignment.cause is not None:
        rows = _pair_name(alignment.pairs[alignment.cause])
        yield f"Just before, the same call got different results: {rows}."
    if alignment.first != alignment.fork:
        rows = _pair_name(alignment.pairs[alignment.first])
        yield f"They first differ at {rows}, and converge again."


def _pair_name(pair: Pair) -> str:
    """Return the name of a row by its spans, such as ``A #3 and B #4``."""
    sides = [
        f"{name} #{index + 1}"
        for name, index in (("A", pair.a), ("B", pair.b))
        if index is not None
    ]
    return " and ".join(sides)
