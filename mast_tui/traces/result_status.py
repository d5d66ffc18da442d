"""The rules that find a failed tool call in the text of its result, the same for all formats.

A reader applies them to results of tools if its format states no status. ``docs/formats.md`` lists
them in this order; the first rule that decides counts. ``scripts/failed_spans.py`` prints their
matches in real runs.
"""

from __future__ import annotations

import re
from typing import Final

from mast_tui.traces.io.json_values import InvalidJSON, load_json
from mast_tui.traces.model import SpanStatus

_HEAD: Final = 1_000
_TAIL: Final = 6_000
_LAST_LINE: Final = 400
_MOST_JSON: Final = 64 << 10

_COLOUR: Final = r"\x1b\[[0-9;]{0,20}m"

_EXIT_CODE: Final = re.compile(
    r"""\s*(?:
        (?:exit[ ]?code|exit[ ]status|return[ ]?code):?[ ](-?\d{1,9})\b
      | <returncode>(-?\d{1,9})</returncode>
      | (?:[^\n]*\n){0,6}?(?:Process[ ]exited[ ]with[ ]code
          | The[ ]script[ ]ran,[ ]then[ ]exited[ ]with[ ]Unix[ ]exit[ ]code:)[ ](-?\d{1,9})\b
      | failed\b[^\n]{0,400}?\bexit[ ]code:[ ](-?\d{1,9})\b
    )""",
    re.VERBOSE | re.IGNORECASE,
)
"""An exit code at the beginning of a result."""

_CODE_OUTPUT: Final = r"\s*(?:exitcode: -?\d{1,9} \(|<returncode>-?\d{1,9}</returncode>)"
_TERMINALS: Final = frozenset({"computerterminal", "terminal", "codeexecutor"})
"""The names of agents in a conversation that report the output of code."""

_EXIT_CODE_AFTER: Final = re.compile(
    r"""\[[^\[\]]{0,80}?\bexit[ ]code:?[ ](-?\d{1,9})\.?\]\Z
      | (?:exit[ ]status|command[ ]terminated[ ]with[ ]exit[ ]code)[ ](-?\d{1,9})\Z
      | make(?:\[\d{1,3}\])?:[ ]\*\*\*[ ].{0,200}[ ]Error[ ](\d{1,9})\Z""",
    re.VERBOSE | re.IGNORECASE,
)
"""An exit code on the last line."""

_TESTS_FAILED: Final = r"""(?x)(?<![\d.])[1-9]\d{0,6}[ ](?:failed|errors?)\b[^=]{0,120}
        [ ]in[ ][\d.:]{1,12}s?(?:[ ]\([\d:]{1,12}\))?[ ]?=*\Z
      | \AFAILED[ ]\([^()]{0,80}(?:failures|errors)=[1-9]\d{0,6}[^()]{0,80}\)\Z"""
"""The last line of a report of pytest or unittest with failures."""

REFUSED: Final = re.compile(
    r"""\s*(?:
        Your[ ]proposed[ ]edit[ ]has[ ]introduced[ ]new[ ]syntax[ ]error
      | Your[ ]edit[ ]was[ ]not[ ]applied\b
      | No[ ]replacement[ ]was[ ]performed\b
      | File[ ]already[ ]exists[ ]at:[ ]
      | apply_patch[ ]verification[ ]failed\b
      | Invalid[ ]`(?:path|insert_line)`[ ]parameter\b
      | Execution[ ]failed\b
      | (?:The[ ])?(?:command|execution|tool|request)[ ](?:execution[ ])?timed[ ]out\b
      | <(?:tool_use_)?error>
      | fatal:[ ] | panic:[ ] | FATA\[
    )""",
    re.VERBOSE | re.IGNORECASE,
)
"""The first words with which known tools refuse or stop."""

