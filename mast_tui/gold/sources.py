"""The sources of gold: the numbers of verdicts that two people share or that one person gave.

A verdict is ``settled`` where two or more said the same of it, a majority did, or an adjudicator
decided it; a ``single`` one is one person's word.
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

    ``sources`` counts verdicts (trace × mode), ``traces`` those with at least one such verdict, so
    that a trace may count under several. ``unresolved`` verdicts, on which annotators differ, are
    in no figure. ``annotators`` are the people behind them. With
    ``settled_only`` verdicts of one person were left out. ``not_in_study`` are the people who have
    no part in the study, with how many traces each has finished; none of that counts. ``merged``
    counts the places that cover different ones of several people.
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
        verdicts: By trace id the sources of its verdicts that have a value or are unresolved.
        annotators: The people behind them.
        settled_only: Whether verdicts of one person were left out before.
        not_in_study: Finished traces of people without a part in the study, left out before.
        merged: How many places cover different ones of several people.
    """
    verdict_counts: Counter[Resolution] = Counter()
    traces: Counter[Resolution] = Counter()
    for trace_sources in verdicts.values():
        counts = Counter(trace_sources)
        verdict_counts.update(counts)
        traces.update(counts.keys())
    return {
        "sources": {source.value: verdict_counts[source] for source in SOURCES},
        "traces": {source.value: traces[source] for source in SOURCES},
        "annotators": sorted(annotators),
        "settled_only": settled_only,
        "not_in_study": dict(not_in_study),
        "merged": merged,
    }


def counted_source(verdict: GoldVerdict) -> Resolution | None:
    """Return the source of a verdict; None where nobody has one, or its value was left out."""
    if verdict.value is not None:
        return verdict.source
    differ = verdict.source is Resolution.UNRESOLVED
    return Resolution.UNRESOLVED if differ and any(verdict.sides.values()) else None


def only_settled(gold: GoldTrace) -> GoldTrace:
    """Return the gold without what is one person's word.

    Such a verdict has no value, such a place, or one of such a verdict, is no label, and such a
    severity is none, unless an adjudicator took that person's word.
    """
    single = {verdict.mode for verdict in gold.verdicts if verdict.source is Resolution.SINGLE}
    return GoldTrace(
        tuple(
            replace(verdict, value=None) if verdict.mode in single else verdict
            for verdict in gold.verdicts
        ),
        tuple(
            label
            if label.severity_source is not Resolution.SINGLE
            or label.source is Resolution.ADJUDICATED
            else replace(label, severity=None, severity_source=None)
            for label in gold.labels
            if label.mode not in single and label.source is not Resolution.SINGLE
        ),
        tuple(conflict for conflict in gold.conflicts if conflict.mode not in single),
    )


def is_gold(mix: GoldMixJson) -> bool:
    """Return whether any verdict is more than one person's."""
    return any(mix["sources"][source.value] for source in SETTLED)


def gold_name(mix: GoldMixJson) -> str:
    """Return a short name for the labels: gold, or their author if no two agree on any verdict."""
    if is_gold(mix) or not mix["sources"][Resolution.SINGLE.value]:
        return "gold"
    people = mix["annotators"]
    return people[0] if len(people) == 1 else f"{len(people)} people, each alone"


def gold_words(mix: GoldMixJson) -> str:
    """Return a name for the labels and the sources of their verdicts; plain names, unescaped."""
    counts = {name: n for name, n in mix["sources"].items() if n}
    parts = ", ".join(f"{n} {name}" for name, n in counts.items()) or "no verdict"
    if mix["merged"]:
        parts += f"; {mix['merged']} places cover different ones"
    outside = ", ".join(f"{name} {n}" for name, n in mix["not_in_study"].items())
    if outside:
        parts += f"; not counted, as not in the study: {outside} traces"
    if is_gold(mix) or not counts:
        only = ", only what is settled" if mix["settled_only"] else ""
        return f"gold{only} (verdicts: {parts})"
    people = mix["annotators"]
    if len(people) == 1:
        return f"{people[0]}'s, one person's and so no gold (verdicts: {parts})"
    return (
        f"those of {', '.join(people)}, each verdict one person's and so no gold "
        f"(verdicts: {parts})"
    )
