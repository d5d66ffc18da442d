"""The figures of failure signatures: counted off the screen's thread, within one's Sight.

They are counted twice: at once without places and resampling, then with both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from mast_tui.gold.places import Order, no_order
from mast_tui.labels import AnnotatorKind, annotator_kind
from mast_tui.ui.reports.source import LeftError, Stopped

if TYPE_CHECKING:
    from mast_tui.figures.signatures.groups import GroupJson
    from mast_tui.figures.signatures.model import SignatureInput
    from mast_tui.figures.signatures.report import Report
    from mast_tui.ui.services.open_workspace import OpenWorkspace
    from mast_tui.workspace import Workspace

GOLD: Final = "gold"
FIELDS: Final = ("model", "system", "benchmark", "reader", "all")
"""What tells groups apart; ``all`` makes one group."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Whose labels are counted, and how: by which field, and which score means failed."""

    labels: str = GOLD
    by: str = "model"
    failed_below: float | None = None

    @property
    def of_judge(self) -> bool:
        """Whether they are a judge's."""
        return self.labels != GOLD and annotator_kind(self.labels) is AnnotatorKind.JUDGE


@dataclass(frozen=True, slots=True)
class Signatures:
    """What was counted.

    ``report`` is None where nothing could be, and so is ``given``, which it was made from.
    ``pending`` says that places and intervals of means are still to come. ``sources`` are whose
    labels there are. ``hidden`` are ids of traces that are left out, as this annotator may not know
    yet what was said of them; ``veiled`` counts the traces whose outcome is kept from them.
    ``names`` are what traces go by; ``problem`` is why nothing could be counted.
    """

    choice: Choice
    report: Report | None = None
    given: SignatureInput | None = None
    pending: bool = False
    sources: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    veiled: int = 0
    names: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups."""
        return () if self.report is None else tuple(self.report["groups"])

    def group(self, name: str) -> GroupJson:
        """The table of a group."""
        assert self.report is not None
        return self.report["groups"][name]


class KnownPlaces:
    """Where spans stand, read from the files of their traces once and kept."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], int | None] = {}
        self._from_files: Callable[[str], Order] | None = None

    def order_of(self, workspace: Workspace, stopped: Stopped) -> Callable[[str], Order]:
        """The orders of a workspace's traces; asking raises ``LeftError`` once ``stopped``."""

        def place(trace: str, key: str) -> int | None:
            if (trace, key) not in self._known:
                if stopped():
                    raise LeftError
                if self._from_files is None:
                    from mast_tui.adjudication import orders_from_files

                    self._from_files = orders_from_files(workspace)
                self._known[trace, key] = self._from_files(trace)(key)
            return self._known[trace, key]

        return lambda trace: lambda key: place(trace, key)


def count_signatures(
    opened: OpenWorkspace, choice: Choice, places: KnownPlaces, stopped: Stopped
) -> Iterator[Signatures]:
    """The figures over the traces that the annotator may know about; for a worker.

    That they are shown is recorded, where they tell what others said. Raises ``LeftError`` once
    ``stopped``.
    """
    from mast_tui.session import SessionError
    from mast_tui.workspace import WorkspaceError

    try:
        yield from _count(opened, choice, places, stopped)
    except (SessionError, WorkspaceError, OSError, ValueError) as error:
        yield Signatures(choice, problem=str(error))


def _count(
    opened: OpenWorkspace, choice: Choice, places: KnownPlaces, stopped: Stopped
) -> Iterator[Signatures]:
    from mast_tui.adjudication.for_signatures import corrected_prevalence
    from mast_tui.figures.signatures.report import signature_report
    from mast_tui.figures.source.signatures import without_outcomes
    from mast_tui.session import (
        library_view,
        record_reveal,
        said_by,
        visible_traces_for_agreement,
        within_sight,
    )
    from mast_tui.ui.trace_names import trace_names

    workspace, taxonomy = opened.workspace, opened.taxonomy
    said = said_by(workspace, taxonomy.ref)
    labels = None if choice.labels == GOLD else choice.labels
    sight = within_sight(
        workspace, opened.annotator, taxonomy.ref, labels, blind=opened.blind, said=said
    )
    record_reveal(workspace, opened.annotator, taxonomy.ref, sorted(sight.told))
    shown: set[str] | None = None
    if opened.blind:
        view = library_view(workspace, opened.annotator, taxonomy.ref, blind=True)
        shown = {trace for trace, entry in view.items() if entry.hidden_visible}
    found = Signatures(
        choice,
        pending=True,
        sources=(GOLD, *(name for name in said if said[name])),
        hidden=tuple(sorted(sight.hidden)),
        names=trace_names(workspace.traces()),
    )
    order_of = places.order_of(workspace, stopped)
    for known, rounds in ((_nowhere, 0), (order_of, 2000)):
        given, veiled = without_outcomes(_given(opened, choice, known, sight.seen), shown)
        corrected = None
        if choice.of_judge and rounds:
            visible = visible_traces_for_agreement(workspace, opened.annotator, taxonomy.ref)
            corrected = corrected_prevalence(workspace, taxonomy, given, rounds, 0, visible)
        report = signature_report(given, rounds=rounds, corrected=corrected)
        yield replace(found, report=report, given=given, pending=not rounds, veiled=veiled)
        if stopped():
            raise LeftError


def _nowhere(_trace: str) -> Order:
    return no_order


def _given(
    opened: OpenWorkspace, choice: Choice, order_of: Callable[[str], Order], seen: Collection[str]
) -> SignatureInput:
    from mast_tui.adjudication.for_signatures import gold_of
    from mast_tui.figures.source.signatures import input_from_workspace

    workspace, taxonomy = opened.workspace, opened.taxonomy
    return input_from_workspace(
        workspace,
        taxonomy,
        labels=choice.labels,
        by=choice.by,
        failed_below=choice.failed_below,
        gold=gold_of(workspace, taxonomy, order_of),
        order_of=order_of,
        traces=frozenset(seen),
    )
