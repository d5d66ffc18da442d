"""Damaged variants of one file a format, and counts of the traces and spans read from them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from mast_tui.traces.library import read_file, read_fully
from tests.traces.golden import EXPECTED, INPUTS, GoldenInput, golden_inputs, recorded

DAMAGE: Final = EXPECTED / "damage.tsv"

_COLUMNS: Final = ("format", "variant", "reader", "traces", "spans", "problems")
_MAX_BYTES: Final = 40_000
_NUL_BYTES: Final = 300


def damaged_formats() -> list[str]:
    """Return the formats with an undamaged input of JSON or JSON lines."""
    names = sorted(path.stem for path in INPUTS.glob("*.jsonl"))
    left_out = {"folders", "none", "text"}
    return [name for name in names if name not in left_out and sample_of(name) is not None]


def sample_of(name: str) -> GoldenInput | None:
    """Return the input with most spans that is one undamaged file of JSON or JSON lines."""
    candidates = [
        golden_input
        for golden_input in golden_inputs(name)
        if len(golden_input.files) == 1
        and len(_data(golden_input)) <= _MAX_BYTES
        and _records(_data(golden_input))
    ]
    span_counts = _recorded_spans(name)
    return max(candidates, key=lambda golden_input: span_counts[golden_input.name], default=None)


def _recorded_spans(name: str) -> Counter[str]:
    """Return the number of recorded spans of each input of a format."""
    counts: Counter[str] = Counter()
    input_name = ""
    for line in recorded(name):
        kind, _, label = line.split("\t", 1)[0].partition(" ")
        if kind == "file":
            input_name = label
        elif kind == "span":
            counts[input_name] += 1
    return counts


def _data(golden_input: GoldenInput) -> bytes:
    (data,) = golden_input.files.values()
    return data


def _records(data: bytes) -> list[str]:
    """Return the JSON objects or lists in the data; none if the data is damaged."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return []
    if _is_container(text):
        return [text.strip()]
    lines = [line for line in text.split("\n") if line.strip()]
    return lines if len(lines) > 1 and all(map(_is_container, lines)) else []


def _is_container(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except ValueError:
        return False


def _lines(records: Sequence[str]) -> str:
    return "".join(f"{record}\n" for record in records)


def _nul_block(records: Sequence[str]) -> str:
    text = _lines(records)
    offset = text.find("\n" if len(records) > 1 else ",", len(text) // 2) + 1
    return text[:offset] + "\0" * _NUL_BYTES + text[offset:]


def _glued(records: Sequence[str]) -> str:
    middle = len(records) // 2
    return (
        _lines(records[:middle])
        + "".join(records[middle : middle + 2])
        + "\n"
        + _lines(records[middle + 2 :])
    )


def _after_cut_record(records: Sequence[str]) -> str:
    middle = len(records) // 2
    cut = records[middle][: len(records[middle]) // 2]
    following = records[middle + 1 :] or records
    return _lines(records[:middle]) + cut + _lines(following)


def _pretty(records: Sequence[str]) -> str:
    return _lines([json.dumps(json.loads(record), indent=2) for record in records])


def _cut_end(records: Sequence[str]) -> str:
    return _lines(records[:-1]) + records[-1][: 2 * len(records[-1]) // 3]


def _with_member(member: str) -> Callable[[Sequence[str]], str]:
    """Return a function that inserts a member at the beginning of an object."""

    def damaged(records: Sequence[str]) -> str:
        middle = len(records) // 2
        record = records[middle].replace("{", "{" + member + ", ", 1)
        return _lines([*records[:middle], record, *records[middle + 1 :]])

    return damaged


def _duplicate_keys(records: Sequence[str]) -> str:
    middle = len(records) // 2
    record = records[middle]
    begin = record.index("{")
    key = json.JSONDecoder().raw_decode(record, record.index('"', begin))[0]
    damaged = f"{record[: begin + 1]}{json.dumps(key)}: null, {record[begin + 1 :]}"
    return _lines([*records[:middle], damaged, *records[middle + 1 :]])


_VARIANTS: Final[Mapping[str, Callable[[Sequence[str]], str]]] = MappingProxyType(
    {
        "sound": _lines,
        "block of NUL bytes": _nul_block,
        "glued records": _glued,
        "record behind a cut one": _after_cut_record,
        "pretty-printed documents": _pretty,
        "list of records": lambda records: f"[{','.join(records)}]",
        "JSON text sequence": lambda records: "".join(f"\x1e{record}\n" for record in records),
        "server-sent events": lambda records: "".join(f"data: {record}\n\n" for record in records),
        "cut end": _cut_end,
        "byte order mark": lambda records: "\ufeff" + _lines(records),
        "CRLF": lambda records: "".join(f"{record}\r\n" for record in records),
        "UTF-16": lambda records: "\ufeff" + _lines(records),
        "NaN": _with_member('"not_a_number": NaN'),
        "duplicate keys": _duplicate_keys,
    }
)


def variants(data: bytes) -> dict[str, bytes]:
    """Return damaged variants of a file by name; those with several records repeat a document."""
    records = _records(data)
    twice = {"glued records", "pretty-printed documents", "JSON text sequence"}
    data_by_variant = {}
    for name, damage in _VARIANTS.items():
        variant_records = records * 2 if len(records) == 1 and name in twice else records
        encoding = "utf-16-le" if name == "UTF-16" else "utf-8"
        data_by_variant[name] = damage(variant_records).encode(encoding)
    return data_by_variant


def damage_rows(name: str, scratch: Path) -> list[list[str]]:
    """Return the counts of traces and spans read from each variant of a format's sample.

    Args:
        name: The format.
        scratch: A folder in which the variants are written.

    Returns:
        Rows of ``_COLUMNS``, as text.
    """
    sample = sample_of(name)
    assert sample is not None
    rows = []
    for variant, data in variants(_data(sample)).items():
        folder = scratch / name / variant.replace(" ", "-")
        folder.mkdir(parents=True)
        path = folder / Path(sample.opened).name
        path.write_bytes(data)
        report = read_file(path, named=True)
        for trace in report.traces:
            read_fully(trace)
        spans = sum(map(len, report.traces))
        problems = {
            *report.problems,
            *(problem for trace in report.traces for problem in trace.problems),
        }
        counts = [len(report.traces), spans, len(problems)]
        rows.append([name, variant, report.format or "failed", *map(str, counts)])
    return rows


def recorded_damage() -> dict[str, list[list[str]]]:
    """Return the recorded rows by format."""
    rows: dict[str, list[list[str]]] = {}
    for line in DAMAGE.read_text("utf-8").splitlines()[1:]:
        row = line.split("\t")
        rows.setdefault(row[0], []).append(row)
    return rows


def write_damage(scratch: Path) -> None:
    """Record the counts of each variant.

    Args:
        scratch: An empty folder.
    """
    rows = [list(_COLUMNS)]
    for name in damaged_formats():
        rows += damage_rows(name, scratch)
    DAMAGE.write_text("".join("\t".join(row) + "\n" for row in rows), "utf-8")
