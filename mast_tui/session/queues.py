"""Queues of traces for one annotator: unfinished work, and traces to review."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Final

from msgspec import Struct

from mast_tui.grouping import values_by_key
from mast_tui.labels import (
    AnnotatorKind,
    Pass,
    PassKind,
    VerdictValue,
    annotator_kind,
    counted_passes,
)
from mast_tui.session.progress import Retests, by_trace, first_finish, retests_of
from mast_tui.session.visibility import labelling_state, record_reveal, suggestions_withheld
from mast_tui.study import assigned, random_sample
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace import Workspace

SAMPLE_SIZE: Final = 20


class QueueKind(StrEnum):
    """The kinds of queues.

    ``mine``: unfinished traces and due retests. ``disagreements`` and ``judge``: finished traces on
    which another annotator, or a judge, differs. ``unsure``: traces with a verdict unsure.
    ``changed``: traces with modes that a split of a labelled mode has left open. ``worth``:
    unfinished traces of weighted batches. ``sample``: a random sample of the annotator's traces.
    ``retests``: traces to label again, for the study's lead only, since annotators must not expect
    a retest before it is due.
    """

    MINE = "mine"
    DISAGREEMENTS = "disagreements"
    JUDGE = "judge"
    UNSURE = "unsure"
    CHANGED = "changed"
    WORTH = "worth"
    SAMPLE = "sample"
    RETESTS = "retests"


class QueueItem(Struct, frozen=True):
    """One trace of a queue.

    ``modes`` are the slugs of the modes that put the trace into the queue, in the taxonomy's order.
    ``begun`` is True for a begun and unfinished trace. ``retest`` is True for a retest.
    """

    trace_id: str
    modes: tuple[str, ...] = ()
    begun: bool = False
    retest: bool = False


def queue(
    workspace: Workspace,
    taxonomy: Taxonomy,
    annotator: str,
    kind: QueueKind = QueueKind.MINE,
    *,
    n: int = SAMPLE_SIZE,
    seed: int | None = None,
) -> tuple[QueueItem, ...]:
    """Return the traces of a queue, in order.

    - Under a study, unfinished traces have the annotator's own order, else that of their ids.
    - Queues of disagreements reveal hidden labels, which is recorded in the workspace. They leave
      out traces with a current or later retest.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy of the labels.
        annotator: The annotator.
        kind: The kind of queue.
        n: The size of a sample.
        seed: The seed of a sample; by default the study's.
    """
    work = _AnnotatorWork(workspace, taxonomy, annotator)
    match kind:
        case QueueKind.MINE:
            return work.unfinished()
        case QueueKind.RETESTS:
            return work.items([*sorted(work.retests.begun), *work.retests.due])
        case QueueKind.SAMPLE:
            if seed is None:
                seed = 0 if work.study is None else work.study.seed
            return work.items(random_sample(work.traces(), seed, n))
        case QueueKind.UNSURE:
            return work.unsure_traces()
        case QueueKind.CHANGED:
            return work.changed_traces()
        case QueueKind.WORTH:
            return work.traces_worth_labelling()
        case QueueKind.DISAGREEMENTS:
            return work.disagreements(AnnotatorKind.HUMAN)
        case QueueKind.JUDGE:
            return work.disagreements(AnnotatorKind.JUDGE)


class _AnnotatorWork:
    """The passes and verdicts of one annotator, from which queues are made."""

    def __init__(self, workspace: Workspace, taxonomy: Taxonomy, annotator: str) -> None:
        self.workspace = workspace
        self.annotator = annotator
        self.taxonomy = taxonomy.ref
        self.study = workspace.study(taxonomy.ref)
        self.passes = by_trace(workspace.passes(annotator=annotator, taxonomy=taxonomy.ref))
        self._modes = [mode.slug for mode in taxonomy.modes]

    @cached_property
    def retests(self) -> Retests:
        """The state of the annotator's retests."""
        return retests_of(self.study, self.annotator, self.passes)

    def traces(self) -> Sequence[str]:
        """Return the ids of the annotator's traces, in the annotator's order.

        Without a study these are all traces of the workspace, and for a person outside of the study
        all traces of the study.
        """
        if self.study is None:
            return [record.trace_id for record in self.workspace.traces()]
        if self.annotator in self.study.annotators:
            return assigned(self.study, self.annotator)
        return self.study.traces

    def items(
        self, ids: Iterable[str], modes: Mapping[str, Iterable[str]] | None = None
    ) -> tuple[QueueItem, ...]:
        """Return queue items for traces.

        Args:
            ids: The ids of the traces.
            modes: The modes that put each trace into the queue.
        """
        return tuple(
            QueueItem(
                trace_id,
                self._in_taxonomy_order(() if modes is None else modes.get(trace_id, ())),
                begun=trace_id in self.retests.begun
                or labelling_state(self.passes.get(trace_id, ())) == "open",
                retest=trace_id in self.retests.current,
            )
            for trace_id in ids
        )

    def unfinished(self) -> tuple[QueueItem, ...]:
        """Return the unfinished traces, with retests before the first trace that is not begun.

        A finished trace that the annotator has changed since is unfinished again.

        The result is empty for a person outside the study.
        """
        if self.study is not None and self.annotator not in self.study.annotators:
            return ()
        unfinished = self.items(
            trace_id
            for trace_id in self.traces()
            if labelling_state(self.passes.get(trace_id, ())) != "finished"
        )
        retests = self.items([*sorted(self.retests.begun), *self.retests.due])
        first_not_begun = next(
            (position for position, item in enumerate(unfinished) if not item.begun),
            len(unfinished),
        )
        return (*unfinished[:first_not_begun], *retests, *unfinished[first_not_begun:])

    def traces_worth_labelling(self) -> tuple[QueueItem, ...]:
        """Return the unfinished traces of batches that were drawn with unequal chances.

        They keep the annotator's order. If an annotator stops early, the finished part of a batch
        must be random for the chances of the draw to be valid.
        """
        if self.study is None:
            return ()
        drawn_traces: set[str] = set()
        for draw in self.study.draws:
            if draw.chances:  # stored only if the traces had different chances
                drawn_traces.update(self.study.batches[draw.batch_number])
        return tuple(item for item in self.unfinished() if item.trace_id in drawn_traces)

    def unsure_traces(self) -> tuple[QueueItem, ...]:
        """Return the traces on which the annotator's last pass has the verdict unsure."""
        verdicts = self.workspace.verdicts(annotator=self.annotator, taxonomy=self.taxonomy)
        modes = values_by_key(
            (verdict.trace_id, verdict.mode)
            for verdict in verdicts
            if verdict.value is VerdictValue.UNSURE and verdict.trace_id not in self.retests.current
        )
        return self.items(self._in_own_order(modes), modes)

    def changed_traces(self) -> tuple[QueueItem, ...]:
        """Return the traces with modes that a split of a mode left without a verdict."""
        verdicts = self.workspace.verdicts(annotator=self.annotator, taxonomy=self.taxonomy)
        judged_modes = {(verdict.trace_id, verdict.mode) for verdict in verdicts}
        split_modes = self.workspace.modes_to_look_at_again(self.annotator, self.taxonomy)
        # A retest shows nothing of earlier passes.
        modes = values_by_key(
            (trace_id, mode)
            for trace_id in split_modes.keys() - self.retests.current
            for mode in split_modes[trace_id]
            if (trace_id, mode) not in judged_modes
        )
        return self.items(self._in_own_order(modes), modes)

    def disagreements(self, kind: AnnotatorKind) -> tuple[QueueItem, ...]:
        """Return the finished traces on which others of a kind differ from the annotator.

        The traces with most differing modes come first. The reveal of all compared traces is
        recorded, because a missing trace tells the annotator that the others agree.
        """
        passes = self.workspace.passes(taxonomy=self.taxonomy)
        passes_by_key = counted_passes(passes, "last")
        finished_by_others = {
            trace_id
            for annotator, trace_id in passes_by_key
            if annotator != self.annotator and annotator_kind(annotator) is kind
        }
        visible_traces = [
            trace_id
            for annotator, trace_id in passes_by_key
            if annotator == self.annotator
            and trace_id in finished_by_others
            and first_finish(self.passes[trace_id]) is not None
            and trace_id not in self.retests.protected
        ]
        modes = self._differing_modes(passes_by_key, frozenset(visible_traces), kind)
        self._record_reveal(visible_traces, kind)
        ids = sorted(self._in_own_order(modes), key=lambda trace_id: -len(modes[trace_id]))
        return self.items(ids, modes)

    def _record_reveal(self, visible_traces: Iterable[str], kind: AnnotatorKind) -> None:
        """Record that verdicts of people or judges on traces are shown to the annotator."""
        if kind is AnnotatorKind.JUDGE:
            # Suggestions that were visible already reveal nothing new.
            visible_traces = filter(self._is_judge_hidden, visible_traces)
        record_reveal(
            self.workspace,
            self.annotator,
            self.taxonomy,
            sorted(visible_traces),
            source="judge" if kind is AnnotatorKind.JUDGE else "others",
        )

    def _differing_modes(
        self,
        passes_by_key: Mapping[tuple[str, str], Pass],
        visible_traces: frozenset[str],
        kind: AnnotatorKind,
    ) -> dict[str, list[str]]:
        """Return the modes on which the annotator's verdict differs from others', by trace id.

        Args:
            passes_by_key: The passes that count, by annotator and trace id.
            visible_traces: The traces to compare.
            kind: The kind of the other annotators: people or judges.
        """
        own_verdicts: dict[tuple[str, str], VerdictValue] = {}
        other_verdicts: dict[tuple[str, str], set[VerdictValue]] = defaultdict(set)
        for verdict in self.workspace.verdicts(taxonomy=self.taxonomy, pass_number="finished"):
            if verdict.trace_id not in visible_traces:
                continue
            key = (verdict.trace_id, verdict.mode)
            if verdict.annotator == self.annotator:
                own_verdicts[key] = verdict.value
            elif (verdict.annotator, verdict.trace_id) in passes_by_key and (
                annotator_kind(verdict.annotator) is kind
            ):
                other_verdicts[key].add(verdict.value)
        return values_by_key(
            key for key, value in own_verdicts.items() if other_verdicts[key] - {value}
        )

    def _is_judge_hidden(self, trace_id: str) -> bool:
        """Return whether the annotator labelled a trace without the judges' suggestions."""
        passes = self.passes[trace_id]
        blind = any(trace_pass.kind is PassKind.BLIND for trace_pass in passes)
        return blind or suggestions_withheld(passes, planned=False)

    def _in_own_order(self, ids: Iterable[str]) -> list[str]:
        """Sort traces in the annotator's order; other people's traces come last."""
        positions = {trace_id: number for number, trace_id in enumerate(self.traces())}
        return sorted(ids, key=lambda trace_id: (positions.get(trace_id, len(positions)), trace_id))

    def _in_taxonomy_order(self, modes: Iterable[str]) -> tuple[str, ...]:
        selected = set(modes)
        return tuple(mode for mode in self._modes if mode in selected)
