"""Two runs of one task side by side: the pairs of steps, and the row at which the runs part."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from itertools import accumulate, pairwise, zip_longest
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq
from rapidfuzz.fuzz import ratio
from rapidfuzz.process import cdist

from mast_tui.traces.model import Role, Span, SpanKind, Trace
from mast_tui.traces.pictures import Picture, PictureFinder, may_have_pictures

COMPARED_CHARS: Final = 2000
"""The code points at the beginning of a text that are compared."""

ALIKE: Final = 60.0
"""The least likeness of two steps of one kind, in percent, that count as one step done
differently."""

SAME_WORDS: Final = 90.0
"""The least likeness of two messages, in percent, that count as the same."""

LATE_MATCH_WEIGHT: Final = 1.2
"""The cost of an equal action after the fork; a different action before it costs 1.

Values from 1.2 to 2 found planted forks equally often.
"""

MOST_PAIRS: Final = 40_000
"""The most pairs of steps in a gap that are compared by text; in longer gaps kind, role and tool
decide."""

_SPACE: Final = re.compile(r"\s+")
_RUN_SPECIFIC: Final = re.compile(r"\b0x[0-9a-f]+\b|\b[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b|\d+")
"""Ids, times and counts in the results of tools, which differ from run to run."""


class Likeness(StrEnum):
    """The kinds of likeness of two runs at one row."""

    SAME = "same"
    CHANGED = "changed"
    """Two steps of one kind and tool, or two results of one call, with different texts."""
    OTHER = "other"
    """Two steps with nothing in common, side by side."""
    ONLY_A = "only_a"
    ONLY_B = "only_b"


class Pair(NamedTuple):
    """A row of two runs side by side: a span of each run, by its index; None for a missing span."""

    a: int | None
    b: int | None
    likeness: Likeness


@dataclass(frozen=True, slots=True)
class RunAlignment:
    """Two runs side by side.

    Attributes:
        pairs: All rows; each run keeps its own order.
        action_flags: For each row, True if an agent acts, by a call or in words.
        first_difference: The first row with different actions; None without one.
        fork: The row of the action from which the runs mostly differ; None if they stay together.
        cause: The last row before the fork with different results of one call, if no action follows
            it before the fork.
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

    Equal steps are paired first (the longest common subsequence), then similar steps between them.
    Ids, times and counts in the results of tools are ignored.

    Args:
        a: A run, read to its end.
        b: Another run, read to its end.

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
    """A span in the form for comparison.

    Attributes:
        head: The kind, role and tool of the span.
        text: The beginning of its text, without parts that differ from run to run.
        pictures: The pictures in the span, by their bytes, or by their names if they are not here.
        signature: A hash of the head, the text and the pictures.
        is_action: True if an agent acts in the step.
        call: The index of the call of a tool result; None if unknown.
    """

    head: tuple[SpanKind, Role, str | None]
    text: str
    pictures: tuple[bytes | str, ...]
    signature: int
    is_action: bool
    call: int | None


def _compared_steps(trace: Trace) -> Sequence[_ComparedStep]:
    finder = PictureFinder(trace)
    return [_compared_step(trace, index, finder) for index in range(len(trace))]


def _compared_step(trace: Trace, index: int, finder: PictureFinder) -> _ComparedStep:
    span = trace.span(index)
    text = trace.text(index)
    pictures = () if not may_have_pictures(text) else _contents(finder.of_span(index))
    text = _SPACE.sub(" ", text[:COMPARED_CHARS]).strip()
    if span.kind is SpanKind.TOOL_RESULT:
        text = _RUN_SPECIFIC.sub("0", text)
    head = (span.kind, span.role, span.name)
    call = None
    if span.kind is SpanKind.TOOL_RESULT and span.parent is not None:
        call = trace.index_of(span.parent)
    signature = hash((head, text, pictures))
    return _ComparedStep(head, text, pictures, signature, is_action(span), call)


def _contents(pictures: Sequence[Picture]) -> tuple[bytes | str, ...]:
    """Return a hash of each picture, or the name of a picture that cannot be read."""
    return tuple(
        picture.name if picture.data is None else sha256(picture.data).digest()
        for picture in pictures
    )


