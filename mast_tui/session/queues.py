"""Queues of traces for one annotator: what is to do, and what is worth another look."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

from mast_tui.labels import AnnotatorKind as Kind
from mast_tui.labels import Pass, PassKind, VerdictValue, annotator_kind
from mast_tui.passes import counted_passes
from mast_tui.session.retests import Retests, by_trace, retests_of
from mast_tui.session.visibility import record_reveal, suggestions_withheld
from mast_tui.study import assigned, random_sample
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace import Workspace

SAMPLE_SIZE: Final = 20


class QueueKind(StrEnum):
    """What a queue is of.

    ``mine``: what the annotator has not finished, retests that are due among it. ``disagreements``
    and ``judge``: finished traces on which somebody else, or a judge, says otherwise. ``unsure``:
    where the annotator said unsure. ``changed``: where they had seen a mode that the codebook has
    split since, and its parts are open. ``worth``: what is not finished of lots that were drawn by
    how much labels would tell. ``sample``: drawn by a seed from all of their traces.
    ``retests``: what is to be labelled once more, for whoever runs the study and not for the
    annotator, who is to take it for ordinary work.
    """

    MINE = "mine"
    DISAGREEMENTS = "disagreements"
    JUDGE = "judge"
    UNSURE = "unsure"
    CHANGED = "changed"
    WORTH = "worth"
    SAMPLE = "sample"
    RETESTS = "retests"


@dataclass(frozen=True, slots=True)
class QueueItem:
    """One trace of a queue; ``modes`` are the slugs for which it is there, in the taxonomy's order.

    ``begun``: the annotator has begun to label it and not finished. ``retest``: it is labelled
    once more; for the machinery, never for the annotator's eyes.
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
    """The traces of a queue in the order in which to take them.

    Under a study, what is not finished comes in the annotator's own order, without one by trace
    id; a retest comes before what was not begun. ``n`` and ``seed`` (else the study's) are for
    samples. Disagreements, and those with a judge, tell what was hidden: that they were shown is
    recorded, and traces that are still to come back are left out. The number of queries does not
    depend on that of the traces.
    """
    work = _Work(workspace, taxonomy, annotator)
    match kind:
        case QueueKind.MINE:
            return work.mine()
        case QueueKind.RETESTS:
            return work.items([*sorted(work.retests.begun), *work.retests.due])
        case QueueKind.SAMPLE:
            chosen = work.study.seed if seed is None and work.study is not None else seed or 0
            return work.items(random_sample(work.traces(), chosen, n))
        case QueueKind.UNSURE:
            return work.unsure()
        case QueueKind.CHANGED:
            return work.changed()
        case QueueKind.WORTH:
            return work.worth()
        case QueueKind.DISAGREEMENTS:
            return work.differing(Kind.HUMAN)
        case QueueKind.JUDGE:
            return work.differing(Kind.JUDGE)


