"""Write docs/json/*.csv, the fields of the JSON documents that commands print.

    .venv/bin/python scripts/json_fields.py            rewrites the tables
    .venv/bin/python scripts/json_fields.py --check    exit code 1 if they are not up to date

The commands run on the sample traces. Each field that they print has a row: its path, the types of
its values, and a description. ``*`` stands for names, codes and ids as keys, ``[]`` for the items
of a list. A figure is an object with ``value`` and ``ci`` or ``undefined``, a rate one with
``count``, ``n``, ``rate`` and ``ci``. Texts in the last column are written by hand and kept, and so
are rows of fields that the samples do not have.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Final, NamedTuple

from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from scripts.pages import csv_text, write_or_check

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / "docs" / "json"

COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "import": ("import sample_traces/workspace.jsonl --format jsonl --json",),
    "agree": ("agree --judge rules --against mira --json", "agree --judge rules --json"),
    "export": (
        "export --format gold -o gold.json --json",
        "export --format csv-wide -o w.csv --json",
    ),
    "gold": ("export --format gold -o gold.txt",),
    "judge": ("judge sample_traces --judge rules --again --quiet --json",),
    "jsonl": ("export --format jsonl -o jsonl.txt",),
    "records": ("agree --records", "report --by all --records"),
    "experiment": ("experiment --arms model --labels mira --cost --json",),
    "status": ("status --json",),
    "report": (
        "report --by model --json",
        "report --by all --labels mira --bill --json",
    ),
}
"""The commands whose documents show the fields, by table. They run in this order."""


_REPEATED: Final[Mapping[tuple[str, str], str]] = {
    ("gold", "agreement"): "the document of agree.csv",
    ("gold", "judges.*"): "as `judge` in agree.csv",
    ("report", "experiment"): "the document of experiment.csv",
    ("report", "groups.*"): "as `overall`",
}
"""Objects that another table or row describes, by table and path."""

_FIELD: Final = re.compile(r"[a-z][a-z_0-9]*")
_NAMED: Final = frozenset({"categories", "distribution", "groups", "levels", "strategies"})
"""Fields whose keys are names even if they look like names of fields."""


class FieldRow(NamedTuple):
    """A row of a table."""

    field: str
    types: str
    holds: str


def _has_names_as_keys(path: str, value: Mapping[str, object], names: frozenset[str]) -> bool:
    field = path.rpartition(".")[2]
    return field in _NAMED or any(not _FIELD.fullmatch(key) or key in names for key in value)


def _type_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "text"
        case list():
            return "list"
        case {"value": _, "ci": _} | {"value": _, "undefined": _}:
            return "figure"
        case {"rate": _, "count": _}:
            return "rate"
        case _:
            return "object"


def _fields(
    path: str, value: object, names: frozenset[str], repeated: frozenset[str]
) -> Iterator[tuple[str, str]]:
    """Yield the path and the type of each value in a document.

    Args:
        path: The path of the value; empty for the document.
        value: The value.
        names: The names of annotators, which are keys too.
        repeated: The paths of objects that are described elsewhere.
    """
    kind = _type_of(value)
    if path:
        yield path, kind
    if isinstance(value, dict) and kind == "object" and path not in repeated:
        keyed = _has_names_as_keys(path, value, names)
        for key, inner in value.items():
            step = "*" if keyed else key
            yield from _fields(f"{path}.{step}" if path else step, inner, names, repeated)
    elif isinstance(value, list):
        for inner in value:
            if isinstance(inner, dict | list):
                yield from _fields(f"{path}[]", inner, names, repeated)


def printed_fields(table: str, documents: list[object]) -> dict[str, str]:
    """Return the types of each field of some documents, by its path.

    Args:
        table: The table of the documents.
        documents: The documents, as JSON values.
    """
    repeated = frozenset(path for name, path in _REPEATED if name == table)
    types: defaultdict[str, set[str]] = defaultdict(set)
    for document in documents:
        names = _names_in(document)
        for path, kind in _fields("", document, names, repeated):
            types[path].add(kind)
    for kinds in types.values():
        if "number" in kinds:
            kinds.discard("integer")
    return {path: " or ".join(sorted(kinds)) for path, kinds in types.items()}


def _names_in(document: object) -> frozenset[str]:
    """Return the names of annotators in a document, which are keys in it too."""
    annotators = document.get("annotators") if isinstance(document, dict) else None
    if annotators is None and isinstance(document, dict):
        annotators = (document.get("gold") or {}).get("annotators")
    return frozenset(name for name in annotators or () if isinstance(name, str))


def sample_documents() -> dict[str, list[object]]:
    """Run the commands on the samples and return what they print, by table."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "sample_traces", Path(folder) / "sample_traces")
        return {
            table: [
                document
                for command in commands
                for document in _documents(table, _run(command, folder))
            ]
            for table, commands in COMMANDS.items()
        }


def _documents(table: str, printed: str) -> list[object]:
    """Return the documents that a command printed: one, or of some commands one a line.

    Lines of ``jsonl`` are named by their kind.

    Args:
        table: The table of the command.
        printed: The output.
    """
    if table == "jsonl":
        lines = [json.loads(line) for line in printed.splitlines()]
        return [{line["record"]: line} for line in lines]
    if table == "records":
        return [json.loads(line) for line in printed.splitlines()]
    return [json.loads(printed)]


def _run(command: str, folder: str) -> str:
    """Run a command in a folder, and return what it prints, or the text file that it writes."""
    arguments = [*shlex.split(command), "--workspace", "w.db"]
    printed = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    with chdir(folder), redirect_stdout(printed):
        code = run(split_command(arguments))
    if code:
        raise SystemExit(f"mast-tui {command}: exit code {code}")
    if arguments[-3].endswith(".txt"):
        return (Path(folder) / arguments[-3]).read_text("utf-8")
    printed.seek(0)
    return printed.read()


def table_rows(table: str, printed: Mapping[str, str], existing: list[FieldRow]) -> list[FieldRow]:
    """Return the rows of a table, sorted by field.

    Args:
        table: The table.
        printed: The types of the fields that the samples have.
        existing: The rows of the table before.
    """
    descriptions = {row.field: row.holds for row in existing}
    rows = [
        FieldRow(
            field,
            types,
            _REPEATED.get((table, field)) or descriptions.get(field, ""),
        )
        for field, types in printed.items()
    ]
    rows += [row for row in existing if row.field not in printed and row.holds]
    return sorted(rows)


def read_table(path: Path) -> list[FieldRow]:
    """Return the rows of a table; none if there is no such file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [FieldRow(**row) for row in csv.DictReader(file)]


def tables() -> dict[Path, str]:
    """Run the commands on the samples and return the text of each table."""
    texts = {}
    for table, documents in sample_documents().items():
        path = FOLDER / f"{table}.csv"
        rows = table_rows(table, printed_fields(table, documents), read_table(path))
        texts[path] = csv_text(FieldRow._fields, rows)
    return texts


if __name__ == "__main__":
    sys.exit(write_or_check(tables()))
