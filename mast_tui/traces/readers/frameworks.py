"""Readers for the raw logs of multi-agent frameworks, and their common engine.

``FRAMEWORKS`` read logs that are files. ``framework_of`` finds the reader of a log inside another
record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, islice
from typing import Final, Unpack

from mast_tui.traces.index.document import StepDetails, StepList
from mast_tui.traces.io.decoding import as_utf8, decode
from mast_tui.traces.io.json_values import as_text, content_text, dump_text, read_literal
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
from mast_tui.traces.preview import preview
from mast_tui.traces.readers.chat.messages import MessageMapper
from mast_tui.traces.readers.chat.pieces import speaks_by_name
from mast_tui.traces.readers.document_traces import RunOrigin, report_of, trace_of_steps
from mast_tui.traces.readers.json_fields import Fields, fields_of, items_of, json_in, without
from mast_tui.traces.readers.run_facts import AnswerKeyDraft, Section, outcome_of_flag, task_of
from mast_tui.traces.result_status import status_of_result
from mast_tui.traces.times import parse_time, unix_seconds

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
        text: The output, or its head to recognise the framework.
        document: The output as parsed JSON, if it has been parsed.
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
        """Yield the blocks of a log, after adding the text before the first block as a log step.

        Args:
            text: The log.
            boundary: Matches at the start of the first line of each block.
        """
        matches = list(boundary.finditer(text))
        preamble_end = matches[0].start() if matches else len(text)
        preamble = text[:preamble_end].strip()
        if preamble:
            preamble_start = text.index(preamble[0])  # after blank lines
            line_number = 1 + text.count("\n", 0, preamble_start)
            self.steps.log(f"line {line_number}", preamble)

        line_number = 1
        previous_start = 0
        # A block ends at the beginning of the next. Without a match there is one end too many.
        block_ends = [*(match.start() for match in matches[1:]), len(text)]
        for match, block_end in zip(matches, block_ends, strict=False):
            line_number += text.count("\n", previous_start, match.start())
            previous_start = match.start()
            # The first line keeps its indentation.
            body = text[match.end() : block_end].lstrip("\r\n").rstrip()
            yield LogBlock(f"line {line_number}", match, body)

    def add_log(
        self, block: LogBlock, text: str, level: str = "", **details: Unpack[StepDetails]
    ) -> None:
        """Add a log step for a block that is no step of an agent.

        Args:
            block: The block, which has the key of the step.
            text: The text.
            level: The log level; a level such as ``ERROR`` makes the step an error.
            details: Further fields of the step.
        """
        if level.upper() in _ERROR_LEVELS:
            details["status"] = SpanStatus.ERROR
        self.steps.log(block.key, text, **details)

    def add_message(
        self,
        block: LogBlock,
        agent: str,
        text: str,
        role: Role = Role.AGENT,
        **details: Unpack[StepDetails],
    ) -> None:
        """Add a message of an agent, of the user or of the framework.

        Args:
            block: The block of the message.
            agent: The name of the speaker.
            text: The text.
            role: The role of the speaker.
            details: Further fields of the step.
        """
        self.steps.add(block.key, SpanKind.MESSAGE, role, agent, text, **details)


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
    """Reads the log of one framework, which is a file or a text inside a record.

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
        """Return whether the file is a log of this framework, by its JSON or by its first bytes."""
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
        origin = RunOrigin(self, source.path, source.data)
        meta = reading.meta(self.system)
        trace = trace_of_steps(origin, reading.steps, meta, reading.problems)
        return report_of(self, source, [trace])


def recognised_by_line(line: re.Pattern[str]) -> Callable[[Transcript], bool]:
    """Return a function that recognises a log by a line in it."""
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


# AG2: a JSON record with the messages of a run in ``trajectory``; a text is a list of lines.


def _add_ag2_steps(transcript: Transcript, reading: Reading) -> None:
    """Add the messages of an AG2 run to a reading, and set its task, answer key and outcome."""
    record = _ag2_record_of_run(transcript)
    if record is None:  # a transcript of another framework
        return
    messages = items_of(record["trajectory"])
    mapper = MessageMapper(reading.steps, by_name=speaks_by_name(messages))
    for number, message in enumerate(messages):
        mapper.add(message, f"/trajectory/{number}")
    reading.problems.extend(mapper.problems)
    reading.task = content_text(record.get("problem_statement")) or None
    reading.answer_key = study_answer_key(record)
    reading.outcome = outcome_of_flag(fields_of(record.get("other_data")).get("correct"))


