"""The format ``huggingface``: a folder for ``datasets.load_dataset``.

It has the contents of the gold document as tables: JSON lines under ``data/``. The heading of its
``README.md`` lists the files and columns, so that empty columns keep their type. The datasheet
follows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from mast_tui.counts import counted
from mast_tui.exchange.exporters.datasheet import card_values
from mast_tui.exchange.jsonl import json_line
from mast_tui.reports.render.markdown import plain

Values = Mapping[str, Any]
Columns = tuple[tuple[str, str], ...]

CARD: Final = "README.md"
"""The file with the list of tables."""

_LIST: Final = "list of "
_PAIR: Final = "pair of annotator and "
_TIME: Final = "timestamp[us, tz=UTC]"

_TRACE: Final[Columns] = (
    ("trace_id", "string"),
    ("content_hash", "string"),
    ("system", "string"),
    ("model", "string"),
    ("benchmark", "string"),
    ("outcome", "string"),
    ("score", "float64"),
    ("spans", "int64"),
)
_MODE: Final[Columns] = (("taxonomy", "string"), ("mode", "string"), ("slug", "string"))
_TARGET: Final[Columns] = (
    ("whole_trace", "bool"),
    ("first", "string"),
    ("last", "string"),
    ("first_index", "int64"),
    ("last_index", "int64"),
    ("quote", "string"),
    ("char_start", "int64"),
    ("char_end", "int64"),
)
_DECISION: Final[Columns] = (
    ("source", "string"),
    ("judge_seen", "bool"),
    ("decided_by", "string"),
    ("decided_at", _TIME),
    ("reason", "string"),
    ("changed", "bool"),
)
_GOLD: Final = (*_TRACE, *_MODE, ("value", "string"), *_DECISION, ("sides", _PAIR + "value"))
_GOLD_LABELS: Final = (
    ("trace_id", "string"),
    *_MODE,
    *_TARGET,
    *_DECISION,
    ("merged", "bool"),
    ("severity", "string"),
    ("severity_source", "string"),
    ("annotators", _LIST + "string"),
    ("notes", _PAIR + "note"),
)
_SIDE: Final[Columns] = (
    ("trace_id", "string"),
    ("annotator", "string"),
    ("kind", "string"),
    ("pass", "int64"),
    ("pass_kind", "string"),
    ("finished_at", _TIME),
)
_VERDICTS: Final = (*_SIDE, ("judge_seen", "bool"), *_MODE, ("value", "string"))
_LABELS: Final = (
    *_SIDE,
    ("id", "string"),
    *_MODE,
    *_TARGET,
    ("note", "string"),
    ("confidence", "float64"),
    ("severity", "string"),
    ("origin", "string"),
    ("saw_suggestions", "bool"),
    ("created_at", _TIME),
)
_MODES: Final[Columns] = (
    *_MODE,
    ("name", "string"),
    ("category", "string"),
    ("definition", "string"),
    ("applies", _LIST + "string"),
    ("applies_not", _LIST + "string"),
)
_SIZES: Final = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
)
"""The upper limits of rows (exclusive) with the Hub's names for sizes."""
_GUIDELINES: Final[Columns] = (
    *_MODE,
    ("name", "string"),
    ("text", "string"),
    ("by", "string"),
    ("at", _TIME),
)


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of the set. ``holds`` describes its contents."""

    name: str
    holds: str
    columns: Columns
    rows: list[dict[str, Any]]

    @classmethod
    def of(cls, name: str, holds: str, columns: Columns, rows: Iterable[Values]) -> _Table:
        """Return a table with the values of its columns, None for missing values.

        Args:
            name: The name of the table.
            holds: The description of its contents.
            columns: The columns.
            rows: The values of the rows by column. Other values are ignored.
        """
        column_values = [
            {
                column: _utc_time(row.get(column)) if kind == _TIME else row.get(column)
                for column, kind in columns
            }
            for row in rows
        ]
        return cls(name, holds, columns, column_values)

    @property
    def file(self) -> str:
        return f"data/{self.name}.jsonl"


def dataset_files(document: Values, datasheet: str) -> dict[str, str]:
    """Return the texts of the set's files by their relative path.

    Empty tables are left out, since they cannot be loaded.

    Args:
        document: The gold document.
        datasheet: The datasheet of the document as Markdown.
    """
    tables = [table for table in _tables_of_document(document) if table.rows]
    files = {table.file: "".join(map(json_line, table.rows)) for table in tables}
    return files | {CARD: _card_text(document, tables, datasheet)}


def tables_named_in(card: str) -> tuple[str, ...] | None:
    """Return the table files in the heading of a card (``README.md``); None if it is not ours."""
    if "Written by mast-tui" not in card:
        return None
    heading = card.partition("\n---\n")[0]
    return tuple(re.findall(r'"path": "(data/[\w-]+\.jsonl)"', heading))


def _tables_of_document(document: Values) -> Iterator[_Table]:
    """Yield the tables of a gold document, including empty ones."""
    ref = {"taxonomy": document["taxonomy"]["ref"]}
    traces = document["traces"]
    sides = [
        ref | side | {"trace_id": trace["trace_id"], "annotator": side["name"]}
        for trace in traces
        for side in trace["annotators"]
    ]
    yield _Table.of(
        "gold",
        "the verdict on each mode in each trace, its source, and each annotator's verdict",
        _GOLD,
        (
            trace | verdict | ref | {"mode": code, "sides": _side_verdicts(verdict)}
            for trace in traces
            for code, verdict in trace["verdicts"].items()
        ),
    )
    yield _Table.of(
        "gold_labels",
        "the resolved places of the modes",
        _GOLD_LABELS,
        (
            label | label["target"] | ref | {"trace_id": trace["trace_id"]}
            for trace in traces
            for label in trace["labels"]
        ),
    )
    yield _Table.of(
        "labels",
        "every annotator's own labels",
        _LABELS,
        (side | label | label["target"] for side in sides for label in side["labels"]),
    )
    slugs = {mode["code"]: mode["slug"] for mode in document["taxonomy"]["modes"]}
    names = sorted({side["name"] for side in sides})
    for name, table in zip(names, _table_names(names), strict=True):
        yield _Table.of(
            table,
            f"{name}'s verdicts; an open mode has no row",
            _VERDICTS,
            (
                side | {"mode": code, "slug": slugs[code], "value": value}
                for side in sides
                if side["name"] == name
                for code, value in side["verdicts"].items()
                if value is not None
            ),
        )
    yield _Table.of(
        "modes",
        "the definitions of the modes that the annotators used",
        _MODES,
        (
            mode | ref | {"mode": mode["code"]}
            for mode in document["taxonomy"]["modes"]
            # The first table of a set counts as its gold. Without traces this table would be the
            # first, so it must be empty too.
            if traces
        ),
    )
    yield _Table.of(
        "guidelines",
        "the annotators' guidelines on the modes",
        _GUIDELINES,
        (
            guideline | ref | {"mode": code, "slug": page["mode"], "name": page["name"]}
            for code, page in document["guidelines"].items()
            for guideline in page["guidelines"]
        ),
    )


def _side_verdicts(verdict: Values) -> list[dict[str, str]]:
    return [{"annotator": name, "value": value} for name, value in verdict["sides"].items()]


def _utc_time(text: object) -> str | None:
    """Return a time as ISO 8601 in UTC with microseconds; None if the text is no time."""
    try:
        time = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _table_names(names: Iterable[str]) -> list[str]:
    """Return a unique table name of letters, digits and ``_`` for each annotator."""
    table_names: list[str] = []
    for name in names:
        table_name = "annotator_" + (re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "x")
        # File systems may ignore case.
        while table_name.casefold() in (used_name.casefold() for used_name in table_names):
            table_name += "_"
        table_names.append(table_name)
    return table_names


def _card_text(document: Values, tables: list[_Table], datasheet: str) -> str:
    """Return the card: a YAML heading, the list of tables and the datasheet.

    The values of the heading are JSON, which is valid YAML.
    """
    heading = _heading(document, tables)
    lines = [
        "---",
        *(f"{key}: {json.dumps(value)}" for key, value in heading.items()),
        "---",
        "",
        f"# {plain(str(heading['pretty_name']))}",
        "",
        "Each table loads by its name:",
        "",
        "```python",
        "from datasets import load_dataset",
        "",
        f'gold = load_dataset("PATH", "{tables[0].name}", split="train")',
        "```",
        "",
        *(f"- `{t.name}` ({counted(len(t.rows), 'row')}): {plain(t.holds)}" for t in tables),
        "",
        "Quote offsets count code points of the span's text; span indices count from 0. The "
        "traces are not included; `content_hash` identifies them.",
        "",
        # A card has one heading of the first level.
        datasheet.replace("# Datasheet", "## Datasheet", 1),
    ]
    return "\n".join(lines)


def _heading(document: Values, tables: Sequence[_Table]) -> Values:
    """Return the values of a card's heading, with the files and columns of the tables."""
    row_count = len(tables[0].rows)
    size = next((name for limit, name in _SIZES if row_count < limit), "n>1M")
    return {
        "pretty_name": f"Failure labels of agent traces ({document['taxonomy']['ref']})",
        "task_categories": ["text-classification"],
        "size_categories": [size],
        "tags": ["agents", "failure-analysis", "human-annotation"],
        **card_values(document.get("datasheet") or {}),
        "configs": [
            {
                "config_name": table.name,
                "data_files": [{"split": "train", "path": table.file}],
                **({"default": True} if table is tables[0] else {}),
            }
            for table in tables
        ],
        "dataset_info": [
            {
                "config_name": table.name,
                "features": [_feature(name, kind) for name, kind in table.columns],
            }
            for table in tables
        ],
    }


def _feature(name: str, kind: str) -> dict[str, Any]:
    """Return the description of a column in the card."""
    if kind.startswith(_PAIR):
        fields = ("annotator", kind.removeprefix(_PAIR))
        return {"name": name, "list": [{"name": field, "dtype": "string"} for field in fields]}
    if kind.startswith(_LIST):
        return {"name": name, "list": kind.removeprefix(_LIST)}
    return {"name": name, "dtype": kind}
