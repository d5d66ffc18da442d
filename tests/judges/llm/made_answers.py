"""Valid answers of a model to any request."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_MODES_ASKED: Final = re.compile(r"Judge these modes, one entry for each: ([^\n]*?)\.(?: |$)")
_SPAN: Final = re.compile(r"^\[\w+ #(\d+)\][^\n]*\n([^\n]*)", re.MULTILINE)

MODE: Final = "1.3"
"""The mode that is present in every trace."""


def user_text(body: Mapping[str, Any]) -> str:
    """Return the message with the data of a request."""
    return str(body["messages"][1]["content"])


def request_spans(body: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Return number and first line of every span in a request."""
    return [(int(number), line) for number, line in _SPAN.findall(user_text(body))]


def asked_modes(body: Mapping[str, Any]) -> list[str]:
    """Return the codes of the modes that a request asks about."""
    match = _MODES_ASKED.search(user_text(body))
    assert match is not None, "the request names no modes"
    return match[1].split(", ")


def judgement(
    body: Mapping[str, Any], *, mode: str = MODE, position: int = -1, quote: str | None = None
) -> str:
    """Return an answer in which one mode is present, by default in the last span."""
    prepared = notes(body)
    if prepared is not None:
        return prepared
    if "Does the finding hold?" in user_text(body).splitlines()[-1]:
        return second_look()
    number, line = request_spans(body)[position]
    span = {"first": number, "last": number, "quote": line if quote is None else quote}
    reason = {"rationale": f"it shows in #{number}", "confidence": 0.8, "decisive": True}
    modes: dict[str, object] = {}
    for code in asked_modes(body):
        present = code == mode
        verdict = "present" if present else "absent"
        findings = [{**span, **reason}] if present else []
        modes[code] = {"notes": "", "findings": findings, "verdict": verdict}
    return json.dumps({"modes": modes})


def decisive(body: Mapping[str, Any], *numbers: int) -> str:
    """Return an answer that names these spans as decisive steps."""
    prepared = notes(body)
    if prepared is not None:
        return prepared
    lines = dict(request_spans(body))
    remedy = {"agent": "", "correction": "Ask first", "then": "it would have gone well"}
    kind = {"mode": MODE, "fits": True, "confidence": 0.9}
    steps = []
    for number in numbers:
        evidence = {"quote": lines[number], "first": number}
        steps.append({"rationale": f"it all follows from #{number}", **evidence, **remedy, **kind})
    return json.dumps({"notes": "", "decisive": steps})


def notes(body: Mapping[str, Any]) -> str | None:
    """Return the summary or story that a request asks for, or None."""
    question = user_text(body).splitlines()[-1]
    if "Summarise these spans." in question:
        return json.dumps({"summary": "nothing of note"})
    if "Tell the whole run." in question:
        return json.dumps({"story": "nothing of note happened"})
    return None


def second_look(verdict: str = "holds") -> str:
    """Return an answer to the question whether a finding holds."""
    fields = {"shows": "it", "definition": "it is met", "boundary": None, "confidence": 0.9}
    return json.dumps({**fields, "verdict": verdict})


def any_answer(body: Mapping[str, Any]) -> str:
    """Return a valid answer to any request: modes, decisive step, or second look."""
    question = user_text(body).splitlines()[-1]
    step = re.search(r"Is #(\d+) the decisive step", question)
    if step is not None:
        return decisive(body, *([int(step[1])] if step[1] == "4" else []))
    if "decisive step" in question:
        return decisive(body, request_spans(body)[-1][0])
    return judgement(body)


def write_runs(folder: Path, count: int, *, spans: int = 4, first: int = 0) -> None:
    """Write short runs in files of their own."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(first, first + count):
        messages = [
            {"role": ("user", "assistant")[n % 2], "content": f"run {number} says line {n}"}
            for n in range(spans)
        ]
        (folder / f"run-{number:04d}.json").write_text(json.dumps(messages))


def write_conversations(path: Path, count: int) -> None:
    """Write short runs into one file, one a line."""
    with path.open("w") as file:
        for number in range(count):
            turns = (("user", "asks"), ("assistant", "answers"))
            messages = [{"role": role, "content": f"run {number} {act}"} for role, act in turns]
            file.write(json.dumps({"messages": messages}) + "\n")
