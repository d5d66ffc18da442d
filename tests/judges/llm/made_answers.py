"""Right answers of a model to any request."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_ASKED: Final = re.compile(r"Judge these modes, one entry for each: ([^\n]*?)\.(?: |$)")
_SPAN: Final = re.compile(r"^\[\w+ #(\d+)\][^\n]*\n([^\n]*)", re.MULTILINE)

FOUND: Final = "1.3"
"""The mode that is found in every trace."""


def user_text(body: Mapping[str, Any]) -> str:
    """Return the message with the data of a request."""
    return str(body["messages"][1]["content"])


def shown(body: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Return number and first line of every span in a request."""
    return [(int(number), line) for number, line in _SPAN.findall(user_text(body))]


def asked_modes(body: Mapping[str, Any]) -> list[str]:
    """Return the codes of the modes that a request asks about."""
    found = _ASKED.search(user_text(body))
    assert found is not None, "the request says nothing of modes"
    return found[1].split(", ")


def said(
    body: Mapping[str, Any], *, mode: str = FOUND, place: int = -1, quote: str | None = None
) -> str:
    """Return a whole answer in which one mode shows, by default in the last span."""
    told = notes(body)
    if told is not None:
        return told
    if "Does the finding hold?" in user_text(body).splitlines()[-1]:
        return second_look()
    number, line = shown(body)[place]
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
    """Return a whole answer that names this span as the decisive step, or none."""
    told = notes(body)
    if told is not None:
        return told
    lines = dict(shown(body))
    remedy = {"agent": "", "correction": "Ask first", "then": "it would have gone well"}
    kind = {"mode": FOUND, "fits": True, "confidence": 0.9}
    steps = []
    for number in numbers:
        place = {"quote": lines[number], "first": number}
        steps.append({"rationale": f"it all follows from #{number}", **place, **remedy, **kind})
    return json.dumps({"notes": "", "decisive": steps})


def notes(body: Mapping[str, Any]) -> str | None:
    """Return the summary or story that a request asks for, or None."""
    asked = user_text(body).splitlines()[-1]
    if "Summarise these spans." in asked:
        return json.dumps({"summary": "nothing of note"})
    if "Tell the whole run." in asked:
        return json.dumps({"story": "nothing of note happened"})
    return None


def second_look(verdict: str = "holds") -> str:
    """Return a whole answer on whether a finding holds."""
    looked = {"shows": "it", "definition": "it is met", "boundary": None, "confidence": 0.9}
    return json.dumps({**looked, "verdict": verdict})


def any_answer(body: Mapping[str, Any]) -> str:
    """Return a right answer to any request: modes, decisive step, or second look."""
    asked = user_text(body).splitlines()[-1]
    step = re.search(r"Is #(\d+) the decisive step", asked)
    if step is not None:
        return decisive(body, *([int(step[1])] if step[1] == "4" else []))
    if "decisive step" in asked:
        return decisive(body, shown(body)[-1][0])
    return said(body)


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
    with path.open("w") as out:
        for number in range(count):
            turns = (("user", "asks"), ("assistant", "answers"))
            messages = [{"role": role, "content": f"run {number} {does}"} for role, does in turns]
            out.write(json.dumps({"messages": messages}) + "\n")
