"""How far annotators agree on where modes show, as a section of the report on agreement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mast_tui.counts import counted
from mast_tui.reports.model import (
    CODE,
    MODE,
    Behind,
    Cell,
    Column,
    Estimate,
    Kind,
    Note,
    Row,
    Section,
    Table,
    columns,
    figure_cells,
)
from mast_tui.reports.render.cells import fixed
from mast_tui.reports.sentences import (
    Values,
    intervals_note,
    joined,
    of_pair,
    why_undefined,
    withheld_notes,
)

BIAS_CORRECTED: Final = "bias-corrected percentiles (BCa) of"
"""What is done with resamples for figures on places and for a judge's."""

_HALF: Final = "0.5"
_ANY: Final = "0.1"

_UNDEFINED: Final = {
    "no_variance": "nobody has marked anything, or everybody all of it",
    "no_overlap": "no span was read by two people who say where the mode shows",
    "single_rater": "only one person has marked or read anything",
}

_PLACES: Final = columns("""
    places         | places   | count  | places of both sides            | 97
    f1_exact       | F1 exact | number | F1 of exact places              | 99
    f1_overlap_0.5 | F1 half  | number | F1 at an overlap of 0.5 or more | 46
    f1_overlap_0.1 | F1 any   | number | F1 at an overlap of 0.1 or more | 44
""")
_ALPHA, _ALPHA_U = columns("""
    krippendorff_alpha   | α spans | number | Krippendorff's α over spans | 48
    krippendorff_alpha_u | α_U     | number | Krippendorff's α_U          | 47
""")
_PAIRS: Final = columns("""
    pair          | pair    | text   |                                       | 102
    traces        | traces  | count  | traces compared                       | 90
    finding_exact | finding | number | F1 of finding exact places            | 98
    finding_half  | half    | number | F1 of finding, overlap 0.5            | 60
    naming_exact  | naming  | number | F1 of finding and naming exactly      | 99
    naming_half   | half    | number | F1 of finding and naming, overlap 0.5 | 61
""")
_ANNOTATORS: Final = columns("""
    traces           | traces           | count | traces compared                       | 99
    places           | places           | count | places marked                         | 98
    reading_recorded | reading recorded | count | traces with a record of what was read
    whole_trace      | on whole traces  | count | labels on a whole trace
    no_places        | no place         | count | called present without a place
    not_found        | not found        | count | labels on spans that are not there
""")
_SELDOM: Final = ("whole_trace", "no_places", "not_found")
"""Columns that are left out where they hold nothing."""


def places_section(spans: Values) -> Section:
    """Make the page of places.

    Args:
        spans: The part ``spans`` of the document.
    """
    traces = spans["traces"]
    if not traces["compared"]:
        return Section("spans", "Places", notes=(_nothing(traces["not_at_hand"]),))
    tables = [_by_mode(spans), _overlaps(spans["all"]), _by_pair(spans), _by_annotator(spans)]
    kept = tuple(table for table in tables if table is not None)
    return Section("spans", "Places", kept, notes=tuple(_left_out(spans)))


def _nothing(missing: int) -> Note:
    if missing:
        these = "trace" if missing == 1 else f"{missing:,} traces"
        return Note(
            f"The order of the spans of the {these} that two have finished is unknown and no file "
            "with them was found, so no place could be compared. Open them once with mast-tui.",
            "not_at_hand",
        )
    return Note("No trace was finished by two annotators, so no place could be compared.", "alone")


def _by_mode(spans: Values) -> Table:
    found, compared = spans["all"], spans["traces"]["compared"]
    slugs = tuple(mode["slug"] for mode in found["modes"].values())
    rows = [
        Row(
            mode["slug"],
            {
                "code": code,
                "name": mode["name"],
                **_f1(mode["f1"]),
                **figure_cells(mode, (_ALPHA, _ALPHA_U)),
            },
            detail=tuple(_mode_detail(mode)),
            behind=_behind(f"{code} {mode['name']}", (mode["slug"],)),
        )
        for code, mode in found["modes"].items()
    ]
    alpha_u = found["krippendorff_alpha_u"]
    totals = (
        Row(
            "finding",
            {"name": "finding", **_f1(found["finding"])},
            detail=(
                "The same place, whichever mode was named for it.",
                *_f1_detail(found["finding"]),
            ),
            behind=_behind("Finding a place, any mode", slugs),
        ),
        Row(
            "finding_and_naming",
            {
                "name": "with naming",
                **_f1(found["finding_and_naming"]),
                "krippendorff_alpha_u": Estimate.of(alpha_u),
            },
            detail=(
                "The same place with the same mode.",
                *_f1_detail(found["finding_and_naming"]),
                *why_undefined([("α_U over all modes", alpha_u)], _UNDEFINED, {}),
            ),
            behind=_behind("Finding and naming a place", slugs),
        ),
    )
    return Table(
        "spans",
        "Agreement on places: which spans and quotes were marked",
        (CODE, MODE, *_PLACES, _ALPHA, _ALPHA_U),
        (tuple(rows), totals),
        f"Places of {joined(tuple(spans['annotators']))} in {counted(compared, 'trace')} of "
        f"{counted(found['spans'], 'span')}. "
        + intervals_note(spans["bootstrap"], compared, BIAS_CORRECTED),
        (
            Note(
                "F1: of all places marked the share that pairs off one to one, exactly or with an "
                "overlap of at least a half, or of 0.1. α spans: marked or not, over the spans "
                "that two or more have read. α_U: where units lie on the spans that all have read. "
                "finding: the same place, whichever mode was named for it; with naming: the same "
                "place with the same mode.",
                "f1",
            ),
            *withheld_notes(found),
        ),
    )


