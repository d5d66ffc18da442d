"""1.3 Step repetition in rounds: the same calls in the same order, and nothing comes of them.

What makes no change, and one change made once more, is seen call by call (``repetition``). Here a
round of several calls holds a change that is taken back or made anew, and each call has the answer
that it had in the round before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from mast_tui.judges.rules.repetition import MODE
from mast_tui.judges.rules.walk import Call, Walk, answer_of
from mast_tui.labels import Finding

_SHORTEST_ROUND: Final = 2
_LONGEST_ROUND: Final = 6
_FEWEST_ROUNDS: Final = 3

_Seen: TypeAlias = tuple[str, str, str, str]


def find(walk: Walk) -> Iterator[Finding]:
    """Suggest all rounds but the first of each loop."""
    calls = [call for call in walk.calls if call.works]
    seen = [_seen(call) for call in calls]
    place = 0
    while place < len(calls):
        length, rounds = _longest_loop(seen, place)
        loop = calls[place : place + length * rounds]
        if rounds < _FEWEST_ROUNDS or not any(call.changed for call in loop[:length]):
            place += 1
            continue
        yield _finding(walk, loop, length, rounds)
        place += len(loop)


def _seen(call: Call) -> _Seen:
    answer = answer_of(call.result) if call.result is not None else f"no answer to {call.index}"
    return call.agent, call.tool, " ".join(call.command.split()), answer


def _longest_loop(seen: Sequence[_Seen], place: int) -> tuple[int, int]:
    """The length of a round that begins here, and how many equal ones follow each other.

    One call again and again is no round.
    """
    best = (1, 1)
    for length in range(_SHORTEST_ROUND, _LONGEST_ROUND + 1):
        round_ = seen[place : place + length]
        if len(set(round_)) == 1:
            continue
        rounds = 1
        while seen[place + rounds * length : place + (rounds + 1) * length] == round_:
            rounds += 1
        if rounds >= _FEWEST_ROUNDS and length * rounds > best[0] * best[1]:
            best = (length, rounds)
    return best


def _finding(walk: Walk, loop: Sequence[Call], length: int, rounds: int) -> Finding:
    first, last = loop[length], loop[-1]
    return walk.finding(
        MODE,
        (first.index, last.last_index),
        first.quote(),
        f"{loop[0].step.number} to {loop[length - 1].step.number}: the same {length} calls, "
        f"with the same answers, {rounds} times in a row; the changes among them lead "
        "back to where they began.",
        min(0.9, 0.5 + 0.1 * rounds),
    )