_ERROR: Final = re.compile(
    r"""\s*\[?error(?:[ ](?:executing|calling|running|decoding|parsing|while)[ ][^\n:]{1,120})?\]?
      :(?!:)
      (?![ \t]*(?:[-+]?\d[\d.,]*(?:e[-+]?\d+)?[ \t]*%?|none|null|no|false|n/a)?[ \t]*(?:\n|\Z))""",
    re.VERBOSE | re.IGNORECASE,
)
"""``Error: …`` at the beginning of a result, unless a mere number or ``none`` follows."""

_EXCEPTION: Final = r"""(?x)\s*(?:[A-Za-z_]\w{0,60}\.){0,6}[A-Z]\w{0,60}(?:Error|Exception)
      (?:\([^()\n]{0,80}\))?:[ ]"""
"""The name of an exception at the beginning of a result."""

_BARE_ERROR: Final = re.compile(r"\s*\[?error\]?:[ \t]*\n\s*\S", re.IGNORECASE)
"""``ERROR:`` on a line by itself, before the description of the error."""

_COMPLAINT: Final = re.compile(
    r"""\s*(?:[\w./+-]{1,80}:[ ]){1,4}[^\n]{0,400}?\b
      (?:command[ ]not[ ]found|not[ ]found|No[ ]such[ ]file[ ]or[ ]directory|Permission[ ]denied
        |Is[ ]a[ ]directory|Not[ ]a[ ]directory|Operation[ ]not[ ]permitted|syntax[ ]error[^\n]*
        |Connection[ ]refused)\.?\s*\Z""",
    re.VERBOSE | re.IGNORECASE,
)
"""A result that is only a program's complaint, such as ``cat: x: No such file or directory``."""

_TRACEBACK: Final = "Traceback (most recent call last)"
_EXCEPTION_NAME: Final = r"[A-Za-z_][\w.]{0,120}(?::|\Z)"
_MOST_EXCEPTION_LINES: Final = 12
"""The most lines of an exception's message."""


def status_of_code(code: object) -> SpanStatus:
    """Return the status of a command with this exit code."""
    if isinstance(code, int) and not isinstance(code, bool):
        return SpanStatus.ERROR if code else SpanStatus.OK
    return SpanStatus.UNKNOWN


def status_of_flag(went_well: object) -> SpanStatus:
    """Return the status of a step from a flag that is true (or ``"true"``) on success."""
    if went_well in (True, "true"):
        return SpanStatus.OK
    return SpanStatus.ERROR if went_well in (False, "false") else SpanStatus.UNKNOWN


_GOOD_WORDS: Final = frozenset({"ok", "success", "completed"})
_BAD_WORDS: Final = frozenset(
    {"error", "errored", "failed", "failure", "declined", "cancelled", "canceled"}
)


def status_of_word(word: object) -> SpanStatus:
    """Return the status of a step from a word such as ``completed`` or ``FAILED``."""
    lower_word = word.lower() if isinstance(word, str) else ""
    if lower_word in _GOOD_WORDS:
        return SpanStatus.OK
    return SpanStatus.ERROR if lower_word in _BAD_WORDS else SpanStatus.UNKNOWN


def status_of_error_flag(failed: object) -> SpanStatus:
    """Return the status of a step from a flag that is true on failure."""
    return status_of_flag(not failed if isinstance(failed, bool) else None)


def first_known_status(*statuses: SpanStatus) -> SpanStatus:
    """Return the first of some statuses that is known; ``UNKNOWN`` if none is."""
    return next(
        (status for status in statuses if status is not SpanStatus.UNKNOWN), SpanStatus.UNKNOWN
    )


def worst_status(*statuses: SpanStatus) -> SpanStatus:
    """Return ``ERROR`` if one of a call's statuses is that, else the first one that is known."""
    return SpanStatus.ERROR if SpanStatus.ERROR in statuses else first_known_status(*statuses)


