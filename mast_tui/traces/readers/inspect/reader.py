"""Inspect AI logs: zip archives (``.eval``) with one member a sample, and JSON documents.

Archives that are still being written have no ``header.json`` yet; of those that are cut off the
intact samples are read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from io import BufferedReader, BytesIO
from typing import IO, Final

from mast_tui.traces.io.archive import Archive, UnreadableMember, is_archive
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import InvalidJSON, load_json
from mast_tui.traces.io.regular_files import open_regular
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Problem, Trace
from mast_tui.traces.readers.inspect.samples import MOST_SPANS, Log, read_sample
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
    """Reads Inspect logs; ids and span keys of one are the same however it is kept.

    Span keys are event and message ids, else pointers in the sample.
    """

    name: Final = "inspect"
    key_scheme: Final = 1

    def recognises(self, source: Source) -> bool:
        """Whether the file begins as a log does, or is an archive that holds a log's beginning."""
        return _is_log_archive(source) if source.is_binary else _is_log_document(source)

    def read(self, source: Source) -> FileReport:
        """One trace per sample, in the order of the log; of a broken one what is intact."""
        if not source.is_binary:
            return self._read_document(source)
        with _opened(source) as file:
            members = _Members(Archive(file))
            log = Log(self, source.path, members.header())
            samples = (
                (record, sample, f"{name} ")
                for record, (name, shell) in enumerate(members.samples())
                if (sample := members.sample(name, shell)) is not None
            )
            return self._report(log, samples, members.problems)

    def _read_document(self, source: Source) -> FileReport:
        document = source.json
        if not isinstance(document, Mapping):
            return FileReport(source.path, failed="an Inspect log whose JSON cannot be read")
        problems: list[Problem] = []
        log = Log(self, source.path, document)
        samples = document.get("samples")
        if not isinstance(samples, list) or not samples:
            problems.append(Problem("/samples", "the log holds no samples"))
            samples = []
        placed = ((number, sample, f"/samples/{number}") for number, sample in enumerate(samples))
        return self._report(log, placed, problems)

    def _report(
        self, log: Log, samples: Iterable[tuple[int, object, str]], problems: list[Problem]
    ) -> FileReport:
        """The traces of samples, each with its number and what goes before places within it."""
        traces: list[Trace] = []
        refused: list[Problem] = []
        left = MOST_SPANS
        for record, sample, prefix in samples:
            read = read_sample(sample, log, record, prefix, left)
            if isinstance(read, Trace):
                traces.append(read)
                left -= len(read)
            else:
                refused.append(read)
        return FileReport(log.path, self.name, tuple(traces), (*problems, *refused))


READER: Final = InspectReader()


def samples_in(source: Source) -> Iterator[tuple[int, Fields]]:
    """The samples of a log as they are kept, one by one, with the numbers of their traces."""
    if not source.is_binary:
        for record, sample in enumerate(items_of(fields_of(source.json).get("samples"))):
            if isinstance(sample, Mapping):
                yield record, sample
        return
    with _opened(source) as file:
        members = _Members(Archive(file))
        for record, (name, shell) in enumerate(members.samples()):
            sample = members.sample(name, shell)
            if isinstance(sample, Mapping):
                yield record, sample


def _is_log_archive(source: Source) -> bool:
    if not is_archive(source.head):
        return False
    with _opened(source) as file:
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
    """Whether the head has a log's state, and the spec of an evaluation."""
    head = as_utf8(source.head).decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    if not head.startswith("{") or '"eval"' not in head:
        return False
    log, spec = _keys_in(head)
    return "eval" in log and bool(log & _LOG_KEYS) and "task" in spec and bool(spec & _SPEC_KEYS)


def _keys_in(head: str) -> tuple[set[str], set[str]]:
    """The keys of the document and of the object under ``eval``, as far as the head goes."""
    log: set[str] = set()
    spec: set[str] = set()
    depth = 0
    text = ""
    under = ""
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
            under = text
            log.add(text)
        elif depth == 2 and under == "eval":
            spec.add(text)
    return log, spec


def _opened(source: Source) -> IO[bytes]:
    return BytesIO(source.data) if source.packing else BufferedReader(open_regular(source.path))


def _is_header(value: object) -> bool:
    header = fields_of(value)
    return "task" in fields_of(header.get("eval")) and ("plan" in header or "status" in header)


class _Members:
    """The parts of a log by what they are for; what cannot be read is in ``problems``."""

    def __init__(self, archive: Archive) -> None:
        self.problems = list(archive.problems)
        self._archive = archive
        self._names = archive.names
        self._left = _MOST_TEXT
        self._chunks: defaultdict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
        for name in self._names:
            if match := _CHUNK.fullmatch(name):
                self._chunks[match[1], match[2]].append((int(match[3]), name))

    def header(self) -> Fields:
        """The log's header; of a log that is not finished what was written at its beginning."""
        for name in _HEADERS:
            if name in self._names:
                value = self._value(name)
                if isinstance(value, Mapping) and isinstance(value.get("eval"), Mapping):
                    return value
        message = "there is no header that can be read: model, task and solver are not known"
        self.problems.append(Problem("header.json", message))
        return {}

    def samples(self) -> list[tuple[str, str | None]]:
        """The members that hold the samples, each with its folder where it is kept in chunks."""
        found: list[tuple[str, str | None]] = []
        for name in self._names:
            if _SAMPLE.fullmatch(name):
                found.append((name, None))
            elif shell := _SHELL.fullmatch(name):
                found.append((name, shell[1]))
        if not found:
            self.problems.append(Problem("samples/", "the log holds no samples"))
        return found

    def sample(self, name: str, folder: str | None) -> object | None:
        """The sample in this member, put together where it lies in chunks; None if unreadable."""
        value = self._value(name)
        if folder is None or not isinstance(value, Mapping):
            return value
        return {
            **value,
            "events": self._sequence(folder, "events"),
            "events_data": {"messages": self._sequence(folder, "messages")},
            "attachments": self._sequence(folder, "attachments"),
        }

    def _sequence(self, folder: str, kind: str) -> list[object]:
        """The items of all chunks of a kind; where one is missing, so that no number shifts, none.

        A chunk is named by the number of its first item.
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
        """Why parsing this would take more memory than the data's length suggests; else None."""
        values = data.count(b",") + data.count(b"[") + data.count(b"{")
        if values > _MOST_VALUES:
            return f"it holds more than {_MOST_VALUES} values"
        self._left -= len(data) * _bytes_a_character(data)
        if self._left < 0:
            return f"the log holds more than {_MOST_TEXT >> 20} MB of text"
        return None


def _bytes_a_character(data: bytes) -> int:
    """How much memory a character of this JSON takes, at most."""
    if data.isascii() and b"\\u" not in data:
        return 1
    return 4 if b"\xf0" in data or b"\\ud" in data or b"\\uD" in data else 2