def _ag2_record_of_run(transcript: Transcript) -> Fields | None:
    """Return the record with a run's messages in ``trajectory``."""
    record = fields_of(transcript.json)
    messages = items_of(record.get("trajectory"))
    has_shape = messages and {"content", "role", "name"} <= fields_of(messages[0]).keys()
    return record if has_shape else None


_AG2: Final = Framework(
    "ag2",
    "AG2",
    lambda transcript: _ag2_record_of_run(transcript) is not None,
    _add_ag2_steps,
)


# AppWorld: the code of a supervisor sends messages to one agent per app, in nested loops. An
# agent's response is code. The output of the supervisor's code has its own heading. The output of
# an app agent's code is the next message to that agent.


_APPWORLD_TASK_LINE: Final = r"\*+ Task \d+/\d+ \((?P<task>[^)\n]*)\) +\*+"
_APPWORLD_TASK_HEADING: Final = re.compile(rf"^{_APPWORLD_TASK_LINE}[ \t]*$", re.MULTILINE)
_APPWORLD_BLOCK_HEADING: Final = re.compile(
    rf"^(?:{_APPWORLD_TASK_LINE}|(?P<evaluation>Evaluation)"
    r"|(?:    )*(?:Response from (?P<code_agent>.{1,60}?) Agent"
    r"|Message to (?P<message_agent>.{1,60}?) Agent"
    r"|Response from (?P<api>.{1,60}?) API"
    r"|Reply from (?P<reply_agent>.{1,60}?) Agent to .{1,60}"
    r"|(?P<output>Code Execution Output)"
    r"|(?P<loop>Entering|Exiting) .{1,60}? Agent message loop))[ \t]*$",
    re.MULTILINE,
)
_APPWORLD_SUPERVISOR: Final = "Supervisor"
_APPWORLD_LABEL_BY_CHECK_FIELD: Final = {"passes": "passed", "failures": "failed"}
_APPWORLD_CHECK_FIELDS: Final = frozenset({"success", "passes", "failures"})


