"""A lint report as text, JSON, SARIF, JUnit's XML and commands of GitHub's workflows.

Whatever a trace or a file name holds, it ends neither a line nor a command nor a tag.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote
from xml.etree import ElementTree

from mast_tui import __version__
from mast_tui.cli.lint.findings import shown_path
from mast_tui.counts import counted
from mast_tui.safe_text import one_line

if TYPE_CHECKING:
    from mast_tui.cli.lint.findings import LintReport, PlacedFinding
    from mast_tui.taxonomy.model import Mode

TOOL: Final = "mast-tui"
TEXT_BEGINS: Final = "mast-tui lint: "
"""How a report as text begins, by which an earlier one is known."""

_QUOTED: Final = 200
"""So many characters of a quote are shown in text, in XML and on GitHub."""

_SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LINK: Final = re.compile(r"\[([^\[\]]*)\]\(")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""What JSON can hold and Unicode has no place for."""

_COMMAND_INSIDE: Final = "##["
"""What begins a command anywhere in a line for GitHub's runner, in the form that it had first."""


def as_text(report: LintReport) -> str:
    """A line with the sums, then two for each finding: where and what, and the words that show it.

    The first is in the form of compilers: ``file:line: error: …``, or ``warning`` for what does
    not fail.
    """
    lines = (f"{TEXT_BEGINS}{_sums(report)}", *_text_lines(report.findings))
    return "".join(f"{_plain(line)}\n" for line in lines)


def _text_lines(findings: Iterable[PlacedFinding]) -> Iterator[str]:
    for finding in findings:
        yield text_line(finding)
        if finding.quote:
            yield f"    “{one_line(finding.quote, _QUOTED)}”"


def text_line(finding: PlacedFinding) -> str:
    """Where a finding stands and what it is, on one line."""
    level = "error" if finding.fails else "warning"
    return f"{one_line(_place(finding))}: {level}: {finding.what}: {one_line(finding.reason)}"


def _sums(report: LintReport) -> str:
    return (
        f"{report.judge}: {counted(len(report.findings), 'finding')} in "
        f"{counted(len(report.traces), 'trace')}; --fail-on {report.fail_on}: {report.failing}"
    )


def _place(finding: PlacedFinding) -> str:
    place = finding.place
    return str(place._replace(file=Path(shown_path(place.file))))


def _plain(text: str) -> str:
    """A line in which GitHub's runner, which reads what steps print, finds no command."""
    line = one_line(text).replace(_COMMAND_INSIDE, "## [")
    return f"./{line}" if line.lstrip().startswith("::") else line


def as_json(report: LintReport) -> str:
    """One JSON document."""
    return _dumped(
        {
            "judge": report.judge,
            "taxonomy": report.taxonomy.ref,
            "rules": [
                {"name": name, "mode": mode.code} for name, mode in report.rules if name is not None
            ],
            "fail_on": report.fail_on,
            "traces": [
                {"path": shown_path(one.path), "trace": one.trace_id, "findings": len(one.findings)}
                for one in report.traces
            ],
            "failing": report.failing,
            "findings": [finding_values(one) for one in report.findings],
            "failed": [{"path": shown_path(path), "reason": why} for path, why in report.failed],
            "skipped": [{"path": shown_path(path), "reason": why} for path, why in report.skipped],
        }
    )


def finding_values(finding: PlacedFinding) -> dict[str, Any]:
    """A finding as the JSON document and SARIF have it."""
    return {
        "trace": finding.trace_id,
        "path": shown_path(finding.path),
        "place": _place(finding),
        "file": shown_path(finding.place.file),
        "line": finding.place.line,
        "span": finding.number,
        "key": finding.key,
        "spans": [finding.first, finding.last],
        "mode": finding.mode.code,
        "name": finding.mode.name,
        "rule": finding.rule,
        "quote": finding.quote,
        "reason": finding.reason,
        "confidence": finding.confidence,
        "decisive": finding.decisive,
        "fails": finding.fails,
    }


def as_sarif(report: LintReport) -> str:
    """A log of SARIF 2.1.0 (OASIS standard, errata 01) with one run."""
    rules = [_descriptor(name, mode) for name, mode in report.rules]
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    notes = [
        {
            "level": "error",
            "message": {"text": _message(f"cannot be read: {reason}")},
            "locations": [{"physicalLocation": {"artifactLocation": _artifact(path)}}],
        }
        for path, reason in report.failed
    ]
    run = {
        "tool": {
            "driver": {
                "name": TOOL,
                "version": __version__,
                "rules": rules,
                "properties": {"judge": report.judge, "taxonomy": report.taxonomy.ref},
            }
        },
        "invocations": [{"executionSuccessful": not notes, "toolExecutionNotifications": notes}],
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, index) for finding in report.findings],
    }
    return _dumped({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]})


def _descriptor(name: str | None, mode: Mode) -> dict[str, Any]:
    return {
        "id": _rule_id(mode, name),
        "name": "".join(word.capitalize() for word in mode.slug.split("_")),
        "shortDescription": {"text": f"{mode.code} {mode.name}"},
        "fullDescription": {"text": mode.definition or mode.name},
        "help": {"text": " ".join(mode.fixes) or mode.definition or mode.name},
    }


