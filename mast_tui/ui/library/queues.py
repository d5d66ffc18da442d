"""The queues of the library: choosing a queue, and reading its traces from the workspace."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from mast_tui.errors import MastError
from mast_tui.safe_text import one_line
from mast_tui.study import Study, random_sample
from mast_tui.ui.actions.registry import KeyOf
from mast_tui.ui.dialogs.dialog import Ask, NoteScreen

if TYPE_CHECKING:
    from mast_tui.ui.library.screen import LibraryScreen
    from mast_tui.ui.services.open_workspace import OpenWorkspace


SAMPLE_SIZE: Final = 20
MOST_SAMPLED: Final = 1_000_000


class QueueName(StrEnum):
    """The name of a queue."""

    ALL = "all"
    MINE = "mine"
    DISAGREEMENTS = "disagreements"
    JUDGE = "judge"
    UNSURE = "unsure"
    CHANGED = "changed"
    WORTH = "worth"
    SAMPLE = "sample"


REVEALING_QUEUES: Final = frozenset((QueueName.DISAGREEMENTS, QueueName.JUDGE))
"""The queues that reveal answers of others. The workspace records that they were opened."""


class _QueueTexts(NamedTuple):
    """The texts of a queue.

    Attributes:
        key: The key in the dialog.
        choice: The name in the dialog.
        empty: The message if the queue is empty.
        title: The name in the title of the screen; None for ``choice``.
    """

    key: str
    choice: str
    empty: str
    title: str | None = None


QUEUES: Final[Mapping[QueueName, _QueueTexts]] = {
    QueueName.ALL: _QueueTexts("a", "all traces", "There are no traces."),
    QueueName.MINE: _QueueTexts("m", "mine to do", "Nothing is left for you to do."),
    QueueName.DISAGREEMENTS: _QueueTexts(
        "P",  # a capital, because looking is recorded
        "another annotator disagrees with me",
        "No one who has finished the same traces as you disagrees with you about a mode.\n\n"
        "Adjudication also lists modes whose places differ.",
        "disagreements",
    ),
    QueueName.JUDGE: _QueueTexts(
        "T",  # a capital for the same reason
        "the judge disagrees with me",
        "No judge's verdict differs from yours on the traces that you have finished.\n\n"
        "A rejected suggestion is no verdict on its mode.",
    ),
    QueueName.UNSURE: _QueueTexts("u", "unsure", "You have marked no mode as unsure."),
    QueueName.CHANGED: _QueueTexts(
        "c",
        "a mode I labelled was split later",
        "No mode has been split since you labelled it.",
        "split modes",
    ),
    QueueName.WORTH: _QueueTexts(
        "w",
        "the study's most worth labelling",
        "No trace that was chosen as most worth labelling is left for you.\n\n"
        "The owner of a study chooses them: mast-tui study add --sample N --judge NAME.",
        "most worth labelling",
    ),
    QueueName.SAMPLE: _QueueTexts(
        "s", "a random sample", "There are no traces to draw from.", "random sample"
    ),
}


class QueueRequest(Struct, frozen=True):
    """A queue to show.

    Attributes:
        name: The name of the queue.
        n: The number of traces of a sample.
        seed: The seed of a sample; None for the seed of the study.
    """

    name: QueueName = QueueName.ALL
    n: int = SAMPLE_SIZE
    seed: int | None = None

    @property
    def title(self) -> str:
        """The name of the queue in the title of the screen."""
        seed = "" if self.seed is None else f", seed {self.seed}"
        return f"{QUEUES[self.name].title or QUEUES[self.name].choice}{seed}"


class QueueTraces(Struct, frozen=True):
    """The traces of a queue.

    Attributes:
        request: The queue.
        trace_ids: The ids of the traces; None for all traces.
        keeps_order: Whether to keep the order of ``trace_ids`` instead of sorting.
        modes: The slugs of the modes that are the reason for a trace, by trace id.
        retests: The ids of the traces to label once more. They come next.
        precision_text: A text on the precision of figures, for a queue that improves it.
        is_outsider: Whether the user is not an annotator of the study.
    """

    request: QueueRequest
    trace_ids: tuple[str, ...] | None = None
    keeps_order: bool = True
    modes: Mapping[str, tuple[str, ...]] = {}
    retests: frozenset[str] = frozenset()
    precision_text: str = ""
    is_outsider: bool = False


def read_queue(
    opened: OpenWorkspace, request: QueueRequest | None, listed_ids: Sequence[str]
) -> QueueTraces:
    """Read the traces of a queue. This is slow, so call it in a worker.

    Args:
        opened: The open workspace.
        request: The queue; None for ``mine`` for annotators of a study, and ``all`` for others.
        listed_ids: The ids of the listed traces. Without a study, all of them are the annotator's.

    Raises:
        SessionError: The study has no such queue.
        WorkspaceError: The workspace cannot be read.
    """
    study = opened.study()
    is_outsider = study is not None and opened.annotator not in study.annotators
    if request is None:
        request = QueueRequest(QueueName.ALL if study is None or is_outsider else QueueName.MINE)
    if request.name is QueueName.ALL:
        return QueueTraces(request)
    if study is None and request.name is QueueName.MINE:
        finished_ids = opened.finished()
        unfinished_ids = tuple(trace_id for trace_id in listed_ids if trace_id not in finished_ids)
        return QueueTraces(request, unfinished_ids, keeps_order=False)
    if study is None and request.name is QueueName.SAMPLE:
        # Only a study has its own seed.
        return QueueTraces(request, random_sample(listed_ids, request.seed or 0, request.n))
    items = opened.queue(request.name.value, n=request.n, seed=request.seed)
    return QueueTraces(
        request,
        tuple(item.trace_id for item in items),
        modes={item.trace_id: item.modes for item in items if item.modes},
        retests=frozenset(item.trace_id for item in items if item.retest),
        precision_text=_precision_text(opened, study) if request.name is QueueName.WORTH else "",
        is_outsider=is_outsider,
    )


def _precision_text(opened: OpenWorkspace, study: Study | None) -> str:
    """Return the text on the precision of a prevalence, for the queue ``worth``."""
    # This imports numpy, which would delay the start of the library.
    from mast_tui.ui.library.sample_width import sample_width_text

    return sample_width_text(opened, study)


def count_queues(opened: OpenWorkspace, listed_ids: Sequence[str]) -> Mapping[QueueName, int]:
    """Count the traces of each queue except the sample. This is slow, so call it in a worker.

    The sizes of ``REVEALING_QUEUES`` would reveal answers of others. They are replaced by the most
    possible: the number of finished traces.

    Args:
        opened: The open workspace.
        listed_ids: The ids of the listed traces.
    """
    sizes = {QueueName.ALL: len(listed_ids)}
    for name in (QueueName.MINE, QueueName.UNSURE, QueueName.CHANGED):
        sizes[name] = len(read_queue(opened, QueueRequest(name), listed_ids).trace_ids or ())
    sizes[QueueName.WORTH] = len(opened.queue(QueueName.WORTH.value, n=SAMPLE_SIZE, seed=None))
    return sizes | dict.fromkeys(REVEALING_QUEUES, len(opened.finished()))


def count_text(
    name: QueueName, counts: Mapping[QueueName, int], seen_sizes: Mapping[QueueName, int]
) -> str:
    """Return the text beside a queue in the dialog.

    Args:
        name: The queue.
        counts: The result of ``count_queues``; empty until it is known.
        seen_sizes: The sizes of the queues that were opened before, as far as they still hold.
    """
    if name is QueueName.SAMPLE:
        return "asks how many"
    count = counts.get(name)
    if name not in REVEALING_QUEUES:
        return "…" if count is None else f"{count:,}"
    if name in seen_sizes:
        return f"{seen_sizes[name]:,}"
    return "0" if count == 0 else "count hidden until opened"


def empty_queue_text(queue: QueueTraces, key_of: KeyOf) -> str:
    """Return why a queue is empty, and what to do.

    Args:
        queue: The queue as it was read.
        key_of: Returns how the key of an action is shown.
    """
    name = queue.request.name
    text = QUEUES[name].empty
    if name is QueueName.MINE:
        text += (
            f"\n\n{key_of('everywhere.agreement')} shows agreement, "
            f"{key_of('everywhere.study')} the progress of the study, "
            f"{key_of('everywhere.export')} exports labels."
        )
    if name is QueueName.MINE and queue.is_outsider:
        text = "You are not an annotator of this study, so there is nothing for you to label."
    if queue.trace_ids:
        count = len(queue.trace_ids)
        traces = "the one trace" if count == 1 else f"any of the {count:,} traces"
        text = f"The open paths do not contain {traces} of this queue."
    key = key_of("library.queue")
    return f"{text}\n\n{key} chooses another queue; {key}, then a, shows all traces."


def sample_from(text: str) -> QueueRequest:
    """Return the request for a sample from a text: ``20``, or ``20 7`` with a seed.

    Raises:
        MastError: The text does not have this form, or the number is zero or too large.
    """
    match = re.fullmatch(r"\s*(?P<size>[0-9]{1,7})(?:[\s,]+(?P<seed>[0-9]{1,18}))?\s*", text)
    size = 0 if match is None else int(match["size"])
    if match is None or not 0 < size <= MOST_SAMPLED:
        raise MastError(
            f"“{one_line(text, 20)}” is not a number of traces: type 20, or 20 7 with a seed"
        )
    seed = None if match["seed"] is None else int(match["seed"])
    return QueueRequest(QueueName.SAMPLE, size, seed)


def continued_queue(
    previous: Sequence[str],
    current: Sequence[str],
    open_id: str | None,
    retests: Collection[str] = (),
) -> list[str]:
    """Return a changed queue that begins at the open trace.

    These follow: retests, traces after it in the previous queue, new traces, and traces before it.

    Args:
        previous: The ids of the traces in the previous queue.
        current: The ids of the traces in the changed queue.
        open_id: The id of the open trace, or None.
        retests: The ids of the traces to label once more.
    """
    if open_id is None or open_id not in previous:
        return list(current)
    open_index = previous.index(open_id)
    retest_ids = [trace_id for trace_id in current if trace_id in retests and trace_id != open_id]
    placed_ids = {open_id, *retest_ids}
    remaining_ids = [trace_id for trace_id in current if trace_id not in placed_ids]
    remaining = frozenset(remaining_ids)  # a queue is long, and a set is faster
    previous_ids = frozenset(previous)
    return [
        open_id,
        *retest_ids,
        *(trace_id for trace_id in previous[open_index + 1 :] if trace_id in remaining),
        *(trace_id for trace_id in remaining_ids if trace_id not in previous_ids),
        *(trace_id for trace_id in previous[:open_index] if trace_id in remaining),
    ]


_NAME_CELLS: Final = 37


class QueueChoice(Ask):
    """A dialog that returns the key of the chosen queue, or None after Escape."""

    def __init__(
        self,
        opened: OpenWorkspace,
        listed_ids: Sequence[str],
        current: QueueName,
        seen_sizes: Mapping[QueueName, int],
        key_of: KeyOf,
    ) -> None:
        """Make the dialog.

        Args:
            opened: The open workspace.
            listed_ids: The ids of the traces in the library.
            current: The present queue. Enter keeps it.
            seen_sizes: The sizes of the queues that were opened before.
            key_of: Returns how the key of an action is shown.
        """
        super().__init__(
            "Which traces?",
            "",
            [(texts.key, texts.choice) for texts in QUEUES.values()],
            default=QUEUES[current].key,
            hint=f"{key_of('annotate.next_trace')} and {key_of('annotate.previous_trace')} in "
            "a trace go through these traces in this order. Disagreements: only traces that you "
            "have finished; retests are left out.",
        )
        self._opened = opened
        self._listed_ids = listed_ids
        self._seen_sizes = seen_sizes
        self._show_counts({})  # not known yet

    @property
    def dialog_keys(self) -> tuple[tuple[str, str], ...]:
        """The keys that leave the queue as it is."""
        return (("Enter", "keeps this queue"), ("Esc", "cancels"))

    def on_mount(self) -> None:
        """Count the traces of the queues in the background."""
        count = partial(count_queues, self._opened, self._listed_ids)
        self.work.run("queues", count, self._show_counts)

    def _show_counts(self, counts: Mapping[QueueName, int]) -> None:
        self.show_answers(
            {
                texts.key: f"{texts.choice:<{_NAME_CELLS}}"
                f"{count_text(name, counts, self._seen_sizes)}"
                for name, texts in QUEUES.items()
            }
        )


class CurrentQueue:
    """The queue of the library. Annotators of a study begin with ``mine``."""

    def __init__(self, screen: LibraryScreen) -> None:
        self.traces = QueueTraces(QueueRequest())
        """The traces of the queue."""
        self._is_known = False
        """Whether a queue was read, or cannot be read."""
        self._screen = screen
        self._chosen_request: QueueRequest | None = None
        """The queue that the user chose; None for the initial queue."""
        self._sizes: dict[QueueName, int] = {}
        """The sizes of the queues that were opened since something was finished or set up."""

    def restart(self) -> None:
        """Show the initial queue, because a study was set up.

        This concerns ``all`` and ``mine`` only. Any other queue stays.
        """
        if self.traces.request.name in (QueueName.ALL, QueueName.MINE):
            self._chosen_request = None
        self.changed()

    def changed(self) -> None:
        """Read the queue again, because something was finished or set up."""
        self.forget_sizes()
        self.read_again()

    def forget_sizes(self) -> None:
        """Forget the sizes of queues, so that disagreements are shown only after a new question.

        They may have new traces.
        """
        self._sizes.clear()

    def read_again(self) -> None:
        """Read the queue again."""
        opened = self._screen.mast.opened
        if opened is not None and self._screen.is_mounted:
            self._start_reading(opened)

    def _start_reading(self, opened: OpenWorkspace, *, is_chosen: bool = False) -> None:
        """Read the chosen queue in a worker, then show it or the problem."""
        request = self._chosen_request
        listed_ids = list(self._screen.mast.catalog.traces)
        self._screen.work.run(
            "queue",
            lambda: read_queue(opened, request, listed_ids),
            partial(self._show_read_queue, is_chosen=is_chosen),
            self._queue_failed,
        )

    def _show_read_queue(self, traces: QueueTraces, *, is_chosen: bool) -> None:
        self.traces = traces
        if traces.trace_ids is not None:
            self._sizes[traces.request.name] = len(traces.trace_ids)
        self._is_known = True
        self._screen.show_queue(traces, is_chosen=is_chosen)

    def _queue_failed(self, problem: str) -> None:
        self._screen.say_error(problem)
        self._show_read_queue(self.traces, is_chosen=False)

    @property
    def is_ready(self) -> bool:
        """True if the first trace of the queue is listed, or is in none of the files.

        Without a workspace there is no queue to wait for.
        """
        mast = self._screen.mast
        if not self._is_known:
            return mast.workspace.no_workspace_reason is not None
        first_id = next(iter(self.traces.trace_ids or ()), None)
        return first_id is None or first_id in mast.catalog.traces or mast.catalog.complete

    def choose(self) -> None:
        """Ask for another queue, or show an error if no workspace is open."""
        self._screen.mast.workspace.when_ready_or_refuse(
            self._ask_for_queue, "all traces are shown"
        )

    def _ask_for_queue(self, opened: OpenWorkspace) -> None:
        """Ask which queue to show, and show it. Ask for the settings of a sample first."""

        def queue_chosen(key: str) -> None:
            name = next(name for name, texts in QUEUES.items() if texts.key == key)
            choose_queue = partial(self._choose_queue, opened, QueueRequest(name))
            if name is QueueName.SAMPLE:
                self._ask_for_sample(opened)
            elif name in REVEALING_QUEUES and name not in self._sizes:
                who = "a judge" if name is QueueName.JUDGE else "others"
                self._screen.mast.ask_key(
                    "Show the disagreements?",
                    f"The list shows answers of {who} on traces that you have finished. Looking is "
                    "recorded, and you can no longer undo the finish of these traces.",
                    (("y", "show them"), ("n", "leave them hidden")),
                    {"y": choose_queue},
                    default="n",
                )
            else:
                choose_queue()

        listed_ids = list(self._screen.mast.catalog.traces)
        current_name = self.traces.request.name
        self._screen.mast.ask(
            QueueChoice(opened, listed_ids, current_name, self._sizes, self._screen.mast.key_of),
            queue_chosen,
        )

    def _ask_for_sample(self, opened: OpenWorkspace) -> None:
        """Ask for the size and seed of a sample, and show it."""
        request = self.traces.request
        size = max(1, min(request.n, len(self._screen.mast.catalog.traces)))
        seed_text = "" if request.seed is None else f" {request.seed}"

        def check_sample(text: str) -> str:
            sample_from(text)
            return text

        self._screen.mast.ask(
            NoteScreen(
                "A random sample",
                f"{size}{seed_text}",
                question="How many traces? A second number is the seed of another draw; the same "
                "seed always draws the same traces.",
                hint="Enter draws · Esc cancels",
                check=check_sample,
                typing_replaces=True,
            ),
            lambda text: self._choose_queue(opened, sample_from(text)),
        )

    def _choose_queue(self, opened: OpenWorkspace, request: QueueRequest) -> None:
        self._chosen_request = request
        self._start_reading(opened, is_chosen=True)
