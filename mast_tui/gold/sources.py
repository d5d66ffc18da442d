"""The sources of gold: the numbers of verdicts that two people share or that one person gave.

A verdict is settled if two or more annotators agree, a majority agrees, or an adjudicator decided
it. A ``single`` verdict comes from one annotator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, Literal, TypedDict

from mast_tui.gold.model import GoldTrace, GoldVerdict, Resolution

GoldKind = Literal["all", "settled"]
"""Which verdicts of the gold count: all that have a value, or those that are settled."""

SETTLED: Final = (Resolution.UNANIMOUS, Resolution.MAJORITY, Resolution.ADJUDICATED)
SOURCES: Final = (*SETTLED, Resolution.SINGLE, Resolution.UNRESOLVED)
"""The sources that are counted; an unresolved verdict has no value."""


class GoldMixJson(TypedDict):
    """The sources of the verdicts of a gold.

    Attributes:
        sources: The number of verdicts (trace × mode) by source. Unresolved verdicts, on which
            annotators differ, are in no figure.
        traces: The number of traces with at least one verdict of a source, by source.
        annotators: The annotators who gave the verdicts.
        settled_only: True if verdicts of one person were left out.
        not_in_study: The number of finished traces of each person without a part in the study;
            their work does not count.
        merged: The number of places that cover different places of several annotators.
    """

    sources: dict[str, int]
    traces: dict[str, int]
    annotators: list[str]
    settled_only: bool
    not_in_study: dict[str, int]
    merged: int


def gold_mix(
    verdicts: Mapping[str, Iterable[Resolution]],
    annotators: Iterable[str],
    *,
    settled_only: bool,
    not_in_study: Mapping[str, int],
    merged: int,
) -> GoldMixJson:
    """Count verdicts and traces by source.

    Args:
        verdicts: The sources of verdicts with a value and of unresolved verdicts, by trace id.
        annotators: The annotators who gave the verdicts.
        settled_only: True if verdicts of one person were left out before.
        not_in_study: The number of finished traces of each person without a part in the study.
        merged: The number of places that cover different places of several annotators.
    """
    verdict_counts: Counter[Resolution] = Counter()
    trace_counts: Counter[Resolution] = Counter()
    for trace_sources in verdicts.values():
        trace_verdict_counts = Counter(trace_sources)
        verdict_counts.update(trace_verdict_counts)
        trace_counts.update(trace_verdict_counts.keys())
    return {
        "sources": {source.value: verdict_counts[source] for source in SOURCES},
        "traces": {source.value: trace_counts[source] for source in SOURCES},
        "annotators": sorted(annotators),
        "settled_only": settled_only,
        "not_in_study": dict(not_in_study),
        "merged": merged,
    }


def counted_source(verdict: GoldVerdict) -> Resolution | None:
    """Return the source of a verdict; None if no side has a verdict or its value was left out."""
    if verdict.value is not None:
        return verdict.source
    is_unresolved = verdict.source is Resolution.UNRESOLVED and any(verdict.sides.values())
    return Resolution.UNRESOLVED if is_unresolved else None


def only_settled(gold: GoldTrace) -> GoldTrace:
    """Return the gold without answers that only one person gave.

    - A verdict of only one person loses its value, and the mode's labels and conflicts are left
      out.
    - A label of only one person is left out.
    - A severity of only one person is removed, unless an adjudicator decided the label.
    """
    single = {verdict.mode for verdict in gold.verdicts if verdict.source is Resolution.SINGLE}
    verdicts = [
        replace(verdict, value=None) if verdict.mode in single else verdict
        for verdict in gold.verdicts
    ]
    labels = []
    for label in gold.labels:
        if label.mode in single or label.source is Resolution.SINGLE:
            continue
        is_decided = label.source is Resolution.ADJUDICATED
        if label.severity_source is Resolution.SINGLE and not is_decided:
            label = replace(label, severity=None, severity_source=None)
        labels.append(label)
    conflicts = [conflict for conflict in gold.conflicts if conflict.mode not in single]
    return GoldTrace(tuple(verdicts), tuple(labels), tuple(conflicts))


def is_gold(mix: GoldMixJson) -> bool:
    """Check whether there is any settled verdict."""
    return any(mix["sources"][source.value] for source in SETTLED)


def gold_name(mix: GoldMixJson) -> str:
    """Return a short name for the labels: gold, or their author if no two agree on any verdict."""
    if is_gold(mix) or not mix["sources"][Resolution.SINGLE.value]:
        return "gold"
    people = mix["annotators"]
    return people[0] if len(people) == 1 else f"{len(people)} people, each alone"


def gold_words(mix: GoldMixJson) -> str:
    """Return a name for the labels and the sources of their verdicts; plain names, unescaped."""
    counts = {name: count for name, count in mix["sources"].items() if count}
    parts = ", ".join(f"{count} {name}" for name, count in counts.items()) or "no verdict"
    if mix["merged"]:
        parts += f"; {mix['merged']} places cover different ones"
    outsiders = ", ".join(f"{name} {count}" for name, count in mix["not_in_study"].items())
    if outsiders:
        parts += f"; not counted, as not in the study: {outsiders} traces"
    if is_gold(mix) or not counts:
        restriction = ", only what is settled" if mix["settled_only"] else ""
        return f"gold{restriction} (verdicts: {parts})"
    people = mix["annotators"]
    if len(people) == 1:
        return f"{people[0]}'s, one person's and so no gold (verdicts: {parts})"
    return (
        f"those of {', '.join(people)}, each verdict one person's and so no gold "
        f"(verdicts: {parts})"
    )
