"""The queues of the library: which traces one goes through, in which order, and how many."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from mast_tui.errors import MastError
from mast_tui.safe_text import one_line

if TYPE_CHECKING:
    from mast_tui.ui.services.open_workspace import OpenWorkspace

SAMPLE_SIZE: Final = 20
MOST_SAMPLED: Final = 1_000_000


class QueueName(StrEnum):
    """What a queue is of; but for ``all`` as the session knows them."""

    ALL = "all"
    MINE = "mine"
    DISAGREEMENTS = "disagreements"
    JUDGE = "judge"
    UNSURE = "unsure"
    SAMPLE = "sample"


TELLS_HIDDEN: Final = frozenset((QueueName.DISAGREEMENTS, QueueName.JUDGE))
"""Queues that tell what others say: that they were looked at is recorded."""

_WORDS: Final = {
    QueueName.ALL: "all traces",
    QueueName.MINE: "mine to do",
    QueueName.DISAGREEMENTS: "disagreements",
    QueueName.JUDGE: "the judge against me",
    QueueName.UNSURE: "unsure",
    QueueName.SAMPLE: "random sample",
}

_EMPTY: Final = {
    QueueName.MINE: "Nothing is left for you to do.",
    QueueName.DISAGREEMENTS: "Nobody else says otherwise on the traces that you have finished.",
    QueueName.JUDGE: "No judge says otherwise on the traces that you have finished.",
    QueueName.UNSURE: "You have called no mode unsure.",
    QueueName.SAMPLE: "There are no traces to draw from.",
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which queue; ``n`` traces drawn by ``seed`` (None: the study's) where it is a sample."""

    name: QueueName = QueueName.ALL
    n: int = SAMPLE_SIZE
    seed: int | None = None

    @property
    def words(self) -> str:
        """What it is called in a title."""
        if self.name is not QueueName.SAMPLE:
            return _WORDS[self.name]
        drawn = "" if self.seed is None else f", seed {self.seed}"
        return f"random sample{drawn}"


@dataclass(frozen=True, slots=True)
class QueueRead:
    """What a queue holds.

    ``trace_ids`` stand in the order in which to take them where it is ``in_order``, else the
    library sorts them; None is every trace. ``modes`` are the slugs for which a trace is there.
    ``anew`` come before what one would go on to, and are never told apart from others on screen.
    """

    wanted: Wanted
    trace_ids: tuple[str, ...] | None = None
    in_order: bool = True
    modes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    anew: frozenset[str] = frozenset()
    study: bool = False


EVERYTHING: Final = QueueRead(Wanted())


def read_queue(opened: OpenWorkspace, wanted: Wanted | None, known: Sequence[str]) -> QueueRead:
    """What a queue holds now, or the one to begin with where none is wanted. Slow: for workers.

    ``known`` are the ids of the traces at hand: without a study they are everybody's. Raises
    ``SessionError`` or ``WorkspaceError`` in words.
    """
    from mast_tui.session import QueueKind, queue
    from mast_tui.study import random_sample

    study = opened.study()
    if wanted is None:
        own = study is not None and opened.annotator in study.annotators
        wanted = Wanted(QueueName.MINE if own else QueueName.ALL)
    if wanted.name is QueueName.ALL:
        return QueueRead(wanted, study=study is not None)
    if study is None and wanted.name is QueueName.MINE:
        done = opened.finished()
        left = tuple(trace_id for trace_id in known if trace_id not in done)
        return QueueRead(wanted, left, in_order=False)
    if study is None and wanted.name is QueueName.SAMPLE:
        return QueueRead(wanted, random_sample(known, wanted.seed or 0, wanted.n))
    items = queue(
        opened.workspace,
        opened.taxonomy,
        opened.annotator,
        QueueKind(wanted.name.value),
        n=wanted.n,
        seed=wanted.seed,
    )
    return QueueRead(
        wanted,
        tuple(item.trace_id for item in items),
        modes={item.trace_id: item.modes for item in items if item.modes},
        anew=frozenset(item.trace_id for item in items if item.retest),
        study=study is not None,
    )


@dataclass(frozen=True, slots=True)
class Counts:
    """How many traces are in the queues that tell nothing hidden; ``finished`` is what those
    that do would look into."""

    sizes: Mapping[QueueName, int]
    finished: int


def count_queues(opened: OpenWorkspace, known: Sequence[str]) -> Counts:
    """Count the queues without telling what is hidden, and so without recording anything. Slow:
    for workers."""
    sizes = {QueueName.ALL: len(known)}
    for name in (QueueName.MINE, QueueName.UNSURE):
        sizes[name] = len(read_queue(opened, Wanted(name), known).trace_ids or ())
    return Counts(sizes, len(opened.finished()))


def count_words(name: QueueName, counts: Counts | None, shown: Mapping[QueueName, int]) -> str:
    """What stands behind a queue's name where one chooses: its count, or what it looks into.

    ``shown`` are the sizes of queues that were looked at already.
    """
    if name in TELLS_HIDDEN:
        looks = "looking is recorded"
        if name in shown:
            return f"{shown[name]:,}"
        if counts is None:
            return looks
        return f"in your {counts.finished:,} finished; {looks}" if counts.finished else "0"
    if name is QueueName.SAMPLE:
        return "asks how many"
    size = None if counts is None else counts.sizes.get(name)
    return "…" if size is None else f"{size:,}"


def empty_words(read: QueueRead, *, annotates: bool) -> str:
    """Why a queue shows nothing, and what to do."""
    name = read.wanted.name
    words = _EMPTY.get(name, "There are no traces.")
    if name is QueueName.MINE and read.study and not annotates:
        words = "You are no annotator of this study, so nothing is yours to label."
    if read.trace_ids:
        count = len(read.trace_ids)
        these = "Its one trace is" if count == 1 else f"All its {count:,} traces are"
        words = f"{these} in files that are not here."
    return f"{words}\n\nf chooses another queue; f, then a, shows all traces."


def sample_from(text: str) -> Wanted:
    """A sample as somebody writes it: ``20``, or ``20 7`` with a seed.

    Raises ``MastError`` for everything else.
    """
    found = re.fullmatch(r"\s*([0-9]{1,7})(?:[\s,]+([0-9]{1,18}))?\s*", text)
    n = 0 if found is None else int(found[1])
    if found is None or not 0 < n <= MOST_SAMPLED:
        raise MastError(f"“{one_line(text, 20)}” is no number of traces, such as 20, or 20 7")
    return Wanted(QueueName.SAMPLE, n, None if found[2] is None else int(found[2]))


def going_on(
    before: Sequence[str], now: Sequence[str], here: str | None, anew: Collection[str] = ()
) -> list[str]:
    """The queue to go on in from an open trace, once what is to do has changed.

    What came behind it comes behind it still, then what is new, then what was passed by; what is
    to be done ``anew`` comes at once. The open trace stays in it.
    """
    if here is None or here not in before:
        return list(now)
    wanted, at_once = set(now) - {here}, set(anew)
    place = before.index(here)
    turned = [*before[place + 1 :], *before[:place]]
    passed = frozenset(before[:place])
    kept = [one for one in turned if one in wanted and one not in at_once]
    known = frozenset(before)
    return [
        here,
        *(one for one in now if one in at_once and one != here),
        *(one for one in kept if one not in passed),
        *(one for one in now if one in wanted and one not in known and one not in at_once),
        *(one for one in kept if one in passed),
    ]
