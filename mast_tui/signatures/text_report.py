"""The report on failure signatures as lines of text, at most 100 columns wide."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len, set_cell_size

from mast_tui.figures.signatures.report import whose_labels

if TYPE_CHECKING:
    from mast_tui.figures.signatures.comparison import ComparisonJson
    from mast_tui.figures.signatures.groups import GroupJson, PlacesByOutcome
    from mast_tui.figures.signatures.modes import DifferenceJson
    from mast_tui.figures.signatures.rates import RateJson
    from mast_tui.figures.signatures.report import Report

WIDEST: Final = 100
NARROWEST: Final = 72
NOTHING: Final = "—"

_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
_ROOM_FOR_ENDS: Final = 94
"""Below this width the differences stand without their intervals."""


def render_report(report: Report, width: int = WIDEST) -> list[str]:
    """The report as lines of at most ``width`` columns (72 to 100).

    Names are written as they are: whoever shows the lines passes them through ``safe_text``.
    """
    width = max(NARROWEST, min(width, WIDEST))
    counts = report["traces"]
    head = [
        f"{report['taxonomy']}, labels: {whose_labels(report)}, by {report['by']}; "
        f"{counts['labelled']} traces: "
        f"{counts['failed']} failed, {counts['succeeded']} succeeded, {counts['unknown']} unknown."
    ]
    lines = _wrapped([*head, *report["cannot_say"]], width)
    for name, group in report["groups"].items():
        lines += ["", *_group(name, group, width)]
    if report["comparison"] is not None:
        lines += ["", *_comparison(report["comparison"], width)]
    return [*lines, "", *_wrapped(_legend(report), width)]


def _group(name: str, group: GroupJson, width: int) -> Iterator[str]:
    yield set_cell_size(f"── {name} {'─' * width}", width)
    yield from _wrapped(_facts(group), width)
    yield from _table(
        ("failed", "succeeded"),
        [
            (
                code,
                mode["name"],
                (mode["failed"], mode["succeeded"]),
                mode,
                (mode["severity"], mode["stated"] or ""),
            )
            for code, mode in group["modes"].items()
        ],
        width,
    )
    yield from _wrapped(_stratified(group), width)
    yield from _wrapped([*_fewer(group), *_beside(group), *group["cannot_say"]], width)


def _facts(group: GroupJson) -> Iterator[str]:
    score = group["mean_score"]
    scored = "" if score["value"] is None else f", mean score {score['value']:.2f} (n {score['n']})"
    yield (
        f"{group['traces']} traces: {group['failed']} failed, {group['succeeded']} succeeded, "
        f"{group['unknown']} unknown{scored}."
    )
    mean = group["modes_per_failed_trace"]
    if mean["value"] is None:
        return
    ends = "" if mean["ci"] is None else f" ({mean['ci'][0]:.1f} to {mean['ci'][1]:.1f})"
    shapes = ", ".join(f"{n} {name}" for name, n in group["shapes"].items() if n)
    yield f"{mean['value']:.1f} modes per failed trace{ends}; {shapes}."


_Row = tuple[str, str, "tuple[RateJson, RateJson]", "DifferenceJson", tuple[str, str]]


def _table(sides: tuple[str, str], rows: list[_Row], width: int) -> Iterator[str]:
    """One line per mode: a bar, the share and its interval on either side, then the difference."""
    ends = width >= _ROOM_FOR_ENDS
    bar = 6 if ends else 4
    rate = bar + 12
    fixed = 3 + 2 * rate + 4 + (10 if ends else 0) + 5 + 7 + 6 + 7
    room = width - fixed
    heads = ("class", "stated") if any(any(row[4]) for row in rows) else ("", "")
    cells = ["mode", "", *sides, "diff", *(["interval"] if ends else []), "p adj", *heads]
    sizes = [3, room, rate, rate, -4, *([-9] if ends else []), -5, 7, 6]
    yield _line([cells[0] + cells[1], *cells[2:]], [4 + room, *sizes[2:]])
    for code, name, (first, second), found, words in rows:
        shown = [code, name, _rate(first, bar), _rate(second, bar), _points(found["difference_pp"])]
        if ends:
            pair = found["difference_ci_pp"]
            shown.append(NOTHING if pair is None else f"{_points(pair[0])}…{_points(pair[1])}")
        yield _line([*shown, _p(found["p_adjusted"]), *words], sizes)


def _line(cells: list[str], sizes: list[int]) -> str:
    """Cells of fixed sizes, negative ones aligned to the right."""
    parts = []
    for cell, size in zip(cells, sizes, strict=True):
        width = abs(size)
        if cell_len(cell) > width:
            cell = set_cell_size(cell, width - 1) + "…"
        parts.append(
            " " * (width - cell_len(cell)) + cell if size < 0 else set_cell_size(cell, size)
        )
    return " ".join(parts).rstrip()


def _rate(rate: RateJson, bar: int) -> str:
    if rate["rate"] is None or rate["ci"] is None:
        return f"{' ' * bar} {NOTHING:>4}"
    low, high = (round(100 * end) for end in rate["ci"])
    return f"{text_bar(rate['rate'], bar)} {rate['rate']:4.0%} {low}–{high}"


def text_bar(share: float, width: int) -> str:
    """A bar of block characters, ``width`` cells for the whole."""
    eighths = round(share * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)


def _points(value: float | None) -> str:
    return NOTHING if value is None else f"{value:+.0f}"


def _p(value: float | None) -> str:
    if value is None:
        return NOTHING
    return "<.001" if value < 0.001 else f"{value:.3f}"


def _stratified(group: GroupJson) -> Iterator[str]:
    """The modes within each model, where several models stand in one group."""
    found = group["stratified"]
    if found is None:
        return
    told = []
    for code, one in found["modes"].items():
        ends, ratio = one["difference_ci_pp"], one["risk_ratio_ci"]
        if one["difference_pp"] is None or ends is None or one.get("undefined") == "never_seen":
            continue
        words = f"{code} {_points(one['difference_pp'])} ({_points(ends[0])}…{_points(ends[1])})"
        if one["risk_ratio"] is not None and ratio is not None:
            words += f" ratio {one['risk_ratio']:.2f} ({ratio[0]:.2f}…{ratio[1]:.2f})"
        told.append(words)
    if not told:
        return
    left = f"; {found['left_out']} of unknown model left out" if found["left_out"] else ""
    yield (
        f"Within each of {len(found['strata'])} models, failed less successful in points and as "
        f"risk ratio (Mantel-Haenszel{left}): {'; '.join(told)}."
    )
    if found["reversed"]:
        yield (
            "The other way round over all models at once than within each, so that the table "
            f"above misleads (Simpson's paradox): {', '.join(found['reversed'])}."
        )


def _fewer(group: GroupJson) -> Iterator[str]:
    """Which modes were not judged on all failed or successful traces."""
    parts = [
        f"{code} {mode['failed']['n']}/{mode['succeeded']['n']}"
        for code, mode in group["modes"].items()
        if mode["n"]
        and (mode["failed"]["n"], mode["succeeded"]["n"]) != (group["failed"], group["succeeded"])
    ]
    if parts:
        yield f"Judged on fewer traces (failed/successful): {', '.join(parts)}."


def _beside(group: GroupJson) -> Iterator[str]:
    shares = [
        f"{one['name']} {one['failed']['share']:.0%}"
        for one in group["categories"].values()
        if one["failed"]["share"] is not None
    ]
    if shares:
        yield f"Of what shows in failed traces: {', '.join(shares)}."
    both = [pair for pair in group["together"]["failed"] if pair["both"]]
    pairs = sorted(both, key=lambda pair: -pair["both"])[:3]
    if pairs:
        told = ", ".join(f"{' + '.join(p['modes'])} in {p['both']} of {p['n']}" for p in pairs)
        yield f"Most often together in failed traces: {told}."
    corrected = [
        f"{code} {found['value']:.0%} (said: {mode['all']['rate']:.0%})"
        for code, mode in group["modes"].items()
        if isinstance(found := (mode["corrected"] or {}).get("corrected"), dict)
        and found["value"] is not None
        and mode["all"]["rate"] is not None
    ]
    if corrected:
        told = ", ".join(corrected)
        yield f"Corrected for the judge's errors, where nobody else has labelled: {told}."
    if group["places"] is not None:
        yield from _places(group["places"], failed=bool(group["failed"]))


def _places(places: PlacesByOutcome, *, failed: bool) -> Iterator[str]:
    found, which = (places["failed"], "failed traces") if failed else (places["all"], "traces")
    where = found["first_failure"]
    if where["median"] is not None and where["quartiles"] is not None:
        low, high = where["quartiles"]
        tenths = " ".join(str(n) for n in where["bins"])
        yield (
            f"The first failure stands at {where['median']:.0%} of the run in the median "
            f"(quartiles {low:.0%} to {high:.0%}; {where['n']} {which}; by tenths {tenths})."
        )
    firsts = sorted(found["first_mode"].items(), key=lambda item: -item[1]["count"])[:4]
    if firsts:
        told = ", ".join(f"{code} in {one['count']}" for code, one in firsts)
        yield f"First of all modes, of {found['traces']} {which}: {told}."
    steps = [f"{' → '.join(one['modes'])} ({one['count']})" for one in found["transitions"][:5]]
    if steps:
        yield f"What sets on next: {', '.join(steps)}."
    for after in found["after_fatal"]:
        on = after["spans_after"]
        if on["median"] is not None and on["quartiles"] is not None:
            by = "labels say" if after["by"] == "labels" else "the class says"
            yield (
                f"After the first failure that is fatal, as {by}, a run went on for "
                f"{on['median']:.0f} spans in the median (quartiles {on['quartiles'][0]:.0f} to "
                f"{on['quartiles'][1]:.0f}; {on['n']} {which})."
            )


def _comparison(found: ComparisonJson, width: int) -> Iterator[str]:
    first, second = found["groups"]
    yield set_cell_size(f"── {first} against {second}, failed traces {'─' * width}", width)
    means = found["modes_per_failed_trace"]
    if means["difference"] is not None:
        ends = "" if means["ci"] is None else f" ({means['ci'][0]:+.1f} to {means['ci'][1]:+.1f})"
        yield f"Modes per failed trace: {means['difference']:+.1f}{ends}."
    rows: list[_Row] = [
        (code, mode["name"], (mode["first"], mode["second"]), mode, ("", ""))
        for code, mode in found["modes"].items()
    ]
    yield from _table((first, second), rows, width)


def _legend(report: Report) -> list[str]:
    rules = report["rules"]
    notes = [
        "failed, succeeded: the share of those traces that show the mode, with its 95 % interval "
        "(Wilson) in percent. diff: in points (Newcombe). p adj: Fisher's exact test, corrected "
        "over the modes (Benjamini-Hochberg).",
        f"fatal: more often in failed traces, p adj < {rules['alpha']:g}. benign: in "
        f"{rules['least']} successful traces or more, and the interval of diff ends at most at "
        f"{rules['margin_pp']:g}. unclear: anything else, and under {rules['least']} failed or "
        "successful traces.",
    ]
    if report["stated"] is not None:
        notes.append(f"stated: the word of the {report['stated']['source']}, not ours.")
    return notes


def _wrapped(notes: list[str] | Iterator[str], width: int) -> list[str]:
    return [line for note in notes for line in wrap(note, width)]
