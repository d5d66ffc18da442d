"""A record of what reading gives for every known layout of a trace file, span by span.

``inputs/`` holds one file a format; each line in it is one trace file, or a folder of them.
``expected/`` holds what reading them gave when it was last recorded, one line a span. Of traces
outside the repository only a digest is recorded. ``python -m tests.traces.golden --write`` records
anew; ``tests/traces/test_golden.py`` compares.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from mast_tui.traces.library import read_file, read_fully, scan
from mast_tui.traces.model import FileReport, Problem, Span, Trace
from tests.traces.checks import CORPUS, SAMPLES, check_sound

FOLDER: Final = Path(__file__).parent
INPUTS: Final = FOLDER / "inputs"
EXPECTED: Final = FOLDER / "expected"
DIGESTS: Final = FOLDER / "expected" / "outside.csv"

OUTSIDE: Final[Mapping[str, Path]] = {"corpus": CORPUS}
"""Folders of real traces that are not in the repository, by the name that they are recorded by."""

_SPANS_IN_FULL: Final = 400
_SPANS_PER_DIGEST: Final = 50
_HASH_DIGITS: Final = 12
_LONGEST_VALUE: Final = 160
_LONGEST_TEXT: Final = 60
_DIGEST_COLUMNS: Final = ("file", "reader", "trace", "spans", "problems", "digest")


class GoldenInput(NamedTuple):
    """One trace file, or a folder of files that belong together.

    ``opened`` is the path that is read, relative to the folder; ``.`` for the folder itself.
    """

    name: str
    opened: str
    files: Mapping[str, bytes]

    def to_line(self) -> str:
        """Return the input as a line of JSON; files that are not UTF-8 are in base64."""
        files = {path: _to_json(data) for path, data in self.files.items()}
        fields = {"name": self.name, "opened": self.opened, "files": files}
        return json.dumps(fields, ensure_ascii=True) + "\n"

    @classmethod
    def from_line(cls, line: str) -> GoldenInput:
        """Return the input that ``to_line`` has written."""
        fields = json.loads(line)
        files = {path: _from_json(content) for path, content in fields["files"].items()}
        return cls(fields["name"], fields["opened"], files)

    def write_to(self, folder: Path) -> Path:
        """Write the files into a folder and return the path to read."""
        for path, data in self.files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        return folder / self.opened


def _to_json(data: bytes) -> str | dict[str, str]:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _from_json(content: str | dict[str, str]) -> bytes:
    if isinstance(content, str):
        return content.encode("utf-8")
    return base64.b64decode(content["base64"])


def formats() -> list[str]:
    """Return the names of the files of inputs, and of the samples."""
    return ["samples", *sorted(path.stem for path in INPUTS.glob("*.jsonl"))]


def golden_inputs(name: str) -> list[GoldenInput]:
    """Return the inputs of one format."""
    text = (INPUTS / f"{name}.jsonl").read_text("utf-8")
    return [GoldenInput.from_line(line) for line in text.split("\n") if line]


def golden_text(name: str, part_of_name: str) -> str:
    """Return the text of the first one-file input of a format whose name has this part."""
    for golden_input in golden_inputs(name):
        if part_of_name in golden_input.name and len(golden_input.files) == 1:
            (data,) = golden_input.files.values()
            return data.decode("utf-8")
    raise LookupError(f"{name} has no input `{part_of_name}`")


def describe_format(name: str, scratch: Path) -> list[str]:
    """Describe what reading gives for each input of a format.

    Args:
        name: One of ``formats()``.
        scratch: An empty folder, in which the inputs are written.

    Returns:
        Lines of text: one for a file, then its traces, and the spans of each.
    """
    lines = []
    if name == "samples":
        for path in sorted(SAMPLES.iterdir()):
            lines += describe_file(path.name, path)
        return lines
    for golden_input in golden_inputs(name):
        path = golden_input.write_to(scratch / name / golden_input.name)
        lines += describe_file(golden_input.name, path)
    return lines


def describe_file(name: str, path: Path) -> list[str]:
    """Describe what reading gives for a file, or for each file in a folder.

    Args:
        name: The name in the description.
        path: The file or folder.

    Returns:
        Lines of text without the place where the file is.
    """
    if not path.is_dir():
        return _describe_report(name, path.parent, _read(path))
    lines = []
    for report in scan([path]):
        _read_traces(report)
        inside = report.path.relative_to(path).as_posix()
        lines += _describe_report(f"{name}/{inside}", path, report)
    return lines


def _describe_report(name: str, folder: Path, report: FileReport) -> list[str]:
    state = {"reader": report.format, "skipped": report.skipped, "failed": report.failed}
    words = {
        field: value and value.replace(str(folder), "FOLDER") for field, value in state.items()
    }
    lines = [_line("file", name, words)]
    lines += [_describe_problem(problem, folder) for problem in _own(report)]
    for trace in report.traces:
        lines += _describe_trace(trace, folder)
    return lines


def _describe_problem(problem: Problem, folder: Path) -> str:
    message = problem.message.replace(str(folder), "FOLDER")
    return _line("problem", problem.place, {"message": message})


def _read(path: Path) -> FileReport:
    report = read_file(path, named=True)
    _read_traces(report)
    return report


def _read_traces(report: FileReport) -> None:
    for trace in report.traces:
        read_fully(trace)
        # A file of this format may hold problems without a place.
        if report.format != "mast-tui":
            check_sound(trace)


def _own(report: FileReport) -> list[Problem]:
    """Return the problems of a file that none of its traces has."""
    of_traces = {problem for trace in report.traces for problem in trace.problems}
    return [problem for problem in report.problems if problem not in of_traces]


def _describe_trace(trace: Trace, folder: Path) -> list[str]:
    identity = trace.identity._asdict()
    meta = trace.meta._asdict()
    meta["answer_key"] = [list(entry) for entry in meta["answer_key"].entries()]
    lines = [
        _line("trace", identity.pop("trace_id"), {**identity, "record": trace.record}),
        _line("meta", "", meta),
    ]
    lines += [_describe_problem(problem, folder) for problem in trace.problems]
    spans = [_describe_span(trace.span(index), trace.text(index)) for index in range(len(trace))]
    if len(spans) <= _SPANS_IN_FULL:
        return lines + spans
    for first in range(0, len(spans), _SPANS_PER_DIGEST):
        part = spans[first : first + _SPANS_PER_DIGEST]
        lines.append(_line("spans", f"{first}-{first + len(part) - 1}", {"digest": _digest(part)}))
    return lines


def _describe_span(span: Span, text: str) -> str:
    fields = {
        "key": span.key,
        "kind": span.kind.value,
        "role": span.role.value,
        "agent": span.agent,
        "name": span.name,
        "parent": span.parent,
        "start": _time(span.start),
        "end": _time(span.end),
        "status": span.status.value,
        "tokens": None if span.tokens is None else list(span.tokens),
        "place": span.place,
    }
    line = _line("span", str(span.index), fields)
    return f"{line}\ttext={_one_line(text, _LONGEST_TEXT)}"


def _time(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError):
        return repr(seconds)


def _line(what: str, name: str, fields: Mapping[str, object]) -> str:
    """Return a line of fields with a tab between them, without those that hold nothing."""
    parts = [f"{what} {_one_line(name)}".rstrip()]
    for field, value in fields.items():
        if value is not None and value != [] and value != "":
            parts.append(f"{field}={_one_line(value)}")
    return "\t".join(parts)


def _one_line(value: object, longest: int = _LONGEST_VALUE) -> str:
    """Return a value on one line; of a long one its beginning and a digest."""
    written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=True)
    written = written.encode("unicode_escape").decode("ascii")
    if len(written) <= longest:
        return written
    return f"{written[: longest // 2]}… {_digest([written])} {len(written)}"


def _digest(texts: Iterable[str]) -> str:
    data = "\n".join(texts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:_HASH_DIGITS]


def first_difference(expected: Sequence[str], actual: Sequence[str]) -> str | None:
    """Say in words where two descriptions differ first.

    Args:
        expected: The recorded lines.
        actual: The lines as they are today.

    Returns:
        The file, the trace, the line and the field with both values; None where nothing differs.
    """
    place: dict[str, str] = {}
    for number in range(max(len(expected), len(actual))):
        before = expected[number] if number < len(expected) else ""
        after = actual[number] if number < len(actual) else ""
        if before != after:
            return ", ".join([*place.values(), _difference(before, after)])
        head = before.split("\t", 1)[0]
        kind = head.split(" ", 1)[0]
        if kind == "file":
            place = {"file": head.removeprefix("file ")}
        elif kind == "trace":
            place["trace"] = head
    return None


def _difference(before: str, after: str) -> str:
    old_head, *old_fields = before.split("\t")
    new_head, *new_fields = after.split("\t")
    if old_head != new_head:
        return f"{old_head or 'nothing'} → {new_head or 'nothing'}"
    old = dict(field.split("=", 1) for field in old_fields)
    new = dict(field.split("=", 1) for field in new_fields)
    name = next(name for name in [*old, *new] if old.get(name) != new.get(name))
    return f"{old_head}: {name} {old.get(name, 'nothing')} → {new.get(name, 'nothing')}"


def recorded(name: str) -> list[str]:
    """Return the recorded lines of a format."""
    return (EXPECTED / f"{name}.txt").read_text("utf-8").split("\n")[:-1]


def outside_files() -> Iterator[tuple[str, Path]]:
    """Yield each file outside the repository with the name that it is recorded by."""
    for name, folder in OUTSIDE.items():
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                yield f"{name}/{path.relative_to(folder).as_posix()}", path


def digest_rows(name: str, path: Path) -> list[list[str]]:
    """Return one row for each trace of a file outside the repository.

    Args:
        name: The name of the file in the record.
        path: The file.

    Returns:
        Rows of ``_DIGEST_COLUMNS``; one without a trace where the file holds none.
    """
    report = _read(path)
    problems = str(len(report.problems))
    if not report.traces:
        digest = _digest([describe_file(name, path)[0]])
        return [[name, report.format or "", "", "0", problems, digest]]
    rows = []
    for trace in report.traces:
        digest = _digest(_describe_trace(trace, path.parent))
        count = str(len(trace))
        problems = str(len(trace.problems) + len(_own(report)))
        rows.append([name, report.format or "", trace.identity.trace_id, count, problems, digest])
    return rows


def recorded_digests() -> dict[str, list[list[str]]]:
    """Return the recorded rows of the files outside the repository, by file."""
    rows: dict[str, list[list[str]]] = {}
    with DIGESTS.open(encoding="utf-8", newline="") as file:
        for row in list(csv.reader(file))[1:]:
            rows.setdefault(row[0], []).append(row)
    return rows


def write_digests() -> None:
    """Record the files outside the repository anew."""
    with DIGESTS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_DIGEST_COLUMNS)
        for name, path in outside_files():
            writer.writerows(digest_rows(name, path))
