"""``mast-tui lint``: fail if a judge finds failure modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from mast_tui.cli.agree import find_judge
from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.lint.findings import (
    Gate,
    LintedTrace,
    LintReport,
    PlacedFinding,
    fail_on_option,
    find_by_rules,
    guards_for,
    guards_option,
    placed_finding,
    read_gate,
    rules_for,
    rules_option,
)
from mast_tui.cli.lint.formats import FORMATS
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import check_may_see_judges
from mast_tui.cli.shared.common import load_taxonomy_or_mast, open_workspace, say
from mast_tui.cli.shared.options import OptionRule
from mast_tui.errors import MastError
from mast_tui.judges.rules import RulesJudge
from mast_tui.labels import Finding, Label, QuoteDoubt
from mast_tui.output_files import Outputs, ReplacementRules
from mast_tui.traces.library import read_fully, scan
from mast_tui.workspace import TraceRecord, Workspace
from mast_tui.workspace.outputs import reason_to_keep, reason_to_protect

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Mode, Taxonomy
    from mast_tui.traces.model import Trace


RULES_JUDGE: Final = "rules"
"""The value of ``--judge`` for the rules."""

FindInTrace = Callable[["Trace"], Sequence[PlacedFinding]]
"""Returns the findings in a trace."""

FAILS: Final = 3
"""The exit code for findings that make the check fail."""

NO_BLIND_LINT: Final = "it shows nothing but a judge's findings"


@dataclass(frozen=True, slots=True, kw_only=True)
class LintRequest:
    """The options of ``mast-tui lint``."""

    paths: tuple[Path, ...] = options.paths(required=True)
    fail_on: str = fail_on_option()
    judge_name: str = options.option(
        "--judge",
        default=RULES_JUDGE,
        show_default=True,
        metavar="rules|NAME",
        help="The rules, or a judge whose suggestions are in the workspace.",
    )
    rule_names: str | None = rules_option()
    guards: Path | None = guards_option()
    form: str | None = options.option(
        "--format",
        type=click.Choice([*FORMATS]),
        help="The form of the findings: for people (the default), programs, code scanning, test "
        "reports, or annotations of a GitHub workflow.",
    )
    output: Path | None = options.output(help="The file to write. Default: stdout.")
    force: bool = options.force()
    common: CommonOptions = options.common(blind=NO_BLIND_LINT)
    as_json: bool = options.as_json()


_RULES: Final = (
    OptionRule[LintRequest](
        "--json is --format json; leave out --format {request.form}",
        options=("--json",),
        when=lambda request: request.form not in (None, "json"),
    ),
    OptionRule[LintRequest](
        "--rules needs --judge rules; {request.judge_name} has already judged",
        options=("--rules",),
        when=lambda request: request.judge_name != RULES_JUDGE,
    ),
    OptionRule[LintRequest](
        "--guards replaces rules and judges; leave out {other}",
        options=("--guards",),
        excludes=("--rules", "--judge"),
    ),
)


@click.command()
@options.takes(LintRequest, _RULES)
def lint_command(request: LintRequest) -> int:
    """Fail if a judge finds failure modes in traces: for CI and hooks.

    The judge is the rules, which need no model and no network, or guards made from labels
    (--guards), or the earlier findings of a model (--judge). Each finding is printed with file and
    line, its mode, the rule, a quote and the reason. No workspace is made or changed, and only OUT
    is written. Exit code 0: nothing that --fail-on names was found; 3: something was; 1: a file
    could not be read, or there is no trace.

    Example: mast-tui lint runs/ --fail-on 1.3,3.1
    """
    taxonomy = load_taxonomy_or_mast(request.common.taxonomy)
    gate = read_gate(request.fail_on, taxonomy)
    if request.guards is not None:
        rules = guards_for(request.guards, gate)
    else:
        rules = rules_for(request.rule_names, gate) if request.judge_name == RULES_JUDGE else ()
    check_may_see_judges(request.common, taxonomy)
    outputs = Outputs(
        ReplacementRules(
            partial(reason_to_keep, request.paths, "judge"), reason_to_protect, request.force
        )
    )
    if request.output is not None:
        outputs.check(request.output)
    if request.judge_name == RULES_JUDGE:
        judge = RulesJudge(rules)
        find: FindInTrace = partial(find_by_rules, judge, gate)
        report = _rules_report(judge, request, taxonomy)
    else:
        stored = StoredFindings(open_workspace(request.common), request.judge_name, gate)
        find = stored.find
        rules_of_judge = tuple((None, mode) for mode in stored.modes)
        report = LintReport(stored.judge, taxonomy, rules_of_judge, request.fail_on)
    _judge_into_report(request.paths, request.output, find, report)
    for path, reason in report.failed:
        say(f"mast-tui lint: {path}: {reason}")
    if not report.traces and not report.failed:
        raise click.ClickException("there are no traces to judge; see 'mast-tui inspect'")
    text = FORMATS["json" if request.as_json else request.form or "text"](report)
    if request.output is None:
        click.echo(text, nl=False)
    else:
        outputs.add(request.output, text)
        outputs.commit()
    if report.failing:
        return FAILS
    return 1 if report.failed else 0


def _rules_report(judge: RulesJudge, request: LintRequest, taxonomy: Taxonomy) -> LintReport:
    name = judge.name if request.guards is None else f"guards:{request.guards.name}"
    modes_by_rule = tuple((rule.name, taxonomy.mode(rule.mode)) for rule in judge.rules)
    return LintReport(name, taxonomy, modes_by_rule, request.fail_on)


def _judge_into_report(
    paths: tuple[Path, ...], output: Path | None, find: FindInTrace, report: LintReport
) -> None:
    """Judge all traces, and add findings and problems to the report."""
    for file_report in scan(paths, without=() if output is None else (output,)):
        if file_report.failed is not None:
            report.failed.append((file_report.path, file_report.failed))
        if file_report.skipped is not None:
            report.skipped.append((file_report.path, file_report.skipped))
        for trace in file_report.traces:
            try:
                findings = find(trace)
            except OSError as error:
                report.failed.append((trace.path, error.strerror or str(error)))
            except NotJudged as error:
                report.failed.append((trace.path, str(error)))
            else:
                linted = LintedTrace(trace.identity.trace_id, trace.path, tuple(findings))
                report.traces.append(linted)


_DOUBTS: Final = {
    QuoteDoubt.NONE: "",
    QuoteDoubt.ALTERED: " (quote altered)",
    QuoteDoubt.NOT_FOUND: " (quote not found in the trace)",
}


class NotJudged(MastError):
    """An error for a trace that the judge has not judged in its current state."""


class StoredFindings:
    """The suggestions of a judge in a workspace."""

    def __init__(self, workspace: Workspace, name: str, gate: Gate) -> None:
        """Find the judge and the modes that it has judged.

        Args:
            workspace: The workspace.
            name: The judge's name or a unique beginning of it, with or without ``judge:``.
            gate: The findings that make the check fail, and the taxonomy.

        Raises:
            click.ClickException: There is no such judge, or several.
            click.UsageError: The judge has never judged a mode that makes the check fail.
        """
        self.judge = find_judge(workspace, name)
        self._workspace = workspace
        self._gate = gate
        taxonomy = gate.taxonomy
        judged_modes = {
            slug
            for judgement in workspace.judgements(annotator=self.judge, taxonomy=taxonomy.ref)
            for slug in judgement.looks_at
        }
        self.modes: Sequence[Mode] = [mode for mode in taxonomy.modes if mode.slug in judged_modes]
        for slug in gate.modes:
            if slug not in judged_modes:
                raise click.UsageError(
                    f"--fail-on {taxonomy.mode(slug).code}: {self.judge} does not check it"
                )

    def find(self, trace: Trace, /) -> Sequence[PlacedFinding]:
        """Return the judge's suggestions on a trace as findings, in reading order.

        Raises:
            NotJudged: The judge has not judged the trace, or it has grown since then.
            OSError: The trace cannot be read.
        """
        read_fully(trace)
        current = TraceRecord.from_trace(trace)
        stored = self._workspace.find_trace(current)
        judge = self.judge
        ref = self._gate.taxonomy.ref
        if stored is None or not self._workspace.judgements(
            trace_id=stored.trace_id, annotator=judge, taxonomy=ref
        ):
            raise NotJudged(f"{judge} has not judged it; run 'mast-tui judge' first")
        if stored.has_grown(current):
            raise NotJudged(f"it has grown since {judge} judged it; run the judge again")
        findings = [
            placed_finding(trace, rule=None, finding=_finding_of_label(label), gate=self._gate)
            for label in self._workspace.labels(
                trace_id=stored.trace_id, annotator=judge, taxonomy=ref
            )
        ]
        return sorted(
            findings, key=lambda finding: (finding.first, finding.last, finding.mode.code)
        )


def _finding_of_label(label: Label) -> Finding:
    """Return a stored suggestion as a finding.

    A doubt about its quote becomes part of the rationale.
    """
    doubt_text = "" if label.evidence is None else _DOUBTS[label.evidence.doubt]
    return Finding(
        label.mode,
        label.target.first,
        label.target.last,
        rationale=f"{label.note}{doubt_text}",
        # A missing confidence counts as certainty.
        confidence=1.0 if label.confidence is None else label.confidence,
        decisive=label.decisive,
        evidence=label.evidence,
    )