class _AppWorldRun:
    """The steps of a log, with the last code of each agent.

    The first message to an agent in a message loop is its task; ``_agents_with_task`` have theirs.
    Each later message is the output of the agent's code.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._last_code_key_by_agent: dict[str, str] = {}
        self._agents_with_task: set[str] = set()
        self.evaluations: list[str] = []

    def add(self, block: LogBlock) -> None:
        """Add the step of a block of the log, or keep the text of an evaluation.

        The groups of ``_APPWORLD_BLOCK_HEADING`` show the kind of the block.
        """
        match = block.match
        if match["task"] is not None:
            self._last_code_key_by_agent.clear()
            self._agents_with_task.clear()
            self._reading.add_message(block, "user", block.body, role=Role.USER)
        elif match["evaluation"]:
            self.evaluations.append(block.body)
        elif agent := match["code_agent"]:
            self._agents_with_task.add(agent.lower())
            self._last_code_key_by_agent[agent.lower()] = self._reading.steps.call(
                block.key, agent, block.body, name="python"
            )
        elif agent := match["message_agent"]:
            if agent.lower() in self._agents_with_task:  # the message is the output of its code
                self._add_output(block, agent, "python")
            else:
                self._agents_with_task.add(agent.lower())
                self._reading.add_message(block, _APPWORLD_SUPERVISOR, block.body)
        elif agent := match["reply_agent"]:
            self._reading.add_message(block, agent, block.body)
        elif api := match["api"]:
            self._add_output(block, _APPWORLD_SUPERVISOR, api)
        elif match["output"]:
            self._add_output(block, _APPWORLD_SUPERVISOR, "python")
        else:
            # At the beginning or end of a message loop, only the supervisor has its task, that of
            # the user.
            self._agents_with_task = {_APPWORLD_SUPERVISOR.lower()}
            self._reading.add_log(block, match[0].strip())

    def _add_output(self, block: LogBlock, agent: str, name: str) -> None:
        """Add the output of an agent's last code, or an API's response to that code."""
        parent = self._last_code_key_by_agent.get(agent.lower())
        self._reading.steps.result(block.key, agent, block.body, name=name, parent=parent)


def _add_appworld_steps(transcript: Transcript, reading: Reading) -> None:
    """Add the steps of an AppWorld log to a reading, and set its outcome and answer key."""
    run = _AppWorldRun(reading)
    for block in reading.blocks(transcript.text, _APPWORLD_BLOCK_HEADING):
        run.add(block)
    outcomes = {
        outcome_of_flag(_appworld_report_fields(report).get("success"))
        for report in run.evaluations
    }
    # One failed task is a failure; other outcomes must agree.
    if Outcome.FAILED in outcomes:
        reading.outcome = Outcome.FAILED
    elif len(outcomes) == 1:
        (reading.outcome,) = outcomes
    reading.answer_key = _appworld_answer_key(run.evaluations)


def _appworld_answer_key(evaluations: list[str]) -> AnswerKey:
    draft = AnswerKeyDraft()
    for number, evaluation in enumerate(evaluations, 1):
        task_prefix = f"task {number} " if len(evaluations) > 1 else ""
        report = _appworld_report_fields(evaluation)
        draft.add("scores", f"{task_prefix}success", report.get("success"))
        for check_field, label in _APPWORLD_LABEL_BY_CHECK_FIELD.items():
            for check in items_of(report.get(check_field)):
                draft.add("tests", f"{task_prefix}{label}", _appworld_requirement_of_check(check))
        other_fields = without(report, _APPWORLD_CHECK_FIELDS)
        draft.add("other", f"{task_prefix}evaluation", other_fields if report else evaluation)
    return draft.key()


def _appworld_requirement_of_check(check: object) -> object:
    """Return the requirement in a check, or a failed check with a stack trace unchanged."""
    if isinstance(check, dict) and check.get("requirement") and not check.get("trace"):
        return check["requirement"]
    return check


def _appworld_report_fields(evaluation: str) -> Fields:
    """Return the fields of an evaluation; empty if the evaluation is no JSON object."""
    return fields_of(json_in(evaluation))


_APPWORLD: Final = Framework(
    "appworld", "AppWorld", recognised_by_line(_APPWORLD_TASK_HEADING), _add_appworld_steps
)


# ChatDev: a log of phases in which two roles talk, between much bookkeeping.


_CHATDEV_RECORD: Final = re.compile(
    r"^\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?P<level>[A-Z]+)\] ", re.MULTILINE
)
_CHATDEV_START_LINE: Final = re.compile(
    r"^\[\d{4}-\d\d-\d\d [\d:]{8} [A-Z]+\] \*\*\[Preprocessing\]\*\*|^\*\*ChatDev Starts\*\*",
    re.MULTILINE,
)
_CHATDEV_TURN: Final = re.compile(
    r"(?P<role>[^:\n]{1,80}): \*\*(?:[^*\n]{1,80}<->[^*\n]{1,80} on : [^*\n]{1,80}, turn \d+"
    r"|(?P<prompt>\[Start Chat\]))\*\*\s*(?s:\[.*?\]\n\n)?"
)
"""The heading of an answer, with the role's prompt in brackets, which each turn repeats."""

_CHATDEV_TESTS: Final = re.compile(r"\*\*\[Test Reports\]\*\*")
_CHATDEV_TASK: Final = re.compile(
    r"^\*\*task_prompt\*\*: (?P<task>.*(?:\n(?!\*\*).*)*)", re.MULTILINE
)
_CHATDEV_MODEL: Final = re.compile(
    r"^\| \*\*model_type\*\* \| ModelType\.(?P<model>\w+) \|", re.MULTILINE
)


