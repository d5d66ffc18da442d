"""The reader of Inspect AI logs: zip archives (``.eval``) and JSON documents.

An archive that is still being written has no ``header.json`` yet. Of a truncated archive the
intact samples are read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from io import BufferedReader, BytesIO
from typing import IO, Final

from mast_tui.traces.io.archive import Archive, UnreadableMember, is_archive
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import InvalidJSON, load_json
from mast_tui.traces.io.regular_files import open_regular
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Problem, Trace
from mast_tui.traces.readers.document_traces import report_of
from mast_tui.traces.readers.inspect.samples import MOST_SPANS, InspectLog, read_sample
from mast_tui.traces.readers.json_fields import Fields, fields_of, items_of

_HEADERS: Final = ("header.json", "_journal/start.json", "start.json")
_SAMPLE: Final = re.compile(r"samples/.+_epoch_\d+\.json", re.DOTALL)
_SHELL: Final = re.compile(r"(samples/.+_epoch_\d+)/sample\.json", re.DOTALL)
_CHUNK: Final = re.compile(
    r"(samples/.+_epoch_\d+)/(messages|events|calls|attachments)/(\d{1,12})\.json", re.DOTALL
)
_HEADER_BYTES: Final = 16 << 20
_MOST_VALUES: Final = 5_000_000
_MOST_TEXT: Final = 512 << 20

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+("?)|[{}\[\]:]', re.DOTALL)
_LOG_KEYS: Final = frozenset({"version", "status", "plan", "samples", "stats"})
_SPEC_KEYS: Final = frozenset({"model", "dataset", "run_id", "created", "eval_id", "task_id"})


class InspectReader:
    """The reader of Inspect logs.

    Span keys are event and message ids, else pointers in the sample, so that an archive and a
    document of one log have the same keys.
    """

    name: Final = "inspect"
    key_scheme: Final = 1

    def recognises(self, source: Source) -> bool:
        """Return True if the file is an archive with a log's header, or begins like a log."""
        return _is_log_archive(source) if source.is_binary else _is_log_document(source)

    def read(self, source: Source) -> FileReport:
        """Read one trace per sample, in the order of the log."""
        if not source.is_binary and not isinstance(source.json, Mapping):
            return FileReport(source.path, failed="an Inspect log whose JSON cannot be read")
        traces: list[Trace] = []
        refused: list[Problem] = []
        left = MOST_SPANS
        with _open_log(source) as opened:
            log = InspectLog(self, source.path, opened.header)
            for record, sample, prefix in opened.samples():
                read = read_sample(sample, log, record, prefix, left)
                if isinstance(read, Trace):
                    traces.append(read)
                    left -= len(read)
                else:
                    refused.append(read)
            return report_of(self, source, traces, (*opened.problems, *refused))


READER: Final = InspectReader()


def samples_in(source: Source) -> Iterator[tuple[int, Fields]]:
    """Yield the samples of a log, each with the number of its trace."""
    with _open_log(source) as log:
        for record, sample, _prefix in log.samples():
            if isinstance(sample, Mapping):
                yield record, sample


def _is_log_archive(source: Source) -> bool:
    if not is_archive(source.head):
        return False
    with _open_file(source) as file:
        archive = Archive(file, most_member_bytes=_HEADER_BYTES, most_bytes=2 * _HEADER_BYTES)
        names = archive.names
        samples = any(_SAMPLE.fullmatch(name) or _SHELL.fullmatch(name) for name in names)
        for name in _HEADERS:
            if name not in names:
                continue
            try:
                if _is_header(load_json(archive.read(name))):
                    return True
            except (UnreadableMember, InvalidJSON):
                if samples and name.startswith("_journal/"):
                    return True
    return False


def _is_log_document(source: Source) -> bool:
    """Return True if the head has keys of a log and of an evaluation's spec."""
    head = as_utf8(source.head).decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    if not head.startswith("{") or '"eval"' not in head:
        return False
    log, spec = _keys_in(head)
    return "eval" in log and bool(log & _LOG_KEYS) and "task" in spec and bool(spec & _SPEC_KEYS)


def _keys_in(head: str) -> tuple[set[str], set[str]]:
    """Return the keys of the document and of the object under ``eval`` in the head."""
    log: set[str] = set()
    spec: set[str] = set()
    depth = 0
    text = ""
    section = ""
    for match in _TOKEN.finditer(head):
        token = match[0]
        if token in "{[":
            depth += 1
        elif token in "}]":
            depth -= 1
            if depth <= 0:
                break
        elif token != ":":
            text = token[1:-1]
        elif depth == 1:
            section = text
            log.add(text)
        elif depth == 2 and section == "eval":
            spec.add(text)
    return log, spec


