"""The tables of the page; a cell that holds a number carries it whole, for sorting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from mast_tui.reports.render.svg import shown
from mast_tui.signatures.figure_rates import percent, points_words

if TYPE_CHECKING:
    from mast_tui.figures.signatures.comparison import ComparisonJson
    from mast_tui.figures.signatures.groups import GroupJson
    from mast_tui.figures.signatures.modes import DifferenceJson
    from mast_tui.figures.signatures.places import PlacesJson
    from mast_tui.figures.signatures.rates import RateJson

NOTHING: Final = "–"

_MOST_STEPS: Final = 12

_WHY: Final = {
    "more_in_failed": "more in failed",
    "seen_in_successes": "seen in successes",
    "too_few_traces": "too few traces",
    "not_told_apart": "not told apart",
    "not_judged": "not judged",
    "no_failed": "no failed trace judged",
    "no_succeeded": "no successful trace judged",
    "no_strata": "no model with both",
    "none_in_failed": "none in failed",
    "none_in_succeeded": "none in successful",
    "never_seen": "never seen",
    "no_first": "first not judged",
    "no_second": "second not judged",
    "none_in_first": "none in the first",
    "none_in_second": "none in the second",
    "no_overlap": "no such trace",
    "no_unlabelled": "no such trace",
    "no_positives": "gold: never present",
    "no_negatives": "gold: never absent",
    "no_better_than_chance": "no better than chance",
}


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], words: str) -> str:
    """A table in a box that scrolls; ``heads`` are plain, rows hold finished cells."""
    top = "".join(f'<th scope="col">{shown(head)}</th>' for head in heads)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return (
        f'<div class="box" tabindex="0" role="region" aria-label="{shown(words)}">'
        f'<table class="sorts"><caption>{shown(words)}</caption><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def word(text: str) -> str:
    """A cell of words."""
    return f"<td>{shown(text)}</td>"


def figure(value: float | None, text: str) -> str:
    """A cell with a number, shown as ``text``; without one the text may say why."""
    data = "" if value is None else repr(float(value))
    return f'<td class="n" data-v="{data}">{shown(text)}</td>'


def rate_cells(rate: RateJson) -> list[str]:
    """A share and its interval."""
    if rate["rate"] is None or rate["ci"] is None:
        return [figure(None, "none judged"), figure(None, NOTHING)]
    low, high = rate["ci"]
    return [
        figure(rate["rate"], f"{percent(rate['rate'])} ({rate['count']}/{rate['n']})"),
        figure(high - low, f"{100 * low:.0f} to {100 * high:.0f}"),
    ]


def _difference_cells(found: DifferenceJson) -> list[str]:
    why = found.get("undefined", {})
    value, ends = found["difference_pp"], found["difference_ci_pp"]
    ratio, reach = found["risk_ratio"], found["risk_ratio_ci"]
    spread = "" if reach is None else f" ({reach[0]:.1f} to {reach[1]:.1f})"
    return [
        figure(value, _reason(why, "difference_pp") if value is None else points_words(value)),
        figure(
            None if ends is None else ends[1] - ends[0],
            NOTHING if ends is None else f"{points_words(ends[0])} to {points_words(ends[1])}",
        ),
        figure(ratio, _reason(why, "risk_ratio") if ratio is None else f"{ratio:.1f}{spread}"),
        figure(found["p_value"], p_words(found["p_value"])),
        figure(found["p_adjusted"], p_words(found["p_adjusted"])),
    ]


def stratified_part(group: GroupJson) -> str:
    """The modes within each model, and a warning where all models at once say the reverse."""
    found = group["stratified"]
    if found is None:
        return ""
    rows = []
    for code, one in found["modes"].items():
        # One reason for whatever of the row is missing.
        why = dict.fromkeys(("difference_pp", "risk_ratio"), one.get("undefined", ""))
        told: DifferenceJson = {
            "difference_pp": one["difference_pp"],
            "difference_ci_pp": one["difference_ci_pp"],
            "risk_ratio": one["risk_ratio"],
            "risk_ratio_ci": one["risk_ratio_ci"],
            "p_value": None,
            "p_adjusted": None,
            "undefined": why,
        }
        name = group["modes"][code]["name"]
        counts = [figure(one["strata"], str(one["strata"])), figure(one["n"], str(one["n"]))]
        rows.append([word(code), word(name), *counts, *_difference_cells(told)[:3]])
    heads = ("code", "mode", "models", "n", "points", "95 % interval", "ratio")
    left = (
        f" {found['left_out']} traces of unknown model are left out." if found["left_out"] else ""
    )
    words = f"Failed less successful within each model (Mantel and Haenszel).{left}"
    warning = ""
    if found["reversed"]:
        warning = (
            "<p>The other way round over all models at once than within each, so that the table of "
            f"all misleads (Simpson’s paradox): {shown(', '.join(found['reversed']))}.</p>"
        )
    return warning + table(heads, rows, words)


def _reason(why: dict[str, str], name: str) -> str:
    return _WHY.get(why.get(name, ""), NOTHING)


def p_words(value: float | None) -> str:
    """A p-value."""
    if value is None:
        return NOTHING
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def modes_table(group: GroupJson, *, stated: bool) -> str:
    """All that is known of the modes of a group."""
    heads = ["code", "mode", "failed", "95 % interval", "successful", "95 % interval"]
    heads += ["points", "95 % interval", "ratio", "p", "p adjusted", "class", "because"]
    left = any(mode["unsure"] or mode["open"] for mode in group["modes"].values())
    heads += ["study"] * stated + ["unsure", "open"] * left
    rows = []
    for code, mode in group["modes"].items():
        cells = [word(code), word(mode["name"])]
        cells += rate_cells(mode["failed"]) + rate_cells(mode["succeeded"])
        cells += _difference_cells(mode)
        cells += [
            f'<td class="{mode["severity"]}">{mode["severity"]}</td>',
            word(_WHY[mode["severity_because"]]),
        ]
        cells += [word(mode["stated"] or NOTHING)] * stated
        if left:
            cells += [figure(mode[name], str(mode[name])) for name in ("unsure", "open")]
        rows.append(cells)
    return table(heads, rows, "Modes in failed and in successful traces")


def categories_table(group: GroupJson) -> str:
    """Shares of the categories among what shows, and the traces that show any of their modes."""
    rows = []
    for one in group["categories"].values():
        cells = [word(one["name"])]
        for side in (one["failed"], one["succeeded"]):
            share = side["share"]
            words = NOTHING if share is None else f"{percent(share)} ({side['count']})"
            cells += [figure(share, words), *rate_cells(side["traces"])]
        rows.append(cells)
    heads = ["category", "share, failed", "failed traces", "95 % interval"]
    heads += ["share, successful", "successful traces", "95 % interval"]
    return table(
        heads, rows, "Categories: shares of what shows, and traces with any of their modes"
    )


def comparison_table(found: ComparisonJson) -> str:
    """Two groups, mode by mode, over their failed traces."""
    first, second = found["groups"]
    heads = ["code", "mode", first, "95 % interval", second, "95 % interval"]
    heads += ["points", "95 % interval", "ratio", "p", "p adjusted"]
    rows = [
        [
            word(code),
            word(mode["name"]),
            *rate_cells(mode["first"]),
            *rate_cells(mode["second"]),
            *_difference_cells(mode),
        ]
        for code, mode in found["modes"].items()
    ]
    return table(heads, rows, f"Failed traces of {first} less those of {second}")


def corrected_part(group: GroupJson) -> str:
    """How often modes show where only the judge has looked: as it says, and corrected for errors.

    Empty where nothing of the kind was computed.
    """
    rows = []
    for code, mode in group["modes"].items():
        found: Any = mode["corrected"]
        if found is not None:
            alone = found["n_unlabelled"]
            cells = [word(code), word(mode["name"]), figure(alone, str(alone))]
            rows.append([*cells, *_share(found["apparent"]), *_share(found["corrected"])])
    heads = ["code", "mode", "traces", "said there", "95 % interval", "corrected", "95 % interval"]
    if not rows:
        return ""
    return (
        "<h3>Corrected for the judge's errors</h3><p>On the traces that nobody but the judge has "
        "judged: what it says there, and how often the mode really shows if it errs there as it "
        "does on the gold (Rogan and Gladen).</p>"
        + table(heads, rows, "Prevalence where only the judge has looked")
    )


def _share(found: dict[str, Any]) -> list[str]:
    """A share and its interval, or why there is none."""
    value, ends = found.get("value"), found.get("ci")
    why = _WHY.get(str(found.get("undefined")), NOTHING)
    none = NOTHING
    if "ci_withheld" in found:
        none = f"– too few traces (n < {found['ci_needs']})"
    return [
        figure(value, why if value is None else percent(value)),
        figure(
            None if not ends else ends[1] - ends[0],
            none if not ends else f"{100 * ends[0]:.0f} to {100 * ends[1]:.0f}",
        ),
    ]


def places_tables(found: PlacesJson, which: str) -> str:
    """Which modes come first, and which sets on next."""
    firsts = sorted(found["first_mode"].items(), key=lambda item: -item[1]["count"])
    parts = []
    if firsts:
        rows = [[word(code), *rate_cells(one)] for code, one in firsts]
        words = f"The first mode of a trace, of {found['traces']} {which}"
        if found["tied"]:
            words += f"; in {found['tied']} several set on at the same span"
        parts.append(table(["first", "traces", "95 % interval"], rows, words))
    steps = [
        [word(" → ".join(one["modes"])), figure(one["count"], str(one["count"]))]
        for one in found["transitions"]
    ]
    if steps:
        words = f"What sets on next, in {which}"
        if len(steps) > _MOST_STEPS:
            words += f": the {_MOST_STEPS} most frequent of {len(steps)}"
        parts.append(table(["next", "traces"], steps[:_MOST_STEPS], words))
    return f'<div class="pair">{"".join(parts)}</div>' if parts else ""
