"""The reader of Inspect AI logs: zip archives (``.eval``) and JSON documents.

An archive that is still being written has no ``header.json`` yet. A truncated archive is read as
far as its samples are intact.
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
from mast_tui.traces.readers.inspect.samples import MAX_SPANS, InspectLog, read_sample
from mast_tui.traces.readers.json_fields import Fields, fields_of, items_of

_HEADERS: Final = ("header.json", "_journal/start.json", "start.json")
_SAMPLE_NAME: Final = re.compile(r"samples/.+_epoch_\d+\.json", re.DOTALL)
_CHUNKED_SAMPLE_NAME: Final = re.compile(r"(samples/.+_epoch_\d+)/sample\.json", re.DOTALL)
_CHUNK_NAME: Final = re.compile(
    r"(samples/.+_epoch_\d+)/(messages|events|calls|attachments)/(\d{1,12})\.json", re.DOTALL
)
_HEADER_BYTES: Final = 16 << 20
_MAX_VALUES: Final = 5_000_000
_MAX_TEXT_BYTES: Final = 512 << 20

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
        sample_problems: list[Problem] = []
        spans_left = MAX_SPANS
        with _open_log(source) as opened_log:
            log = InspectLog(self, source.path, opened_log.header)
            for record, sample, prefix in opened_log.samples():
                trace = read_sample(sample, log, record, prefix, spans_left)
                if isinstance(trace, Trace):
                    traces.append(trace)
                    spans_left -= len(trace)
                else:
                    sample_problems.append(trace)
            return report_of(self, source, traces, (*opened_log.problems, *sample_problems))


READER: Final = InspectReader()


def samples_in(source: Source) -> Iterator[tuple[int, Fields]]:
    """Yield the samples of a log, each with the number of its trace."""
    with _open_log(source) as log:
        for record, sample, _prefix in log.samples():
            if isinstance(sample, Mapping):
                yield record, sample


def _is_log_archive(source: Source) -> bool:
    """Return whether a file is an archive with a log's header.

    A journal's damaged header suffices if the archive has samples.
    """
    if not is_archive(source.head):
        return False
    with _open_file(source) as file:
        archive = Archive(file, most_member_bytes=_HEADER_BYTES, most_bytes=2 * _HEADER_BYTES)
        names = archive.names
        has_samples = any(
            _SAMPLE_NAME.fullmatch(name) or _CHUNKED_SAMPLE_NAME.fullmatch(name) for name in names
        )
        for name in _HEADERS:
            if name not in names:
                continue
            try:
                if _is_header(load_json(archive.read(name))):
                    return True
            except (UnreadableMember, InvalidJSON):
                if has_samples and name.startswith("_journal/"):
                    return True
    return False


def _is_log_document(source: Source) -> bool:
    """Return whether the beginning of a file has keys of a log, and of its ``eval`` object."""
    head = as_utf8(source.head).decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    if not head.startswith("{") or '"eval"' not in head:
        return False
    log_keys, spec_keys = _log_and_spec_keys(head)
    if "eval" not in log_keys or "task" not in spec_keys:
        return False
    return not (_LOG_KEYS.isdisjoint(log_keys) or _SPEC_KEYS.isdisjoint(spec_keys))


def _log_and_spec_keys(head: str) -> tuple[set[str], set[str]]:
    """Return the keys of the log and those of its ``eval`` object, as far as ``head`` has them."""
    log_keys: set[str] = set()
    spec_keys: set[str] = set()
    depth = 0
    last_string = ""
    log_key = ""
    for match in _TOKEN.finditer(head):
        token = match[0]
        if token in "{[":
            depth += 1
        elif token in "}]":
            depth -= 1
            if depth <= 0:
                break
        elif token != ":":
            last_string = token[1:-1]
        elif depth == 1:  # The token is a colon, so the string before it is a key.
            log_key = last_string
            log_keys.add(log_key)
        elif depth == 2 and log_key == "eval":
            spec_keys.add(last_string)
    return log_keys, spec_keys


@contextmanager
def _open_log(source: Source) -> Iterator[_DocumentLog | _ArchiveLog]:
    """Open a log; an archive's file is closed at the end."""
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
        """Yield the number of each sample, the sample, and the prefix of locations in it."""
        samples = items_of(self.header.get("samples"))
        if not samples:
            self.problems.append(Problem("/samples", "the log holds no samples"))
        for sample_number, sample in enumerate(samples):
            yield sample_number, sample, f"/samples/{sample_number}"


