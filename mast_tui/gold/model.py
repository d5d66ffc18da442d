"""The records of gold: answers, decisions, conflicts, and the gold of a trace.

A verdict is settled if several annotators or a majority agree, or an adjudicator has decided. A
``single`` verdict comes from one annotator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, Literal, TypedDict

from msgspec import Struct, field, structs

from mast_tui.counts import counted, joined_names
from mast_tui.labels import Label, Severity, Target, VerdictValue


class Resolution(StrEnum):
    """The way in which a verdict or place of the gold was reached."""

    UNANIMOUS = "unanimous"
    MAJORITY = "majority"
    ADJUDICATED = "adjudicated"
    SINGLE = "single"
    UNRESOLVED = "unresolved"


class ConflictKind(StrEnum):
    """The subject of a conflict: the presence of a mode, or its places."""

    VERDICT = "verdict"
    PLACE = "place"


class SideAnswer(Struct, frozen=True, omit_defaults=True):
    """An annotator's answer on a mode or an item: a verdict, and the marked places."""

    annotator: str
    value: VerdictValue | None = None
    targets: tuple[Target, ...] = field(default_factory=lambda: ())


class Decision(Struct, frozen=True, omit_defaults=True):
    """An adjudicator's decision on the verdict of a mode, or on one item.

    An item is a group of overlapping labels of one mode.

    Attributes:
        item: The mode's slug for its verdict, otherwise the id of the item (``item_id``).
        value: The verdict; on an item, any value other than present removes the place.
        targets: All places of the mode for a present verdict; on an item, the places instead of it.
        sides: The annotators with the chosen answer.
        answers: The annotators' answers at that time, so that later changes can be found.
    """

    mode: str
    item: str
    value: VerdictValue
    targets: tuple[Target, ...]
    sides: tuple[str, ...]
    answers: tuple[SideAnswer, ...] = field(name="said")
    decided_by: str
    decided_at: str
    judge_seen: bool = False
    reason: str = ""

    @property
    def is_verdict(self) -> bool:
        """True if the decision is on the mode's verdict."""
        return self.item == self.mode


class Guideline(Struct, frozen=True, omit_defaults=True):
    """An adjudicator's general rule for a mode.

    ``trace_id`` and ``item`` name the decision that led to it, if any. ``written_at`` is ISO 8601
    in UTC.
    """

    id: str
    mode: str
    text: str
    written_by: str
    written_at: str
    trace_id: str | None = None
    item: str | None = None


class Conflict(Struct, frozen=True):
    """An open disagreement between annotators.

    Attributes:
        id: The ``item`` for a decision on the conflict.
        answers: The answers of all annotators with a verdict; for a place, of all with any place.
            An answer without this place has no targets.
        first_place: The place to look at first.
    """

    id: str
    kind: ConflictKind
    mode: str
    answers: tuple[SideAnswer, ...]
    labels: tuple[Label, ...]
    first_place: Target | None


class GoldVerdict(Struct, frozen=True):
    """The verdict on one mode, its source, and the verdict of each annotator.

    Attributes:
        value: The verdict; None while it is unresolved.
        judge_seen: True if the adjudicator or an annotator with a verdict saw a judge's answer.
        changed: True if an annotator's answer has changed since the decision.
    """

    mode: str
    value: VerdictValue | None
    source: Resolution
    sides: Mapping[str, VerdictValue | None]
    judge_seen: bool = False
    decided_by: str | None = None
    decided_at: str | None = None
    reason: str = ""
    changed: bool = False


