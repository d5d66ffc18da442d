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

_ERROR_LEVELS: Final = frozenset({"ERROR", "CRITICAL", "FATAL"})


class Transcript:
    """A framework's output as text, and as JSON if the text is JSON.

    Args:
        text: The output; only its head is needed to recognise the framework.
        document: The output as parsed JSON; None if it has not been parsed.
    """

    def __init__(self, text: str, document: object | None = None) -> None:
        self.text = text
        self._document = document

    @cached_property
    def json(self) -> object | None:
        """The transcript as a JSON document; None if it is not JSON."""
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
        """Yield the blocks of a log; first add the text before the first block as a log step.

        Args:
            text: The log.
            boundary: Matches at the start of the first line of each block.
        """
        matches = list(boundary.finditer(text))
        preamble_end = matches[0].start() if matches else len(text)
        preamble = text[:preamble_end].strip()
        if preamble:
            preamble_start = text.index(preamble[0])
            line_number = 1 + text.count("\n", 0, preamble_start)
            self.steps.log(f"line {line_number}", preamble)
        line_number = 1
        previous_start = 0
        block_ends = [*(match.start() for match in matches[1:]), len(text)]
        for match, block_end in zip(matches, block_ends, strict=False):
            line_number += text.count("\n", previous_start, match.start())
            previous_start = match.start()
            body = text[match.end() : block_end].strip("\r\n").rstrip()
            yield LogBlock(f"line {line_number}", match, body)

    def add_log(self, block: LogBlock, text: str, level: str = "", **more: Unpack[More]) -> None:
        """Add a block as a log step, because it is no step of an agent.

        Args:
            block: The block of the record.
            text: The text.
            level: The log level; a level such as ``ERROR`` makes the step an error.
            more: Further fields of the step.
        """
        if level.upper() in _ERROR_LEVELS:
            more["status"] = SpanStatus.ERROR
        self.steps.log(block.key, text, **more)

    def add_message(
        self, block: LogBlock, agent: str, text: str, role: Role = Role.AGENT, **more: Unpack[More]
    ) -> None:
        """Add a message of an agent, of the user or of the framework.

        Args:
            block: The block of the message.
            agent: The name of the speaker.
            text: The text.
            role: The role of the speaker.
            more: Further fields of the step.
        """
        self.steps.add(block.key, SpanKind.MESSAGE, role, agent, text, **more)


@dataclass(frozen=True, slots=True)
class LogBlock:
    """A part of a log that begins at a boundary line.

    Attributes:
        key: The key of a span that begins here, with the number of the line.
        match: The match of the boundary.
        body: The text after the boundary, without blank lines around it.
    """

    key: str
    match: re.Match[str]
    body: str


@dataclass(frozen=True, slots=True)
class Framework:
    """Reads the log of one framework: as a file of its own, or as a text inside a record.

    Keys of spans are ``line N`` within the log, or JSON pointers.

    Attributes:
        recognises_transcript: Returns whether a transcript, or its head, is of the framework.
        add_steps: Adds the steps and the facts of a whole transcript to a reading.
    """

    name: str
    system: str
    recognises_transcript: Callable[[Transcript], bool]
    add_steps: Callable[[Transcript, Reading], None]
    key_scheme: int = 1

    def read_transcript(self, transcript: Transcript) -> Reading:
        """Return the steps and facts of the run in a whole transcript."""
        reading = Reading()
        self.add_steps(transcript, reading)
        return reading

    def recognises(self, source: Source) -> bool:
        """Return whether the JSON of the file, or its head, is a log of this framework."""
        if source.head.lstrip()[:1] in (b"{", b"["):
            if source.json_lines:
                return False
            document = source.json
            if document is not None:
                return self.recognises_transcript(Transcript("", document))
        return self.recognises_transcript(
            Transcript(as_utf8(source.head).decode("utf-8", "replace"))
        )

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


def study_answer_key(record: Fields) -> AnswerKey:
    """Return the answer key in a record of the MAST study: its benchmark fields and its notes."""
    draft = AnswerKeyDraft()
    draft.add_fields(record, {"note": "failures"})
    other_data = record.get("other_data")
    if isinstance(other_data, Mapping):
        section_by_field: dict[str, Section] = {"patch": "patch", "correct": "scores"}
        for name, value in other_data.items():
            draft.add_value(name, value, section_by_field.get(name))
    else:
        draft.add("other", "other_data", other_data)
    return draft.key()