def _add_chatdev_steps(transcript: Transcript, reading: Reading) -> None:
    """Add the steps of a ChatDev log to a reading, and set its task and model."""
    text = transcript.text
    if task := _CHATDEV_TASK.search(text):
        reading.task = task["task"].strip()
    if model := _CHATDEV_MODEL.search(text):
        reading.model = model["model"].lower().replace("_", "-")
    for block in reading.blocks(text, _CHATDEV_RECORD):
        # ChatDev writes the day before the month, but some logs have the usual order.
        time = block.match["time"]
        start = parse_time(time, "%Y-%d-%m %H:%M:%S")
        start = parse_time(time, "%Y-%m-%d %H:%M:%S") if start is None else start
        if turn := _CHATDEV_TURN.match(block.body):  # its preview begins after the heading
            role = Role.SYSTEM if turn["prompt"] else Role.AGENT
            reading.add_message(block, turn["role"], block.body, role, start=start, lead=turn.end())
        elif _CHATDEV_TESTS.match(block.body):
            reading.steps.result(block.key, "ChatDev", block.body, name="test run", start=start)
        else:
            reading.add_log(block, block.body, start=start, level=block.match["level"])


_CHATDEV: Final = Framework(
    "chatdev", "ChatDev", recognised_by_line(_CHATDEV_START_LINE), _add_chatdev_steps
)


# HyperAgent: its logger's lines, as text or as a JSON list of lines. Each new start of the program
# adds a handler to the logger, so every later record is printed once more. The copies of a record
# are one span, with the number of copies in the preview.


_HYPERAGENT_RECORD: Final = re.compile(r"^HyperAgent_\S+ - (?P<level>[A-Z]+) - ", re.MULTILINE)
_HYPERAGENT_RESPONSE: Final = re.compile(r"(?P<actor>[\w-]{1,60})'s Response: ?")
_HYPERAGENT_HANDOVER: Final = re.compile(r"(?P<actor>[\w-]{1,60})->[\w-]{1,60}: ?")
_HYPERAGENT_PROGRAM_START: Final = re.compile(r"Initialized HyperAgent instance\b")
_HYPERAGENT_CHECKED_LINES: Final = 400


def _is_hyperagent_log(transcript: Transcript) -> bool:
    """Return whether a log, or the beginning of a document's trajectory, is of HyperAgent."""
    lines = _hyperagent_trajectory_lines(transcript)
    if lines is None:
        return _HYPERAGENT_RECORD.search(transcript.text) is not None
    return any(_HYPERAGENT_RECORD.match(line) for line in islice(lines, _HYPERAGENT_CHECKED_LINES))


def _add_hyperagent_steps(transcript: Transcript, reading: Reading) -> None:
    """Add the steps of a HyperAgent log; copies of a record are one step, noted in its preview."""
    lines = _hyperagent_trajectory_lines(transcript)
    record = transcript.json
    if lines is not None and isinstance(record, Mapping):
        reading.task = content_text(record.get("problem_statement")) or None
        reading.answer_key = study_answer_key(record)
    text = transcript.text if lines is None else "\n".join(lines)

    for block, print_count in _hyperagent_distinct_records(
        reading.blocks(text, _HYPERAGENT_RECORD)
    ):
        response = _HYPERAGENT_RESPONSE.match(block.body)
        text = block.body[response.end() :] if response else block.body
        shown = _hyperagent_repeated_preview(text, print_count)
        if speaker := response or _HYPERAGENT_HANDOVER.match(block.body):
            reading.add_message(block, speaker["actor"], text, shown=shown)
        else:
            reading.add_log(block, text, block.match["level"], shown=shown)


def _hyperagent_distinct_records(blocks: Iterable[LogBlock]) -> Iterator[tuple[LogBlock, int]]:
    """Yield each record of HyperAgent's logger with the number of its copies in the log.

    Each handler of the logger prints a copy. The record of the program's start shows the number of
    handlers. A record with more copies was logged several times.
    """
    handler_count = 1
    for (_head, body), group in groupby(blocks, key=lambda block: (block.match[0], block.body)):
        equal_blocks = list(group)
        if _HYPERAGENT_PROGRAM_START.match(body):
            handler_count = len(equal_blocks)
        for start in range(0, len(equal_blocks), handler_count):
            copies = equal_blocks[start : start + handler_count]
            yield copies[0], len(copies)


def _hyperagent_repeated_preview(text: str, print_count: int) -> str | None:
    """Return the preview of a text that was printed several times."""
    if print_count <= 1:
        return None
    shown_line, _is_entire = preview(text)
    return f"printed {print_count}× · {shown_line}"


