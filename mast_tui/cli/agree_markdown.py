"""The report of ``agree`` as Markdown tables with captions, fit for a paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from mast_tui.agreement.figure_table import in_words, withheld_notes
from mast_tui.agreement.text_judge import against_words
from mast_tui.agreement.text_people import blocks_warning
from mast_tui.agreement.text_spans import without_places
from mast_tui.agreement.text_table import (
    interval_method,
    is_kappa_paradox,
    rotates,
    rotating_note,
)
from mast_tui.gold.sources import gold_words
from mast_tui.reports.render.markdown import plain, table

if TYPE_CHECKING:
    from mast_tui.figures.agreement.report import Report

_FIGURES: Final[tuple[tuple[str, str], ...]] = (
    ("raw", "raw_agreement"),
    ("P−", "negative_agreement"),
    ("P+", "positive_agreement"),
    ("κ", "cohen_kappa"),
    ("Fleiss κ", "fleiss_kappa"),
    ("α", "krippendorff_alpha"),
    ("AC1", "gwet_ac1"),
)
_JUDGED: Final = (
    ("TPR", "true_positive_rate"),
    ("TNR", "true_negative_rate"),
    ("precision", "precision"),
    ("F1", "f1"),
    ("κ", "cohen_kappa"),
    ("AC1", "gwet_ac1"),
)
_HALF: Final = "0.5"

Values = Mapping[str, Any]


def markdown_tables(report: Report) -> str:
    """A table per mode with its caption; then pairs, places and the judge, where there are any.

    Every name is escaped, and an undefined figure says why.
    """
    parts = [_modes(report), _pairs(report), _spans(report), _judge(report)]
    return "\n".join(line for part in parts for line in ([*part, ""] if part else []))


def _modes(report: Values) -> list[str]:
    many = len(report["annotators"]) > 2
    columns = [one for one in _FIGURES if many or one[1] != "fleiss_kappa"]
    if rotates(report):
        # Mean κ is pulled down where pairs share few traces, so it stands last but one.
        late = ("cohen_kappa", "fleiss_kappa")
        columns = [one for one in columns if one[1] not in late]
        columns += [("mean κ", late[0]), ("Fleiss κ", late[1])]
    heads = ("mode", "name", "n", "present", *(title for title, _ in columns))
    rows = [_row(code, mode["name"], mode, columns) for code, mode in report["modes"].items()]
    rows += [_row("", one["name"], one, columns) for one in report["categories"].values()]
    rows.append(["", "macro", "", "", *_figures(report["macro"], columns)])
    rows.append(_row("", "pooled", report["pooled"], columns))
    lines = [" ".join(_caption(report, many)), "", *table(heads, rows)]
    warning = list(blocks_warning(report))  # type: ignore[arg-type]
    return [*lines, "", *map(plain, warning)] if warning else lines


def _row(code: str, name: str, one: Values, columns: Sequence[tuple[str, str]]) -> list[str]:
    shares = " / ".join(
        "—" if share is None else f"{share:.2f}" for share in one["prevalence"].values()
    )
    mark = "†" if is_kappa_paradox(one) else ""  # type: ignore[arg-type]
    return [plain(code) + mark, plain(name), str(one["n"]), shares, *_figures(one, columns)]


def _figures(one: Values, columns: Sequence[tuple[str, str]]) -> list[str]:
    return [_figure(one[key]) for _, key in columns]


def _figure(figure: Values) -> str:
    return plain(in_words(figure))


def _caption(report: Values, many: bool) -> Iterator[str]:
    people = ", ".join(plain(name) for name in report["annotators"]) or "nobody"
    passed = "first pass" if report["pass"] == "1" else "last pass"
    traces = report["traces"]
    done = f"{traces['finished_by_all']} traces that all have finished"
    if many:
        done = (
            f"{traces['finished_by_two']} traces that two or more have finished, "
            f"{traces['finished_by_all']} of them all"
        )
    under = f"taxonomy {plain(report['taxonomy'])}, {passed}"
    yield f"Table: Agreement of {people} on {done} ({under})."
    if "only_seen_by" in traces:
        yield f"Only traces that {plain(traces['only_seen_by'])} has finished or adjudicates count."
    yield "n: traces with a verdict by two or more; present: the share of that verdict by each."
    if many:
        complete = report["pooled"]["n_complete"]
        yield (
            "κ is the mean over the pairs of annotators; Fleiss' κ rests on what all of them "
            f"judged only ({complete} of {report['pooled']['n']} traces × modes)."
        )
        yield from map(plain, rotating_note(report))
    yield _intervals(report["bootstrap"], traces["finished_by_two"])
    yield from withheld_notes(*(report[key] for key in ("modes", "categories", "macro", "pooled")))
    yield "macro: mean over the modes where it is defined; pooled: traces × modes in one table."
    left = _left_out(report)
    yield f"Left out: {left}." if left else "Nothing was left out."
    tables = (*report["modes"].values(), *report["categories"].values(), report["pooled"])
    if any(is_kappa_paradox(one) for one in tables):
        yield "† κ is low at high raw agreement, as nearly all verdicts are the same."


def _intervals(bootstrap: Values, traces: int) -> str:
    if not bootstrap["rounds"]:
        return "No intervals."
    return f"In brackets 95 % intervals from {interval_method(bootstrap, traces, 'bootstrap:')}."


def _left_out(report: Values) -> str:
    names = {
        "unfinished": "traces begun and not finished",
        "alone": "traces finished by one only",
        "examples": "traces in a judge's prompt",
        "unsure": "unsure verdicts",
        "open": "open verdicts",
        "not_in_study": "traces finished by people who are not in the study",
    }
    counts = {key: sum(report["left_out"][key].values()) for key in names}
    return ", ".join(f"{n} {names[key]}" for key, n in counts.items() if n)


def _pairs(report: Values) -> list[str]:
    names = report["annotators"]
    if len(names) < 3:
        return []
    pairs = report["pooled"]["pairs"]
    rows = [
        [
            plain(name),
            *(
                _figure(pairs[f"{other}|{name}"]["cohen_kappa"]) if place < own else ""
                for place, other in enumerate(names[:-1])
            ),
        ]
        for own, name in enumerate(names)
        if own
    ]
    heads = ("κ", *(plain(name) for name in names[:-1]))
    return ["Table: Cohen's κ of each pair, all modes pooled.", "", *table(heads, rows)]


def _spans(report: Values) -> list[str]:
    spans = report["spans"]
    if spans is None:
        return []
    if not spans["traces"]["compared"]:
        return [f"Places: none compared; {spans['traces']['not_at_hand']} traces not at hand."]
    found = spans["all"]
    rows = [
        [
            plain(code),
            plain(mode["name"]),
            str(mode["f1"]["places"]),
            _figure(mode["f1"]["exact"]),
            _figure(mode["f1"]["overlap"][_HALF]),
            _figure(mode["krippendorff_alpha"]),
            _figure(mode["krippendorff_alpha_u"]),
        ]
        for code, mode in found["modes"].items()
    ]
    for key, name in (("finding", "finding"), ("finding_and_naming", "finding and naming")):
        one = found[key]
        last = _figure(found["krippendorff_alpha_u"]) if key != "finding" else ""
        rows.append(
            ["", name, str(one["places"]), _figure(one["exact"]),
             _figure(one["overlap"][_HALF]), "", last]
        )  # fmt: skip
    heads = ("mode", "name", "places", "F1 exact", f"F1 at {_HALF}", "α", "α\\_U")
    caption = (
        f"Table: Agreement on places in {spans['traces']['compared']} traces, {found['spans']} "
        f"spans; {spans['traces']['not_at_hand']} traces not at hand. F1 by exact place and by an "
        f"overlap of {_HALF}; α over spans that two or more read; α\\_U over those that all read. "
        + " ".join(
            [
                _intervals(spans["bootstrap"], spans["traces"]["compared"]),
                *map(plain, without_places(spans)),
                *withheld_notes(found),
            ]
        )
    )
    return [caption, "", *table(heads, rows)]


def _judge(report: Values) -> list[str]:
    judge = report["judge"]
    if judge is None:
        return []
    heads = ("mode", "name", "n", "TP/FP/FN/TN", *(title for title, _ in _JUDGED))
    rows = [
        [plain(code), plain(mode["name"]), str(mode["n"]), _four(mode), *_figures(mode, _JUDGED)]
        for code, mode in judge["modes"].items()
    ]
    rows.append(["", "macro", "", "", *_figures(judge["macro"], _JUDGED)])
    pooled = judge["pooled"]
    rows.append(["", "pooled", str(pooled["n"]), _four(pooled), *_figures(pooled, _JUDGED)])
    counts = judge["left_out"]
    left = ", ".join(f"{n} {key.replace('_', ' ')}" for key, n in counts.items() if n)
    caption = (
        f"Table: {plain(judge['judge'])} against {plain(against_words(judge))} on "
        f"{judge['traces']['compared']} traces (taxonomy {plain(judge['taxonomy'])}). "
        f"{_intervals(judge['bootstrap'], judge['traces']['compared'])} Rates of one mode have "
        f"Wilson intervals instead. Left out: {left or 'nothing'}."
        + "".join(f" {sentence}" for sentence in withheld_notes(judge))
    )
    if judge["gold"] is not None:
        caption += f" Measured by {plain(gold_words(judge['gold']))}."
    return [caption, "", *table(heads, rows), *_corrected(judge)]


def _four(one: Values) -> str:
    keys = ("true_positives", "false_positives", "false_negatives", "true_negatives")
    return "/".join(str(one[key]) for key in keys)


def _corrected(judge: Values) -> list[str]:
    if not judge["traces"]["unlabelled"] or not judge["prevalence"]:
        return []
    rows = [
        [
            plain(code),
            plain(judge["modes"][code]["name"]),
            str(one["n_unlabelled"]),
            _figure(one["apparent"]),
            _figure(one["corrected"]),
        ]
        for code, one in judge["prevalence"].items()
    ]
    caption = (
        f"Table: Prevalence on {judge['traces']['unlabelled']} traces that only the judge has "
        "judged, as it says and corrected for its errors (Rogan and Gladen)."
    )
    heads = ("mode", "name", "n", "apparent", "corrected")
    return ["", caption, "", *table(heads, rows)]
