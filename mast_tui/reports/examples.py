"""The parts of a report beyond figures: the modes that decided traces, and example labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mast_tui.figures.signatures.model import FAILED, PRESENT, SignatureInput
from mast_tui.figures.source.verdicts import GOLD, GoldOf, last_readings
from mast_tui.gold.model import GoldLabel
from mast_tui.gold.overlaps import Order
from mast_tui.labels import AnnotatorKind, Label, Severity, annotator_kind

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace

MOST_EXAMPLES: Final = 3
"""The number of labels that are shown for each mode and group, each of another trace."""


@dataclass(frozen=True, slots=True)
class LabelExample:
    """A label of a failed trace.

    ``first`` and ``last`` are the numbers of spans on screen, from 1; None if the label is on the
    whole trace (``whole``) or the index of a span is unknown. ``text`` is the quote of the label,
    or else the text of its first span, if the file of the trace can be read. ``fatal`` is the
    label's severity.
    """

    group: str
    code: str
    trace: str
    first: int | None
    last: int | None
    whole: bool
    text: str
    note: str
    fatal: bool


@dataclass(frozen=True, slots=True)
class Extras:
    """The taxonomy with its strategies, the traces that modes decided, and example labels.

    Groups have their names, all traces together are ``OVERALL``. ``decided`` counts by group and
    code the failed traces whose labels call the mode fatal; it has no groups without such labels.
    """

    taxonomy: Taxonomy | None = None
    decided: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    examples: tuple[LabelExample, ...] = ()


def extras_from_workspace(
    workspace: Workspace,
    taxonomy: Taxonomy,
    signature_input: SignatureInput,
    *,
    gold_of: GoldOf,
    order_of: Callable[[str], Order],
    text_of: Callable[[str, str], str],
    called: Callable[[str], str] = str,
) -> Extras:
    """Read the extras of a report from a workspace.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        signature_input: The input of the report.
        gold_of: Returns the gold of traces.
        order_of: Returns the order of a trace's spans.
        text_of: Returns the text of a span by trace id and key; empty if it cannot be read.
        called: Returns the shown name of the author of a note.
    """
    fatal = _fatal_pairs(workspace, taxonomy, signature_input)
    decided: dict[str, dict[str, int]] = {}
    for group, members in signature_input.members().items():
        for row, column in sorted(fatal):
            if members[row]:
                of_group = decided.setdefault(group, {})
                code = signature_input.modes[column].code
                of_group[code] = of_group.get(code, 0) + 1
    chosen = list(_chosen(signature_input, fatal))
    needed = {signature_input.traces[row] for _, row, _ in chosen}
    labels = _labels(workspace, taxonomy, signature_input, needed, gold_of)
    examples = []
    for group, row, column in chosen:
        trace = signature_input.traces[row]
        mode = signature_input.modes[column]
        ordered = sorted(
            (label for label in labels.get(trace, ()) if label.mode == mode.slug),
            key=lambda label: (not _fatal(label), label.target.is_whole, not _quote(label)),
        )
        if not ordered:
            continue
        example = _example(ordered[0], group, mode.code, trace, order_of(trace), text_of, called)
        # A label without any text adds nothing to the figures.
        if example.text or example.note:
            examples.append(example)
    return Extras(taxonomy, decided, tuple(examples))


def _chosen(
    signatures: SignatureInput, fatal: set[tuple[int, int]]
) -> Iterator[tuple[str, int, int]]:
    """Yield group, row and column of a few failed traces of each group and mode, fatal first."""
    for group, members in signatures.members().items():
        rows = np.flatnonzero(members & (signatures.outcome == FAILED))
        for column in range(len(signatures.modes)):
            showing = rows[signatures.verdicts[rows, column] == PRESENT].tolist()
            first = nsmallest(
                MOST_EXAMPLES,
                ((((row, column) not in fatal), signatures.traces[row], row) for row in showing),
            )
            yield from ((group, row, column) for _, _, row in first)


def _labels(
    workspace: Workspace,
    taxonomy: Taxonomy,
    signature_input: SignatureInput,
    traces: set[str],
    gold_of: GoldOf,
) -> dict[str, tuple[Label | GoldLabel, ...]]:
    if signature_input.labels == GOLD:
        return {trace: gold.labels for trace, gold in gold_of(sorted(traces)).items()}
    judge = signature_input.labels_kind == AnnotatorKind.JUDGE
    return {
        trace: workspace.labels(
            trace_id=trace,
            annotator=signature_input.labels,
            taxonomy=taxonomy.ref,
            pass_number="last" if judge else "finished",
        )
        for trace in sorted(traces)
    }


def _example(
    label: Label | GoldLabel,
    group: str,
    code: str,
    trace: str,
    order: Order,
    text_of: Callable[[str, str], str],
    called: Callable[[str], str],
) -> LabelExample:
    target = label.target
    first = None if target.first is None else order(target.first)
    last = None if target.last is None else order(target.last)
    return LabelExample(
        group,
        code,
        trace,
        None if first is None else first + 1,
        None if first is None or last is None else last + 1,
        target.is_whole,
        _quote(label) or ("" if target.first is None else text_of(trace, target.first)),
        _note(label, called),
        _fatal(label),
    )


def _quote(label: Label | GoldLabel) -> str:
    if label.target.quote:
        return label.target.quote
    evidence = label.evidence if isinstance(label, Label) else None
    return "" if evidence is None else evidence.quote


def _note(label: Label | GoldLabel, called: Callable[[str], str]) -> str:
    if isinstance(label, Label):
        return label.note
    return " · ".join(f"{called(author)}: {note}" for author, note in label.notes if note)


def _fatal(label: Label | GoldLabel) -> bool:
    decisive = label.decisive if isinstance(label, Label) else None
    return label.severity is Severity.FATAL or decisive is True


def _fatal_pairs(
    workspace: Workspace, taxonomy: Taxonomy, signature_input: SignatureInput
) -> set[tuple[int, int]]:
    """Return row and column of each failed trace and mode that its labels call fatal.

    One label of an annotator is enough; in the gold, all who gave a severity must agree.
    """
    equal_to = {"taxonomy": taxonomy.ref}
    if signature_input.labels != GOLD:
        equal_to["annotator"] = signature_input.labels
    of_judge = signature_input.labels_kind == AnnotatorKind.JUDGE
    passes = last_readings(workspace, equal_to, unfinished=of_judge)
    failed = signature_input.outcome == FAILED
    rows = {trace: row for row, trace in enumerate(signature_input.traces) if failed[row]}
    if of_judge:
        for trace in workspace.run_examples(signature_input.labels):
            rows.pop(trace, None)
    columns = {mode.slug: column for column, mode in enumerate(signature_input.modes)}
    fatal_by_annotator: dict[tuple[int, int], dict[str, bool]] = {}

    def collect(records: Iterable[tuple[Any, ...]]) -> None:
        for name, trace, number, mode, severity, decisive in records:
            row = rows.get(trace)
            column = columns.get(mode)
            if row is None or column is None or passes.get((name, trace)) != number:
                continue
            if signature_input.labels == GOLD and not annotator_kind(name).is_person:
                continue
            if signature_input.verdicts[row, column] == PRESENT:
                by_name = fatal_by_annotator.setdefault((row, column), {})
                fatal = severity == Severity.FATAL or decisive == 1
                by_name[name] = by_name.get(name, False) or fatal

    label_columns = ("annotator", "trace_id", "pass_number", "mode", "severity", "decisive")
    for not_null in ("severity", "decisive"):
        workspace.read_columns(
            "labels", label_columns, collect, equal_to=equal_to, not_null=not_null
        )
    return {unit for unit, by_name in fatal_by_annotator.items() if all(by_name.values())}
