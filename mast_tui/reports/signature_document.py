"""The JSON document of a report on failure signatures, as ``report --json`` prints it.

A figure without a value is null, with the name of the reason in ``undefined``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from mast_tui.counts import counted
from mast_tui.figures.prevalence import PREVALENCE_PATHS
from mast_tui.figures.record import (
    OUTCOMES,
    PAIR,
    Figure,
    FigureTable,
    estimate_json,
    insert_figures,
    list_of,
    rate_json,
    uncertainty_json,
    withheld_json,
)
from mast_tui.figures.signatures.costs import AMOUNTS
from mast_tui.figures.signatures.groups import SHAPES
from mast_tui.figures.signatures.model import OVERALL, Rules, SignatureInput
from mast_tui.figures.signatures.modes import class_of_mode
from mast_tui.figures.signatures.onset import BINS, chain_of
from mast_tui.figures.signatures.report import SignatureReport
from mast_tui.reports.published import claims_json
from mast_tui.reports.sentences import applicable
from mast_tui.taxonomy.model import Group

Document = dict[str, Any]

_TRACES: Final = ("all", "failed", "succeeded")
_FATAL_DEFINITIONS: Final = ("labels", "class")
"""The definitions of a fatal label: by its own severity, or by the class of its mode."""


def signature_document(report: SignatureReport) -> Document:
    """Return the JSON document of a report on failure signatures."""
    inputs = report.inputs
    rules = report.rules
    overall = report.group(OVERALL)
    overall_document = _group_json(report, OVERALL, {})
    groups = {
        name: _group_json(report, name, inputs.parts(group_index))
        if inputs.fields
        else overall_document
        for group_index, name in enumerate(report.groups)
    }
    return {
        "by": inputs.by,
        "labels": inputs.label_source,
        "labels_kind": inputs.label_source_kind,
        "gold": inputs.gold,
        "taxonomy": inputs.taxonomy_ref,
        "rules": {
            "alpha": rules.alpha,
            "margin_pp": 100 * rules.margin,
            "least": rules.least,
            "isolated": rules.isolated,
            "cascading": rules.cascading,
            "failed_below": inputs.failed_below,
        },
        "bootstrap": report.resampling.to_json(),
        "stated": None if report.published is None else {"source": report.published.source},
        "weighted": inputs.weights is not None,
        "traces": {
            "labelled": len(inputs.traces),
            "unfinished": inputs.unfinished,
            "failed": overall.count("traces", "failed"),
            "succeeded": overall.count("traces", "succeeded"),
            "unknown": overall.count("traces", "unknown"),
            "labels_with_places": len(inputs.places.trace),
            "labels_without_places": inputs.whole_trace_labels,
            "labels_not_found": inputs.labels_on_unknown_spans,
        },
        "overall": overall_document,
        "groups": groups,
        # Only the report of an experiment fills these keys.
        "comparison": None,
        "paired": None,
        "experiment": None,
        "trend": _trend_json(report),
        "claims": claims_json(report),
        "cannot_say": list(cannot_say(inputs)),
    }


def _corrected_json(report: SignatureReport, name: str) -> Document:
    """Return the prevalences of a group corrected for a judge's errors, by mode."""
    figures = [
        figure
        for scope in PREVALENCE_PATHS
        for mode_figures in report.corrected(name, scope).values()
        for figure in mode_figures.figures
    ]
    document = insert_figures(figures, PREVALENCE_PATHS, {"prevalence": {}})
    corrected: Document = document["prevalence"]
    return corrected