@contextmanager
def _open_log(source: Source) -> Iterator[_DocumentLog | _ArchiveLog]:
    if not source.is_binary:
        yield _DocumentLog(fields_of(source.json))
        return
    with _open_file(source) as file:
        yield _ArchiveLog(Archive(file))


def _open_file(source: Source) -> IO[bytes]:
    return BytesIO(source.data) if source.packing else BufferedReader(open_regular(source.path))


def _is_header(value: object) -> bool:
    header = fields_of(value)
    return "task" in fields_of(header.get("eval")) and ("plan" in header or "status" in header)


class _DocumentLog:
    """A log that is one JSON document, which is its own header."""

    def __init__(self, document: Fields) -> None:
        self.problems: list[Problem] = []
        self.header = document

    def samples(self) -> Iterator[tuple[int, object, str]]:
        """Yield each sample with its number and the prefix of its places."""
        samples = items_of(self.header.get("samples"))
        if not samples:
            self.problems.append(Problem("/samples", "the log holds no samples"))
        for number, sample in enumerate(samples):
            yield number, sample, f"/samples/{number}"


class _ArchiveLog:
    """A log that is an archive; ``problems`` names the members that cannot be read."""

    def __init__(self, archive: Archive) -> None:
        self.problems = list(archive.problems)
        self._archive = archive
        self._names = archive.names
        self._left = _MOST_TEXT
        self._chunks: defaultdict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
        for name in self._names:
            if match := _CHUNK.fullmatch(name):
                self._chunks[match[1], match[2]].append((int(match[3]), name))

    @cached_property
    def header(self) -> Fields:
        """The log's header; an unfinished log has one from its beginning."""
        for name in _HEADERS:
            if name in self._names:
                value = self._value(name)
                if isinstance(value, Mapping) and isinstance(value.get("eval"), Mapping):
                    return value
        message = "there is no header that can be read: model, task and solver are not known"
        self.problems.append(Problem("header.json", message))
        return {}

    def samples(self) -> Iterator[tuple[int, object, str]]:
        """Yield each readable sample with its number and the prefix of its places."""
        record = 0
        for name in self._names:
            shell = _SHELL.fullmatch(name)
            if shell is None and not _SAMPLE.fullmatch(name):
                continue
            sample = self._value(name)
            if shell is not None and isinstance(sample, Mapping):
                sample = self._assemble(sample, shell[1])
            if sample is not None:
                yield record, sample, f"{name} "
            record += 1
        if not record:
            self.problems.append(Problem("samples/", "the log holds no samples"))

    def _assemble(self, sample: Fields, folder: str) -> Fields:
        """Return a sample with the items of its chunks."""
        return {
            **sample,
            "events": self._sequence(folder, "events"),
            "events_data": {"messages": self._sequence(folder, "messages")},
            "attachments": self._sequence(folder, "attachments"),
        }

    def _sequence(self, folder: str, kind: str) -> list[object]:
        """Return the items of the chunks of a kind, up to the first missing chunk.

        A chunk's name is the number of its first item; after a gap numbers would shift.
        """
        items: list[object] = []
        for first, name in sorted(self._chunks[folder, kind]):
            value = self._value(name)
            if first != len(items):
                message = f"does not follow on what comes before it; left out ({len(items)})"
                self.problems.append(Problem(name, message))
                break
            if not isinstance(value, list):
                break
            items += value
        return items

    def _value(self, name: str) -> object | None:
        try:
            data = self._archive.read(name)
            reason = self._why_too_much(data)
            if reason is None:
                return load_json(data)
        except UnreadableMember as error:
            reason = str(error)
        except OSError as error:
            reason = error.strerror or str(error)
        except InvalidJSON as error:
            reason = f"not JSON, {error}"
        self.problems.append(Problem(name, f"left out: {reason}"))
        return None

    def _why_too_much(self, data: bytes) -> str | None:
        """Return the limit of memory that parsing this would exceed, or None."""
        values = data.count(b",") + data.count(b"[") + data.count(b"{")
        if values > _MOST_VALUES:
            return f"it holds more than {_MOST_VALUES} values"
        self._left -= len(data) * _bytes_a_character(data)
        if self._left < 0:
            return f"the log holds more than {_MOST_TEXT >> 20} MB of text"
        return None


def _bytes_a_character(data: bytes) -> int:
    """Return the bytes that Python uses for a character of this JSON, at most."""
    if data.isascii() and b"\\u" not in data:
        return 1
    return 4 if b"\xf0" in data or b"\\ud" in data or b"\\uD" in data else 2
