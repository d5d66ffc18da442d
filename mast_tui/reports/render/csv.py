"""Every figure of a report's document as one row: tidy, long, for R, pandas or a spreadsheet.

The rows follow from the JSON document, so that a new figure needs no change here. The keys of a
number are joined to the ``statistic`` of its row (``failed_rate``), unless the layout puts a key
into its own column, such as a mode.
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

Keys = tuple[str, ...]
Values = Mapping[str, Any]

_DESCRIBING_KEYS: Final = frozenset(
    {"n", "ci", "undefined", "ci_withheld", "ci_needs", "low", "high"}
)
"""The keys that describe a figure or an item of a list; they have no rows of their own."""

_HAS_CI: Final = ("value", "rate", "difference")
"""The keys of numbers with the interval ``ci``."""

_QUARTILES: Final = (1, 3)

_Column = Literal["group", "mode", "name", "annotators", ""]


@dataclass(frozen=True, slots=True)
class _Rule:
    """The special treatment of a path, from ``csv_layouts.toml``.

    Attributes:
        scope: The scope of the rows under the path.
        column: The column for the last key of the path.
        statistic: The statistic of the rows, if it differs from the key.
        n: The key of the number of units beside the figures.
    """

    scope: str | None = None
    column: _Column | None = None
    statistic: str | None = None
    n: str = "n"


@dataclass(frozen=True, slots=True)
class _Layout:
    """The layout of the rows of one report, from ``csv_layouts.toml``.

    Attributes:
        columns: The columns of the table.
        omitted: The patterns of paths without rows.
        rules: The rule of each path pattern.
        n_keys: The keys of the n of a figure, by pattern; empty for no n.
        counts: The patterns of the integers that have rows; None for all. Other integers are the n
            of figures beside them.
        missing: The reason for a missing number, by its key or the key of its object.
    """

    columns: Sequence[str]
    omitted: Sequence[str]
    rules: Mapping[str, _Rule]
    n_keys: Mapping[str, Sequence[str]]
    counts: Sequence[str] | None = None
    missing: Mapping[str, str] = field(default_factory=dict)

    def rule(self, path: Keys) -> _Rule:
        """Return the rule whose pattern matches a path, preferably with the fewest ``*``."""
        patterns = [pattern for pattern in self.rules if _matches_path(pattern, path)]
        if not patterns:
            return _Rule()  # nothing special
        return self.rules[min(patterns, key=lambda pattern: pattern.count("*"))]

    def has_rows(self, path: Keys, value: object) -> bool:
        """Return whether the value at a path of the document has rows of its own."""
        name = path[-1]
        if name in _DESCRIBING_KEYS or name.endswith(("_ci", "_ci_pp")):
            return False
        if any(_matches_path(pattern, path) for pattern in self.omitted):
            return False
        if self.counts is None or not isinstance(value, int):
            return True
        return any(_matches_key_or_path(pattern, path) for pattern in self.counts)


@dataclass(frozen=True, slots=True)
class _Context:
    """A position in the document, with the cells that the rows below it share.

    Attributes:
        layout: The layout of the rows.
        path: The keys that lead to the position.
        cells: The cells of the rows, by column.
        n: The number of units of the figures.
        n_by: The number of units by the next key, if these differ.
        modes: The document's modes by code.
    """

    layout: _Layout
    path: Keys
    cells: Mapping[str, str]
    n: int | None = None
    n_by: Values = field(default_factory=dict)
    modes: Mapping[str, Values] = field(default_factory=dict)

    def with_cells(self, **cells: str) -> _Context:
        """Return the context with other cells."""
        return replace(self, cells={**self.cells, **cells})

    def with_statistic(self, ending: str) -> _Context:
        """Return the context with an ending added to the statistic."""
        if not ending:
            return self
        return self.with_cells(statistic=f"{self.cells['statistic']}_{ending}".lstrip("_"))


@cache
def _layout_of(report: str) -> _Layout:
    """Read the layout of the rows of a report from ``csv_layouts.toml``."""
    text = Path(__file__).with_name("csv_layouts.toml").read_text("utf-8")
    layout = tomllib.loads(text)[report]
    layout["rules"] = {pattern: _Rule(**rule) for pattern, rule in layout["rules"].items()}
    return _Layout(**layout)


def render_csv(report: Report) -> str:
    """Return all figures of a report's document as CSV."""
    return csv_text(csv_columns(report.document), tidy_rows(report.document))


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> str:
    """Return a table as the text of a CSV file with ``\\n`` line ends.

    Args:
        columns: The columns, in their order.
        rows: The cells by column. Cells that look like formulas are not changed.
    """
    lines = [",".join(map(_quoted_cell, columns))]
    lines += [",".join(_quoted_cell(row[name]) for name in columns) for row in rows]
    return "".join(line + "\n" for line in lines)