def _group_json(report: SignatureReport, name: str, parts: Mapping[str, str]) -> Document:
    """Return the figures of a group of traces.

    ``parts`` are the group's values by grouping field.
    """
    inputs = report.inputs
    figures = report.group(name)
    document: Document = {
        "parts": dict(parts),
        "traces": figures.count("traces"),
        "failed": figures.count("traces", "failed"),
        "succeeded": figures.count("traces", "succeeded"),
        "unknown": figures.count("traces", "unknown"),
        "mean_score": _mean_json(figures["mean_score"]),
        "scores": {
            metric: _mean_json(figure) for metric, figure in figures.by_name("mean_score").items()
        },
        "modes_per_failed_trace": _modes_per_failed_json(figures),
        "shapes": {shape: figures.count("shape", shape) for shape in SHAPES},
        "categories": _categories_json(report, name, "category", inputs.categories),
    }
    if inputs.levels:
        document["levels"] = {
            level: {"categories": _categories_json(report, name, f"level {level}", groups)}
            for level, groups in inputs.levels.items()
        }
    has_places = report.places(name, "all") is not None
    sides = ("failed", "all")
    return document | {
        "modes": _modes_json(report, name),
        "stratified": _stratified_json(report, name),
        "together": {side: list(_pairs_json(report, name, side)) for side in sides},
        "places": {side: _places_json(report, name, side) for side in sides}
        if has_places
        else None,
        "lengths": _lengths_json(report, name),
        "bill": _bill_json(report, name),
        "cannot_say": list(group_cannot_say(report, name)),
    }


def _modes_json(report: SignatureReport, name: str) -> Document:
    """Return the figures of each mode in a group, also corrected for a judge's errors."""
    modes = report.figures_by_key("mode", name)
    corrected = _corrected_json(report, name)
    return {
        mode.code: {
            "name": mode.name,
            **mode_document(modes[mode.code], report.rules, report.published_class(mode)),
            "corrected": corrected.get(mode.code),
        }
        for mode in report.inputs.modes
    }


def mode_document(figures: FigureTable, rules: Rules, stated: str | None) -> Document:
    """Return the JSON document of a mode in one group.

    Args:
        figures: The figures of the mode.
        rules: The limits between the classes of severity.
        stated: The published class of the mode; None without one.
    """
    rates = {side: figures.find("rate", side) for side in _TRACES}
    mode_class = class_of_mode(figures, rules)
    return {
        "count": rates["all"].count,
        "n": rates["all"].n,
        "unsure": figures.value("unsure"),
        "open": figures.value("open"),
        "unresolved": figures.value("unresolved"),
        "all": rate_json(rates["all"]),
        "more_labels": figures.value("more_labels"),
        "failed": rate_json(rates["failed"]),
        "succeeded": rate_json(rates["succeeded"]),
        "success_given": {
            answer: rate_json(figures.find("rate", f"success_if_{answer}"))
            for answer in ("present", "absent")
        },
        **_difference_json(figures),
        "severity": mode_class.severity,
        "severity_because": mode_class.reason,
        "stated": stated,
    }


def _difference_json(figures: FigureTable) -> Document:
    """Return the difference of the shares by outcome in points, the ratio and the test."""
    difference = figures["difference"]
    ratio = figures["risk_ratio"]
    values = (
        ("difference_pp", difference, points(difference.value)),
        ("difference_ci_pp", difference, interval_in_points(difference.interval)),
        ("risk_ratio", ratio, ratio.value),
        ("risk_ratio_ci", ratio, list_of(ratio.interval)),
        ("p_value", figures["p_value"], figures.value("p_value")),
        ("p_adjusted", figures["p_adjusted"], figures.value("p_adjusted")),
    )
    document: Document = {key: value for key, _, value in values}
    if difference.bounds is not None:
        document["difference_bounds_pp"] = interval_in_points(difference.bounds)
    undefined_reasons = {key: figure.reason for key, figure, value in values if value is None}
    return document | ({"undefined": undefined_reasons} if undefined_reasons else {})


def points(share: float | None) -> float | None:
    """Return a difference of shares in points."""
    return None if share is None else 100 * share


def interval_in_points(ends: Sequence[float] | None) -> list[float] | None:
    """Return both ends of an interval of a difference of shares in points."""
    return None if ends is None else [100 * end for end in ends]


def _mean_json(figure: Figure) -> Document:
    """Return a mean as value, n and interval, with the reason if one is missing."""
    return {"value": figure.value, "n": figure.n} | estimate_json(figure)


def _modes_per_failed_json(figures: FigureTable) -> Document:
    """Return the mean number of modes in a failed trace, and the distribution of the number."""
    figure = figures["modes_per_failed_trace"]
    values = {
        "value": figure.value,
        "ci": list_of(figure.interval),
        "n": figure.n,
        "modes": figures.count("modes_judged"),
        "complete": figures.count("n_complete"),
        "distribution": figures.values("traces_with_modes"),
    }
    return values | uncertainty_json(figure)