class _ArchiveLog:
    """A log that is an archive; ``problems`` names the members that cannot be read."""

    def __init__(self, archive: Archive) -> None:
        self.problems = list(archive.problems)
        self._archive = archive
        self._names = archive.names
        self._text_bytes_left = _MAX_TEXT_BYTES
        self._chunks: defaultdict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
        """The chunks by their folder and kind: the index of the first item and the member."""
        for name in self._names:
            if match := _CHUNK_NAME.fullmatch(name):
                folder, kind, first_item = match.groups()
                self._chunks[folder, kind].append((int(first_item), name))

    @cached_property
    def header(self) -> Fields:
        """The header of the finished log, else of the log's start; empty if none is readable."""
        for name in _HEADERS:
            if name in self._names:
                value = self._read_json_member(name)
                if isinstance(value, Mapping) and isinstance(value.get("eval"), Mapping):
                    return value
        message = "there is no header that can be read: model, task and solver are not known"
        self.problems.append(Problem("header.json", message))
        return {}

    def samples(self) -> Iterator[tuple[int, object, str]]:
        """Yield the number of each readable sample, the sample, and the prefix of locations in it.

        Samples that cannot be read are counted too, so that numbers do not depend on them.
        """
        sample_number = 0
        for name in self._names:
            chunked_match = _CHUNKED_SAMPLE_NAME.fullmatch(name)
            if chunked_match is None and not _SAMPLE_NAME.fullmatch(name):
                continue
            sample = self._read_json_member(name)
            if chunked_match is not None and isinstance(sample, Mapping):
                sample = self._with_chunks(sample, chunked_match[1])
            if sample is not None:
                yield sample_number, sample, f"{name} "
            sample_number += 1
        if not sample_number:
            self.problems.append(Problem("samples/", "the log holds no samples"))

    def _with_chunks(self, sample: Fields, folder: str) -> Fields:
        """Return a sample with the items of the chunks in its folder."""
        return {
            **sample,
            "events": self._items_of_chunks(folder, "events"),
            "events_data": {"messages": self._items_of_chunks(folder, "messages")},
            "attachments": self._items_of_chunks(folder, "attachments"),
        }

    def _items_of_chunks(self, folder: str, kind: str) -> list[object]:
        """Return the items of the chunks of a kind, up to the first missing chunk.

        A chunk's name is the index of its first item; after a gap indices would shift.
        """
        items: list[object] = []
        for first_index, name in sorted(self._chunks[folder, kind]):
            value = self._read_json_member(name)
            if first_index != len(items):
                message = f"does not follow on what comes before it; left out ({len(items)})"
                self.problems.append(Problem(name, message))
                break
            if not isinstance(value, list):
                break
            items += value
        return items

    def _read_json_member(self, name: str) -> object | None:
        """Return the JSON value of a member; for an unreadable one report it and return None."""
        try:
            data = self._archive.read(name)
            reason = self._exceeded_limit(data)
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

    def _exceeded_limit(self, data: bytes) -> str | None:
        """Return a message on the limit that parsing this JSON would exceed, or None.

        The JSON counts towards the limit of the log's text.
        """
        value_count = data.count(b",") + data.count(b"[") + data.count(b"{")
        if value_count > _MAX_VALUES:
            return f"it holds more than {_MAX_VALUES} values"
        self._text_bytes_left -= len(data) * _bytes_per_character(data)
        if self._text_bytes_left < 0:
            return f"the log holds more than {_MAX_TEXT_BYTES >> 20} MB of text"
        return None


def _bytes_per_character(data: bytes) -> int:
    """Return the largest number of bytes that Python uses for a character of this JSON."""
    if data.isascii() and b"\\u" not in data:
        return 1
    return 4 if b"\xf0" in data or b"\\ud" in data or b"\\uD" in data else 2
