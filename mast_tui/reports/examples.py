"""What a report says beyond figures: which modes decided traces, and labels to look at."""

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
"""Of each mode and group so many labels are shown, of as many traces."""


@dataclass(frozen=True, slots=True)
class Example:
    """A label of a failed trace to look at.

    ``first`` and ``last`` are numbers of spans as people see them, from 1, None where the label is
    on the whole trace (``whole``) or the place is not known here. ``text`` is what the label
    quotes, else what the span says on which it begins, where the trace is at hand. ``fatal`` is
    what was said of it.
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
    """The taxonomy with its strategies, the traces that modes decided, and labels to look at.

    Groups are called by their names, all traces together ``OVERALL``.
    ``decided`` counts per group and code the failed traces of which labels say that the mode was
    fatal; a group of whose failed traces nobody has said anything of the kind is not in it.
    """

    taxonomy: Taxonomy | None = None
    decided: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    examples: tuple[Example, ...] = ()


def extras_from_workspace(
    workspace: Workspace,
    taxonomy: Taxonomy,
    given: SignatureInput,
    *,
    gold_of: GoldOf,
    order_of: Callable[[str], Order],
    text_of: Callable[[str, str], str],
    called: Callable[[str], str] = str,
) -> Extras:
    """Take the extras to a report from a workspace, the labels of few traces one by one.

    Args:
        workspace: Where the labels are.
        taxonomy: Names the modes and what helps against them.
        given: What the report is made from.
        gold_of: Makes the gold of traces.
        order_of: Tells where the spans of a trace stand.
        text_of: The text of a span, by trace id and key; nothing where it is not at hand.
        called: What the person is called whose note is shown.
    """
    fatal = _fatal_pairs(workspace, taxonomy, given)
    decided: dict[str, dict[str, int]] = {}
    for group, members in given.members().items():
        for row, column in sorted(fatal):
            if members[row]:
                of_group = decided.setdefault(group, {})
                code = given.modes[column].code
                of_group[code] = of_group.get(code, 0) + 1
    chosen = list(_chosen(given, fatal))
    needed = {given.traces[row] for _, row, _ in chosen}
    labels = _labels(workspace, taxonomy, given, needed, gold_of)
    examples = []
    for group, row, column in chosen:
        trace, mode = given.traces[row], given.modes[column]
        ordered = sorted(
            (one for one in labels.get(trace, ()) if one.mode == mode.slug),
            key=lambda one: (not _fatal(one), one.target.is_whole, not _quote(one)),
        )
        if not ordered:
            continue
        found = _example(ordered[0], group, mode.code, trace, order_of(trace), text_of, called)
        # A label without a word to it shows nothing that the figures do not.
        if found.text or found.note:
            examples.append(found)
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
    given: SignatureInput,
    traces: set[str],
    gold_of: GoldOf,
) -> dict[str, tuple[Label | GoldLabel, ...]]:
    if given.labels == GOLD:
        return {trace: gold.labels for trace, gold in gold_of(sorted(traces)).items()}
    judge = given.labels_kind == AnnotatorKind.JUDGE
    return {
        trace: workspace.labels(
            trace_id=trace,
            annotator=given.labels,
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
) -> Example:
    target = label.target
    first = None if target.first is None else order(target.first)
    last = None if target.last is None else order(target.last)
    return Example(
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
    return " · ".join(f"{called(who)}: {note}" for who, note in label.notes if note)


def _fatal(label: Label | GoldLabel) -> bool:
    decisive = label.decisive if isinstance(label, Label) else None
    return label.severity is Severity.FATAL or decisive is True


def _fatal_pairs(
    workspace: Workspace, taxonomy: Taxonomy, given: SignatureInput
) -> set[tuple[int, int]]:
    """Row and column of each failed trace and mode in it of which the labels say it was fatal.

    Of one annotator any label that says so counts; of the gold all must who gave a severity.
    """
    wanted = {"taxonomy": taxonomy.ref}
    if given.labels != GOLD:
        wanted["annotator"] = given.labels
    passes = last_readings(workspace, wanted, unfinished=given.labels_kind == AnnotatorKind.JUDGE)
    rows = {trace: row for row, trace in enumerate(given.traces) if given.outcome[row] == FAILED}
    if given.labels_kind == AnnotatorKind.JUDGE:
        for trace in workspace.run_examples(given.labels):
            rows.pop(trace, None)
    columns = {mode.slug: column for column, mode in enumerate(given.modes)}
    said: dict[tuple[int, int], dict[str, bool]] = {}

    def take(found: Iterable[tuple[Any, ...]]) -> None:
        for name, trace, number, mode, severity, decisive in found:
            row, column = rows.get(trace), columns.get(mode)
            if row is None or column is None or passes.get((name, trace)) != number:
                continue
            if given.labels == GOLD and not annotator_kind(name).is_person:
                continue
            if given.verdicts[row, column] == PRESENT:
                by_name = said.setdefault((row, column), {})
                fatal = severity == Severity.FATAL or decisive == 1
                by_name[name] = by_name.get(name, False) or fatal

    shown = ("annotator", "trace_id", "pass_number", "mode", "severity", "decisive")
    for known in ("severity", "decisive"):
        workspace.read_columns("labels", shown, take, equal_to=wanted, not_null=known)
    return {pair for pair, names in said.items() if all(names.values())}
