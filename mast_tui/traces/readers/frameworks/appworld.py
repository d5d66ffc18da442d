"""AppWorld: a supervisor writes code that sends messages to one agent per app, in nested loops.

An agent's response is code to run. The output of the supervisor's code follows under a heading of
its own. The output of the code of an app's agent is the next message to that agent.
"""

from __future__ import annotations

import re
from typing import Final

from mast_tui.traces.model import AnswerKey, Outcome, Role
from mast_tui.traces.readers.answer_keys import AnswerKeyDraft
from mast_tui.traces.readers.frameworks.base import (
    Framework,
    LogBlock,
    Reading,
    Transcript,
    recognised_by_line,
)
from mast_tui.traces.readers.json_fields import Fields, fields_of, items_of, json_in
from mast_tui.traces.readers.run_facts import outcome_of_flag

_TASK_LINE: Final = r"\*+ Task \d+/\d+ \((?P<task>[^)\n]*)\) +\*+"
_TASK_HEADING: Final = re.compile(rf"^{_TASK_LINE}[ \t]*$", re.MULTILINE)
_BLOCK_HEADING: Final = re.compile(
    rf"^(?:{_TASK_LINE}|(?P<evaluation>Evaluation)"
    r"|(?:    )*(?:Response from (?P<code_agent>.{1,60}?) Agent"
    r"|Message to (?P<message_agent>.{1,60}?) Agent"
    r"|Response from (?P<api>.{1,60}?) API"
    r"|Reply from (?P<reply_agent>.{1,60}?) Agent to .{1,60}"
    r"|(?P<output>Code Execution Output)"
    r"|(?P<loop>Entering|Exiting) .{1,60}? Agent message loop))[ \t]*$",
    re.MULTILINE,
)
_SUPERVISOR: Final = "Supervisor"
_LABEL_BY_CHECK_FIELD: Final = {"passes": "passed", "failures": "failed"}
_CHECK_FIELDS: Final = frozenset({"success", "passes", "failures"})


class _AppWorldRun:
    """The steps of a log, with the last code of each agent.

    The first message to an agent in a message loop is its task. Each later message is the output
    of its code. The agents that have their task are in ``_agents_with_task``.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._last_code_key_by_agent: dict[str, str] = {}
        self._agents_with_task: set[str] = set()
        self.evaluations: list[str] = []

    def add(self, block: LogBlock) -> None:
        """Add the step of a block of the log, or record its evaluation.

        The groups of ``_BLOCK_HEADING`` tell the kind of the block. The body is code that the
        ``code_agent`` wrote, a message to the ``message_agent``, or a reply of the
        ``reply_agent`` with the result of its task.
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
            if agent.lower() in self._agents_with_task:  # The message is the output of its code.
                self._add_output(block, agent, "python")
            else:
                self._agents_with_task.add(agent.lower())
                self._reading.add_message(block, _SUPERVISOR, block.body)
        elif agent := match["reply_agent"]:
            self._reading.add_message(block, agent, block.body)
        elif api := match["api"]:
            self._add_output(block, _SUPERVISOR, api)
        elif match["output"]:
            self._add_output(block, _SUPERVISOR, "python")
        else:  # A message loop begins or ends.
            self._agents_with_task = {_SUPERVISOR.lower()}
            self._reading.add_log(block, match[0].strip())

    def _add_output(self, block: LogBlock, agent: str, name: str) -> None:
        """Add the output of an agent's last code, or an API's response to that code."""
        parent = self._last_code_key_by_agent.get(agent.lower())
        self._reading.steps.result(block.key, agent, block.body, name=name, parent=parent)


def _add_steps(transcript: Transcript, reading: Reading) -> None:
    """Add the steps of the log, the outcome of its tasks and the answer key.

    The outcome is FAILED if one task failed, else the outcome that all tasks share, if any.
    """
    run = _AppWorldRun(reading)
    for block in reading.blocks(transcript.text, _BLOCK_HEADING):
        run.add(block)
    outcomes = {
        outcome_of_flag(_report_fields(report).get("success")) for report in run.evaluations
    }
    if Outcome.FAILED in outcomes:
        reading.outcome = Outcome.FAILED
    elif len(outcomes) == 1:
        (reading.outcome,) = outcomes
    reading.answer_key = _answer_key(run.evaluations)


def _answer_key(evaluations: list[str]) -> AnswerKey:
    """Return the answer key with the results of the benchmark's checks of each task."""
    draft = AnswerKeyDraft()
    for number, evaluation in enumerate(evaluations, 1):
        task_prefix = f"task {number} " if len(evaluations) > 1 else ""
        report = _report_fields(evaluation)
        draft.add("scores", f"{task_prefix}success", report.get("success"))
        for field, label in _LABEL_BY_CHECK_FIELD.items():
            for check in items_of(report.get(field)):
                draft.add("tests", f"{task_prefix}{label}", _requirement_of_check(check))
        other_fields = {name: value for name, value in report.items() if name not in _CHECK_FIELDS}
        draft.add("other", f"{task_prefix}evaluation", other_fields if report else evaluation)
    return draft.key()


def _requirement_of_check(check: object) -> object:
    """Return the requirement of a check; the whole check if it records the trace of a failure."""
    if isinstance(check, dict) and check.get("requirement") and not check.get("trace"):
        return check["requirement"]
    return check


def _report_fields(evaluation: str) -> Fields:
    """Return the fields of an evaluation; empty if the evaluation is no JSON object."""
    return fields_of(json_in(evaluation))


READER: Final = Framework("appworld", "AppWorld", recognised_by_line(_TASK_HEADING), _add_steps)
