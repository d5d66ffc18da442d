"""Mutations of trace files, and checks of the traces that are read from the damaged files.

Every mutation is drawn from a seed, so that each can be repeated. ``scripts/damage.py`` makes
many of them, the tests a few.
"""

from __future__ import annotations

import io
import json
import random
import re
import traceback
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from mast_tui.traces.io.source import Source
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import FileReport
from tests.traces import checks

DEEP: Final = 10_000
"""The number of levels of a nested value."""

_PLACEHOLDER: Final = "put something hostile here"
_HOSTILE_TEXTS: Final[tuple[str, ...]] = (
    "[" * DEEP + "]" * DEEP,
    '{"a":' * DEEP + "1" + "}" * DEEP,
    "1" + "0" * 400,
    "7" * 5000,
    "-1e999",
    "NaN",
    '"\\ud800"',
    '"\\u0000"',
    '"\\u001b[2J"',
)
_OTHER_VALUES: Final[tuple[object, ...]] = (
    None,
    True,
    12,
    -1,
    1.5,
    "x",
    "",
    [],
    {},
    [[]],
    [None, 3],
    {"type": 5},
    {"text": {"text": []}},
)
_LINE: Final = re.compile(r"line (\d+)\b")


@dataclass(frozen=True, slots=True)
class Mutation:
    """Damaged content, its kind, and the damaged bytes of the original where they are known."""

    kind: str
    data: bytes
    region: tuple[int, int] | None = None


def mutate(data: bytes, rng: random.Random) -> Mutation:
    """Return a mutation of a file, or of a member of an archive."""
    if data.startswith(b"PK") and rng.random() < 0.5:
        member = _mutated_member(data, rng)
        if member is not None:
            return member
    kind = rng.choice(tuple(_MUTATIONS))
    return _MUTATIONS[kind](data, rng)


def _flip(data: bytes, rng: random.Random) -> Mutation:
    offset = rng.randrange(len(data))
    changed = bytearray(data)
    changed[offset] ^= 1 << rng.randrange(8)
    return Mutation("flip", bytes(changed), (offset, offset + 1))


def _flip_many(data: bytes, rng: random.Random) -> Mutation:
    changed = bytearray(data)
    for _ in range(rng.randrange(2, 40)):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return Mutation("flip many", bytes(changed))


def _cut(data: bytes, rng: random.Random) -> Mutation:
    begin = rng.randrange(len(data))
    end = min(len(data), begin + rng.randrange(1, 200))
    return Mutation("cut", data[:begin] + data[end:], (begin, end))


def _truncate(data: bytes, rng: random.Random) -> Mutation:
    end = rng.randrange(1, len(data)) if len(data) > 1 else 1
    return Mutation("truncate", data[:end], (end, len(data)))


