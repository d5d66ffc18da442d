"""The queues of the library: which traces one goes through, choosing one, and reading it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static
from textual.worker import get_current_worker

from mast_tui.errors import MastError
from mast_tui.safe_text import one_line
from mast_tui.study import random_sample
from mast_tui.ui.actions.registry import KeyOf
from mast_tui.ui.context import context_of
from mast_tui.ui.dialogs.dialog import KeyDialog, KeyRow
from mast_tui.ui.dialogs.note import NoteScreen
from mast_tui.ui.wording import plain_lines, plain_title

if TYPE_CHECKING:
    from mast_tui.ui.library.screen import LibraryScreen
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
    CHANGED = "changed"
    WORTH = "worth"
    SAMPLE = "sample"


TELLS_HIDDEN: Final = frozenset((QueueName.DISAGREEMENTS, QueueName.JUDGE))
"""Queues that tell what others say: that they were looked at is recorded."""


class _QueueTexts(NamedTuple):
    """What is told of a queue: the key that chooses it, its name where one chooses, what is said
    where it is empty, and its name in a title where that is another one."""

    key: str
    choice: str
    empty: str
    title: str | None = None


QUEUES: Final[Mapping[QueueName, _QueueTexts]] = {
    QueueName.ALL: _QueueTexts("a", "all traces", "There are no traces."),
    QueueName.MINE: _QueueTexts("m", "mine to do", "Nothing is left for you to do."),
    QueueName.DISAGREEMENTS: _QueueTexts(
        "d",
        "disagreements with others",
        "Nobody else says otherwise on the traces that you have finished.",
        "disagreements",
    ),
    QueueName.JUDGE: _QueueTexts(
        "j",
        "the judge against me",
        "No judge says otherwise on the traces that you have finished.",
    ),
    QueueName.UNSURE: _QueueTexts("u", "unsure", "You have called no mode unsure."),
    QueueName.CHANGED: _QueueTexts(
        "c", "codebook changed", "No change of the codebook asks you to look again."
    ),
    QueueName.WORTH: _QueueTexts(
        "w",
        "most worth labelling",
        "Nothing that was chosen by what its labels would tell is left for you.\n\n"
        "mast-tui study add --sample N --judge NAME chooses such traces.",
    ),
    QueueName.SAMPLE: _QueueTexts(
        "s", "a random sample", "There are no traces to draw from.", "random sample"
    ),
}


@dataclass(frozen=True, slots=True)
class QueueRequest:
    """Which queue; ``n`` traces drawn by ``seed`` (None: the study's) where it is a sample."""

    name: QueueName = QueueName.ALL
    n: int = SAMPLE_SIZE
    seed: int | None = None

    @property
    def words(self) -> str:
        """What it is called in a title."""
        drawn = "" if self.seed is None else f", seed {self.seed}"
        return f"{QUEUES[self.name].title or QUEUES[self.name].choice}{drawn}"


@dataclass(frozen=True, slots=True)
class QueueRead:
    """What a queue holds.

    ``trace_ids`` stand in the order in which to take them where it is ``in_order``, else the
    library sorts them; None is every trace. ``modes`` are the slugs for which a trace is there.
    ``anew`` come before what one would go on to, and are never told apart from others on screen.
    ``told`` says how sure the figures are for which the traces were chosen. ``outside`` is whoever
    is no annotator of the study.
    """

    wanted: QueueRequest
    trace_ids: tuple[str, ...] | None = None
    in_order: bool = True
    modes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    anew: frozenset[str] = frozenset()
    told: str = ""
    outside: bool = False


def read_queue(
    opened: OpenWorkspace, wanted: QueueRequest | None, known: Sequence[str]
) -> QueueRead:
    """What a queue holds now, or the one to begin with where none is wanted. Slow: for workers.

    ``known`` are the ids of the traces at hand: without a study they are everybody's. Raises
    ``SessionError`` or ``WorkspaceError`` in words.
    """
    study = opened.study()
    outside = study is not None and opened.annotator not in study.annotators
    if wanted is None:
        wanted = QueueRequest(QueueName.ALL if study is None or outside else QueueName.MINE)
    if wanted.name is QueueName.ALL:
        return QueueRead(wanted)
    if study is None and wanted.name is QueueName.MINE:
        done = opened.finished()
        left = tuple(trace_id for trace_id in known if trace_id not in done)
        return QueueRead(wanted, left, in_order=False)
    if study is None and wanted.name is QueueName.SAMPLE:
        return QueueRead(wanted, random_sample(known, wanted.seed or 0, wanted.n))
    items = opened.queue(wanted.name.value, n=wanted.n, seed=wanted.seed)
    told = ""
    if wanted.name is QueueName.WORTH:
        # Brings numpy, which the library does without.
        from mast_tui.ui.library.sample_width import width_told

        told = width_told(opened, study)
    return QueueRead(
        wanted,
        tuple(item.trace_id for item in items),
        modes={item.trace_id: item.modes for item in items if item.modes},
        anew=frozenset(item.trace_id for item in items if item.retest),
        told=told,
        outside=outside,
    )


def count_queues(opened: OpenWorkspace, known: Sequence[str]) -> Mapping[QueueName, int]:
    """Count the queues without telling what is hidden, and so without recording anything; of those
    that tell it, the finished traces that they would look into. Slow: for workers."""
    sizes = {QueueName.ALL: len(known)}
    for name in (QueueName.MINE, QueueName.UNSURE, QueueName.CHANGED):
        sizes[name] = len(read_queue(opened, QueueRequest(name), known).trace_ids or ())
    sizes[QueueName.WORTH] = len(opened.queue(QueueName.WORTH.value, n=SAMPLE_SIZE, seed=None))
    return sizes | dict.fromkeys(TELLS_HIDDEN, len(opened.finished()))


def count_words(
    name: QueueName, counts: Mapping[QueueName, int], shown: Mapping[QueueName, int]
) -> str:
    """What stands behind a queue's name where one chooses: its count, or what it looks into.

    Args:
        name: The queue.
        counts: What ``count_queues`` has counted; empty before it has.
        shown: The sizes of queues that were looked at already.
    """
    if name is QueueName.SAMPLE:
        return "asks how many"
    count = counts.get(name)
    if name not in TELLS_HIDDEN:
        return "…" if count is None else f"{count:,}"
    if name in shown:
        return f"{shown[name]:,}"
    looks = "looking is recorded"
    if count is None:
        return looks
    return f"in your {count:,} finished; {looks}" if count else "0"


def empty_words(read: QueueRead, key_of: KeyOf) -> str:
    """Return why a queue shows nothing, and what to do.

    Args:
        read: The queue as it was read.
        key_of: Returns how the key of an action is shown.
    """
    name = read.wanted.name
    words = QUEUES[name].empty
    if name is QueueName.MINE:
        names = ("agreement", "study", "export")
        agreement, study, export = (key_of(f"everywhere.{one}") for one in names)
        tells = f"{agreement} shows agreement, {study} how far the study is"
        words += f"\n\n{tells}, {export} exports labels."
    if name is QueueName.MINE and read.outside:
        words = "You are no annotator of this study, so nothing is yours to label."
    if read.trace_ids:
        count = len(read.trace_ids)
        these = "Its one trace is" if count == 1 else f"All its {count:,} traces are"
        words = f"{these} in files that are not here."
    key = key_of("library.queue")
    return f"{words}\n\n{key} chooses another queue; {key}, then a, shows all traces."


def sample_from(text: str) -> QueueRequest:
    """A sample as somebody writes it: ``20``, or ``20 7`` with a seed.

    Raises ``MastError`` for everything else.
    """
    found = re.fullmatch(r"\s*([0-9]{1,7})(?:[\s,]+([0-9]{1,18}))?\s*", text)
    n = 0 if found is None else int(found[1])
    if found is None or not 0 < n <= MOST_SAMPLED:
        raise MastError(f"“{one_line(text, 20)}” is no number of traces, such as 20, or 20 7")
    return QueueRequest(QueueName.SAMPLE, n, None if found[2] is None else int(found[2]))


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


_NAME_CELLS: Final = 28


class QueueChoice(KeyDialog[QueueName]):
    """Gives back the queue, or None after Escape. ``shown`` are sizes that were shown before."""

    dialog_keys: ClassVar = (("Enter", "stays with this one"), ("Esc", "leaves"))

    def __init__(
        self,
        opened: OpenWorkspace,
        known: Sequence[str],
        current: QueueName,
        shown: Mapping[QueueName, int],
    ) -> None:
        super().__init__()
        self._opened = opened
        self._known = known
        self._current = current
        self.default = QUEUES[current].key
        self._queue_rows = {name: KeyRow(told.key) for name, told in QUEUES.items()}
        self._looked_at = shown

    def compose(self) -> ComposeResult:
        """A row for each queue."""
        with Vertical(classes="dialog") as box:
            box.border_title = plain_title("Which traces?")
            key_of = context_of(self).key_of
            yield from self._queue_rows.values()
            yield Static(
                plain_lines(
                    f"{key_of('annotate.next_trace')} and {key_of('annotate.previous_trace')} in "
                    "a trace go through the chosen ones, in their order. Disagreements, also with "
                    "the judge, are told of traces that you have finished; these finishes stand "
                    "then."
                ),
                classes="hint",
            )

    def on_mount(self) -> None:
        """Count in the background."""
        self._show({})
        self._count()

    @work(thread=True, group="queues", exclusive=True)
    def _count(self) -> None:
        try:
            counts = count_queues(self._opened, self._known)
        except MastError as error:
            self.call_later(self.say_below, str(error), error=True)
            return
        self.call_later(self._show, counts)

    def _show(self, counts: Mapping[QueueName, int]) -> None:
        for name, told in QUEUES.items():
            count = count_words(name, counts, self._looked_at)
            mark = "  ↵" if name is self._current else ""
            self._queue_rows[name].show(f" {told.choice:<{_NAME_CELLS}}{count}{mark}")

    def take(self, key: str) -> bool:
        """Take the queue of a key."""
        name = next((name for name, told in QUEUES.items() if told.key == key), None)
        if name is not None:
            self.dismiss(name)
        return name is not None


class ShownQueue:
    """The queue that is shown. A study's annotators begin with what is theirs to do."""

    def __init__(self, screen: LibraryScreen) -> None:
        self.read = QueueRead(QueueRequest())
        """What is shown."""
        self._screen = screen
        self._wanted: QueueRequest | None = None
        """The one that was chosen; without it, it is asked each time what to begin with."""
        self._sizes: dict[QueueName, int] = {}

    def reset_queue(self) -> None:
        """A study was set up: begin with what is to do, where no other queue was chosen."""
        if self.read.wanted.name in (QueueName.ALL, QueueName.MINE):
            self._wanted = None
        self.changed()

    def changed(self) -> None:
        """Something was finished, or set up: read the queue anew."""
        opened = self._screen.mast.opened
        if opened is not None and self._screen.is_mounted:
            self._read_on(opened)

    def _read_on(self, opened: OpenWorkspace, *, asked: bool = False) -> None:
        wanted, known = self._wanted, list(self._screen.mast.catalog.traces)

        def work() -> None:
            worker = get_current_worker()
            try:
                read = read_queue(opened, wanted, known)
            except MastError as error:
                words = one_line(str(error))
                self._screen.call_later(lambda: self._screen.hints.say(words, error=True))
                return
            if not worker.is_cancelled:
                self._screen.call_later(self._take, read, asked=asked)

        self._screen.run_worker(work, group="queue", exclusive=True, thread=True)

    def _take(self, read: QueueRead, *, asked: bool) -> None:
        """Show what was read, unless another queue was chosen meanwhile."""
        if self._wanted is not None and read.wanted != self._wanted:
            return
        self.read = read
        if read.trace_ids is not None:
            self._sizes[read.wanted.name] = len(read.trace_ids)
        self._screen.queue_shown(read, asked=asked)

    def choose(self) -> None:
        """Ask for another queue."""
        if self._screen.mast.refused is not None:
            self._screen.hints.say("No workspace is open, so all traces are shown", error=True)
            return
        self._screen.mast.workspace.when_ready(self._choose)

    def _choose(self, opened: OpenWorkspace) -> None:
        def chosen(name: QueueName | None) -> None:
            if name is QueueName.SAMPLE:
                self._ask_for_sample(opened)
            elif name is not None:
                self._want(opened, QueueRequest(name))

        known = list(self._screen.mast.catalog.traces)
        current = self.read.wanted.name
        self._screen.app.push_screen(QueueChoice(opened, known, current, self._sizes), chosen)

    def _ask_for_sample(self, opened: OpenWorkspace) -> None:
        before = self.read.wanted
        seed = "" if before.seed is None else f" {before.seed}"

        def checked(text: str) -> str:
            sample_from(text)
            return text

        def written(text: str | None) -> None:
            if text is not None:
                self._want(opened, sample_from(text))

        self._screen.app.push_screen(
            NoteScreen(
                "A random sample",
                f"{before.n}{seed}",
                question="How many traces? A second number is the seed of another draw; the same "
                "seed always draws the same traces.",
                hint="Enter draws · Esc leaves it as it was",
                check=checked,
                offered=True,
            ),
            written,
        )

    def _want(self, opened: OpenWorkspace, wanted: QueueRequest) -> None:
        self._wanted = wanted
        self._read_on(opened, asked=True)
