"""AppWorld: a supervisor writes code, which talks to one agent per app in nested loops.

An agent's response is the code that it wants run; the result follows as the code's output,
for an app's agent as the next message to it.
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
_SNIFF: Final = re.compile(rf"^{_TASK_LINE}[ \t]*$", re.MULTILINE)
_HEADER: Final = re.compile(
    rf"^(?:{_TASK_LINE}|(?P<evaluation>Evaluation)"
    r"|(?:    )*(?:Response from (?P<responder>.{1,60}?) Agent"
    r"|Message to (?P<recipient>.{1,60}?) Agent"
    r"|Response from (?P<api>.{1,60}?) API"
    r"|Reply from (?P<replier>.{1,60}?) Agent to .{1,60}"
    r"|(?P<output>Code Execution Output)"
    r"|(?P<loop>Entering|Exiting) .{1,60}? Agent message loop))[ \t]*$",
    re.MULTILINE,
)
_SUPERVISOR: Final = "Supervisor"
_CHECKED: Final = {"passes": "passed", "failures": "failed"}
_REPORTED: Final = frozenset({"success", "passes", "failures"})


class _Run:
    """The last code of each agent's loop; the outermost loop is the supervisor's."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._last_code: dict[str, str] = {}
        self._asked: set[str] = set()
        self.evaluations: list[str] = []

    def add(self, block: LogBlock) -> None:
        match = block.match
        if match["task"] is not None:
            self._last_code.clear()
            self._asked.clear()
            self._reading.say(block, "user", block.body, role=Role.USER)
        elif match["evaluation"]:
            self.evaluations.append(block.body)
        elif agent := match["responder"]:
            self._asked.add(agent.lower())
            self._last_code[agent.lower()] = self._reading.steps.call(
                block.key, agent, block.body, name="python"
            )
        elif agent := match["recipient"]:
            if agent.lower() in self._asked:
                self._output(block, agent, "python")
            else:
                self._asked.add(agent.lower())
                self._reading.say(block, _SUPERVISOR, block.body)
        elif agent := match["replier"]:
            self._reading.say(block, agent, block.body)
        elif api := match["api"]:
            self._output(block, _SUPERVISOR, api)
        elif match["output"]:
            self._output(block, _SUPERVISOR, "python")
        else:
            self._asked = {_SUPERVISOR.lower()}
            self._reading.log(block, match[0].strip())

    def _output(self, block: LogBlock, agent: str, name: str) -> None:
        parent = self._last_code.get(agent.lower())
        self._reading.steps.result(block.key, agent, block.body, name=name, parent=parent)


def _split(transcript: Transcript, reading: Reading) -> None:
    run = _Run(reading)
    for block in reading.blocks(transcript.text, _HEADER):
        run.add(block)
    outcomes = {outcome_of_flag(_report(report).get("success")) for report in run.evaluations}
    if Outcome.FAILED in outcomes:
        reading.outcome = Outcome.FAILED
    elif len(outcomes) == 1:
        (reading.outcome,) = outcomes
    reading.answer_key = _answer_key(run.evaluations)


def _answer_key(evaluations: list[str]) -> AnswerKey:
    """Return the results of the benchmark's checks of each task."""
    draft = AnswerKeyDraft()
    for number, evaluation in enumerate(evaluations, 1):
        task = f"task {number} " if len(evaluations) > 1 else ""
        report = _report(evaluation)
        draft.add("scores", f"{task}success", report.get("success"))
        for name in ("passes", "failures"):
            for check in items_of(report.get(name)):
                draft.add("tests", f"{task}{_CHECKED[name]}", _requirement(check))
        other_fields = {name: value for name, value in report.items() if name not in _REPORTED}
        draft.add("other", f"{task}evaluation", other_fields if report else evaluation)
    return draft.key()


def _requirement(check: object) -> object:
    """Return the requirement of a test; the whole check where it has the trace of a failure."""
    if isinstance(check, dict) and check.get("requirement") and not check.get("trace"):
        return check["requirement"]
    return check


def _report(evaluation: str) -> Fields:
    """Return an evaluation's fields; none where it is no JSON object."""
    return fields_of(json_in(evaluation))


READER: Final = Framework("appworld", "AppWorld", recognised_by_line(_SNIFF), _split)