def status_of_result(text: str) -> SpanStatus:
    """Return the status of a tool call, from the whole text of its result.

    It is ``ERROR`` if the text reports a failure, ``OK`` for an exit code of 0, else ``UNKNOWN``.
    """
    head = text[:_HEAD]
    # These quick tests avoid most of the slow searches.
    if "xit" in head or "eturn" in head:
        code_match = _EXIT_CODE.match(head)
        if code_match is not None:
            return _status_of_exit_code(code_match)
    last_line = text[-_LAST_LINE:].rstrip().rpartition("\n")[2].strip()
    if "\x1b" in head or "\x1b" in last_line:
        head = re.sub(_COLOUR, "", head)
        last_line = re.sub(_COLOUR, "", last_line)
    code_match = _EXIT_CODE_AFTER.match(last_line)
    if code_match is not None:
        return _status_of_exit_code(code_match)
    failed = (
        _begins_with_error(head, is_all=len(text) < _HEAD)
        or _reports_failed_tests(last_line)
        or _has_traceback(head, text)
        or _is_error_object(text)
    )
    return SpanStatus.ERROR if failed else SpanStatus.UNKNOWN


def _begins_with_error(head: str, *, is_all: bool) -> bool:
    """Return whether a result begins with an error.

    ``is_all`` is True if ``head`` is the whole result.
    """
    may_name_exception = "Error" in head or "Exception" in head
    return (
        REFUSED.match(head) is not None
        or _ERROR.match(head) is not None
        or (may_name_exception and re.match(_EXCEPTION, head) is not None)
        or _BARE_ERROR.match(head) is not None
        or (is_all and _COMPLAINT.match(head) is not None)
    )


def _reports_failed_tests(last_line: str) -> bool:
    may_report = " in " in last_line or "FAILED" in last_line
    return may_report and re.search(_TESTS_FAILED, last_line) is not None


def _status_of_exit_code(match: re.Match[str]) -> SpanStatus:
    code = next(group for group in match.groups() if group is not None)
    return SpanStatus.OK if int(code) == 0 else SpanStatus.ERROR


def status_of_message(agent: str, text: str) -> SpanStatus:
    """Return the status of code that was run, from an agent's message with its output.

    Other messages have the status ``UNKNOWN``.

    Args:
        agent: The speaker.
        text: The whole text.
    """
    if re.match(_CODE_OUTPUT, text) or agent.lower().replace("_", "") in _TERMINALS:
        return status_of_result(text)
    return SpanStatus.UNKNOWN


def _has_traceback(head: str, text: str) -> bool:
    """Return whether a result begins or ends with a traceback.

    A traceback amid other text, as in the output of a log viewer, is no failure of the tool.
    """
    if _TRACEBACK in head:
        first_line = head.lstrip().partition("\n")[0]
        if first_line.rstrip(" \r:").endswith(_TRACEBACK):
            return True
    elif text.find(_TRACEBACK, max(0, len(text) - _TAIL)) < 0:
        return False

    # A traceback at the end has nothing after the message of its exception.
    tail = re.sub(_COLOUR, "", text[-_TAIL:])
    heading_start = tail.rfind(_TRACEBACK)
    if heading_start < 0:
        return False
    heading_line_start = tail.rfind("\n", 0, heading_start) + 1
    indent = heading_start - heading_line_start
    lines = tail[heading_start:].rstrip().split("\n")
    for number, line in enumerate(lines[1:], 1):
        # The frames are indented more than the heading, the line of the exception is not.
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            names_exception = re.match(_EXCEPTION_NAME, line.strip()) is not None
            lines_to_end = len(lines) - number
            return names_exception and lines_to_end <= _MOST_EXCEPTION_LINES
    return False


def _is_error_object(text: str) -> bool:
    """Return whether a result is a JSON object with an error or a flag of failure."""
    if len(text) > _MOST_JSON or text.lstrip()[:1] != "{":
        return False
    try:
        value = load_json(text)
    except InvalidJSON:
        return False
    if not isinstance(value, dict):
        return False
    code = value.get("exit_code", value.get("returncode"))
    if isinstance(code, int) and not isinstance(code, bool):
        return code != 0
    is_flagged = value.get("isError") is True or value.get("status") == "error"
    if is_flagged or any(value.get(flag) is False for flag in ("success", "ok")):
        return True
    return bool(value.get("error")) and not any(
        value.get(field) for field in ("result", "data", "output", "results")
    )