def _quoted_cell(text: str) -> str:
    """Return the text of a cell, in quotation marks if CSV needs them."""
    # Before Python 3.13, csv.writer leaves a lone carriage return unquoted, which breaks the row.
    if any(char in text for char in ',"\r\n') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def csv_columns(document: Values) -> Sequence[str]:
    """Return the columns of the rows of a document."""
    return _layout_for(document).columns


def tidy_rows(document: Values) -> Iterator[dict[str, str]]:
    """Yield a row for every figure in the JSON document of a report.

    In the column ``annotators``, names are separated by ``|``, which no name contains. Numbers are
    not rounded, and an empty cell is no value. ``undefined`` has the reason for a missing figure,
    ``ci_withheld`` the reason for a missing interval.
    """
    layout = _layout_for(document)
    if "overall" in document:
        document = _with_all_traces(document)
    # The source of labels replaces the annotators in a report on signatures.
    annotators = _joined_names(document.get("annotators", [document.get("labels", "")]))
    context = _Context(layout, (), dict.fromkeys(layout.columns, "") | {"annotators": annotators})
    yield from _rows_of_part(document, context)
    if "identical_blocks" in document:  # traces with equal verdicts of all annotators
        shared_count = sum(len(block["traces"]) for block in document["identical_blocks"])
        context = context.with_cells(scope="blocks", statistic="traces_that_share_a_block")
        yield _figure_row({"value": shared_count}, "value", context)


def _with_all_traces(document: Values) -> Values:
    """Move the part ``overall``, on all traces together, into the groups as the first one."""
    remaining = {key: value for key, value in document.items() if key != "overall"}
    if document["by"] == ALL:  # the only group has all traces
        return remaining
    # A group may have the same name.
    name = ALL
    while name in document["groups"]:
        name += "*"
    return {**remaining, "groups": {name: document["overall"], **document["groups"]}}


def _layout_for(document: Values) -> _Layout:
    """Return the layout for a document, by its fields."""
    if "exam" in document:
        return _layout_of("exam")
    return _layout_of("signatures" if "groups" in document else "agreement")


def _matches_key_or_path(pattern: str, path: Keys) -> bool:
    """Return whether a pattern is the last key of a path, or matches the path."""
    return pattern == path[-1] or _matches_path(pattern, path)


def _matches_path(pattern: str, path: Keys) -> bool:
    keys = pattern.split(".")
    return len(keys) == len(path) and all(
        pattern_key in ("*", key) for pattern_key, key in zip(keys, path, strict=True)
    )


def _rows_of_part(part: Values, context: _Context) -> Iterator[dict[str, str]]:
    """Yield the rows of all figures in a part of the document."""
    context = _context_of_part(part, context)
    for key, value in part.items():
        if not context.layout.has_rows((*context.path, key), value):
            continue
        key_context = _context_of_key(part, key, context)
        if isinstance(value, Mapping):
            yield from _rows_of_part(value, key_context)
        elif isinstance(value, list):
            yield from _rows_of_list(value, key_context)
        elif value is None:
            reason = _missing_reason(part, key, context)
            if reason:
                yield _figure_row(part, key, key_context, reason)
        elif _is_number(value):
            yield _figure_row(part, key, key_context)


def _context_of_part(part: Values, context: _Context) -> _Context:
    """Return the context, changed by the name, modes, annotators and n in a part."""
    if isinstance(part.get("name"), str):
        context = context.with_cells(name=part["name"])
    modes = part.get("modes")
    if isinstance(modes, Mapping) and any(
        isinstance(mode, Mapping) and "name" in mode for mode in modes.values()
    ):
        context = replace(context, modes=modes)
    if "against" in part:  # judges are compared with a reference
        judges = part["judges"] if "judges" in part else [part["judge"]]
        context = context.with_cells(annotators=_joined_names([*judges, part["against"]]))
    elif "over" in part:  # two groups are compared
        context = context.with_cells(group=_joined_names(part["groups"]))
    elif "others" in part:  # other judges are compared with a first judge
        context = context.with_cells(annotators=part["first"])
    if "modes_defined" in part:  # each macro average has its own number of modes
        context = replace(context, n_by=part["modes_defined"])
    n_key = context.layout.rule(context.path).n
    return replace(context, n=part[n_key]) if n_key in part else context


