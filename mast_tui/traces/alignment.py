"""Two runs of one task side by side: which steps belong together, and where the runs part."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, pairwise, zip_longest
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
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
        action_flags: For each row True if an agent acts there, by a call or in words.
        first_difference: The first row at which the agents act differently; None if there is none.
        fork: The row at which the runs part; None if they stay together to the end. Before this
            action the runs are alike, from it on they differ, with as few exceptions as possible.
        cause: The last row before the fork at which one question got two answers, if no action
            is between the two; None if there is none.
    """

    pairs: Sequence[Pair]
    action_flags: Sequence[bool]
    first_difference: int | None
    fork: int | None
    cause: int | None

    def count_actions(self, begin: int, end: int | None = None) -> tuple[int, int]:
        """Count the rows in which an agent acts.

        Args:
            begin: The first row.
            end: The row after the last one; None for the end of the runs.

        Returns:
            The number of rows with the same action in both runs, and of all rows with an action.
        """
        pairs = self.pairs[begin:end]
        action_flags = self.action_flags[begin:end]
        action_likenesses = [
            pair.likeness
            for pair, is_action_row in zip(pairs, action_flags, strict=True)
            if is_action_row
        ]
        return action_likenesses.count(Likeness.SAME), len(action_likenesses)


def align(a: Trace, b: Trace) -> RunAlignment:
    """Put the steps of two runs side by side.

    Equal steps are paired first (the longest common subsequence). Between them, steps of the same
    kind and tool with similar texts are paired. Ids, times and counts in the answers of tools make
    no difference, and two similar messages of agents count as the same.

    Args:
        a: A run, read to its end.
        b: Another run, read to its end.

    Returns:
        The rows of paired steps, the first different action, the row at which the runs part (the
        fork), and the different answers just before it.

    Raises:
        OSError: A text cannot be read any more.
    """
    steps_a = _compared_steps(a)
    steps_b = _compared_steps(b)
    pairs = list(_aligned_pairs(steps_a, steps_b))
    action_flags = [
        (pair.a is not None and steps_a[pair.a].is_action)
        or (pair.b is not None and steps_b[pair.b].is_action)
        for pair in pairs
    ]
    first_difference = next(
        (
            row
            for row, pair in enumerate(pairs)
            if action_flags[row] and pair.likeness is not Likeness.SAME
        ),
        None,
    )
    fork = _fork_row(pairs, action_flags)
    return RunAlignment(
        pairs, action_flags, first_difference, fork, _cause_row(pairs, action_flags, fork)
    )


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
        is_action: True if an agent acts in the step.
        call: The index of the call that a result answers; None if it is unknown.
    """

    head: tuple[SpanKind, Role, str | None]
    text: str
    signature: int
    is_action: bool
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
    """Yield the rows of two runs: pairs of equal steps, and the steps in the gaps between them."""
    matches = _common_subsequence(
        [step.signature for step in steps_a], [step.signature for step in steps_b]
    )
    equal_steps = dict(matches)
    # There is also a gap before the first match and one after the last.
    ends = [(-1, -1), *matches, (len(steps_a), len(steps_b))]
    for (a, b), (next_a, next_b) in pairwise(ends):
        if a >= 0:
            yield Pair(a, b, Likeness.SAME)
        gap = _Gap(steps_a, steps_b, range(a + 1, next_a), range(b + 1, next_b), equal_steps)
        yield from gap.pairs()


def _common_subsequence(
    signatures_a: Sequence[int], signatures_b: Sequence[int]
) -> Sequence[tuple[int, int]]:
    """Return the elements of a longest common subsequence as pairs of indices in both sequences."""
    return [
        (block.src_start + offset, block.dest_start + offset)
        for block in LCSseq.opcodes(signatures_a, signatures_b)
        if block.tag == "equal"
        for offset in range(block.src_end - block.src_start)
    ]


@dataclass(frozen=True, slots=True)
class _Gap:
    """The steps between two pairs of equal steps.

    Attributes:
        steps_a: All steps of the first run.
        steps_b: All steps of the second run.
        gap_a: The indices of the steps in the gap, in the first run.
        gap_b: The indices of the steps in the gap, in the second run.
        equal_steps: The equal steps of the whole runs: the index in the second run by that in the
            first.
    """

    steps_a: Sequence[_ComparedStep]
    steps_b: Sequence[_ComparedStep]
    gap_a: range
    gap_b: range
    equal_steps: Mapping[int, int]

    def pairs(self) -> Iterator[Pair]:
        """Yield the rows of the gap: first pair similar steps, then put the others side by side."""
        steps_a = self.steps_a
        steps_b = self.steps_b
        gap_a = self.gap_a
        gap_b = self.gap_b
        if len(gap_a) * len(gap_b) <= MOST_PAIRS:
            matches = self._best_matches()
        else:  # too many pairs to compare their texts: kind, role and tool decide
            head_matches = _common_subsequence(
                [hash(steps_a[a].head) for a in gap_a], [hash(steps_b[b].head) for b in gap_b]
            )
            matches = [(gap_a[a], gap_b[b]) for a, b in head_matches]
        ends = [(gap_a.start - 1, gap_b.start - 1), *matches, (gap_a.stop, gap_b.stop)]
        for (a, b), (next_a, next_b) in pairwise(ends):
            if a >= gap_a.start:
                yield Pair(a, b, _step_likeness(steps_a[a], steps_b[b]))
            for index_a, index_b in zip_longest(range(a + 1, next_a), range(b + 1, next_b)):
                likeness = Likeness.OTHER
                if index_b is None:
                    likeness = Likeness.ONLY_A
                elif index_a is None:
                    likeness = Likeness.ONLY_B
                yield Pair(index_a, index_b, likeness)

    def _best_matches(self) -> Sequence[tuple[int, int]]:
        """Return the pairs with the greatest sum of gains, in the order of both runs."""
        if not self.gap_a or not self.gap_b:
            return []
        return [(self.gap_a[row], self.gap_b[column]) for row, column in _best_path(self._gains())]

    def _gains(self) -> NDArray[np.float64]:
        """Return the gain of each pair: a row for each step of the first run.

        The gain of a pair of one kind, role and tool (head) grows with the likeness of the texts
        above ``ALIKE``; two answers to the same call gain most.
        """
        left_steps = [self.steps_a[a] for a in self.gap_a]
        right_steps = [self.steps_b[b] for b in self.gap_b]
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
        gains = np.where(has_same_head & (likeness >= ALIKE), likeness - ALIKE + 1, 0.0)
        # The calls as indices in the second run; unknown calls must not equal each other.
        left_calls = [
            -1 if step.call is None else self.equal_steps.get(step.call, -1) for step in left_steps
        ]
        right_calls = [-2 if step.call is None else step.call for step in right_steps]
        gains[np.equal.outer(left_calls, right_calls)] = 100.0
        return gains


def _best_path(gains: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """Yield the row and column of each pair whose gains have the greatest sum.

    Rows and columns grow from pair to pair. This is the algorithm of Needleman and Wunsch (1970)
    without a cost of gaps.
    """
    row_count, column_count = gains.shape
    # best_sum[row, column] is the greatest sum of gains of the steps from there to the end.
    best_sum = np.zeros((row_count + 1, column_count + 1))
    for row in range(row_count - 1, -1, -1):
        if_paired = np.where(gains[row] > 0, gains[row] + best_sum[row + 1, 1:], 0.0)
        row_sums = np.maximum(if_paired, best_sum[row + 1, :-1])
        best_sum[row, :-1] = np.maximum.accumulate(row_sums[::-1])[::-1]

    row = 0
    column = 0
    while row < row_count and column < column_count:
        gain = gains[row, column]
        if gain and best_sum[row, column] == gain + best_sum[row + 1, column + 1]:
            yield row, column
            row += 1
            column += 1
        elif best_sum[row, column] == best_sum[row + 1, column]:
            row += 1
        else:
            column += 1


def _step_likeness(a: _ComparedStep, b: _ComparedStep) -> Likeness:
    """Return ``SAME`` or ``CHANGED`` for two paired steps.

    Steps with equal texts are the same; so are similar steps, unless they call a tool.
    """
    if a.text == b.text:
        return Likeness.SAME
    kind, _, _ = a.head
    is_similar = kind is not SpanKind.TOOL_CALL and ratio(a.text, b.text) >= SAME_WORDS
    return Likeness.SAME if is_similar else Likeness.CHANGED


def _fork_row(pairs: Sequence[Pair], action_flags: Sequence[bool]) -> int | None:
    """Return the row at which two runs part, None if they stay together.

    The rows are cut so that few differences are before the cut and few matches after it; the runs
    part at the first difference after the cut. A match after the cut weighs more than a difference
    before it, as two runs that have parted seldom act the same.
    """
    matches = [
        is_action_row and pair.likeness is Likeness.SAME
        for pair, is_action_row in zip(pairs, action_flags, strict=True)
    ]
    matches_after = list(accumulate(reversed(matches), initial=0))[::-1]
    differences_before = _differences_before(pairs, action_flags)
    costs = [
        difference_count + LATE_MATCH_WEIGHT * match_count
        for difference_count, match_count in zip(differences_before, matches_after, strict=True)
    ]
    cut = min(range(len(costs)), key=costs.__getitem__)
    later_rows = range(cut, len(pairs))
    return next((row for row in later_rows if action_flags[row] and not matches[row]), None)


def _differences_before(pairs: Sequence[Pair], action_flags: Sequence[bool]) -> Iterator[int]:
    """Yield the number of different actions before each row, and before the end.

    Between two equal actions, only the differences of the run with more of them count: an action
    done in two ways counts once.
    """
    count_up_to_match = 0
    count_a_since_match = 0
    count_b_since_match = 0
    yield 0
    for pair, is_action_row in zip(pairs, action_flags, strict=True):
        if is_action_row and pair.likeness is Likeness.SAME:
            count_up_to_match += max(count_a_since_match, count_b_since_match)
            count_a_since_match = 0
            count_b_since_match = 0
        elif is_action_row:
            count_a_since_match += pair.a is not None
            count_b_since_match += pair.b is not None
        yield count_up_to_match + max(count_a_since_match, count_b_since_match)


def _cause_row(pairs: Sequence[Pair], action_flags: Sequence[bool], fork: int | None) -> int | None:
    """Return the last row before the fork at which the agents got different answers.

    Return None if there is no such row between the fork and the action before it.
    """
    for row in range((fork or 0) - 1, -1, -1):
        if action_flags[row]:
            return None
        if pairs[row].likeness is Likeness.CHANGED:
            return row
    return None


def sentences(alignment: RunAlignment) -> Iterator[str]:
    """Yield sentences on two runs: where they part, and how many actions are the same.

    The runs part at the fork. An earlier difference, after which they act alike again, is named.
    """
    if alignment.first_difference is None:
        yield "The agents do the same in both."
        return
    if alignment.fork is None:
        same_count, action_count = alignment.count_actions(0)
        yield f"They stay together: {same_count} of {action_count} actions are the same."
        yield f"They first differ at {_pair_name(alignment.pairs[alignment.first_difference])}."
        return
    same_before, actions_before = alignment.count_actions(0, alignment.fork)
    same_after, actions_after = alignment.count_actions(alignment.fork)
    fork_name = _pair_name(alignment.pairs[alignment.fork])
    if actions_before:
        yield (
            f"They diverge at {fork_name}. Before it {same_before} of {actions_before} actions are "
            f"the same, from there on {same_after} of {actions_after}."
        )
    else:
        yield (
            f"They diverge at the first action, {fork_name}: {same_after} of {actions_after} are "
            "the same."
        )
    if alignment.cause is not None:
        cause_name = _pair_name(alignment.pairs[alignment.cause])
        yield f"Just before, the same call got different results: {cause_name}."
    if alignment.first_difference != alignment.fork:
        first_name = _pair_name(alignment.pairs[alignment.first_difference])
        yield f"They first differ at {first_name}, and converge again."


def _pair_name(pair: Pair) -> str:
    """Return the name of a row by its spans, such as ``A #3 and B #4``."""
    span_names = [
        f"{run} #{index + 1}" for run, index in (("A", pair.a), ("B", pair.b)) if index is not None
    ]
    return " and ".join(span_names)