def _aligned_pairs(
    steps_a: Sequence[_ComparedStep], steps_b: Sequence[_ComparedStep]
) -> Iterator[Pair]:
    """Yield the rows of two runs: pairs of equal steps, and the steps in the gaps between them."""
    matches = _common_subsequence(
        [step.signature for step in steps_a], [step.signature for step in steps_b]
    )
    equal_steps = dict(matches)
    # The sentinels add a gap before the first match and one after the last.
    ends = [(-1, -1), *matches, (len(steps_a), len(steps_b))]
    for (a, b), (next_a, next_b) in pairwise(ends):
        if a >= 0:
            yield Pair(a, b, Likeness.SAME)
        gap = _Gap(steps_a, steps_b, range(a + 1, next_a), range(b + 1, next_b), equal_steps)
        yield from gap.pairs()


def _common_subsequence(
    signatures_a: Sequence[int], signatures_b: Sequence[int]
) -> Sequence[tuple[int, int]]:
    """Return a longest common subsequence, each element by its indices in both sequences."""
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
        equal_steps: The pairs of equal steps of the whole runs: the index in the first run, then in
            the second.
    """

    steps_a: Sequence[_ComparedStep]
    steps_b: Sequence[_ComparedStep]
    gap_a: range
    gap_b: range
    equal_steps: Mapping[int, int]

    def pairs(self) -> Iterator[Pair]:
        """Yield the rows of the gap: similar steps are paired, the others put side by side."""
        steps_a = self.steps_a
        steps_b = self.steps_b
        gap_a = self.gap_a
        gap_b = self.gap_b
        if len(gap_a) * len(gap_b) <= MOST_PAIRS:
            matches = self._best_matches()
        else:  # too many texts to compare; kind, role and tool decide
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
        """Return the pairs of steps with the greatest sum of gains, in the order of both runs."""
        if not self.gap_a or not self.gap_b:
            return []
        return [(self.gap_a[row], self.gap_b[column]) for row, column in _best_path(self._gains())]

    def _gains(self) -> NDArray[np.float64]:
        """Return the gain of each pair: a row for each step of the first run.

        The gain of two steps with the same head grows with the likeness of their texts above
        ``ALIKE``. Two results of the same call gain most.
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
        # Results match if their calls are a pair of equal steps. Unknown calls must not match.
        left_calls = [
            -1 if step.call is None else self.equal_steps.get(step.call, -1) for step in left_steps
        ]
        right_calls = [-2 if step.call is None else step.call for step in right_steps]
        gains[np.equal.outer(left_calls, right_calls)] = 100.0
        return gains


def _best_path(gains: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """Yield the pairs (row, column) with the greatest sum of gains.

    Rows and columns grow from pair to pair. This is the algorithm of Needleman and Wunsch (1970)
    without a cost of gaps.
    """
    row_count, column_count = gains.shape
    # best_sum[row, column] is the greatest sum of gains from this row and column on.
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

    Texts that are only similar count as the same, except in tool calls.
    """
    if a.pictures != b.pictures:
        return Likeness.CHANGED
    if a.text == b.text:
        return Likeness.SAME
    kind, _, _ = a.head
    is_similar = kind is not SpanKind.TOOL_CALL and ratio(a.text, b.text) >= SAME_WORDS
    return Likeness.SAME if is_similar else Likeness.CHANGED


def _fork_row(pairs: Sequence[Pair], action_flags: Sequence[bool]) -> int | None:
    """Return the row at which two runs part; None if they stay together.

    A cut is chosen with few differences before it and few matches after it. The fork is the first
    difference after the cut. Matches after the cut weigh more, because parted runs seldom act the
    same.
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

    Between two equal actions, the differences of the two runs are not added: the greater number
    counts.
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
    """Return the last row before the fork at which one call got different results.

    Return None if an action comes between this row and the fork.
    """
    for row in range((fork or 0) - 1, -1, -1):
        if action_flags[row]:
            return None
        if pairs[row].likeness is Likeness.CHANGED:
            return row
    return None


def sentences(alignment: RunAlignment) -> Iterator[str]:
    """Yield sentences on two runs: where they part, and how many actions are the same."""
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
