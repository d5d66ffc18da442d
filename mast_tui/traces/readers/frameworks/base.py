"""The engine of the readers of frameworks' logs, on disk or inside another record."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Unpack

from mast_tui.traces.index.document import More, StepList
from mast_tui.traces.io.decoding import as_utf8, decode
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import (
    AnswerKey,
    FileReport,
    Outcome,
    Problem,
    Role,
    SpanKind,
    SpanStatus,
    TraceMeta,
)
from mast_tui.traces.readers.answer_keys import AnswerKeyDraft, Section
from mast_tui.traces.readers.document_traces import report_of, trace_of_steps
from mast_tui.traces.readers.json_fields import Fields, json_in
from mast_tui.traces.readers.run_facts import task_of

LOGURU_LINE: Final = re.compile(
    r"^(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?) \| (?P<level>[A-Z]+) *\| "
    r"[^\s|]+:[^\s|]+:\d+ - ",
    re.MULTILINE,
)
"""The beginning of a record that loguru prints."""

_LEVELS_OF_ERROR: Final = frozenset({"ERROR", "CRITICAL", "FATAL"})


class Transcript:
    """A framework's output as text, and as JSON where it is that."""

    def __init__(self, text: str, document: object | None = None) -> None:
        self.text = text
        self._document = document

    @cached_property
    def json(self) -> object | None:
        """The JSON document that the transcript is, or None where it is not one."""
        return json_in(self.text) if self._document is None else self._document


@dataclass(slots=True)
class Reading:
    """The steps and facts of one run, which a framework's reader collects."""

    steps: StepList = field(default_factory=StepList)
    task: str | None = None
    model: str | None = None
    outcome: Outcome = Outcome.UNKNOWN
    answer_key: AnswerKey = field(default_factory=AnswerKey)
    problems: list[Problem] = field(default_factory=list)

    def meta(self, system: str) -> TraceMeta:
        """Return the facts as a trace's metadata."""
        return TraceMeta(
            task=task_of(self.task, steps=self.steps.steps),
            system=system,
            model=self.model,
            outcome=self.outcome,
            answer_key=self.answer_key,
        )

    def blocks(self, text: str, boundary: re.Pattern[str]) -> Iterator[LogBlock]:
        """Yield the blocks of a log; text before the first one becomes a log span, unless blank.

        Args:
            text: The log.
            boundary: Matches at the start of the first line of each block.
        """
        matches = list(boundary.finditer(text))
        first = matches[0].start() if matches else len(text)
        if preamble := text[:first].strip():
            lines_before = text.count("\n", 0, text.index(preamble[0]))
            self.steps.log(f"line {1 + lines_before}", preamble)
        line = 1
        counted = 0
        ends = [*(match.start() for match in matches[1:]), len(text)]
        for match, end in zip(matches, ends, strict=False):
            line += text.count("\n", counted, match.start())
            counted = match.start()
            yield LogBlock(f"line {line}", match, text[match.end() : end].strip("\r\n").rstrip())

    def log(self, block: LogBlock, text: str, level: str = "", **more: Unpack[More]) -> None:
        """Add a record that is no step of an agent.

        Args:
            block: The block of the record.
            text: The text.
            level: The log level; one of error makes the span an error.
            more: Further fields of the step.
        """
        if level.upper() in _LEVELS_OF_ERROR:
            more["status"] = SpanStatus.ERROR
        self.steps.log(block.key, text, **more)

    def say(
        self, block: LogBlock, agent: str, text: str, role: Role = Role.AGENT, **more: Unpack[More]
    ) -> None:
        """Add a message of an agent, of the user or of the framework on its behalf.

        Args:
            block: The block of the message.
            agent: The agent.
            text: The text.
            role: The side of the agent.
            more: Further fields of the step.
        """
        self.steps.add(block.key, SpanKind.MESSAGE, role, agent, text, **more)


@dataclass(frozen=True, slots=True)
class LogBlock:
    """A stretch of a log that begins at a boundary line.

    ``key`` is that of a span which begins there, ``match`` is the boundary's, ``body`` what follows
    it, without blank lines around it.
    """

    key: str
    match: re.Match[str]
    body: str


@dataclass(frozen=True, slots=True)
class Framework:
    """Reads the log of one framework: as a file of its own, or as a text inside a record.

    ``sniff`` recognises the framework by a transcript, whole or only its head; ``split`` adds the
    spans of a whole one. Keys of spans are ``line N`` within the log, or JSON pointers.
    """

    name: str
    system: str
    sniff: Callable[[Transcript], bool]
    split: Callable[[Transcript, Reading], None]
    key_scheme: int = 1

    def read_transcript(self, transcript: Transcript) -> Reading:
        """Return the spans and facts of one run."""
        reading = Reading()
        self.split(transcript, reading)
        return reading

    def recognises(self, source: Source) -> bool:
        """Tell by its head or its JSON whether the file is this framework's log."""
        if source.head.lstrip()[:1] in (b"{", b"["):
            if source.json_lines:
                return False
            document = source.json
            if document is not None:
                return self.sniff(Transcript("", document))
        return self.sniff(Transcript(as_utf8(source.head).decode("utf-8", "replace")))

    def read(self, source: Source) -> FileReport:
        """Return the file as one trace."""
        text, problem = decode(source.data)
        reading = self.read_transcript(Transcript(text, source.json))
        if problem is not None and problem not in source.damage:
            reading.problems.append(problem)
        trace = trace_of_steps(
            self,
            source.path,
            source.data,
            reading.steps,
            meta=reading.meta(self.system),
            problems=reading.problems,
        )
        return report_of(self, source, [trace])


def recognised_by_line(line: re.Pattern[str]) -> Callable[[Transcript], bool]:
    """Return the function that recognises a log by a line in it."""
    return lambda transcript: line.search(transcript.text) is not None


def study_key(record: Fields) -> AnswerKey:
    """Return the benchmark's fields and the notes that a record of the MAST study has."""
    draft = AnswerKeyDraft()
    draft.add_fields(record, {"note": "failures"})
    other = record.get("other_data")
    if isinstance(other, Mapping):
        sections: dict[str, Section] = {"patch": "patch", "correct": "scores"}
        for name, value in other.items():
            draft.add_value(name, value, sections.get(name))
    else:
        draft.add("other", "other_data", other)
    return draft.key()
