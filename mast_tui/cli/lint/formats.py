"""A lint report as text, JSON, SARIF, JUnit XML and GitHub workflow commands.

Text from traces and file names is escaped, so that it cannot end a line, command or tag.
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
from mast_tui.cli.lint.findings import LintReport, PlacedFinding, relative_path
from mast_tui.counts import counted
from mast_tui.safe_text import one_line, quote_line

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Mode

TOOL: Final = "mast-tui"
_SUMMARY_PREFIX: Final = "mast-tui lint: "
"""The beginning of a text report."""

_QUOTE_LENGTH: Final = 200
"""The most characters of a printed quote."""

_SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LINK: Final = re.compile(r"\[([^\[\]]*)\]\(")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""Lone surrogates. JSON allows them, UTF-8 does not."""

_COMMAND_INSIDE: Final = "##["
"""The prefix of older commands of a GitHub runner, effective anywhere in a line."""


def as_text(report: LintReport) -> str:
    """Return the report as text: the totals, then each finding with its quote.

    Findings have the form of a compiler's messages: ``file:line: error: …``.
    """
    lines = (f"{_SUMMARY_PREFIX}{_totals_text(report)}", *_text_lines(report.findings))
    return "".join(f"{_without_commands(line)}\n" for line in lines)


def _text_lines(findings: Iterable[PlacedFinding]) -> Iterator[str]:
    for finding in findings:
        yield text_line(finding)
        if finding.quote:
            yield f"    “{quote_line(finding.quote, _QUOTE_LENGTH)}”"


def text_line(finding: PlacedFinding) -> str:
    """Return a finding as one line of text."""
    level = "error" if finding.fails else "warning"
    return (
        f"{one_line(_location_text(finding))}: {level}: {finding.title}: {one_line(finding.reason)}"
    )


def _totals_text(report: LintReport) -> str:
    return (
        f"{report.judge}: {counted(len(report.findings), 'finding')} in "
        f"{counted(len(report.traces), 'trace')}; --fail-on {report.fail_on}: {report.failing}"
    )


def _location_text(finding: PlacedFinding) -> str:
    place = finding.place
    return str(place._replace(file=Path(relative_path(place.file))))


def _without_commands(text: str) -> str:
    """Return text as a line in which GitHub's runner finds no command."""
    line = one_line(text).replace(_COMMAND_INSIDE, "## [")
    return f"./{line}" if line.lstrip().startswith("::") else line


def as_json(report: LintReport) -> str:
    """Return the report as a JSON document."""
    return _dump_json(
        {
            "judge": report.judge,
            "taxonomy": report.taxonomy.ref,
            "rules": [
                {"name": name, "mode": mode.code} for name, mode in report.rules if name is not None
            ],
            "fail_on": report.fail_on,
            "traces": [
                {
                    "path": relative_path(trace.path),
                    "trace": trace.trace_id,
                    "findings": len(trace.findings),
                }
                for trace in report.traces
            ],
            "failing": report.failing,
            "findings": [finding_json(finding) for finding in report.findings],
            "failed": [
                {"path": relative_path(path), "reason": reason} for path, reason in report.failed
            ],
            "skipped": [
                {"path": relative_path(path), "reason": reason} for path, reason in report.skipped
            ],
        }
    )