def _rule_id(mode: Mode, rule: str | None) -> str:
    return mode.code if rule is None else f"{mode.code}/{rule}"


def _result(finding: PlacedFinding, index: Mapping[str, int]) -> dict[str, Any]:
    rule = _rule_id(finding.mode, finding.rule)
    place = finding.place
    physical: dict[str, Any] = {"artifactLocation": _artifact(place.file)}
    if place.line is not None:
        physical["region"] = {"startLine": place.line}
    location: dict[str, Any] = {"physicalLocation": physical}
    if place.inside:
        location["logicalLocations"] = [{"fullyQualifiedName": one_line(place.inside)}]
    mark = "\0".join((finding.trace_id, rule, finding.key))
    return {
        "ruleId": rule,
        **({"ruleIndex": index[rule]} if rule in index else {}),
        "level": "error" if finding.fails else "warning",
        "message": {"text": _message(f"{finding.what}: {finding.reason}")},
        "locations": [location],
        "partialFingerprints": {
            "mastTui/v1": sha256(mark.encode("utf-8", "backslashreplace")).hexdigest()
        },
        "properties": {
            name: _SURROGATE.sub("\ufffd", value) if isinstance(value, str) else value
            for name, value in finding_values(finding).items()
        },
    }


def _artifact(path: Path) -> dict[str, str]:
    """The address of a file: from the root of what is looked at, or absolute (RFC 3986)."""
    name = shown_path(path)
    encoded = quote(os.fsencode(name), safe="/")
    if Path(name).is_absolute():
        return {"uri": f"file://{encoded}"}
    return {"uri": encoded, "uriBaseId": "%SRCROOT%"}


def _message(text: str) -> str:
    """A plain text message in which nothing foreign is a placeholder or a link (§ 3.11.5, .6)."""
    plain = one_line(text).replace("{", "{{").replace("}", "}}")
    return _LINK.sub(r"\\[\1\\](", plain)


def as_junit(report: LintReport) -> str:
    """XML in the form of JUnit: one test case a trace, and one for each file that is unreadable.

    What fails is one failure of its case; what does not stands in the case's ``system-out``.
    """
    failed = sum(any(one.fails for one in trace.findings) for trace in report.traces)
    suite = ElementTree.Element(
        "testsuite",
        name="mast-tui lint",
        tests=str(len(report.traces) + len(report.failed)),
        failures=str(failed),
        errors=str(len(report.failed)),
        skipped="0",
        time="0",
    )
    for trace in report.traces:
        case = _case(suite, shown_path(trace.path), trace.trace_id)
        failing = [one for one in trace.findings if one.fails]
        allowed = [one for one in trace.findings if not one.fails]
        if failing:
            first = failing[0]
            told = ElementTree.SubElement(
                case,
                "failure",
                type=_rule_id(first.mode, first.rule),
                message=one_line(f"{first.what}: {first.reason}"),
            )
            told.text = "\n".join(_text_lines(failing))
        if allowed:
            ElementTree.SubElement(case, "system-out").text = "\n".join(_text_lines(allowed))
    for path, reason in report.failed:
        case = _case(suite, shown_path(path), "whole file")
        ElementTree.SubElement(case, "error", type="unreadable", message=one_line(reason))
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    # ASCII with character references: valid in whatever encoding stdout has.
    document = ElementTree.tostring(suites, encoding="us-ascii").decode("ascii")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{document}\n'


def _case(suite: ElementTree.Element, path: str, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(
        suite, "testcase", classname=one_line(path), name=one_line(name), time="0"
    )


def as_github(report: LintReport) -> str:
    """Workflow commands of GitHub, a line for each finding: ``::error file=…,line=…::…``."""
    lines = [_plain(f"{TEXT_BEGINS}{_sums(report)}")]
    for finding in report.findings:
        words = finding.reason
        if finding.quote:
            words += f" “{one_line(finding.quote, _QUOTED)}”"
        if finding.place.line is None:
            words = f"{finding.place.inside}: {words}"
        level = "error" if finding.fails else "warning"
        lines.append(_command(level, finding.place.file, finding.place.line, finding.what, words))
    for path, reason in report.failed:
        lines.append(_command("error", path, None, "cannot be read", reason))
    return "".join(f"{line}\n" for line in lines)


def _command(level: str, file: Path, line: int | None, title: str, words: str) -> str:
    settings = {"file": shown_path(file), "line": None if line is None else str(line)}
    told = ",".join(
        f"{name}={_setting(one_line(value))}"
        for name, value in {**settings, "title": title}.items()
        if value is not None
    )
    return f"::{level} {told}::{_data(one_line(words))}".replace(_COMMAND_INSIDE, "## [")


def _data(text: str) -> str:
    """The text of a command, which is one line: ``%`` begins what the runner decodes."""
    return text.replace("%", "%25")


def _setting(text: str) -> str:
    """The value of a setting of a command, in which ``:`` and ``,`` would end it."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


FORMATS: Final[Mapping[str, Callable[[LintReport], str]]] = MappingProxyType(
    {
        "text": as_text,
        "json": as_json,
        "sarif": as_sarif,
        "junit": as_junit,
        "github": as_github,
    }
)
"""By the value of ``--format``."""


def _dumped(document: object) -> str:
    """A document of ASCII alone: no foreign control character reaches a terminal."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"
