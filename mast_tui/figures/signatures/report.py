"""The report on failure signatures, as ``report --json`` prints it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Final, TypedDict

import numpy as np

from mast_tui.counts import counted
from mast_tui.figures.bootstrap import ROUNDS, BootstrapJson, bootstrap_json
from mast_tui.figures.signatures.bill import SpentOf
from mast_tui.figures.signatures.comparison import (
    ComparisonJson,
    PairedJson,
    comparison,
    paired_groups,
)
from mast_tui.figures.signatures.groups import GroupJson, Setting, group_figures
from mast_tui.figures.signatures.model import ALL, NO_VALUE, OVERALL, Rules, SignatureInput
from mast_tui.figures.signatures.onset import first_fatal, onsets
from mast_tui.figures.signatures.trend import TrendJson, trend
from mast_tui.gold.sources import GoldMixJson, gold_words

CLASSES: Final = ("fatal", "benign", "both")

LEAST_OUTCOMES: Final = 10
"""Traces with a known outcome from which on failed and successful ones are compared."""

LEAST_TRACES: Final = 5
"""Traces from which on a group is shown by itself where nobody asked for groups."""


@dataclass(frozen=True, slots=True)
class Stated:
    """The class that a source gives to modes, by slug: ``fatal``, ``benign`` or ``both``."""

    source: str
    classes: Mapping[str, str]


def stated_for(taxonomy_ref: str) -> Stated | None:
    """What is stated of the modes of a taxonomy (``id@version``), None where nothing is known."""
    text = files("mast_tui.figures.signatures").joinpath("published_claims.toml").read_text("utf-8")
    document = tomllib.loads(text)
    if taxonomy_ref != f"{document['taxonomy']}@{document['version']}":
        return None
    classes = {slug: name for name in CLASSES for slug in document[name]}
    return Stated(document["source"], classes)


Corrected = Mapping[str, Mapping[str, Mapping[str, object]]]
"""Per group, per mode code: how often the mode really shows where only a judge has looked."""


class RulesJson(TypedDict):
    """Where the lines were drawn; the margin in points."""

    alpha: float
    margin_pp: float
    least: int
    isolated: int
    cascading: int
    failed_below: float | None


class StatedJson(TypedDict):
    """Whose word the ``stated`` of the modes is."""

    source: str


class TracesJson(TypedDict):
    """All traces of the report, and the labels on them that name no place, or none known here.

    ``unfinished`` are the traces that the annotator has begun and not finished; none of the gold.
    """

    labelled: int
    unfinished: int
    failed: int
    succeeded: int
    unknown: int
    labels_with_places: int
    labels_without_places: int
    labels_not_found: int


class Report(TypedDict):
    """Failure signatures by group; a figure that cannot be had is null with a reason beside it.

    ``overall`` has the figures of all traces together, which are those of ``--by all``.
    ``weighted`` is whether shares are weighted by the chances with which traces were drawn.
    ``comparison`` and ``paired`` are None where no groups were to be compared, ``paired`` also
    where no task is known that both did; ``trend`` where the groups have no order.
    """

    by: str
    labels: str
    labels_kind: str
    gold: GoldMixJson | None
    taxonomy: str
    rules: RulesJson
    bootstrap: BootstrapJson
    stated: StatedJson | None
    weighted: bool
    traces: TracesJson
    overall: GroupJson
    groups: dict[str, GroupJson]
    comparison: ComparisonJson | None
    paired: PairedJson | None
    trend: TrendJson | None
    cannot_say: list[str]


def signature_report(
    given: SignatureInput,
    *,
    rules: Rules | None = None,
    rounds: int = ROUNDS,
    seed: int = 0,
    compare: tuple[str, str] | None = None,
    corrected: Corrected | None = None,
    spent_of: SpentOf | None = None,
) -> Report:
    """Make the report, ready for any JSON writer; it never holds NaN.

    Args:
        given: Whose words on which traces, and their groups.
        rules: Where the lines are drawn; by default as ``Rules`` has them.
        rounds: How many resamples; 0 leaves out the intervals that need them.
        seed: What the resamples are drawn from.
        compare: Two groups against each other, also task by task where both did the same tasks.
        corrected: Corrected prevalences, where the labels are a judge's.
        spent_of: What traces used up, for the bill of what they did once they were lost.
    """
    rules = Rules() if rules is None else rules
    stated = stated_for(given.taxonomy_ref)
    classes = {} if stated is None else stated.classes
    setting = Setting(
        given,
        [classes.get(mode.slug) for mode in given.modes],
        onsets(given),
        first_fatal(given, given.places.fatal),
        rules,
        rounds,
        seed,
        spent_of,
    )
    figures = {
        # Groups are drawn apart from each other, so from seeds of their own.
        name: group_figures(replace(setting, seed=seed + place), place)
        for place, name in enumerate(given.group_names)
    }
    one_group = given.as_one_group()
    overall = (
        figures[ALL].table
        if one_group is given
        else group_figures(replace(setting, given=one_group), 0).table
    )
    for name, by_mode in (corrected or {}).items():
        table = overall if name == OVERALL else figures[name].table
        for code, found in by_mode.items():
            table["modes"][code]["corrected"] = dict(found)
    paired = paired_groups(given, *compare) if compare else None
    counts = np.bincount(given.outcome, minlength=3).tolist()
    return {
        "by": given.by,
        "labels": given.labels,
        "labels_kind": given.labels_kind,
        "gold": given.gold,
        "taxonomy": given.taxonomy_ref,
        "rules": {
            "alpha": rules.alpha,
            "margin_pp": 100 * rules.margin,
            "least": rules.least,
            "isolated": rules.isolated,
            "cascading": rules.cascading,
            "failed_below": given.failed_below,
        },
        "bootstrap": bootstrap_json(rounds, seed),
        "stated": None if stated is None else {"source": stated.source},
        "weighted": given.weights is not None,
        "traces": {
            "labelled": len(given.traces),
            "unfinished": given.unfinished,
            "failed": counts[1],
            "succeeded": counts[2],
            "unknown": counts[0],
            "labels_with_places": len(given.places.trace),
            "labels_without_places": given.whole,
            "labels_not_found": given.unplaced,
        },
        "overall": overall,
        "groups": {name: one.table for name, one in figures.items()},
        "comparison": comparison(given, compare, figures) if compare else None,
        "paired": paired if paired and paired["tasks"] else None,
        "trend": trend(given),
        "cannot_say": _cannot_say(given),
    }


def group_of(report: Report, name: str) -> GroupJson:
    """Return the figures of a group, or of all traces together.

    Args:
        report: The report.
        name: The name of one of its groups, or ``OVERALL``.

    Raises:
        KeyError: There is no such group.
    """
    return report["overall"] if name == OVERALL else report["groups"][name]


def large_groups(report: Report) -> list[str]:
    """Return the groups that are shown beside all traces where nobody asked for groups.

    They have ``LEAST_TRACES`` or more. One group alone is all traces once more, and the traces of
    which nobody knows the value are no group by themselves.
    """
    groups = report["groups"]
    if report["by"] == ALL or len(groups) < 2:
        return []
    large = [name for name, group in groups.items() if group["traces"] >= LEAST_TRACES]
    return [] if large == [NO_VALUE] else large


def compares_outcomes(group: GroupJson) -> bool:
    """Return whether enough outcomes are known to compare failed with successful traces."""
    return group["failed"] + group["succeeded"] >= LEAST_OUTCOMES


def whose_labels(report: Report) -> str:
    """Whose labels a report rests on, and what a gold is made of; plain names, unescaped."""
    if report["gold"] is not None:
        return gold_words(report["gold"])
    kind = report["labels_kind"]
    return report["labels"] if kind == report["labels"] else f"{report['labels']} ({kind})"


def _cannot_say(given: SignatureInput) -> list[str]:
    said = []
    if not given.traces:
        # Never by name, which pseudonyms would not find within a sentence.
        whose = "anybody" if given.labels_kind == "gold" else "the annotator"
        said.append(
            f"No trace that {whose} has finished under {given.taxonomy_ref} counts here; there is "
            "no figure."
        )
    if given.unfinished:
        traces = counted(given.unfinished, "trace")
        said.append(f"Left out: {traces} that the annotator has begun and not finished.")
    if given.of_no_whole:
        said.append(
            "Traces came into the study with different chances, of no one whole: shares are those "
            "of the traces that were labelled."
        )
    if given.unplaced:
        name = "label names" if given.unplaced == 1 else "labels name"
        said.append(
            f"{given.unplaced} {name} spans whose place is not known here: the trace is not at "
            "hand or holds something else now; nothing about places rests on that."
        )
    if given.whole:
        are = (
            "label is on a whole trace and names"
            if given.whole == 1
            else ("labels are on whole traces and name")
        )
        said.append(f"{given.whole} {are} no place.")
    return said