def _insert(data: bytes, rng: random.Random) -> Mutation:
    offset = rng.randrange(len(data))
    inserted = rng.choice(
        (b"\0", b"\0" * 64, b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80", b'"', b"}")
    )
    return Mutation("insert", data[:offset] + inserted + data[offset:], (offset, offset + 1))


def _lines(data: bytes, rng: random.Random) -> Mutation:
    lines = data.split(b"\n")
    index = rng.randrange(len(lines))
    other_index = rng.randrange(len(lines))
    change = rng.choice(("cut out", "swapped", "doubled"))
    if change == "cut out":
        del lines[index]
    elif change == "swapped":
        lines[index], lines[other_index] = lines[other_index], lines[index]
    else:
        lines.insert(other_index, lines[index])
    return Mutation(f"lines {change}", b"\n".join(lines))


def _move(data: bytes, rng: random.Random) -> Mutation:
    begin = rng.randrange(len(data))
    end = min(len(data), begin + rng.randrange(1, 4000))
    remainder = data[:begin] + data[end:]
    target = rng.randrange(len(remainder) + 1)
    return Mutation("move", remainder[:target] + data[begin:end] + remainder[target:])


def _retype(data: bytes, rng: random.Random) -> Mutation:
    return _in_json(data, rng, "retype", lambda: json.dumps(rng.choice(_OTHER_VALUES)))


def _hostile(data: bytes, rng: random.Random) -> Mutation:
    return _in_json(data, rng, "hostile", lambda: rng.choice(_HOSTILE_TEXTS))


def _drop(data: bytes, rng: random.Random) -> Mutation:
    return _in_json(data, rng, "drop", None)


_MUTATIONS: Final[Mapping[str, Callable[[bytes, random.Random], Mutation]]] = MappingProxyType(
    {
        "flip": _flip,
        "flip many": _flip_many,
        "cut": _cut,
        "truncate": _truncate,
        "insert": _insert,
        "lines": _lines,
        "move": _move,
        "retype": _retype,
        "hostile": _hostile,
        "drop": _drop,
    }
)


def _in_json(
    data: bytes, rng: random.Random, kind: str, make: Callable[[], str] | None
) -> Mutation:
    """Replace or drop a value somewhere in a document, or on one line of a file."""
    text = data.decode("utf-8", "replace")
    prefix = suffix = ""
    try:
        value = json.loads(text)
    except ValueError:
        lines = text.split("\n")
        line_index = rng.randrange(len(lines))
        prefix = "\n".join(lines[:line_index]) + ("\n" if line_index else "")
        suffix = "\n" + "\n".join(lines[line_index + 1 :]) if line_index + 1 < len(lines) else ""
        try:
            value = json.loads(lines[line_index])
        except ValueError:
            return _flip(data, rng)
    changed = json.dumps(_replaced(value, rng, drop=make is None))
    if make is not None:
        changed = changed.replace(json.dumps(_PLACEHOLDER), make())
    return Mutation(kind, (prefix + changed + suffix).encode("utf-8", "replace"))


def _replaced(value: object, rng: random.Random, drop: bool) -> object:
    """Replace or drop a random part of ``value`` in place; return the value."""
    root: list[object] = [value]
    container: list[object] | dict[str, object] = root
    key: int | str = 0
    node = value
    while isinstance(node, list | dict) and node and (container is root or rng.random() < 0.8):
        container = node
        key = rng.randrange(len(node)) if isinstance(node, list) else rng.choice(sorted(node))
        node = node[key] if isinstance(node, dict) else node[int(key)]
    if isinstance(container, dict):
        container.pop(str(key)) if drop else container.update({str(key): _PLACEHOLDER})
    elif drop and container is not root:
        container.pop(int(key))
    else:
        container[int(key)] = _PLACEHOLDER
    return root[0]


def _mutated_member(data: bytes, rng: random.Random) -> Mutation | None:
    out = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(out, "w") as damaged:
            names = archive.namelist()
            chosen = rng.choice(names)
            kind = ""
            for name in names:
                content = archive.read(name)
                if name == chosen and content:
                    mutation = _MUTATIONS[rng.choice(tuple(_MUTATIONS))](content, rng)
                    kind = mutation.kind
                    content = mutation.data
                damaged.writestr(name, content)
    except (NotImplementedError, zipfile.BadZipFile, IndexError):
        return None
    return Mutation(f"{kind} in the archive", out.getvalue())


@dataclass(frozen=True, slots=True)
class Intact:
    """The report on an intact file, and the keys of its spans by their lines.

    ``lines`` is empty for any file that has not one record a line.
    """

    report: FileReport
    lines: Mapping[int, frozenset[str]]


def read_intact(path: Path) -> Intact:
    """Read an intact file to its end."""
    report = read_file(path, named=True)
    lines: dict[int, set[str]] = {}
    for trace in report.traces:
        read_fully(trace)
        for index in range(len(trace)):
            span = trace.span(index)
            if match := _LINE.match(span.place):
                lines.setdefault(int(match[1]), set()).add(span.key)
    if report.format in (None, "text") or not Source(path).json_lines:
        return Intact(report, {})
    return Intact(report, {line: frozenset(keys) for line, keys in lines.items()})


def read_damaged(path: Path) -> FileReport:
    """Read a damaged file to its end; fail unless its report and traces are sound."""
    report = read_file(path, named=True)
    results = [report.format, report.skipped, report.failed]
    assert results.count(None) == 2, "not exactly one result is reported"
    for trace in report.traces:
        read_fully(trace)
        checks.check_sound(trace)
    for problem in report.problems:
        assert problem.place
        assert problem.message
    return report


def missing_keys(
    intact: Intact, data: bytes, mutation: Mutation, report: FileReport
) -> tuple[int, set[str]] | None:
    """Return the number of spans on intact lines, and the keys of those that are missing.

    None where they are unknown: the file has not one record a line, the damage is spread over
    the file, or lines have other numbers, which are the keys of spans without an id. A span
    whose key ends with ``~2`` gets the plain key when the earlier span of that key is missing.
    """
    if mutation.region is None or not intact.lines:
        return None
    begin, end = mutation.region
    truncated = mutation.kind == "truncate"
    if not truncated and data.count(b"\n") != mutation.data.count(b"\n"):
        return None
    first_line = data.count(b"\n", 0, begin) + 1
    last_line = data.count(b"\n", 0, end) + 1
    expected: set[str] = set()
    for line, keys in intact.lines.items():
        if not first_line <= line <= last_line:
            expected |= keys
    actual = {trace.span(index).key for trace in report.traces for index in range(len(trace))}
    missing = {key for key in expected - actual if re.sub(r"~\d+$", "", key) not in actual}
    return len(expected), missing


def is_unsound(error: BaseException) -> bool:
    """Return whether an error comes from the checks, and not from reading."""
    frames = traceback.extract_tb(error.__traceback__)
    checking_files = {Path(__file__).name, Path(checks.__file__).name}
    return bool(frames) and Path(frames[-1].filename).name in checking_files