def _hyperagent_trajectory_lines(transcript: Transcript) -> list[str] | None:
    """Return the lines of a log that is a JSON list, bare or in a record; None for a text."""
    record = transcript.json
    lines = record.get("trajectory") if isinstance(record, Mapping) else record
    if not isinstance(lines, list) or not any(isinstance(line, str) for line in lines):
        return None
    return [content_text(line) for line in lines]


_HYPERAGENT: Final = Framework(
    "hyperagent", "HyperAgent", _is_hyperagent_log, _add_hyperagent_steps
)


# Magentic-One: AutoGen's console output, with a heading between dashes before each turn.


_MAGENTIC_ONE_START_LINE: Final = re.compile(
    r"^(?:SCENARIO\.PY STARTING !#!#|export AUTOGEN_TESTBED_SETTING="
    r"|-{10} (?:\w+ \()?MagenticOneOrchestrator\)? -{10}[ \t]*$)",
    re.MULTILINE,
)
_MAGENTIC_ONE_HEADING: Final = re.compile(
    r"^(?:-{10} (?:(?P<event>\w+) \((?P<source>[^()\n]{1,80})\)|(?P<agent>[^\s-][^\n]{0,80}?))"
    r" -{10}[ \t]*$|(?P<marker>(?:SCENARIO\.PY|RUN\.SH|MAIN TASK) [^\n]*!#!#)[ \t]*$)",
    re.MULTILINE,
)
_MAGENTIC_ONE_USER_NAMES: Final = frozenset({"user", "human", "userproxy", "user_proxy"})
_MAGENTIC_ONE_KINDS: Final[Mapping[str | None, SpanKind]] = {
    "ToolCallRequestEvent": SpanKind.TOOL_CALL,
    "ToolCallExecutionEvent": SpanKind.TOOL_RESULT,
    "ThoughtEvent": SpanKind.REASONING,
}


def _add_magentic_one_steps(transcript: Transcript, reading: Reading) -> None:
    """Add the steps of a Magentic-One log; a block that begins with a marker is a log entry."""
    for block in reading.blocks(transcript.text, _MAGENTIC_ONE_HEADING):
        if marker := block.match["marker"]:
            reading.add_log(block, f"{marker}\n{block.body}".rstrip())
        else:
            _add_magentic_one_turn(reading, block)


def _add_magentic_one_turn(reading: Reading, block: LogBlock) -> None:
    """Add the step of a turn; a result belongs to the call directly before it."""
    steps = reading.steps
    agent = block.match["source"] or block.match["agent"]
    kind = _MAGENTIC_ONE_KINDS.get(block.match["event"], SpanKind.MESSAGE)
    if kind is SpanKind.TOOL_RESULT:
        last_step = steps.steps[-1] if steps.steps else None
        parent = last_step.key if last_step and last_step.kind is SpanKind.TOOL_CALL else None
        steps.result(block.key, agent, block.body, parent=parent)
    else:
        is_user = agent.lower() in _MAGENTIC_ONE_USER_NAMES
        steps.add(block.key, kind, Role.USER if is_user else Role.AGENT, agent, block.body)


_MAGENTIC_ONE: Final = Framework(
    "magentic-one",
    "Magentic-One",
    recognised_by_line(_MAGENTIC_ONE_START_LINE),
    _add_magentic_one_steps,
)


# MetaGPT: either its logger's lines inside a JSON record, or the log of its message pool.


_METAGPT_ACTOR: Final = re.compile(r"(?P<person>[^\s():]{1,60})\((?P<role>[^()\n]{1,60})\): ")
_METAGPT_POOL_TITLE: Final = re.compile(r"^=== MetaGPT Agent Communication Log", re.MULTILINE)
_METAGPT_POOL_RECORD: Final = re.compile(
    r"^(?:\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]\n]*)\] "
    r"(?:FROM: (?P<sender>.+?) TO: .*|(?P<new>NEW MESSAGES:)[ \t]*)$"
    r"|(?P<end>=== Communication Log Ended))",
    re.MULTILINE,
)
_METAGPT_SPEAKER: Final = re.compile(r"\s*(?P<speaker>[A-Za-z_][\w ]{0,60}):[ \t]*(?:\n|(?=\S))")
_METAGPT_CONTENT: Final = re.compile(r"^CONTENT:[ \t]*\n", re.MULTILINE)
_METAGPT_RULE: Final = re.compile(r"\n?-{20,}\s*\Z")
_METAGPT_USER_NAMES: Final = frozenset({"human", "user"})


