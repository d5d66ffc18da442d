"""A record of the spans that are read from every known layout of a trace file.

``inputs/`` holds one file a format; each line in it is one trace file, or a folder of them.
``expected/`` holds the spans that were last recorded, one line a span. Of traces outside the
repository only a digest is recorded. ``python -m tests.traces.golden --write`` records them again;
``tests/traces/test_golden.py`` compares.
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
"""Folders of real traces that are not in the repository, by their name in the record."""

_MAX_DESCRIBED_SPANS: Final = 400
_SPANS_PER_DIGEST: Final = 50
_HASH_DIGITS: Final = 12
_MAX_VALUE_CHARS: Final = 160
_MAX_TEXT_CHARS: Final = 60
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
        """Return the input of a line that ``to_line`` wrote."""
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
    """Return the names of the formats that have inputs, after ``samples``."""
    return ["samples", *sorted(path.stem for path in INPUTS.glob("*.jsonl"))]


def golden_inputs(name: str) -> list[GoldenInput]:
    """Return the inputs of one format."""
    text = (INPUTS / f"{name}.jsonl").read_text("utf-8")
    return [GoldenInput.from_line(line) for line in text.split("\n") if line]


def golden_text(name: str, part_of_name: str) -> str:
    """Return the text of the first one-file input of a format with this part in its name."""
    for golden_input in golden_inputs(name):
        if part_of_name in golden_input.name and len(golden_input.files) == 1:
            (data,) = golden_input.files.values()
            return data.decode("utf-8")
    raise LookupError(f"{name} has no input `{part_of_name}`")


def describe_format(name: str, scratch: Path) -> list[str]:
    """Describe the traces that are read from each input of a format.

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
    """Describe the traces that are read from a file, or from each file in a folder.

    Args:
        name: The name in the description.
        path: The file or folder.

    Returns:
        Lines of text without the path of the folder.
    """
    if not path.is_dir():
        return _describe_report(name, path.parent, _read(path))
    lines = []
    for report in scan([path]):
        _read_traces(report)
        relative_path = report.path.relative_to(path).as_posix()
        lines += _describe_report(f"{name}/{relative_path}", path, report)
    return lines


def _describe_report(name: str, folder: Path, report: FileReport) -> list[str]:
    results = {"reader": report.format, "skipped": report.skipped, "failed": report.failed}
    fields = {
        field: value and value.replace(str(folder), "FOLDER") for field, value in results.items()
    }
    lines = [_line("file", name, fields)]
    lines += [_describe_problem(problem, folder) for problem in _problems_of_file(report)]
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


def _problems_of_file(report: FileReport) -> list[Problem]:
    """Return the problems of a file that belong to none of its traces."""
    trace_problems = {problem for trace in report.traces for problem in trace.problems}
    return [problem for problem in report.problems if problem not in trace_problems]


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
    if len(spans) <= _MAX_DESCRIBED_SPANS:
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
    return f"{line}\ttext={_one_line(text, _MAX_TEXT_CHARS)}"


def _time(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError):
        return repr(seconds)


def _line(kind: str, name: str, fields: Mapping[str, object]) -> str:
    """Return a line of fields with a tab between them, without empty fields."""
    parts = [f"{kind} {_one_line(name)}".rstrip()]
    for field, value in fields.items():
        if value is not None and value != [] and value != "":
            parts.append(f"{field}={_one_line(value)}")
    return "\t".join(parts)


def _one_line(value: object, max_chars: int = _MAX_VALUE_CHARS) -> str:
    """Return a value on one line, or the beginning and a digest of a long one."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=True)
    text = text.encode("unicode_escape").decode("ascii")
    if len(text) <= max_chars:
        return text
    return f"{text[: max_chars // 2]}… {_digest([text])} {len(text)}"


def _digest(texts: Iterable[str]) -> str:
    data = "\n".join(texts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:_HASH_DIGITS]


def first_difference(expected: Sequence[str], actual: Sequence[str]) -> str | None:
    """Describe the first difference of two descriptions.

    Args:
        expected: The recorded lines.
        actual: The current lines.

    Returns:
        The file, the trace, the line and the field with both values; None where nothing differs.
    """
    context: dict[str, str] = {}
    for number in range(max(len(expected), len(actual))):
        old_line = expected[number] if number < len(expected) else ""
        new_line = actual[number] if number < len(actual) else ""
        if old_line != new_line:
            return ", ".join([*context.values(), _difference(old_line, new_line)])
        head = old_line.split("\t", 1)[0]
        kind = head.split(" ", 1)[0]
        if kind == "file":
            context = {"file": head.removeprefix("file ")}
        elif kind == "trace":
            context["trace"] = head
    return None


def _difference(old_line: str, new_line: str) -> str:
    old_head, *old_fields = old_line.split("\t")
    new_head, *new_fields = new_line.split("\t")
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
    """Yield each file outside the repository with its name in the record."""
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
        problems = str(len(trace.problems) + len(_problems_of_file(report)))
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
    """Record the files outside the repository."""
    with DIGESTS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_DIGEST_COLUMNS)
        for name, path in outside_files():
            writer.writerows(digest_rows(name, path))