class GoldLabel(Struct, frozen=True):
    """One place of a mode, with the labels from which it follows.

    Attributes:
        merged: True if the target covers different targets of labels.
        labels: The ids of the labels.
        notes: Pairs of annotator and note.
        severity: The severity, if all annotators who gave one agree.
        severity_source: ``unanimous`` if all annotators of the place gave the severity,
            ``majority`` if several did, ``single`` if one did.
        changed: True if an annotator's answer has changed since the decision.
    """

    mode: str
    target: Target
    source: Resolution
    merged: bool = False
    labels: tuple[str, ...] = ()
    annotators: tuple[str, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    severity: Severity | None = None
    severity_source: Resolution | None = None
    judge_seen: bool = False
    decided_by: str | None = None
    decided_at: str | None = None
    reason: str = ""
    changed: bool = False


class GoldTrace(Struct, frozen=True):
    """The gold of one trace: a verdict per mode, the settled labels, and the open conflicts."""

    verdicts: tuple[GoldVerdict, ...]
    labels: tuple[GoldLabel, ...]
    conflicts: tuple[Conflict, ...]

    def verdict(self, mode: str) -> GoldVerdict:
        """Return the verdict on a mode.

        Raises:
            KeyError: The gold has no such mode.
        """
        for verdict in self.verdicts:
            if verdict.mode == mode:
                return verdict
        raise KeyError(mode)


GoldKind = Literal["all", "settled"]
"""The verdicts of the gold that count: all with a value, or only settled ones."""

SETTLED: Final = (Resolution.UNANIMOUS, Resolution.MAJORITY, Resolution.ADJUDICATED)
_MOST_NAMED: Final = 3
"""The most people whose names stand for their labels."""

SOURCES: Final = (*SETTLED, Resolution.SINGLE, Resolution.UNRESOLVED)
"""The sources to count; an unresolved verdict has no value."""


class GoldMixJson(TypedDict):
    """The sources of the verdicts of a gold.

    Attributes:
        sources: The number of verdicts (trace × mode) by source.
        traces: The number of traces with at least one verdict of a source, by source.
        annotators: The annotators who gave the verdicts.
        settled_only: True if verdicts of one person were left out.
        not_in_study: The number of finished traces of each person outside the study, whose work
            does not count.
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
    """Count verdicts and traces by the source of the verdicts.

    Args:
        verdicts: The sources of the verdicts that count, by trace id.
        annotators: The annotators who gave the verdicts.
        settled_only: True if verdicts of one person were left out.
        not_in_study: The number of finished traces of each person outside the study.
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


def source_if_counted(verdict: GoldVerdict) -> Resolution | None:
    """Return the source of a verdict; None if the verdict does not count.

    A verdict counts if it has a value, or if it is unresolved between annotators.
    """
    if verdict.value is not None:
        return verdict.source
    has_side_verdict = any(value is not None for value in verdict.sides.values())
    if verdict.source is Resolution.UNRESOLVED and has_side_verdict:
        return Resolution.UNRESOLVED
    return None


def only_settled(gold: GoldTrace) -> GoldTrace:
    """Remove the answers that only one person gave from the gold.

    - A verdict of one person loses its value; the mode's labels and conflicts are removed.
    - A label of one person is removed.
    - A severity of one person is removed, unless an adjudicator decided the label.
    """
    single_modes = {
        verdict.mode for verdict in gold.verdicts if verdict.source is Resolution.SINGLE
    }
    verdicts = [
        structs.replace(verdict, value=None) if verdict.mode in single_modes else verdict
        for verdict in gold.verdicts
    ]
    labels = []
    for label in gold.labels:
        if label.mode in single_modes or label.source is Resolution.SINGLE:
            continue
        is_decided = label.source is Resolution.ADJUDICATED
        if label.severity_source is Resolution.SINGLE and not is_decided:
            label = structs.replace(label, severity=None, severity_source=None)
        labels.append(label)
    conflicts = [conflict for conflict in gold.conflicts if conflict.mode not in single_modes]
    return GoldTrace(tuple(verdicts), tuple(labels), tuple(conflicts))


def is_gold(mix: GoldMixJson) -> bool:
    """Return whether there is any settled verdict."""
    return any(mix["sources"][source.value] for source in SETTLED)


def gold_name(mix: GoldMixJson) -> str:
    """Return a short name for labels: gold, or their authors if nothing is settled."""
    if is_gold(mix) or not mix["sources"][Resolution.SINGLE.value]:
        return "gold"
    people = mix["annotators"]
    return joined_names(people) if len(people) <= _MOST_NAMED else f"{len(people)} people"


def gold_words(mix: GoldMixJson) -> str:
    """Describe labels as gold or by their authors, with the sources of the verdicts."""
    counts = {name: count for name, count in mix["sources"].items() if count}
    counts_text = ", ".join(f"{count} {name}" for name, count in counts.items())
    details = f"verdicts: {counts_text}" if counts else "no verdict counted"
    if mix["merged"]:
        details += f"; {counted(mix['merged'], 'place')} merged from several annotators"
    excluded = ", ".join(
        f"{name} {counted(count, 'trace')}" for name, count in mix["not_in_study"].items()
    )
    if excluded:
        details += f"; excluded, not in the study: {excluded}"
    if is_gold(mix) or not counts:
        restriction = ", settled verdicts only" if mix["settled_only"] else ""
        return f"gold{restriction} ({details})"
    people = mix["annotators"]
    if len(people) == 1:
        return f"{people[0]}, one person, no gold ({details})"
    authors = f"{', '.join(people)}, one person per verdict, no gold" if people else "no gold yet"
    return f"{authors} ({details})"