def _is_metagpt_log(transcript: Transcript) -> bool:
    return (
        _metagpt_record_of_run(transcript) is not None
        or _METAGPT_POOL_TITLE.search(transcript.text) is not None
    )


def _add_metagpt_steps(transcript: Transcript, reading: Reading) -> None:
    """Add the steps of MetaGPT's logger in a JSON record, else those of its message pool's log."""
    record = _metagpt_record_of_run(transcript)
    if record is None:
        _add_metagpt_pool_steps(transcript.text, reading)
    else:
        reading.task = as_text(record["prompt"])
        _add_metagpt_logger_steps(dump_text(record["content"]), reading)


def _metagpt_record_of_run(transcript: Transcript) -> Fields | None:
    """Return the record of a run with the logger's output in ``content``."""
    record = fields_of(transcript.json)
    has_shape = {"run_id", "prompt"} <= record.keys() and isinstance(record.get("content"), str)
    return record if has_shape else None


def _add_metagpt_logger_steps(text: str, reading: Reading) -> None:
    """Add the steps of the output of MetaGPT's logger; a block without an actor is a log entry."""
    for block in reading.blocks(text, LOGURU_LINE):
        start = unix_seconds(block.match["time"])
        if actor := _METAGPT_ACTOR.match(block.body):
            reading.add_message(block, actor["role"], block.body, start=start)
        else:
            reading.add_log(block, block.body, start=start, level=block.match["level"])


def _add_metagpt_pool_steps(text: str, reading: Reading) -> None:
    """Add the steps of the log of MetaGPT's message pool; a user's first message is the task."""
    for block in reading.blocks(text, _METAGPT_POOL_RECORD):
        if block.match["end"]:
            reading.add_log(block, block.match[0] + block.body)
            continue
        start = unix_seconds(block.match["time"])
        body = _METAGPT_RULE.sub("", block.body).rstrip()
        if sender := block.match["sender"]:
            role = Role.USER if sender.strip().lower() in _METAGPT_USER_NAMES else Role.AGENT
            content_heading = _METAGPT_CONTENT.search(body)
            heading_length = content_heading.end() if content_heading else 0  # not in previews
            reading.add_message(block, sender.strip(), body, role, start=start, lead=heading_length)
            if role is Role.USER and reading.task is None and content_heading:
                reading.task = body[heading_length:].strip() or None
        elif speaker := _METAGPT_SPEAKER.match(body):
            agent = speaker["speaker"].strip()
            reading.add_message(block, agent, body, start=start, lead=speaker.end())
        else:
            reading.add_log(block, body, start=start)


_METAGPT: Final = Framework("metagpt", "MetaGPT", _is_metagpt_log, _add_metagpt_steps)


# OpenManus: its logger's lines, which begin with a sign for a thought, a call or a result.


_OPENMANUS_LOGGER_LINE: Final = re.compile(
    r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \| [A-Z]+ *\| app\.(?:agent|flow|llm)\b",
    re.MULTILINE,
)
_OPENMANUS_PROMPT: Final = re.compile(r"Enter your prompt[^:\n]*: ?(?P<task>[^\n]+)")
_OPENMANUS_THOUGHTS: Final = re.compile(r"✨ (?P<agent>[^\n]{1,60}?)'s thoughts: ?")
_OPENMANUS_TOOLS_PREPARED: Final = re.compile(r"🧰 Tools being prepared: (?P<names>\[[^\n]*\])")
_OPENMANUS_ARGUMENTS: Final = re.compile(r"🔧 Tool arguments: ?")
_OPENMANUS_TOOL_ACTIVATED: Final = re.compile(r"🔧 Activating tool: '(?P<name>[^'\n]*)'")
_OPENMANUS_RESULT: Final = re.compile(
    r"🎯 Tool '(?P<name>[^'\n]*)' completed its mission! Result: ?"
)
_OPENMANUS_RESULT_HEADING: Final = re.compile(r"\AObserved output of cmd `[^`\n]*` executed:\s*")


