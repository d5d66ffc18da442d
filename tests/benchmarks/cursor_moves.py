"""From a key to the last byte of the redraw, and how many bytes a cursor move takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep

from tests.benchmarks.data import Rollout
from tests.benchmarks.rollouts import is_one_line
from tests.benchmarks.setting import Setting, attempt, ours, wait_until_read
from tests.benchmarks.table import Row, times
from tests.benchmarks.terminals import Program, first_words

SIZES = (1000, 1_000_000)
QUICK_SIZES = (1000, 100_000)
TO_THE_EDGE = 30
"""Moves after which every further one scrolls."""

WITHIN = 13
"""Moves that stay on the screen."""

WRITTEN = 10_000
WRITTEN_A_SECOND = 500
"""Spans of a file that is followed, and how fast they come."""

ROUND = 0.02
"""Seconds between two pieces of it."""

KEY_SECONDS = 10.0
"""After which a key counts as not answered."""


@dataclass(frozen=True, slots=True)
class Move:
    """The redraw after a key: seconds to its first and last byte and to the title, and its size.

    ``scrolls`` marks a move at the lower edge of the timeline, ``one_line`` a move between spans of
    one line each.
    """

    first_byte: float
    last_byte: float
    title_time: float
    size: int
    scrolls: bool
    one_line: bool


def measure(setting: Setting) -> list[Row]:
    """Measure keys in traces of two sizes, and while a trace or file grows."""
    sizes = QUICK_SIZES if setting.quick else SIZES
    keys = setting.times(300, 60)
    rows: list[Row] = []
    base: dict[str, Row] = {}
    for spans in sizes:

        def at_size(spans: int = spans) -> list[Row]:
            moves = _moves(setting, setting.data.short_rollout(spans), keys)
            return _rows(f"{spans:,} spans", moves, base)

        rows += attempt(f"keys at {spans:,} spans", at_size)

    def growing() -> list[Row]:
        seconds, early_share = moves_while_reading(setting, setting.big, keys)
        title = f"key → next span's title, {setting.big_name} while the index grows"
        note = f"{early_share:.0%} of the keys before it was whole"
        return [times(title, seconds, against=base.get("shown"), note=note)]

    def followed() -> list[Row]:
        seconds = moves_while_followed(setting, keys)
        title = f"key → next span's title, while {WRITTEN_A_SECOND} spans a second are written"
        slowest = f"slowest {1000 * max(seconds):.0f} ms; all {WRITTEN:,} spans came"
        return [times(title, seconds, against=base.get("shown"), note=slowest)]

    rows += attempt("keys while the index grows", growing)
    return [*rows, *attempt("keys while the file grows", followed)]


def _moves(setting: Setting, rollout: Rollout, keys: int) -> list[Move]:
    """Return moves down that scroll, and as many up and down within the screen."""
    moves: list[Move] = []
    with ours(rollout.path) as program:
        wait_until_read(program, rollout, setting.timeout)
        for index in range(TO_THE_EDGE + keys):
            moves.append(_move(program, index, index + 1, scrolls=True))
        index = TO_THE_EDGE + keys
        del moves[:TO_THE_EDGE]
        for number in range(keys):
            other = index + (-1 if number // WITHIN % 2 == 0 else 1)
            moves.append(_move(program, index, other, scrolls=False))
            index = other
    return moves


def _move(program: Program, index: int, other: int, *, scrolls: bool) -> Move:
    length = len(program.raw)
    sent = program.send(b"j" if other > index else b"k")
    title_time = program.until_bytes(_title(other), KEY_SECONDS, since=length)
    redraw = program.until_quiet(sent)
    one_line = is_one_line(index) and is_one_line(other)
    return Move(redraw.first, redraw.last, title_time - sent, redraw.size, scrolls, one_line)


def _rows(size: str, moves: Sequence[Move], base: dict[str, Row]) -> list[Row]:
    """Return the rows of one size, divided by those of the first size."""
    still = [move for move in moves if not move.scrolls]
    scrolling = [move for move in moves if move.scrolls]
    rows = {
        "first": times(f"key → first byte, {size}", [m.first_byte for m in still]),
        "still": times(f"key → last byte, {size}", [m.last_byte for m in still]),
        "shown": times(f"key → next span's title, {size}", [m.title_time for m in still]),
        "scrolling": times(
            f"key that scrolls → last byte, {size}", [m.last_byte for m in scrolling]
        ),
        "one line": _bytes(f"a move between one-line spans, {size}", still, one_line=True),
        "other": _bytes(f"any other move, {size}", still, one_line=False),
        "scrolled": _bytes(f"a move that scrolls, {size}", scrolling, one_line=True),
    }
    compared = [
        replace(row, against=base[name].title, base=base[name].middle) if name in base else row
        for name, row in rows.items()
    ]
    for name, row in rows.items():
        base.setdefault(name, row)
    return compared


def _bytes(title: str, moves: Sequence[Move], *, one_line: bool) -> Row:
    return Row(title, tuple(m.size for m in moves if m.one_line == one_line), "bytes")


def moves_while_reading(setting: Setting, rollout: Rollout, keys: int) -> tuple[list[float], float]:
    """Return the seconds from each key to the next span, and the share of keys during reading.

    The keys begin with the first spans, one as soon as the one before it is answered.
    """
    seconds: list[float] = []
    early = 0
    whole = re.compile(rb"%d spans" % rollout.facts.spans)
    with ours(rollout.path) as program:
        program.until_screen(re.escape(first_words(rollout.path)), setting.timeout)
        for index in range(keys):
            early += whole.search(program.raw) is None
            seconds.append(press_down(program, index))
    return seconds, early / keys


def moves_while_followed(setting: Setting, keys: int) -> list[float]:
    """Return the seconds from each key to the next span's title while the file is written.

    The file begins with a tenth of ``WRITTEN`` spans; the others are written beside the keys.
    """
    rollout = setting.data.short_rollout(WRITTEN)
    lines = rollout.path.read_bytes().splitlines(keepends=True)
    begun = len(lines) // 10
    with TemporaryDirectory() as folder:
        path = Path(folder) / rollout.path.name
        path.write_bytes(b"".join(lines[:begun]))

        def write_on() -> None:
            a_round = max(1, round(len(lines) / WRITTEN * WRITTEN_A_SECOND * ROUND))
            with path.open("ab", buffering=0) as file:
                for start in range(begun, len(lines), a_round):
                    file.write(b"".join(lines[start : start + a_round]))
                    sleep(ROUND)

        with ours(path) as program, ThreadPoolExecutor(1) as writer:
            program.until_screen(re.escape(first_words(path)), setting.timeout)
            program.until_idle(setting.timeout)
            written = writer.submit(write_on)
            seconds = [press_down(program, index) for index in range(keys)]
            written.result()
            program.send(b"\x1b[15~")
            program.until_bytes(rb"%d spans" % rollout.facts.spans, setting.timeout)
    return seconds


def press_down(program: Program, index: int) -> float:
    """Return the seconds from ``j`` on the span at ``index`` to the title of the next."""
    length = len(program.raw)
    sent = program.send(b"j")
    title_time = program.until_bytes(_title(index + 1), KEY_SECONDS, since=length)
    program.drain(0.05)
    return title_time - sent


def _title(index: int) -> bytes:
    """Return the beginning of the title of the span view."""
    return rb" #%d (message|reasoning|tool|log)" % (index + 1)
