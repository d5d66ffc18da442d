"""Mutations of trace files, and checks of what is read of them.

Every mutation is drawn from a seed, so that each can be made again. ``scripts/damage.py`` makes
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
"""How many levels are put into a value."""

_PLACEHOLDER: Final = "put something hostile here"
_HOSTILE: Final[tuple[str, ...]] = (
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
_OTHER: Final[tuple[object, ...]] = (
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
    """A damaged content: what was done, and between which bytes of the original, where known."""

    kind: str
    data: bytes
    region: tuple[int, int] | None = None


def mutate(data: bytes, draw: random.Random) -> Mutation:
    """One mutation of a file's content; of an archive also one of a file in it."""
    if data.startswith(b"PK") and draw.random() < 0.5:
        member = _mutated_member(data, draw)
        if member is not None:
            return member
    kind = draw.choice(tuple(_KINDS))
    return _KINDS[kind](data, draw)


def _flip(data: bytes, draw: random.Random) -> Mutation:
    place = draw.randrange(len(data))
    changed = bytearray(data)
    changed[place] ^= 1 << draw.randrange(8)
    return Mutation("flip", bytes(changed), (place, place + 1))


def _flip_many(data: bytes, draw: random.Random) -> Mutation:
    changed = bytearray(data)
    for _ in range(draw.randrange(2, 40)):
        changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return Mutation("flip many", bytes(changed))


def _cut(data: bytes, draw: random.Random) -> Mutation:
    begin = draw.randrange(len(data))
    end = min(len(data), begin + draw.randrange(1, 200))
    return Mutation("cut", data[:begin] + data[end:], (begin, end))


def _truncate(data: bytes, draw: random.Random) -> Mutation:
    end = draw.randrange(1, len(data)) if len(data) > 1 else 1
    return Mutation("truncate", data[:end], (end, len(data)))


def _insert(data: bytes, draw: random.Random) -> Mutation:
    place = draw.randrange(len(data))
    what = draw.choice((b"\0", b"\0" * 64, b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80", b'"', b"}"))
    return Mutation("insert", data[:place] + what + data[place:], (place, place + 1))


def _lines(data: bytes, draw: random.Random) -> Mutation:
    lines = data.split(b"\n")
    one, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    how = draw.choice(("cut out", "swapped", "doubled"))
    if how == "cut out":
        del lines[one]
    elif how == "swapped":
        lines[one], lines[other] = lines[other], lines[one]
    else:
        lines.insert(other, lines[one])
    return Mutation(f"lines {how}", b"\n".join(lines))


def _move(data: bytes, draw: random.Random) -> Mutation:
    begin = draw.randrange(len(data))
    end = min(len(data), begin + draw.randrange(1, 4000))
    rest = data[:begin] + data[end:]
    place = draw.randrange(len(rest) + 1)
    return Mutation("move", rest[:place] + data[begin:end] + rest[place:])


def _retype(data: bytes, draw: random.Random) -> Mutation:
    return _in_json(data, draw, "retype", lambda: json.dumps(draw.choice(_OTHER)))


def _hostile(data: bytes, draw: random.Random) -> Mutation:
    return _in_json(data, draw, "hostile", lambda: draw.choice(_HOSTILE))


def _drop(data: bytes, draw: random.Random) -> Mutation:
    return _in_json(data, draw, "drop", None)


_KINDS: Final[Mapping[str, Callable[[bytes, random.Random], Mutation]]] = MappingProxyType(
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
    data: bytes, draw: random.Random, kind: str, make: Callable[[], str] | None
) -> Mutation:
    """Another value, or none, somewhere in the document or on some line of it."""
    text = data.decode("utf-8", "replace")
    before, after = "", ""
    try:
        value = json.loads(text)
    except ValueError:
        lines = text.split("\n")
        chosen = draw.randrange(len(lines))
        before = "\n".join(lines[:chosen]) + ("\n" if chosen else "")
        after = "\n" + "\n".join(lines[chosen + 1 :]) if chosen + 1 < len(lines) else ""
        try:
            value = json.loads(lines[chosen])
        except ValueError:
            return _flip(data, draw)
    changed = json.dumps(_replaced(value, draw, drop=make is None))
    if make is not None:
        changed = changed.replace(json.dumps(_PLACEHOLDER), make())
    return Mutation(kind, (before + changed + after).encode("utf-8", "replace"))


def _replaced(value: object, draw: random.Random, drop: bool) -> object:
    """``value`` with one of its parts, chosen by chance, replaced or dropped; changed in place."""
    root: list[object] = [value]
    container: list[object] | dict[str, object] = root
    key: int | str = 0
    here = value
    while isinstance(here, list | dict) and here and (container is root or draw.random() < 0.8):
        container = here
        key = draw.randrange(len(here)) if isinstance(here, list) else draw.choice(sorted(here))
        here = here[key] if isinstance(here, dict) else here[int(key)]
    if isinstance(container, dict):
        container.pop(str(key)) if drop else container.update({str(key): _PLACEHOLDER})
    elif drop and container is not root:
        container.pop(int(key))
    else:
        container[int(key)] = _PLACEHOLDER
    return root[0]


def _mutated_member(data: bytes, draw: random.Random) -> Mutation | None:
    out = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(out, "w") as written:
            names = archive.namelist()
            chosen = draw.choice(names)
            kind = ""
            for name in names:
                content = archive.read(name)
                if name == chosen and content:
                    mutation = _KINDS[draw.choice(tuple(_KINDS))](content, draw)
                    kind, content = mutation.kind, mutation.data
                written.writestr(name, content)
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
    """The file as it is, read to its end."""
    report = read_file(path, named=True)
    lines: dict[int, set[str]] = {}
    for trace in report.traces:
        read_fully(trace)
        for index in range(len(trace)):
            span = trace.span(index)
            if match := _LINE.match(span.place):
                lines.setdefault(int(match[1]), set()).add(span.key)
    of_lines = report.format not in (None, "text") and bool(Source(path).json_lines)
    actual = {line: frozenset(keys) for line, keys in lines.items()} if of_lines else {}
    return Intact(report, actual)


def read_damaged(path: Path) -> FileReport:
    """A damaged file, read to its end; fails unless what comes of it is sound."""
    report = read_file(path, named=True)
    said = [report.format, report.skipped, report.failed]
    assert said.count(None) == 2, "not exactly one thing is said of the file"
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

    None where that cannot be told: the file has not one record a line, the damage is all over
    it, or lines have moved to other numbers, by which spans are called that have no id. A span
    whose key was told from an earlier one by ``~2`` has the plain key once that one is gone.
    """
    if mutation.region is None or not intact.lines:
        return None
    begin, end = mutation.region
    truncated = mutation.kind == "truncate"
    if not truncated and data.count(b"\n") != mutation.data.count(b"\n"):
        return None
    first = data.count(b"\n", 0, begin) + 1
    last = data.count(b"\n", 0, end) + 1
    wanted: set[str] = set()
    for line, keys in intact.lines.items():
        if not first <= line <= last:
            wanted |= keys
    actual = {trace.span(index).key for trace in report.traces for index in range(len(trace))}
    gone = {key for key in wanted - actual if re.sub(r"~\d+$", "", key) not in actual}
    return len(wanted), gone


def is_unsound(error: BaseException) -> bool:
    """Return whether an error comes from the checks, and not from reading."""
    frames = traceback.extract_tb(error.__traceback__)
    own = {Path(__file__).name, Path(checks.__file__).name}
    return bool(frames) and Path(frames[-1].filename).name in own
