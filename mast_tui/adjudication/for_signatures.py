"""The gold for figures on failure signatures, and the correction of a judge's errors by it."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

from mast_tui.adjudication.sides import TraceSides, read_work_by_trace
from mast_tui.adjudication.trace_files import OrderOf, SpanOrders, TraceOf, traces_from_files
from mast_tui.figures.judge.confusion import compared_units
from mast_tui.figures.judge.input import GoldReference, judge_input_from_workspace
from mast_tui.figures.prevalence import prevalence_figures
from mast_tui.figures.record import Figure
from mast_tui.gold import no_orders
from mast_tui.redaction.filled_masks import masked_quote
from mast_tui.reports.examples import extras_from_workspace
from mast_tui.session import trace_masks

if TYPE_CHECKING:
    from mast_tui.figures.signatures.model import SignatureInput
    from mast_tui.figures.source.verdicts import GoldOf
    from mast_tui.gold import GoldTrace
    from mast_tui.reports.examples import Extras, LabelPassage
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.traces.model import Trace
    from mast_tui.workspace import Workspace
    from mast_tui.workspace.registers.pseudonyms import Pseudonyms

_ONE_BY_ONE: Final = 500
"""The most traces whose gold is read trace by trace instead of all at once."""


def gold_of(workspace: Workspace, taxonomy: Taxonomy, order_of: OrderOf) -> GoldOf:
    """Return a function that reads the gold of traces by id.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        order_of: Returns the order of a trace's spans by the trace's id.
    """

    def gold_by_trace(trace_ids: Collection[str]) -> Mapping[str, GoldTrace]:
        """Return the gold of the traces with work or decisions, by trace id."""
        if len(trace_ids) <= _ONE_BY_ONE:
            work_by_trace: dict[str, TraceSides] = {}
            for trace_id in trace_ids:
                work_by_trace |= read_work_by_trace(workspace, taxonomy, trace_id=trace_id)
        else:
            work_by_trace = read_work_by_trace(workspace, taxonomy)
        return {
            trace_id: work_by_trace[trace_id].gold(taxonomy, order_of(trace_id))
            for trace_id in trace_ids
            if trace_id in work_by_trace
        }

    return gold_by_trace


def corrected_prevalence(
    workspace: Workspace,
    taxonomy: Taxonomy,
    signature_input: SignatureInput,
    traces: Container[str] | None,
) -> tuple[Figure, ...]:
    """Return the prevalence of each mode in each group, corrected for the errors of a judge.

    The errors are measured on traces with gold. Without a judge or gold there are no figures. This
    is slow, so screens call it in a worker.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        signature_input: The traces, groups and labels of the report on failure signatures.
        traces: The ids of the traces whose gold may be shown; None for all.
    """
    if signature_input.label_source_kind != "judge":
        return ()
    work_by_trace = read_work_by_trace(workspace, taxonomy)
    if not any(traces is None or trace in traces for trace in work_by_trace):
        return ()
    # The gold of hidden traces is included, since it only tells which traces are labelled.
    gold = {trace: trace_work.gold(taxonomy) for trace, trace_work in work_by_trace.items()}
    judge_input = judge_input_from_workspace(
        workspace, taxonomy, signature_input.label_source, GoldReference(gold), traces=traces
    )
    comparison = compared_units(judge_input)
    figures: list[Figure] = []
    for name, members in signature_input.members().items():
        trace_ids = {signature_input.traces[row] for row in members.nonzero()[0].tolist()}
        group_input = replace(judge_input, unlabelled=judge_input.unlabelled & trace_ids)
        figures += prevalence_figures(group_input, comparison, group=name)
    return tuple(figures)


def extras_for(
    workspace: Workspace,
    taxonomy: Taxonomy,
    signature_input: SignatureInput,
    *,
    places: bool,
    letters: Pseudonyms | None = None,
) -> Extras:
    """Return the parts of a report beside its figures.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        signature_input: The traces, groups and labels of the report on failure signatures.
        places: True to use the order of spans, and their texts from the files of the traces.
        letters: The letters in place of people's names; None to show the names.
    """

    orders: OrderOf = SpanOrders(workspace) if places else no_orders
    masks = trace_masks(workspace.study(taxonomy.ref))
    read_trace: TraceOf = traces_from_files(workspace) if places else lambda _trace: None

    @cache
    def trace_of(trace_id: str) -> Trace | None:
        trace = read_trace(trace_id)
        return None if trace is None else trace.with_masks(masks)

    def text_of(trace_id: str, passage: LabelPassage) -> str:
        key, quote, start, end = passage
        if quote and masks is None:
            return quote
        # A trace is read once the text of one of its spans is needed, which a note never needs.
        trace = None if key is None else trace_of(trace_id)
        if quote and masks is not None:
            return masked_quote(masks, trace, quote, key, start, end)
        index = None if trace is None or key is None else trace.index_of(key)
        return "" if trace is None or index is None else trace.text(index)

    return extras_from_workspace(
        workspace,
        taxonomy,
        signature_input,
        gold_of=gold_of(workspace, taxonomy, orders),
        order_of=orders,
        text_of=text_of,
        shown_name_of=str if letters is None else letters.name,
    )