def _categories_json(
    report: SignatureReport, name: str, scope: str, categories: Iterable[Group]
) -> Document:
    """Return the counts and shares of the categories of one level, in all traces and by outcome."""
    figures_by_id = report.figures_by_key(scope, name)
    return {
        category.id: {
            "name": category.title,
            **_category_json(figures_by_id[category.id], "all"),
            "failed": _category_json(figures_by_id[category.id], "failed"),
            "succeeded": _category_json(figures_by_id[category.id], "succeeded"),
        }
        for category in categories
    }


def _category_json(figures: FigureTable, side: str) -> Document:
    """Return the count and shares of one category, in ``all`` traces or those with an outcome."""
    return {
        "count": figures.value("shown", side),
        "share": figures.value("share", side),
        "traces": rate_json(figures.find("rate", side)),
    }


def is_reversed(report: SignatureReport, name: str, code: str) -> bool:
    """Return whether the difference of a mode within models has the opposite sign.

    Args:
        report: The report.
        name: The name of a group, or ``OVERALL``.
        code: The code of the mode.
    """
    stratified_difference, overall_difference = (
        report.figures.table(scope, group=report.key(name), mode=code).value("difference") or 0
        for scope in ("stratified", "mode")
    )
    return stratified_difference * overall_difference < 0


def _stratified_json(report: SignatureReport, name: str) -> Document | None:
    """Return the differences between outcomes within models, by mode; None without any."""
    figures_by_code = report.figures_by_key("stratified", name)
    if not figures_by_code:
        return None
    modes = {}
    for code, figures in figures_by_code.items():
        difference = figures["difference"]
        ratio = figures["risk_ratio"]
        document: Document = {
            "strata": figures.value("strata"),
            "n": difference.n,
            "difference_pp": points(difference.value),
            "difference_ci_pp": interval_in_points(difference.interval),
            "risk_ratio": ratio.value,
            "risk_ratio_ci": list_of(ratio.interval),
            **withheld_json(difference),
        }
        # A ratio of 0 has a value but no interval.
        if not ratio.value:
            document["undefined"] = "none_in_failed" if ratio.value == 0 else ratio.reason
        modes[code] = document
    totals = report.figures.table("stratified", group=report.key(name))
    return {
        "by": "model",
        "strata": list(report.inputs.stratum_names),
        "left_out": totals.count("unknown_model"),
        "modes": modes,
        "reversed": [code for code in figures_by_code if is_reversed(report, name, code)],
    }


def _pairs_json(report: SignatureReport, name: str, side: str) -> Iterator[Document]:
    """Yield for each pair of modes the figures on how often both occur in one trace."""
    for pair, figures in report.figures_by_key(f"together_{side}", name).items():
        phi = figures["phi"]
        jaccard = figures["jaccard"]
        document: Document = {
            "modes": pair.split(PAIR),
            "n": phi.n,
            "both": jaccard.count,
            "only_first": figures.value("only_first"),
            "only_second": figures.value("only_second"),
            "neither": (phi.n or 0) - (jaccard.n or 0),  # the n of jaccard has either mode
            "jaccard": jaccard.value,
            "phi": phi.value,
        }
        if phi.value is None:
            document["undefined"] = {"phi": phi.reason}
        yield document


def _places_json(report: SignatureReport, name: str, side: str) -> Document:
    """Return the figures on positions of failures, over ``failed`` or ``all`` traces (``side``)."""
    totals = report.places(name, side)
    assert totals is not None

    def figures_of(scope: str) -> dict[str, FigureTable]:
        return report.figures_by_key(f"{scope}_{side}", name)

    return {
        "traces": totals.count("traces"),
        "of": totals.count("showing"),
        "uncounted": totals.count("uncounted"),
        "first_failure": _position_json(totals),
        "first_mode": {
            code: rate_json(figures["rate"]) for code, figures in figures_of("first_mode").items()
        },
        "tied": totals.count("tied"),
        "onset": {code: _position_json(figures) for code, figures in figures_of("onset").items()},
        # The traces with both modes of a pair, by the mode that occurs first.
        "order": [
            {
                "modes": pair.split(PAIR),
                "n": figures.find("sets_on", "before").n,
                **{key: figures.count("sets_on", key) for key in ("before", "after", "together")},
            }
            for pair, figures in figures_of("order").items()
        ],
        "transitions": [
            {"modes": pair.split(PAIR), "count": figures.count("transitions")}
            for pair, figures in figures_of("transitions").items()
        ],
        "chains": [
            {"steps": [list(step) for step in chain_of(chain)], "count": figures.count("chains")}
            for chain, figures in figures_of("chains").items()
        ],
        "after_fatal": [
            {
                "by": definition,
                **{
                    key: _spread_json(totals, key, definition)
                    for key in ("spans_after", "spans_after_onset", "share_after")
                },
            }
            for definition in _FATAL_DEFINITIONS
        ],
    }


