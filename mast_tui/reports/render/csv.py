"""Every figure of a report's document as one row: tidy, long, for R, pandas or a spreadsheet.

The rows come of a walk through the JSON document, so that a new figure is among them without a
change here. The names on the way to a number are what its row calls the ``statistic``
(``failed_rate``), unless the document's layout puts one in a column of its own: a mode, a group.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from mast_tui.figures.signatures.model import ALL
from mast_tui.reports.model import Report

Way = tuple[str, ...]
Values = Mapping[str, Any]

_OF_A_FIGURE: Final = frozenset({"n", "ci", "undefined", "ci_withheld", "ci_needs", "low", "high"})
"""What belongs to a figure, or names a part of a list; it stands in the rows of its neighbours."""

_HAS_CI: Final = ("value", "rate", "difference")
"""What an interval that is called just ``ci`` belongs to."""

_QUARTILES: Final = (1, 3)

_Column = Literal["group", "mode", "name", "annotators", ""]


@dataclass(frozen=True, slots=True)
class _Rule:
    """What is special about the place that a path leads to, as ``csv_layouts.toml`` tells."""

    scope: str | None = None
    column: _Column | None = None
    statistic: str | None = None
    n: str = "n"


@dataclass(frozen=True, slots=True)
class _Layout:
    """How the document of one report becomes rows, as ``csv_layouts.toml`` tells."""

    columns: Sequence[str]
    omitted: Sequence[str]
    rules: Mapping[str, _Rule]
    rests_on: Mapping[str, Sequence[str]]
    counts: Sequence[str] | None = None
    missing: Mapping[str, str] = field(default_factory=dict)

    def rule(self, path: Way) -> _Rule:
        """What is special here; a path that is named in full goes before one with ``*``."""
        ways = [way for way in self.rules if _leads(way, path)]
        return self.rules[min(ways, key=lambda way: way.count("*"))] if ways else _Rule()

    def tells(self, path: Way, value: object) -> bool:
        """Whether what stands here has rows."""
        name = path[-1]
        if name in _OF_A_FIGURE or name.endswith(("_ci", "_ci_pp")):
            return False
        if any(_leads(way, path) for way in self.omitted):
            return False
        if self.counts is None or not isinstance(value, int):
            return True
        return any(_meets(way, path) for way in self.counts)


@dataclass(frozen=True, slots=True)
class _About:
    """What the rows from some place of the document on are about.

    ``n_by`` has the counts by the names that come next, ``modes`` what is told of modes by code.
    """

    path: Way = ()
    scope: str = ""
    group: str = ""
    mode: str = ""
    name: str = ""
    annotators: str = ""
    statistic: str = ""
    n: int | None = None
    n_by: Values = field(default_factory=dict)
    modes: Mapping[str, Values] = field(default_factory=dict)

    def of_mode(self, code: str) -> _About:
        """The same of one mode, whose name and count hold unless more is told of it here."""
        known = self.modes.get(code, {})
        return replace(self, mode=code, name=known.get("name", ""), n=known.get("n", self.n))


@cache
def _layout_of(report: str) -> _Layout:
    text = Path(__file__).with_name("csv_layouts.toml").read_text("utf-8")
    found = tomllib.loads(text)[report]
    found["rules"] = {way: _Rule(**rule) for way, rule in found["rules"].items()}
    return _Layout(**found)


def render_csv(report: Report) -> str:
    """Write all figures of a report's document as CSV."""
    return csv_text(csv_columns(report.document), tidy_rows(report.document))


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> str:
    """Write a table as the text of a CSV file with ``\\n`` line ends.

    Args:
        columns: Its columns, in their order.
        rows: The cells by column. They are data and stay as they are, also those that a
            spreadsheet would take for a formula.
    """
    lines = [",".join(map(_cell, columns))]
    lines += [",".join(_cell(row[name]) for name in columns) for row in rows]
    return "".join(line + "\n" for line in lines)


def _cell(text: str) -> str:
    # csv.writer of Python before 3.13 leaves a lone carriage return unquoted, which breaks the row.
    if any(char in text for char in ',"\r\n') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def csv_columns(document: Values) -> Sequence[str]:
    """Say which columns the rows of a document have."""
    return _layout(document).columns


def tidy_rows(document: Values) -> Iterator[dict[str, str]]:
    """Walk through a document and make a row of every figure in it.

    ``annotators`` are parted by ``|``, as names hold none.
    Numbers are written in full, and an empty cell is no value. An undefined figure has no value
    and its reason under ``undefined``, an interval that would not hold under ``ci_withheld``.
    """
    layout = _layout(document)
    if "overall" in document:
        document = _with_all_traces(document)
    whose = document.get("annotators", [document.get("labels", "")])
    yield from _walk(layout, document, _About(annotators=_joined(whose)))
    if "identical_blocks" in document:
        shared = sum(len(block["traces"]) for block in document["identical_blocks"])
        about = _About(scope="blocks", annotators=_joined(whose))
        about = replace(about, statistic="traces_that_share_a_block")
        yield _row(layout, {"value": shared}, "value", about, "")


def _with_all_traces(document: Values) -> Values:
    """Make all traces of failure signatures together the first of the groups."""
    remaining = {key: value for key, value in document.items() if key != "overall"}
    if document["by"] == ALL:
        return remaining
    name = ALL
    while name in document["groups"]:
        name += "*"
    return {**remaining, "groups": {name: document["overall"], **document["groups"]}}


def _layout(document: Values) -> _Layout:
    if "exam" in document:
        return _layout_of("exam")
    return _layout_of("signatures" if "groups" in document else "agreement")


