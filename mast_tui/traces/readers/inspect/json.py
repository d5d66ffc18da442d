"""Inspect AI logs kept as one JSON document (``.json``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from mast_tui.traces.index.document import DocumentTrace
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Problem
from mast_tui.traces.readers.inspect.samples import KEY_SCHEME, MOST_SPANS, NAME, Log, read_sample
from mast_tui.traces.readers.json_documents import read_document

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+("?)|[{}\[\]:]', re.DOTALL)
_LOG_KEYS: Final = frozenset({"version", "status", "plan", "samples", "stats"})
_SPEC_KEYS: Final = frozenset({"model", "dataset", "run_id", "created", "eval_id", "task_id"})


@dataclass(frozen=True, slots=True)
class InspectJSONReader:
    """Reads Inspect logs in JSON; ids and span keys are those of the same log as an archive."""

    name: ClassVar[str] = NAME
    key_scheme: ClassVar[int] = KEY_SCHEME

    def recognises(self, source: Source) -> bool:
        """Whether the file begins as a log does: its state, and the spec of an evaluation."""
        if source.is_binary:
            return False
        head = as_utf8(source.head).decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
        if not head.startswith("{") or '"eval"' not in head:
            return False
        log, spec = _keys_in(head)
        return (
            "eval" in log and bool(log & _LOG_KEYS) and "task" in spec and bool(spec & _SPEC_KEYS)
        )

    def read(self, source: Source) -> FileReport:
        """One trace per sample; of a broken file what is intact, as with every JSON document."""
        document = read_document(source)
        if not isinstance(document, Mapping):
            return FileReport(source.path, failed="an Inspect log whose JSON cannot be read")
        problems: list[Problem] = []
        log = Log(source.path, {name: document[name] for name in document if name != "samples"})
        samples = document.get("samples")
        if not isinstance(samples, list) or not samples:
            problems.append(Problem("/samples", "the log holds no samples"))
            samples = []
        traces: list[DocumentTrace] = []
        left = MOST_SPANS
        for record, sample in enumerate(samples):
            read = read_sample(sample, log, record, f"/samples/{record}", left)
            if isinstance(read, DocumentTrace):
                traces.append(read)
                left -= len(read)
            else:
                problems.append(read)
        return FileReport(
            source.path, format=self.name, traces=tuple(traces), problems=tuple(problems)
        )


READER: Final = InspectJSONReader()


def samples_in(source: Source) -> Iterator[tuple[int, Mapping[str, object]]]:
    """The samples of a log as they are kept, one by one, with the numbers of their traces."""
    document = read_document(source)
    samples = document.get("samples") if isinstance(document, Mapping) else None
    for record, sample in enumerate(samples if isinstance(samples, list) else ()):
        if isinstance(sample, Mapping):
            yield record, sample


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