def _position_json(table: FigureTable) -> Document:
    return _spread_json(table, "position") | {
        "bins": [table.count("position_tenth", str(tenth)) for tenth in range(BINS)]
    }


def _spread_json(figures: FigureTable, statistic: str, condition: str = "") -> Document:
    """Return the n, median, quartiles and mean of a statistic."""
    median = figures.find(statistic, condition)
    values = {
        "n": median.n,
        "median": median.value,
        "quartiles": list_of(median.interval),  # the interval of a median
        "mean": figures.value(f"{statistic}_mean", condition),
    }
    return values | uncertainty_json(median)


def _lengths_json(report: SignatureReport, name: str) -> Document | None:
    """Return, by mode, shares by the length of runs, and hazards by ranges of spans."""
    length_tables = report.figures_by_key("length", name)
    if not length_tables:
        return None
    hazard_tables = report.figures_by_key("hazard", name)
    return {
        code: {
            "share": {
                figure.condition: rate_json(figure)
                for figure in table.figures
                if figure.statistic == "rate"
            },
            "p_value": table.value("p_value"),
            "p_adjusted": table.value("p_adjusted"),
            "hazard": {
                figure.condition: rate_json(figure) for figure in hazard_tables[code].figures
            },
        }
        for code, table in length_tables.items()
    }


def _bill_json(report: SignatureReport, name: str) -> list[Document] | None:
    """Return the costs of failed traces before and after the first fatal failure.

    There is an object for each definition of a fatal failure. The result is None without costs.
    """
    totals = report.figures.table("bill", group=report.key(name))
    if not totals.figures:
        return None
    bills = []
    for definition in _FATAL_DEFINITIONS:
        amounts = {
            amount: _amount_json(report, name, f"{definition}{PAIR}{amount}") for amount in AMOUNTS
        }
        bills.append(
            {
                "by": definition,
                "traces": totals.count("traces", definition),
                "with_fatal": totals.count("with_fatal", definition),
                "at_hand": totals.count("at_hand", definition),
                # The other amounts are parts of ``tokens``.
                **{
                    f"traces_with_{key}": (amounts[key] or {}).get("traces", 0)
                    for key in ("tokens", "minutes")
                },
                **amounts,
            }
        )
    return bills


def _amount_json(report: SignatureReport, name: str, condition: str) -> Document | None:
    """Return the tokens or minutes of failed traces; None if they are unknown.

    ``condition`` joins the definition of a fatal failure and the name of the amount.
    """
    totals = report.figures.table("bill", group=report.key(name))
    total = totals.get("used_total", condition)
    if total is None:
        return None
    keys = ("total", "without_fatal", "before_first_fatal", "after", "share_after")
    by_mode = {
        code: figures.value("used_after", condition)
        for code, figures in report.figures_by_key("bill", name).items()
    }
    return {
        "traces": total.n,
        **{key: totals.value(f"used_{key}", condition) for key in keys},
        "by_mode": {code: value for code, value in by_mode.items() if value is not None},
    }


def _trend_json(report: SignatureReport) -> Document | None:
    """Return the trend of each mode along the groups; None without an order."""
    axis = report.axis
    if axis is None:
        return None
    return {
        "by": report.inputs.by,
        "groups": list(axis.groups),
        "scores": list(axis.scores),
        "unit": axis.unit,
        "left_out": report.figures.table("trend").count("no_group"),
        "modes": {
            side: {
                mode.code: {
                    "name": mode.name,
                    "rates": [
                        rate_json(
                            report.figures.table(f"trend_{side}", group=group, mode=mode.code)[
                                "rate"
                            ]
                        )
                        for group in axis.groups
                    ],
                    **_slope_json(report.figures.table(f"trend_{side}", mode=mode.code)),
                }
                for mode in report.inputs.modes
            }
            for side in ("failed", "all")
        },
    }