def _meets(way: str, path: Way) -> bool:
    """Whether a name or a path says what stands here."""
    return way == path[-1] or _leads(way, path)


def _leads(way: str, path: Way) -> bool:
    names = way.split(".")
    return len(names) == len(path) and all(
        name in ("*", there) for name, there in zip(names, path, strict=True)
    )


def _walk(layout: _Layout, here: Values, about: _About) -> Iterator[dict[str, str]]:
    about = _entered(layout, here, about)
    for key, value in here.items():
        if not layout.tells((*about.path, key), value):
            continue
        below = _below(layout, here, key, about)
        if isinstance(value, Mapping):
            yield from _walk(layout, value, below)
        elif isinstance(value, list):
            yield from _listed(layout, value, below)
        elif value is None:
            reason = _reason(layout, here, key, about)
            if reason:
                yield _row(layout, here, key, below, reason)
        elif _is_number(value):
            yield _row(layout, here, key, below, "")


def _entered(layout: _Layout, here: Values, about: _About) -> _About:
    """What a part of the document itself says of all that is in it."""
    rule = layout.rule(about.path)
    if isinstance(here.get("name"), str):
        about = replace(about, name=here["name"])
    modes = here.get("modes")
    if isinstance(modes, Mapping) and any(
        isinstance(one, Mapping) and "name" in one for one in modes.values()
    ):
        about = replace(about, modes=modes)
    if "against" in here:
        judges = here["judges"] if "judges" in here else [here["judge"]]
        about = replace(about, annotators=_joined([*judges, here["against"]]))
    elif "over" in here:
        about = replace(about, group=_joined(here["groups"]))
    elif "others" in here:
        about = replace(about, annotators=here["first"])
    if "modes_defined" in here:
        about = replace(about, n_by=here["modes_defined"])
    return replace(about, n=here[rule.n]) if rule.n in here else about


def _below(layout: _Layout, here: Values, key: str, about: _About) -> _About:
    """What is said of ``key``: what it rests on, and what it is called."""
    path = (*about.path, key)
    rule = layout.rule(path)
    counts = next((found for way, found in layout.rests_on.items() if _meets(way, path)), None)
    n = None if counts is not None and not counts else about.n_by.get(key, about.n)
    n = next((here[name] for name in counts or () if name in here), n)
    below = replace(about, path=path, n=n, n_by=here.get(f"{key}_n", {}))
    if rule.scope is not None:
        below = replace(below, scope=rule.scope)
    match rule.column:
        case "mode":
            below = below.of_mode(key)
        case "name":
            below = replace(below, name=key)
        case "group":
            below = replace(below, group=key)
        case "annotators":
            below = replace(below, annotators=key)
    if rule.statistic is not None:
        return replace(below, statistic=rule.statistic)
    if rule.column is not None or key == "value":
        return below
    return replace(below, statistic=f"{about.statistic}_{key}".lstrip("_"))


def _listed(layout: _Layout, values: Sequence[Any], about: _About) -> Iterator[dict[str, str]]:
    """The rows of a list: numbers are called by their place, parts by what tells them apart."""
    for place, one in enumerate(values):
        if isinstance(one, Mapping):
            yield from _walk(layout, one, _item(one, replace(about, path=(*about.path, "*"))))
        elif _is_number(one):
            which = _QUARTILES[place] if about.path[-1] == "quartiles" else place + 1
            number = replace(about, statistic=f"{about.statistic}_{which}")
            yield _row(layout, {"value": one}, "value", number, "")


def _item(one: Values, about: _About) -> _About:
    if "modes" in one:
        return replace(about, mode=_joined(one["modes"]))
    if "steps" in one:
        return replace(about, mode=" > ".join("+".join(step) for step in one["steps"]))
    if "low" in one:
        return replace(about, name=f"{one['low']:.1f} to {one['high']:.1f}")
    return replace(about, statistic=f"{about.statistic}_{one.get('by', '')}".rstrip("_"))


def _row(layout: _Layout, here: Values, key: str, about: _About, reason: str) -> dict[str, str]:
    """A row of the number under ``key``; its interval stands beside it under a like name."""
    interval = f"{key.removesuffix('_pp')}_ci_pp" if key.endswith("_pp") else f"{key}_ci"
    if interval not in here and key in _HAS_CI:
        interval = "ci"
    low, high = here.get(interval) or (None, None)
    why_none = here.get("ci_withheld", "") if interval == "ci" else ""
    if here[key] is not None and low is None:
        why_none = why_none or _said(here, interval)
    cells = {
        "scope": about.scope,
        "group": about.group,
        "mode": about.mode,
        "name": about.name,
        "statistic": about.statistic,
        "value": _text(here[key]),
        "ci_low": _text(low),
        "ci_high": _text(high),
        "undefined": reason,
        "n": _text(about.n),
        "annotators": about.annotators,
        "ci_withheld": why_none,
    }
    return {name: cells[name] for name in layout.columns}


def _reason(layout: _Layout, here: Values, key: str, about: _About) -> str:
    """Why there is no number, by name; empty where nothing was asked for."""
    said = here.get("undefined", "")
    if isinstance(said, str) and said:
        return said
    of = about.path[-1] if about.path else ""
    return _said(here, key) or layout.missing.get(key, "") or layout.missing.get(of, "")


def _said(here: Values, key: str) -> str:
    """What a part says of why one of its numbers is missing."""
    said = here.get("undefined")
    return str(said.get(key, "")) if isinstance(said, Mapping) else ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _joined(names: Iterable[str]) -> str:
    return "|".join(names)


def _text(value: float | None) -> str:
    return "" if value is None else repr(value)
