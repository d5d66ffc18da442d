"""What ``mast-tui report`` counts, with the gold and the places of a workspace."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from mast_tui.adjudication import orders_from_files
from mast_tui.adjudication.for_signatures import gold_of
from mast_tui.figures.source.signatures import input_from_workspace
from mast_tui.figures.source.verdicts import GOLD
from mast_tui.gc_tuning import uncollected
from mast_tui.gold import no_order
from mast_tui.session import said_by, within_sight

if TYPE_CHECKING:
    from mast_tui.adjudication import OrderOf
    from mast_tui.figures.signatures.model import SignatureInput
    from mast_tui.gold import GoldKind, GoldTrace, Order
    from mast_tui.session import Viewer, WithinSight
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace


def sight_of_labels(viewer: Viewer, labels: str) -> WithinSight | None:
    """Tell on which traces figures of somebody's labels may be shown; None for all.

    Args:
        viewer: Who asks.
        labels: ``gold`` or a name.
    """
    if viewer.name is None or not viewer.limited:
        return None
    return within_sight(
        viewer.workspace,
        viewer.name,
        viewer.taxonomy,
        None if labels == GOLD else labels,
        blind=viewer.blind,
        said=said_by(viewer.workspace, viewer.taxonomy),
    )


def outcomes_shown(viewer: Viewer, traces: Iterable[str]) -> frozenset[str] | None:
    """Which of these traces' outcomes may be shown; None for all.

    Args:
        viewer: Who asks.
        traces: Ids of traces.
    """
    return frozenset(filter(viewer.may_see_outcomes(), traces)) if viewer.blind else None


@uncollected()
def signature_input(
    workspace: Workspace,
    taxonomy: Taxonomy,
    *,
    labels: str = "gold",
    by: str = "model",
    failed_below: float | None = None,
    traces: Container[str] | None = None,
    places: bool = True,
    which: GoldKind = "all",
) -> SignatureInput:
    """The input of a report, with the gold and the places of a workspace."""

    def gold(wanted: Collection[str]) -> Mapping[str, GoldTrace]:
        # Imported only where somebody has decided something.
        return gold_of(workspace, taxonomy, order_of)(wanted)

    order_of = _orders(workspace) if places else _no_orders
    return input_from_workspace(
        workspace,
        taxonomy,
        labels=labels,
        by=by,
        failed_below=failed_below,
        gold=gold,
        order_of=order_of,
        traces=traces,
        which=which,
    )


def _no_orders(_trace: str) -> Order:
    return no_order


def _orders(workspace: Workspace) -> OrderOf:
    """The orders of traces from their files; what is known of the files is read when needed.

    Of traces without a file nothing is read, as there may be a hundred thousand of them.
    """

    @cache
    def with_file() -> frozenset[str]:
        def take(rows: Iterator[tuple[str, ...]]) -> frozenset[str]:
            return frozenset(trace for (trace,) in rows)

        return workspace.read_columns("traces", ("id",), take, given="path")

    @cache
    def from_files() -> OrderOf:
        return orders_from_files(workspace)

    def order_of(trace: str) -> Order:
        return from_files()(trace) if trace in with_file() else no_order

    return order_of