def finding_json(finding: PlacedFinding) -> dict[str, Any]:
    """Return a finding as JSON values."""
    return {
        "trace": finding.trace_id,
        "path": relative_path(finding.path),
        "place": _location_text(finding),
        "file": relative_path(finding.place.file),
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
    """Return the report as a SARIF 2.1.0 log (OASIS standard, errata 01) with one run."""
    rules = [_rule_descriptor(mode, rule) for rule, mode in report.rules]
    index_by_rule = {rule["id"]: number for number, rule in enumerate(rules)}
    read_errors = [
        {
            "level": "error",
            "message": {"text": _sarif_message(f"cannot be read: {reason}")},
            "locations": [{"physicalLocation": {"artifactLocation": _artifact_location(path)}}],
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
        "invocations": [
            {"executionSuccessful": not read_errors, "toolExecutionNotifications": read_errors}
        ],
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(finding, index_by_rule) for finding in report.findings],
    }
    return _dump_json({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule_descriptor(mode: Mode, rule: str | None) -> dict[str, Any]:
    """Return the SARIF description of a rule; ``rule`` is None for a model.

    Only the id has the name of the rule. The other fields describe its mode.
    """
    return {
        "id": _rule_id(mode, rule),
        "name": "".join(word.capitalize() for word in mode.slug.split("_")),
        "shortDescription": {"text": f"{mode.code} {mode.name}"},
        "fullDescription": {"text": mode.definition or mode.name},
        "help": {"text": " ".join(mode.fixes) or mode.definition or mode.name},
    }


def _rule_id(mode: Mode, rule: str | None) -> str:
    """Return the SARIF id of a rule; ``rule`` is None for a model."""
    return mode.code if rule is None else f"{mode.code}/{rule}"


def _sarif_result(finding: PlacedFinding, index_by_rule: Mapping[str, int]) -> dict[str, Any]:
    """Return a finding as a SARIF result."""
    rule = _rule_id(finding.mode, finding.rule)
    place = finding.place
    physical_location: dict[str, Any] = {"artifactLocation": _artifact_location(place.file)}
    if place.line is not None:
        physical_location["region"] = {"startLine": place.line}
    location: dict[str, Any] = {"physicalLocation": physical_location}
    if place.inside:
        location["logicalLocations"] = [{"fullyQualifiedName": one_line(place.inside)}]
    fingerprint = "\0".join((finding.trace_id, rule, finding.key))
    return {
        "ruleId": rule,
        **({"ruleIndex": index_by_rule[rule]} if rule in index_by_rule else {}),
        "level": "error" if finding.fails else "warning",
        "message": {"text": _sarif_message(f"{finding.title}: {finding.reason}")},
        "locations": [location],
        "partialFingerprints": {
            "mastTui/v1": sha256(fingerprint.encode("utf-8", "backslashreplace")).hexdigest()
        },
        "properties": {
            name: _SURROGATE.sub("\ufffd", value) if isinstance(value, str) else value
            for name, value in finding_json(finding).items()
        },
    }


def _artifact_location(path: Path) -> dict[str, str]:
    """Return the URI of a file (RFC 3986), relative to the working folder if it is inside."""
    name = relative_path(path)
    encoded = quote(os.fsencode(name), safe="/")
    if Path(name).is_absolute():
        return {"uri": f"file://{encoded}"}
    return {"uri": encoded, "uriBaseId": "%SRCROOT%"}


def _sarif_message(text: str) -> str:
    """Escape placeholders and links of SARIF in a text (§ 3.11.5, § 3.11.6)."""
    return _LINK.sub(r"\\[\1\\](", one_line(text).replace("{", "{{").replace("}", "}}"))


def as_junit(report: LintReport) -> str:
    """Return the report as JUnit XML, with a test case for each trace and each unreadable file.

    The failing findings of a trace are one failure. Its other findings are in ``system-out``.
    """
    failing_traces = sum(
        any(finding.fails for finding in trace.findings) for trace in report.traces
    )
    suite = ElementTree.Element(
        "testsuite",
        name="mast-tui lint",
        tests=str(len(report.traces) + len(report.failed)),
        failures=str(failing_traces),
        errors=str(len(report.failed)),
        skipped="0",
        time="0",
    )
    for trace in report.traces:
        case = _add_case(suite, relative_path(trace.path), trace.trace_id)
        failing = [finding for finding in trace.findings if finding.fails]
        other_findings = [finding for finding in trace.findings if not finding.fails]
        if failing:
            first = failing[0]
            failure = ElementTree.SubElement(
                case,
                "failure",
                type=_rule_id(first.mode, first.rule),
                message=one_line(f"{first.title}: {first.reason}"),
            )
            failure.text = "\n".join(_text_lines(failing))
        if other_findings:
            ElementTree.SubElement(case, "system-out").text = "\n".join(_text_lines(other_findings))
    for path, reason in report.failed:
        case = _add_case(suite, relative_path(path), "whole file")
        ElementTree.SubElement(case, "error", type="unreadable", message=one_line(reason))
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    # ASCII with character references is valid in every encoding of stdout.
    document = ElementTree.tostring(suites, encoding="us-ascii").decode("ascii")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{document}\n'


def _add_case(suite: ElementTree.Element, path: str, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(
        suite, "testcase", classname=one_line(path), name=one_line(name), time="0"
    )


def as_github(report: LintReport) -> str:
    """Return the report as GitHub workflow commands, one line for each finding."""
    lines = [_without_commands(f"{_SUMMARY_PREFIX}{_totals_text(report)}")]
    for finding in report.findings:
        message = finding.reason
        if finding.quote:
            message += f" “{quote_line(finding.quote, _QUOTE_LENGTH)}”"
        if finding.place.line is None:  # a location without a line number is described in words
            message = f"{finding.place.inside}: {message}"
        level = "error" if finding.fails else "warning"
        lines.append(
            _workflow_command(level, finding.place.file, finding.place.line, finding.title, message)
        )
    for path, reason in report.failed:
        lines.append(_workflow_command("error", path, None, "cannot be read", reason))
    return "".join(f"{line}\n" for line in lines)


def _workflow_command(level: str, file: Path, line: int | None, title: str, message: str) -> str:
    """Return a GitHub workflow command: ``::error file=…,line=…,title=…::…``."""
    values = {"file": relative_path(file), "line": None if line is None else str(line)}
    parameters = ",".join(
        f"{name}={_escaped_setting(one_line(value))}"
        for name, value in {**values, "title": title}.items()
        if value is not None
    )
    # A runner would execute a command in the middle of the text.
    return f"::{level} {parameters}::{_escaped_data(one_line(message))}".replace(
        _COMMAND_INSIDE, "## ["
    )


def _escaped_data(text: str) -> str:
    """Escape the text of a command.

    The runner decodes ``%``.
    """
    return text.replace("%", "%25")


def _escaped_setting(text: str) -> str:
    """Escape a parameter of a command.

    It would end at ``:`` or ``,``.
    """
    return _escaped_data(text).replace(":", "%3A").replace(",", "%2C")


FORMATS: Final[Mapping[str, Callable[[LintReport], str]]] = MappingProxyType(
    {
        "text": as_text,
        "json": as_json,
        "sarif": as_sarif,
        "junit": as_junit,
        "github": as_github,
    }
)
"""The functions that format a report, by the value of ``--format``."""


def _dump_json(document: object) -> str:
    """Return a JSON document in ASCII, without control characters for the terminal."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"