def _overlaps(found: Values) -> Table:
    """F1 by how much two places have to overlap."""
    rows = []
    for key, name in (("finding", "finding"), ("finding_and_naming", "with naming")):
        cells: dict[str, Cell] = {"name": name}
        for level, figure in found[key]["overlap"].items():
            cells[f"f1_overlap_{level}"] = Estimate.of(figure)
        rows.append(Row(key, cells))
    return Table(
        "spans_overlap",
        "F1 of places by the overlap that is asked for",
        (
            Column("name", "overlap ≥", Kind.TEXT, "F1", keeps=102),
            *(
                Column(f"f1_overlap_{level}", level, name=f"F1 at an overlap of {level} or more",
                       interval=False)
                for level in found["finding"]["overlap"]
            ),
        ),
        (tuple(rows),),
    )  # fmt: skip


def _by_pair(spans: Values) -> Table | None:
    """Finding and naming by every two of three annotators or more."""
    if len(spans["pairs"]) < 2:
        return None
    rows = []
    for key, pair in spans["pairs"].items():
        finding, naming = pair["finding"], pair["finding_and_naming"]
        cells: dict[str, Cell] = {
            "pair": of_pair(key),
            "traces": pair["traces"],
            "finding_exact": Estimate.of(finding["exact"]),
            "finding_half": Estimate.of(finding["overlap"][_HALF]),
            "naming_exact": Estimate.of(naming["exact"]),
            "naming_half": Estimate.of(naming["overlap"][_HALF]),
            "krippendorff_alpha_u": Estimate.of(pair["krippendorff_alpha_u"]),
        }
        rows.append(Row(key, cells))
    return Table(
        "spans_pairs",
        "Agreement on places by pair",
        (*_PAIRS, _ALPHA_U),
        (tuple(rows),),
        notes=withheld_notes(*spans["pairs"].values()),
        folded=True,
    )


def _by_annotator(spans: Values) -> Table:
    """What the figures rest on, by annotator."""
    people = spans["annotators"]
    shown = [
        one
        for one in _ANNOTATORS
        if one.key not in _SELDOM or any(of.get(one.key) for of in people.values())
    ]
    rows = [
        Row(name, {"annotator": name, **figure_cells(one, shown)}) for name, one in people.items()
    ]
    return Table(
        "spans_annotators",
        "What the figures on places rest on",
        (Column("annotator", "annotator", Kind.TEXT, keeps=102), *shown),
        (tuple(rows),),
        notes=(
            Note(
                "Where no reading was recorded, a finished trace counts as read from end to end.",
                "reading_recorded",
            ),
        ),
    )


def _f1(f1: Values) -> dict[str, Cell]:
    return {
        "places": f1["places"],
        "f1_exact": Estimate.of(f1["exact"]),
        "f1_overlap_0.5": Estimate.of(f1["overlap"][_HALF]),
        "f1_overlap_0.1": Estimate.of(f1["overlap"][_ANY]),
    }


def _mode_detail(mode: Values) -> Iterator[str]:
    alpha, alpha_u = mode["krippendorff_alpha"], mode["krippendorff_alpha_u"]
    yield from _f1_detail(mode["f1"])
    yield (
        f"α over {counted(mode['spans'], 'span')} that two or more have read in "
        f"{counted(mode['traces'], 'trace')}; {mode['spans_left_out']:,} not read by two are left "
        f"out. α_U over {counted(mode['units'], 'place')} on {counted(mode['positions'], 'span')} "
        "that all have read."
    )
    if mode["no_places"]:
        yield (
            f"{counted(mode['no_places'], 'trace')} left out, where somebody says present and not "
            "where."
        )
    yield from why_undefined([("α", alpha), ("α_U", alpha_u)], _UNDEFINED, {})


def _f1_detail(f1: Values) -> Iterator[str]:
    left = f1["left_out"]
    if left:
        yield (
            f"{counted(left, 'place')} left out, where the other side has not read or not answered."
        )
    if f1["exact"]["value"] is None:
        yield from why_undefined([("F1", f1["exact"])], _UNDEFINED, {})
        return
    levels: dict[str, list[str]] = {}
    for level, one in f1["overlap"].items():
        levels.setdefault(fixed(one["value"]), []).append(level)
    if len(levels) > 1:
        told = ", ".join(
            f"{value} at {of[0]}" + (f" to {of[-1]}" if len(of) > 1 else "")
            for value, of in levels.items()
        )
        yield f"F1 by the overlap that is asked for: {told}."


def _left_out(spans: Values) -> Iterator[Note]:
    found, traces = spans["all"], spans["traces"]
    parts = []
    if traces["not_at_hand"]:
        parts.append(
            f"{counted(traces['not_at_hand'], 'trace')} of whose spans the order is unknown"
        )
    if found["finding_and_naming"]["left_out"]:
        parts.append(
            f"{counted(found['finding_and_naming']['left_out'], 'place')} on what the other side "
            "has not read or judged"
        )
    for name, n in traces.get("examples_left_out", {}).items():
        if n:
            parts.append(f"{counted(n, 'trace')} in the prompt of {name}")
    if parts:
        yield Note(f"Left out: {'; '.join(parts)}.", "left_out")
    if found["no_places"]:
        yield Note(
            f"In {found['no_places']:,} traces × modes somebody says present and not where (a "
            "label on the whole trace, or a table without places): left out on both sides.",
            "no_places",
        )
    every = len(found["modes"])
    for name, one in spans["annotators"].items():
        codes = one["never_placed"]
        if codes:
            of = "any mode" if len(codes) == every else ", ".join(codes)
            yield Note(
                f"{name} never says where {of} shows, so counts in no figure on places of it.",
                "never_placed",
            )


def _behind(title: str, modes: tuple[str, ...]) -> Behind:
    return Behind(title, modes, (("page", "spans"),))
