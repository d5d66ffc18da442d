"""Bursts of keys make the same labels as single keys."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from tests.terminal.acknowledging_app import AcknowledgedTerminal

SPANS: Final = 300
SIZES: Final = ((100, 30), (120, 40), (80, 24))
"""Terminal sizes in columns and rows."""

SEEDS: Final = range(2)
BURSTS: Final = 5
"""Bursts for each seed; one pair of apps plays all of them."""

ESCAPE: Final = b"\x1b[27u"
"""The escape key of terminals that distinguish it from the start of a sequence."""

MODES: Final = ("11", "12", "13", "14", "15", "21", "22", "23", "24", "25", "26", "31", "32", "33")
TYPED: Final = (
    *MODES,
    *(f"-{mode}" for mode in MODES[:4]),
    *(f"_{mode}" for mode in MODES[4:8]),
    *("j", "jj", "k", "3", "1", "u", "U", "t13", "vj21", "vjj33o", "G", "g"),
)
"""Keys of the annotate screen."""

NOTES: Final = ("late", "13", "j u")
REPORTS: Final = (b"\x1b[O", b"\x1b[I", b"\x1b[200~13\n\x1b[201~", b"\x1b[<35;20;5M")
"""Reports: focus lost, focus gained, a paste, a move of the mouse."""


@dataclass(slots=True)
class Burst:
    """Keys and reports in the order in which the terminal sends them."""

    parts: list[bytes] = field(default_factory=list)
    size: tuple[int, int] | None = None
    """The size that the terminal gets in the middle of the burst, if any."""


def make_burst(source: random.Random) -> Burst:
    """Make a burst of up to twelve parts."""
    burst = Burst()
    if source.random() < 0.15:
        burst.size = source.choice(SIZES)
    for _ in range(source.randint(1, 8)):
        chance = source.random()
        if chance < 0.3:
            burst.parts.append(source.choice(REPORTS))
        elif chance < 0.4 and burst.size is None:
            burst.parts.append(click(source.randint(3, 12)))
        elif chance < 0.45:
            burst.parts += [b"13", b"m", source.choice(NOTES).encode(), b"\r"]
        elif chance < 0.5:
            burst.parts += [b"1", ESCAPE]
        else:
            burst.parts += [bytes([byte]) for byte in source.choice(TYPED).encode()]
    return burst


def click(row: int) -> bytes:
    return f"\x1b[<0;30;{row}M\x1b[<0;30;{row}m".encode()


def pieces_of(data: bytes, source: random.Random) -> list[bytes]:
    """Cut bytes in up to four pieces."""
    cuts = sorted(source.sample(range(len(data) + 1), min(3, len(data) + 1)))
    bounds = [0, *cuts, len(data)]
    pieces = [data[start:end] for start, end in pairwise(bounds)]
    return [piece for piece in pieces if piece]


class Annotator:
    """A terminal in which an annotator works, and the labels on disk."""

    def __init__(self, folder: Path, name: str) -> None:
        home = folder / name
        seen = home / ".local" / "share" / "mast-tui"
        seen.mkdir(parents=True)
        (seen / "welcomed").touch()
        trace = home / "talk.json"
        messages = [{"role": "assistant", "content": f"step {n}"} for n in range(SPANS)]
        trace.write_text(json.dumps(messages))
        self._workspace = home / "w.db"
        columns, rows = SIZES[0]
        self.terminal = AcknowledgedTerminal(
            str(trace),
            *("--workspace", str(self._workspace), "--annotator", "ann"),
            home=home,
            columns=columns,
            rows=rows,
        )

    def state(self) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self._workspace)) as database:
            labels = database.execute(
                "SELECT mode, first_key, last_key, quote, note, severity FROM labels "
                "ORDER BY mode, first_key, last_key, note"
            ).fetchall()
            verdicts = database.execute(
                "SELECT mode, value FROM verdicts ORDER BY mode, value"
            ).fetchall()
        return [*labels, *verdicts, (self.terminal.open_span,)]


@pytest.fixture
def annotators(tmp_path: Path) -> Iterator[tuple[Annotator, Annotator]]:
    """An annotator who types in bursts, and one who waits after each key."""
    fast, slow = Annotator(tmp_path, "fast"), Annotator(tmp_path, "slow")
    with fast.terminal, slow.terminal:
        fast.terminal.wait()
        slow.terminal.wait()
        yield fast, slow


def go_to_top(terminal: AcknowledgedTerminal) -> None:
    """Close dialogs, open the trace, and scroll to its first span.

    A resize within a burst scrolls by chance. If the first digit of a mode is pending, the first
    key only cancels it.
    """
    while terminal.open_screen != "AnnotateScreen":
        terminal.send([b"\r" if terminal.open_screen == "LibraryScreen" else ESCAPE])
    terminal.send([b"g"])
    terminal.send([b"g"])


def play(burst: Burst, pieces: Sequence[bytes], terminal: AcknowledgedTerminal) -> None:
    """Send the pieces of a burst at once, with the resize between them."""
    go_to_top(terminal)
    middle = len(pieces) // 2
    terminal.write(pieces[:middle])
    if burst.size is not None:
        terminal.resize(*burst.size)
    terminal.write(pieces[middle:])
    terminal.wait()


def play_slowly(burst: Burst, terminal: AcknowledgedTerminal) -> None:
    """Send the keys of a burst one by one, each after the previous one is handled."""
    go_to_top(terminal)
    for part in burst.parts:
        terminal.send([part])
    if burst.size is not None:
        terminal.resize(*burst.size)
        terminal.wait()


@pytest.mark.slow
def test_bursts_of_keys_make_the_same_labels(annotators: tuple[Annotator, Annotator]) -> None:
    fast, slow = annotators
    for seed in SEEDS:
        source = random.Random(seed)
        for number in range(BURSTS):
            burst = make_burst(source)
            pieces = pieces_of(b"".join(burst.parts), source)
            play(burst, pieces, fast.terminal)
            play_slowly(burst, slow.terminal)
            assert fast.state() == slow.state(), (seed, number, pieces, burst.size)