def _context_of_key(part: Values, key: str, context: _Context) -> _Context:
    """Return the context of the value under a key of a part.

    By default the key is added to the statistic; a rule of the layout can put it into a column.
    """
    path = (*context.path, key)
    rule = context.layout.rule(path)
    n = _n_of_key(part, key, context)
    if rule.scope is not None:
        context = context.with_cells(scope=rule.scope)
    if rule.column:
        context = context.with_cells(**{rule.column: key})
    if rule.column == "mode":
        mode = context.modes.get(key, {})
        context = context.with_cells(name=mode.get("name", ""))
        n = mode.get("n", n)
    if rule.statistic is not None:
        context = context.with_cells(statistic=rule.statistic)
    elif rule.column is None and key != "value":
        context = context.with_statistic(key)
    return replace(context, path=path, n=n, n_by=part.get(f"{key}_n", {}))


def _n_of_key(part: Values, key: str, context: _Context) -> int | None:
    """Return the number of units of the value under a key of a part."""
    n: int | None = context.n_by.get(key, context.n)
    path = (*context.path, key)
    for pattern, n_keys in context.layout.n_keys.items():
        if _matches_key_or_path(pattern, path):
            # Without any key of the layout, the value has no n.
            return next((part[name] for name in n_keys if name in part), n if n_keys else None)
    return n


def _rows_of_list(values: Sequence[Any], context: _Context) -> Iterator[dict[str, str]]:
    """Yield the rows of a list's items; the position of a number is added to its statistic."""
    for index, value in enumerate(values):
        if isinstance(value, Mapping):
            yield from _rows_of_part(
                value, _context_of_item(value, replace(context, path=(*context.path, "*")))
            )
        elif _is_number(value):
            number = _QUARTILES[index] if context.path[-1] == "quartiles" else index + 1
            yield _figure_row({"value": value}, "value", context.with_statistic(str(number)))


def _context_of_item(item: Values, context: _Context) -> _Context:
    """Return the context of an item in a list.

    Its modes or steps become the ``mode``, its range the ``name``; ``by`` is added to the
    statistic.
    """
    if "modes" in item:
        return context.with_cells(mode=_joined_names(item["modes"]))
    if "steps" in item:
        return context.with_cells(mode=" > ".join("+".join(step) for step in item["steps"]))
    if "low" in item:
        return context.with_cells(name=f"{item['low']:.1f} to {item['high']:.1f}")
    return context.with_statistic(item.get("by", ""))


def _figure_row(part: Values, key: str, context: _Context, reason: str = "") -> dict[str, str]:
    """Return the row of the number under a key of a part, with its interval.

    ``reason`` is the reason for a missing number.
    """
    interval_key = _interval_key(part, key)
    low, high = part.get(interval_key) or (None, None)
    no_interval_reason = part.get("ci_withheld", "") if interval_key == "ci" else ""
    if part[key] is not None and low is None:
        no_interval_reason = no_interval_reason or _stated_reason(part, interval_key)
    cells = {
        **context.cells,
        "value": _number_text(part[key]),
        "ci_low": _number_text(low),
        "ci_high": _number_text(high),
        "undefined": reason,
        "n": _number_text(context.n),
        "ci_withheld": no_interval_reason,
    }
    return {name: cells[name] for name in context.layout.columns}


def _interval_key(part: Values, key: str) -> str:
    """Return the key of the interval of a number: ``f1_ci``, ``difference_ci_pp``, or ``ci``."""
    own_key = f"{key.removesuffix('_pp')}_ci_pp" if key.endswith("_pp") else f"{key}_ci"
    # The main figure of a part has the interval ``ci``.
    return "ci" if own_key not in part and key in _HAS_CI else own_key


def _missing_reason(part: Values, key: str, context: _Context) -> str:
    """Return the reason for a missing number; empty if the number was not requested."""
    # A text is the reason for all numbers of the part; a mapping has a reason for each key.
    undefined = part.get("undefined", "")
    if isinstance(undefined, str) and undefined:
        return undefined
    parent_key = context.path[-1] if context.path else ""
    reasons = context.layout.missing
    return _stated_reason(part, key) or reasons.get(key, "") or reasons.get(parent_key, "")


def _stated_reason(part: Values, key: str) -> str:
    """Return the reason that a part gives for a missing number; empty without one."""
    undefined = part.get("undefined")
    return str(undefined.get(key, "")) if isinstance(undefined, Mapping) else ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _joined_names(names: Iterable[str]) -> str:
    return "|".join(names)


def _number_text(value: float | None) -> str:
    return "" if value is None else repr(value)