class _Work:
    """What the queues of one annotator are told by, each asked for once."""

    def __init__(self, workspace: Workspace, taxonomy: Taxonomy, annotator: str) -> None:
        self.workspace = workspace
        self.annotator = annotator
        self.taxonomy = taxonomy.ref
        self.study = workspace.study(taxonomy.ref)
        self.own = by_trace(workspace.passes(annotator=annotator, taxonomy=taxonomy.ref))
        self._modes = [mode.slug for mode in taxonomy.modes]

    @cached_property
    def retests(self) -> Retests:
        return retests_of(self.study, self.annotator, self.own)

    def traces(self) -> Sequence[str]:
        """The ids of the annotator's traces, in the order in which they come.

        For whoever is no annotator of the study these are all of it.
        """
        if self.study is None:
            return [record.trace_id for record in self.workspace.traces()]
        if self.annotator in self.study.annotators:
            return assigned(self.study, self.annotator)
        return self.study.traces

    def items(
        self, ids: Iterable[str], modes: Mapping[str, Iterable[str]] | None = None
    ) -> tuple[QueueItem, ...]:
        """The traces as they stand."""
        return tuple(
            QueueItem(
                trace_id,
                self._in_order(() if modes is None else modes.get(trace_id, ())),
                begun=trace_id in self.retests.begun or _begun(self.own.get(trace_id, ())),
                retest=trace_id in self.retests.now,
            )
            for trace_id in ids
        )

    def mine(self) -> tuple[QueueItem, ...]:
        """What is to do: of a study, nothing but for its annotators."""
        if self.study is not None and self.annotator not in self.study.annotators:
            return ()
        left = self.items(x for x in self.traces() if not _finished(self.own.get(x, ())))
        again = self.items([*sorted(self.retests.begun), *self.retests.due])
        new = next((place for place, item in enumerate(left) if not item.begun), len(left))
        return (*left[:new], *again, *left[new:])

    def worth(self) -> tuple[QueueItem, ...]:
        """What is to do of lots that were drawn by what labels would tell.

        Which of them comes first must not depend on that: the chances hold for random parts.
        """
        if self.study is None:
            return ()
        lots = [draw.lot for draw in self.study.draws if draw.chances]
        drawn = {trace_id for lot in lots for trace_id in self.study.batches[lot]}
        return tuple(item for item in self.mine() if item.trace_id in drawn)

    def unsure(self) -> tuple[QueueItem, ...]:
        """Where the annotator said unsure, in whatever reading is the last."""
        modes: dict[str, list[str]] = defaultdict(list)
        for verdict in self.workspace.verdicts(annotator=self.annotator, taxonomy=self.taxonomy):
            if verdict.value is VerdictValue.UNSURE and verdict.trace_id not in self.retests.now:
                modes[verdict.trace_id].append(verdict.mode)
        return self.items(self._as_mine(modes), modes)

    def changed(self) -> tuple[QueueItem, ...]:
        """Where a change of the codebook has left modes open that the annotator can tell of."""
        last = self.workspace.verdicts(annotator=self.annotator, taxonomy=self.taxonomy)
        said = {(verdict.trace_id, verdict.mode) for verdict in last}
        again = self.workspace.look_again(self.annotator, self.taxonomy)
        modes = {
            trace_id: left
            for trace_id, asked in again.items()
            if trace_id not in self.retests.now
            and (left := [mode for mode in asked if (trace_id, mode) not in said])
        }
        return self.items(self._as_mine(modes), modes)

    def differing(self, kind: Kind) -> tuple[QueueItem, ...]:
        """The finished traces on which somebody of a kind says otherwise, most modes first."""
        passes = self.workspace.passes(taxonomy=self.taxonomy)
        counted = counted_passes(passes, "last")
        shown = [
            trace_id
            for who, trace_id in counted
            if who == self.annotator
            and _finished(self.own[trace_id])
            and trace_id not in self.retests.untaken
        ]
        modes = self._where_they_differ(counted, frozenset(shown), kind)
        # A judge's word is no news where suggestions were on offer.
        news = shown if kind is Kind.HUMAN else [x for x in shown if self._judge_hidden(x)]
        record_reveal(
            self.workspace,
            self.annotator,
            self.taxonomy,
            sorted(news),
            what="others" if kind is Kind.HUMAN else "judge",
        )
        order = sorted(self._as_mine(modes), key=lambda trace_id: -len(modes[trace_id]))
        return self.items(order, modes)

    def _where_they_differ(
        self, counted: Mapping[tuple[str, str], Pass], shown: frozenset[str], kind: Kind
    ) -> dict[str, set[str]]:
        """The modes on which both have a verdict and these are different, by trace id."""
        mine: dict[tuple[str, str], VerdictValue] = {}
        theirs: dict[tuple[str, str], set[VerdictValue]] = defaultdict(set)
        for verdict in self.workspace.verdicts(taxonomy=self.taxonomy, pass_number="finished"):
            place = verdict.trace_id, verdict.mode
            if verdict.trace_id not in shown:
                continue
            if verdict.annotator == self.annotator:
                mine[place] = verdict.value
            elif (verdict.annotator, verdict.trace_id) in counted and (
                annotator_kind(verdict.annotator) is kind
            ):
                theirs[place].add(verdict.value)
        found: dict[str, set[str]] = defaultdict(set)
        for (trace_id, mode), value in mine.items():
            if theirs[trace_id, mode] - {value}:
                found[trace_id].add(mode)
        return found

    def _judge_hidden(self, trace_id: str) -> bool:
        own = self.own[trace_id]
        blind = any(one.kind is PassKind.BLIND for one in own)
        return blind or suggestions_withheld(own, planned=False)

    def _as_mine(self, ids: Iterable[str]) -> list[str]:
        """Traces in the order in which they come to the annotator, all others after them."""
        place = {trace_id: number for number, trace_id in enumerate(self.traces())}
        return sorted(ids, key=lambda trace_id: (place.get(trace_id, len(place)), trace_id))

    def _in_order(self, modes: Iterable[str]) -> tuple[str, ...]:
        wanted = set(modes)
        return tuple(mode for mode in self._modes if mode in wanted)


def _finished(own: Sequence[Pass]) -> bool:
    """Whether the first look is finished: a second look is nobody's ordinary work."""
    return any(one.finished for one in own if one.kind.is_reading)


def _begun(own: Sequence[Pass]) -> bool:
    readings = [one for one in own if one.kind.is_reading]
    return bool(readings) and not readings[-1].finished
