"""``mast-tui lint``: fail where a judge finds failure modes, without a workspace."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from mast_tui.cli.agree import judge_named
from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.lint.findings import LintedTrace, LintReport, PlacedFinding, judged_now, placed
from mast_tui.cli.lint.formats import FORMATS
from mast_tui.cli.lint.gate import (
    fail_on_option,
    gate_of,
    guards_for,
    guards_option,
    rules_for,
    rules_option,
)
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import check_may_see_judges
from mast_tui.cli.shared.common import load_chosen_taxonomy, open_workspace, say
from mast_tui.cli.shared.options import OptionRule
from mast_tui.errors import MastError
from mast_tui.judges.rules import RulesJudge
from mast_tui.labels import Finding, Label, QuoteDoubt
from mast_tui.output_files import Outputs, Rules
from mast_tui.traces.library import read_fully, scan
from mast_tui.workspace import TraceRecord
from mast_tui.workspace.outputs import database_files, protected_kind
from mast_tui.workspace.paths import find_workspace

if TYPE_CHECKING:
    from mast_tui.cli.lint.gate import Gate
    from mast_tui.taxonomy.model import Mode
    from mast_tui.traces.model import Trace
    from mast_tui.workspace import Workspace


RULES_NOW: Final = "rules"
"""The value of ``--judge`` by which rules look."""

Find = Callable[["Trace"], Sequence[PlacedFinding]]
"""Tells what is found in a trace."""

FAILS: Final = 3
"""The exit code where there are findings that fail."""

ALL_IS_TOLD: Final = "all that it tells is what a judge finds"


@dataclass(frozen=True, slots=True, kw_only=True)
class LintRequest:
    """The options of ``mast-tui lint``."""

    paths: tuple[Path, ...] = options.paths(required=True)
    fail_on: str = fail_on_option()
    judge_name: str = options.option(
        "--judge",
        default=RULES_NOW,
        show_default=True,
        metavar="rules|NAME",
        help="Who judges: the rules now, or a judge that has, whose suggestions are in the "
        "workspace.",
    )
    rule_names: str | None = rules_option()
    guards: Path | None = guards_option()
    form: str | None = options.option(
        "--format",
        type=click.Choice([*FORMATS]),
        help="How findings are told: for people (the default), programs, code scanning, test "
        "reports, annotations of a GitHub workflow.",
    )
    output: Path | None = options.output(help="The file to write. Default: stdout.")
    force: bool = options.force()
    common: CommonOptions = options.common(blind=ALL_IS_TOLD)
    as_json: bool = options.as_json()


_RULES: Final = (
    OptionRule[LintRequest](
        "--json is --format json; leave out --format {request.form}",
        options=("--json",),
        when=lambda request: request.form not in (None, "json"),
    ),
    OptionRule[LintRequest](
        "--rules is for --judge rules; {request.judge_name} has judged already",
        options=("--rules",),
        when=lambda request: request.judge_name != RULES_NOW,
    ),
    OptionRule[LintRequest](
        "--guards look in the place of rules and judges; leave out {other}",
        options=("--guards",),
        excludes=("--rules", "--judge"),
    ),
)


@click.command()
@options.takes(LintRequest, _RULES)
def lint_command(request: LintRequest) -> int:
    """Fail where a judge finds failure modes in traces: for CI and hooks.

    The rules look, which need no model and no network; or guards made from labels (--guards), or
    what a model has found is taken (--judge). Each finding is told with file and line, its mode,
    the rule, the words that show it and why. No workspace is made or changed, and nothing is
    written but OUT. Exit code 0: nothing that --fail-on names was found; 3: something was; 1: a
    file could not be read, or there is no trace.
    """
    chosen = load_chosen_taxonomy(request.common.taxonomy)
    gate = gate_of(request.fail_on, chosen)
    if request.guards is not None:
        rules = guards_for(request.guards, gate)
    else:
        rules = rules_for(request.rule_names, gate) if request.judge_name == RULES_NOW else ()
    check_may_see_judges(request.common, chosen)
    outputs = Outputs(Rules(_never_replaced(request.paths), protected_kind, request.force))
    if request.output is not None:
        outputs.check(request.output)
    if request.judge_name == RULES_NOW:
        judge = RulesJudge(rules)
        find: Find = partial(judged_now, judge, gate)
        by_name = tuple((rule.name, chosen.mode(rule.mode)) for rule in rules)
        name = judge.name if request.guards is None else f"guards:{request.guards.name}"
        report = LintReport(name, chosen, by_name, request.fail_on)
    else:
        kept = KeptFindings(open_workspace(request.common), request.judge_name, gate)
        find = kept.of
        report = LintReport(
            kept.judge, chosen, tuple((None, mode) for mode in kept.modes), request.fail_on
        )
    _look(request.paths, request.output, find, report)
    for path, reason in report.failed:
        say(f"mast-tui lint: {path}: {reason}")
    if not report.traces and not report.failed:
        raise click.ClickException(
            "there are no traces to look at; 'mast-tui inspect' says what the files are"
        )
    text = FORMATS["json" if request.as_json else request.form or "text"](report)
    if request.output is None:
        click.echo(text, nl=False)
    else:
        outputs.add(request.output, text)
        outputs.commit()
    if report.failing:
        return FAILS
    return 1 if report.failed else 0


def _look(paths: tuple[Path, ...], output: Path | None, find: Find, report: LintReport) -> None:
    """Have all traces judged, and put what came of it into the report."""
    for found in scan(paths, without=() if output is None else (output,)):
        if found.failed is not None:
            report.failed.append((found.path, found.failed))
        if found.skipped is not None:
            report.skipped.append((found.path, found.skipped))
        for trace in found.traces:
            try:
                findings = find(trace)
            except OSError as error:
                report.failed.append((trace.path, error.strerror or str(error)))
            except NotJudged as error:
                report.failed.append((trace.path, str(error)))
            else:
                told = LintedTrace(trace.identity.trace_id, trace.path, tuple(findings))
                report.traces.append(told)


def _never_replaced(paths: tuple[Path, ...]) -> Callable[[Path], str | None]:
    """Tell of a file why it stays in any case: it is the workspace in use, or a trace that was
    named."""

    def reason(target: Path) -> str | None:
        if Path(os.path.realpath(target)) in database_files(find_workspace(None)):
            return "the labels are kept in this file"
        if target.is_file() and any(path.is_file() and path.samefile(target) for path in paths):
            return "this is a trace to look at, and traces are never written to"
        return None

    return reason


_DOUBTS: Final = {
    QuoteDoubt.NONE: "",
    QuoteDoubt.ALTERED: " (quote altered)",
    QuoteDoubt.NOT_FOUND: " (quote not found in the trace)",
}


class NotJudged(MastError):
    """A judge has not looked at a trace as it is now."""


class KeptFindings:
    """Gives what a judge has suggested in traces, as a workspace keeps it."""

    def __init__(self, place: Workspace, name: str, gate: Gate) -> None:
        """Find the judge.

        Args:
            place: The workspace.
            name: The judge's name, or enough of its beginning; ``judge:`` may be left out.
            gate: Tells what fails, and of which taxonomy its suggestions are.

        Raises:
            click.ClickException: There is no such judge, or several.
            click.UsageError: It looks for none of the modes that are to fail.
        """
        self.judge = judge_named(place, name)
        self._place = place
        self._gate = gate
        taxonomy = gate.taxonomy
        judgements = place.judgements(annotator=self.judge, taxonomy=taxonomy.ref)
        seen = {slug for one in judgements for slug in one.looks_at}
        self.modes: Sequence[Mode] = [mode for mode in taxonomy.modes if mode.slug in seen]
        for slug in gate.modes:
            if slug not in seen:
                raise click.UsageError(
                    f"--fail-on {taxonomy.mode(slug).code}: {self.judge} does not look for it"
                )

    def of(self, trace: Trace, /) -> Sequence[PlacedFinding]:
        """Tell what was found in a trace.

        Raises:
            NotJudged: The judge has not looked at it, or it has grown since.
            OSError: The trace cannot be read.
        """
        read_fully(trace)
        now = TraceRecord.of(trace)
        known = self._place.find_trace(now)
        judge, ref = self.judge, self._gate.taxonomy.ref
        if known is None or not self._place.judgements(
            trace_id=known.trace_id, annotator=judge, taxonomy=ref
        ):
            raise NotJudged(f"{self.judge} has not judged it; run 'mast-tui judge' first")
        if known.spans is not None and known.spans != now.spans:
            raise NotJudged(f"it has grown since {self.judge} has judged it; run it again")
        labels = self._place.labels(trace_id=known.trace_id, annotator=judge, taxonomy=ref)
        found = [placed(trace, None, _finding(label), self._gate) for label in labels]
        return sorted(found, key=lambda one: (one.first, one.last, one.mode.code))


def _finding(label: Label) -> Finding:
    doubt = "" if label.evidence is None else _DOUBTS[label.evidence.doubt]
    return Finding(
        label.mode,
        label.target.first,
        label.target.last,
        f"{label.note}{doubt}",
        1.0 if label.confidence is None else label.confidence,
        label.decisive,
        label.evidence,
    )