def _slope_json(figures: FigureTable) -> Document:
    """Return the slope of a trend in points, and the test of the trend."""
    # The condition of a p-value is the method of its test.
    p_value = next(figure for figure in figures.figures if figure.statistic == "p_value")
    values = {
        "slope_pp": points(figures.value("slope")),
        "z": figures.value("z"),
        "p_value": p_value.value,
        "p_adjusted": figures.value("p_adjusted"),
        "method": p_value.condition or None,
    }
    return values | uncertainty_json(p_value)


def cannot_say(inputs: SignatureInput) -> Iterator[str]:
    """Yield sentences on missing figures and excluded data."""
    # Pseudonyms do not replace names inside sentences, so the annotator is not named.
    annotator = "anyone" if inputs.label_source_kind == "gold" else "the annotator"
    yield from applicable(
        (
            not inputs.traces,
            f"There are no figures: no trace that {annotator} has finished under "
            f"{inputs.taxonomy_ref} is included.",
        ),
        (
            inputs.unfinished,
            f"Excluded: {counted(inputs.unfinished, 'trace')} that the annotator has begun but not "
            "finished.",
        ),
        (
            inputs.has_unknown_weights,
            "Traces were drawn with unequal probabilities, and the batches are not samples of one "
            "population: shares are unweighted and describe the labelled traces only.",
        ),
        (
            inputs.labels_on_unknown_spans,
            f"Excluded from figures on places: {counted(inputs.labels_on_unknown_spans, 'label')} "
            "on spans of unknown position, because the trace is missing or has changed.",
        ),
        (
            inputs.whole_trace_labels,
            f"Excluded from figures on places: {counted(inputs.whole_trace_labels, 'label')} on a "
            "whole trace.",
        ),
    )


def group_cannot_say(report: SignatureReport, name: str) -> Iterator[str]:
    """Yield sentences on missing figures and excluded data of a group.

    Args:
        report: The report.
        name: The name of the group, or ``OVERALL``.
    """
    figures = report.group(name)
    failed, succeeded = (figures.count("traces", side) for side in OUTCOMES)
    unknown_count = figures.count("traces", "unknown")
    rates = {
        code: mode_figures.find("rate", "all")
        for code, mode_figures in report.figures_by_key("mode", name).items()
    }
    yield from applicable(
        (
            unknown_count,
            f"{unknown_count} of {counted(figures.count('traces'), 'trace')} without a known "
            "outcome count neither as failed nor as successful.",
        ),
        (
            not failed,
            "No trace is known to have failed, so there are no figures on failed traces.",
        ),
        (
            not succeeded,
            "No trace is known to have succeeded, so failed traces have no comparison group.",
        ),
        (
            0 < min(failed, succeeded) < report.rules.least,
            f"With fewer than {report.rules.least} failed or successful traces, no mode is "
            "classified as fatal or benign.",
        ),
    )
    yield from _missing_modes_sentences(rates)
    if report.places(name, "all") is None:
        yield "No label is on a span of known position, so there are no figures on places."


def _missing_modes_sentences(rates: Mapping[str, Figure]) -> Iterator[str]:
    """Yield sentences on modes without a verdict on any trace, and on modes that no trace shows.

    ``rates`` are the shares of all traces with each mode, by code.
    """
    unjudged_codes = [code for code, rate in rates.items() if not rate.n]
    unseen_codes = [code for code, rate in rates.items() if rate.n and not rate.count]
    all_unjudged = len(unjudged_codes) == len(rates)
    yield from applicable(
        (all_unjudged, "No trace has a verdict present or absent on any mode."),
        (
            unjudged_codes and not all_unjudged,
            f"Open on every trace: {', '.join(unjudged_codes)}.",
        ),
        (
            unseen_codes,
            f"Modes not found: {', '.join(unseen_codes)}. The interval says how common such a mode "
            "may still be.",
        ),
    )
