"""What the agreement of people rests on, in sentences; names are as they were given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from mast_tui.agreement.text_table import interval_method, is_kappa_paradox, rotating_note
from mast_tui.ui.agreement_cells import (
    PARADOX_MARK,
    counted,
    figure_cell,
    figure_words,
    joined,
    why_undefined,
    without_interval,
)

if TYPE_CHECKING:
    from mast_tui.figures.agreement.coefficients import CoefficientJson
    from mast_tui.figures.agreement.report import CoefficientsJson, PairJson, Report, TableJson
    from mast_tui.figures.agreement.tables import RetestJson, SetsJson

MOST_NAMED: Final = 6
"""Traces of one block that are named."""

NAMES: Final[tuple[tuple[str, str], ...]] = (
    ("raw_agreement", "raw agreement"),
    ("positive_agreement", "P+"),
    ("negative_agreement", "P−"),
    ("cohen_kappa", "Cohen's κ"),
    ("fleiss_kappa", "Fleiss' κ"),
    ("krippendorff_alpha", "Krippendorff's α"),
    ("gwet_ac1", "Gwet's AC1"),
)
"""Keys of the report with what the figures are called."""

_NEVER_SAID: Final = {
    "P+": "undefined, since nobody said present",
    "P−": "undefined, since nobody said absent",
}


def table_words(
    report: Report,
    table: PairJson,
    *,
    pending: bool,
    code: str | None = None,
    about: str = "",
) -> str:
    """A table of verdicts: who said what, the intervals, what is odd, what would sharpen it.

    ``code`` is the mode's, for what is told of single modes; ``about`` stands before n.
    """
    many = len(table["prevalence"]) > 2
    parts = [about + _who_said_what(table, trace_unit=not about)]
    parts += _intervals(table, many, pending)
    if is_kappa_paradox(cast("TableJson", table)):
        parts.append(
            f"{PARADOX_MARK} κ is low although raw agreement is high: nearly all verdicts are the "
            "same here, so nearly all agreement counts as chance. Read AC1, P+ and P− beside it."
        )
    parts += why_undefined(_named(table, many), own=_NEVER_SAID)
    if code is not None and not pending:
        parts += _halving(report, code)
    if many:
        parts.append("κ is the mean over the pairs where it is defined.")
        parts += rotating_note(report)
        parts += _pairs(cast("TableJson", table)["pairs"])
    if "unsure" in table:
        parts += _counts("Unsure, counted as missing", cast("TableJson", table)["unsure"])
    return "\n".join(parts)


def macro_words(report: Report, *, pending: bool) -> str:
    """The means over the modes, with how many modes each is the mean of."""
    macro = report["macro"]
    total = len(report["modes"])
    many = len(report["annotators"]) > 2
    figures = _by_name(macro)
    lines = ["The mean over the modes for which a figure is defined:"]
    lines += [
        f"  {figure_words(name, figures[key], pending=pending)}, "
        f"{macro['modes_defined'][key]} of {total} modes"
        for key, name in _names(many)
    ]
    lines += without_interval([figures[key] for key, _ in _names(many)], pending=pending)
    return "\n".join(lines)


def pooled_words(report: Report, *, pending: bool) -> str:
    """All modes in one table: what the whole study rests on, and what was left out of it."""
    table = table_words(report, report["pooled"], pending=pending, about="All modes in one table: ")
    return "\n".join([*_blocks(report), table, *_left_out(report)])


def sets_words(sets: SetsJson, *, pending: bool) -> str:
    """Agreement on which modes a trace has, taken together."""
    jaccard, masi = sets["krippendorff_alpha_jaccard"], sets["krippendorff_alpha_masi"]
    parts = [
        f"Which modes a trace has, compared as sets over {counted(sets['n'], 'trace')} in which "
        "two or more have answered every mode. Two sets that share modes agree in part.",
        f"{figure_words('α with Jaccard distance', jaccard, pending=pending)}; "
        f"{figure_words('with MASI distance', masi, pending=pending)}.",
        *without_interval([jaccard, masi], pending=pending),
    ]
    reasons = {
        "no_variance": "undefined, since all sets are the same and cannot be told from chance",
        "no_overlap": "undefined, since in no trace two people have answered every mode",
        "single_rater": "undefined, since only one person has answered every mode of a trace",
    }
    parts += why_undefined((("Jaccard", jaccard), ("MASI", masi)), reasons)
    return "\n".join(parts)


def retest_words(name: str, retest: RetestJson, *, pending: bool) -> str:
    """An annotator beside themselves."""
    return "\n".join(
        [
            f"{name} with themselves: {counted(retest['n_traces'], 'trace')} labelled once more "
            "without sight of the first time, all modes in one table, "
            f"{retest['n']} trace × mode pairs answered both times.",
            *_intervals(retest, False, pending),
            *why_undefined(_named(retest, False), own=_NEVER_SAID),
        ]
    )


def blocks_in_short(report: Report) -> str:
    """That copies may stand behind the figures, in one line; empty where nothing says so."""
    copied = sum(len(block["traces"]) for block in report["identical_blocks"])
    if not copied:
        return ""
    return (
        f"{counted(copied, 'trace')} share {counted(len(report['identical_blocks']), 'block')} of "
        "verdicts, beyond chance: see Pooled"
    )


def _who_said_what(table: PairJson, *, trace_unit: bool) -> str:
    count = table["n"]
    units = counted(count, "trace" if trace_unit else "trace × mode pair")
    people = "by both" if len(table["prevalence"]) == 2 else "by two people or more"
    have = "has a verdict" if count == 1 else "have verdicts"
    shares = [
        f"{name} in {share:.0%}" for name, share in table["prevalence"].items() if share is not None
    ]
    said = f" Present, says {', '.join(shares)}." if shares else ""
    return f"{units} {have} {people}.{said}"


def _intervals(figures: CoefficientsJson, many: bool, pending: bool) -> list[str]:
    """The figures that are corrected for chance, with their intervals."""
    if pending:
        return ["The 95 % intervals are being counted …"]
    known = [
        figure_words(name, figure, pending=False)
        for name, figure in _named(figures, many)
        if figure["value"] is not None
    ]
    if not known:
        return []
    figures_shown = [figure for _, figure in _named(figures, many)]
    return [
        f"With 95 % intervals: {', '.join(known)}.",
        *without_interval(figures_shown, pending=pending),
    ]


def _halving(report: Report, code: str) -> list[str]:
    plan = report["halving"][code]
    if plan["more_traces"] is None or not plan["more_traces"]:
        return []
    width = f" ({plan['width']:.2f} wide now)" if "width" in plan else ""
    return [
        f"About {plan['more_traces']:,} more traces labelled twice would halve the interval of "
        f"κ{width}."
    ]


def _pairs(pairs: Mapping[str, PairJson]) -> list[str]:
    lines = []
    for names, pair in pairs.items():
        first, _, second = names.partition("|")
        lines.append(
            f"  {first} and {second}: n {pair['n']}, raw {figure_cell(pair['raw_agreement'])}, "
            f"κ {figure_cell(pair['cohen_kappa'])}, AC1 {figure_cell(pair['gwet_ac1'])}"
        )
    return lines


def _blocks(report: Report) -> list[str]:
    """The traces that have the same verdicts of everybody, more of them than chance brings."""
    lines = []
    for block in report["identical_blocks"]:
        traces = block["traces"]
        named = ", ".join(traces[:MOST_NAMED])
        more = f" and {len(traces) - MOST_NAMED} more" if len(traces) > MOST_NAMED else ""
        lines.append(
            f"! {len(traces)} traces have one and the same block of verdicts by "
            f"{joined(block['annotators'])}, which chance would hardly bring about. Look whether "
            f"they were copied: {named}{more}."
        )
    return lines


def _left_out(report: Report) -> list[str]:
    left, blocks, boot = report["left_out"], report["blocks"], report["bootstrap"]
    lines = _counts("Left out, begun but not finished in this pass (traces)", left["unfinished"])
    lines += _counts("Left out, finished by one person only (traces)", left["alone"])
    lines += _counts("Left out, stood in a judge's prompt (traces)", left["examples"])
    lines += _counts("Left out, not in the study (traces)", left["not_in_study"])
    lines += _counts("Left open in finished traces (modes)", left["open"])
    if blocks["traces"]:
        lines.append(
            f"{counted(blocks['distinct'], 'different block')} of verdicts stand behind "
            f"{counted(blocks['traces'], 'trace')} that two have finished."
        )
    if boot["rounds"]:
        lines.append(
            f"Intervals: {boot['level']:.0%} from "
            f"{interval_method(boot, report['traces']['finished_by_two'], 'the percentiles of')}."
        )
    return lines


def _counts(what: str, counts: Mapping[str, int]) -> list[str]:
    some = [f"{name} {count:,}" for name, count in counts.items() if count]
    return [f"{what}: {', '.join(some)}."] if some else []


def _named(figures: CoefficientsJson, many: bool) -> list[tuple[str, CoefficientJson]]:
    by_key = _by_name(figures)
    return [(name, by_key[key]) for key, name in _names(many)]


def _by_name(figures: CoefficientsJson) -> Mapping[str, CoefficientJson]:
    return cast("Mapping[str, CoefficientJson]", figures)


def _names(many: bool) -> list[tuple[str, str]]:
    """Keys and names of the figures that are shown."""
    return [(key, name) for key, name in NAMES if many or key != "fleiss_kappa"]