class _OpenManusRun:
    """The steps of a log, with the tools that the current agent has prepared and called.

    A tool is logged up to three times: as prepared, with its arguments, and as activated. The line
    with the arguments names no tool, so it belongs to the first prepared tool.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._agent = "OpenManus"
        self._prepared_tools: list[str] = []
        self._announced_tool: str | None = None
        """The tool of the last line with arguments, until its activation; None at other times.

        It is empty if no tool was prepared, since only the list of prepared tools names it.
        """
        self._open_calls_by_tool: dict[str, list[str]] = {}

    def add(self, block: LogBlock) -> None:
        """Add the step of a block: a thought, a call, a result or a log."""
        match = block.match
        body = block.body
        start = unix_seconds(match["time"])
        if thoughts := _OPENMANUS_THOUGHTS.match(body):
            self._agent = thoughts["agent"]
            text = body[thoughts.end() :]
            if text.strip():
                self._reading.steps.add(
                    block.key, SpanKind.REASONING, Role.AGENT, self._agent, text, start=start
                )
            else:
                self._reading.add_log(block, body, start=start)
        elif arguments := _OPENMANUS_ARGUMENTS.match(body):
            self._announced_tool = self._prepared_tools[0] if self._prepared_tools else ""
            self._add_call(block, self._announced_tool or None, body[arguments.end() :], start)
        elif activation := _OPENMANUS_TOOL_ACTIVATED.match(body):
            if self._announced_tool in ("", activation["name"]):
                # The line with the arguments is the call already.
                self._reading.add_log(block, body, start=start)
            else:
                self._add_call(block, activation["name"], body, start)
            self._announced_tool = None
        elif result := _OPENMANUS_RESULT.match(body):
            self._add_result(block, result["name"], body[result.end() :], start)
        else:
            if prepared := _OPENMANUS_TOOLS_PREPARED.match(body):
                tool_names = read_literal(prepared["names"])
                tool_names = tool_names if isinstance(tool_names, list) else []
                self._prepared_tools = [name for name in tool_names if isinstance(name, str)]
            self._reading.add_log(block, body, start=start, level=match["level"])

    def _add_call(self, block: LogBlock, name: str | None, text: str, start: float | None) -> None:
        """Add a call of the current agent; it is open until a result of the tool comes."""
        key = self._reading.steps.call(block.key, self._agent, text, name=name, start=start)
        self._open_calls_by_tool.setdefault(name or "", []).append(key)

    def _add_result(self, block: LogBlock, name: str, text: str, start: float | None) -> None:
        """Add a tool's result under its first open call, else under the first unnamed open call."""
        open_calls = self._open_calls_by_tool.get(name) or self._open_calls_by_tool.get("") or []
        parent = open_calls.pop(0) if open_calls else None
        output = _OPENMANUS_RESULT_HEADING.sub("", text, count=1)
        status = status_of_result(output)
        details = StepDetails(name=name, parent=parent, start=start, status=status)
        self._reading.steps.result(block.key, self._agent, text, **details)


def _add_openmanus_steps(transcript: Transcript, reading: Reading) -> None:
    """Add the steps of an OpenManus log to a reading, and set its task."""
    if prompt := _OPENMANUS_PROMPT.search(transcript.text):
        reading.task = prompt["task"].strip()
    run = _OpenManusRun(reading)
    for block in reading.blocks(transcript.text, LOGURU_LINE):
        run.add(block)


_OPENMANUS: Final = Framework(
    "openmanus", "OpenManus", recognised_by_line(_OPENMANUS_LOGGER_LINE), _add_openmanus_steps
)


FRAMEWORKS: Final[tuple[Framework, ...]] = (
    _CHATDEV,
    _METAGPT,
    _HYPERAGENT,
    _AG2,
    _APPWORLD,
    _MAGENTIC_ONE,
    _OPENMANUS,
)


def framework_of(transcript: Transcript) -> Framework | None:
    """Return the framework that wrote a log; None for an unknown framework."""
    return next(
        (framework for framework in FRAMEWORKS if framework.recognises_transcript(transcript)), None
    )
