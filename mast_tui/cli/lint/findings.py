"""The located findings of a judge, and the gate: the findings that make ``lint`` fail."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from mast_tui.cli.shared import options
from mast_tui.errors import MastError
from mast_tui.figures.signatures.report import published_classes
from mast_tui.judges.rules import DEFAULT, RULES, Rule, RulesJudge, chosen_rules
from mast_tui.judges.rules.guards import InvalidGuards, read_rules
from mast_tui.traces.file_places import FilePlace, place_in_file
from mast_tui.traces.library import read_fully

if TYPE_CHECKING:
    from mast_tui.labels import Finding
    from mast_tui.taxonomy.model import Mode, Taxonomy
    from mast_tui.traces.model import Trace

ANY: Final = "any"
FATAL: Final = "fatal"


fail_on_option: Final = partial(
    options.option,
    "--fail-on",
    default=ANY,
    show_default=True,
    metavar="CODE,…|fatal|any",
    help="The findings that fail: those of some modes, of fatal modes, or all.",
)
guards_option: Final = partial(
    options.input_file,
    "--guards",
    help="Instead of rules, use the guards in this file that are on.",
)
rules_option: Final = partial(
    options.option,
    "--rules",
    metavar="all|NAME,…",
    help="The rules that run. Default: two of them, and those for other modes that --fail-on "
    "names; docs/lint.md lists all.",
)


@dataclass(frozen=True, slots=True)
class Gate:
    """The findings that make the check fail.

    Attributes:
        taxonomy: The taxonomy of the modes.
        fails_all: True if every finding makes the check fail.
        modes: The slugs of modes with findings that make the check fail.
        fatal_modes: The slugs of fatal modes, empty if they are unknown; None without ``--fail-on
            fatal``.
    """

    taxonomy: Taxonomy
    fails_all: bool
    modes: tuple[str, ...]
    fatal_modes: tuple[str, ...] | None

    def is_failed_by(self, finding: Finding) -> bool:
        """Check whether a finding makes the check fail.

        If ``decisive`` of the finding is None, its mode shows whether it is fatal.
        """
        if self.fails_all or finding.mode in self.modes:
            return True
        if self.fatal_modes is None:  # without ``--fail-on fatal``
            return False
        return finding.mode in self.fatal_modes if finding.decisive is None else finding.decisive


def read_gate(text: str, taxonomy: Taxonomy) -> Gate:
    """Read the value of ``--fail-on``: the findings that make the check fail.

    Fatal findings are those that their judge marks as decisive. The rules mark none, so their
    findings are fatal if the published study on ITBench calls the mode fatal.

    Args:
        text: ``any``, ``fatal``, and modes by code, slug or name, separated by commas.
        taxonomy: The taxonomy of the modes.

    Raises:
        click.UsageError: There is no such mode.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise click.UsageError("--fail-on is empty; give codes of modes, 'fatal' or 'any'")
    modes: list[str] = []
    fatal_modes: tuple[str, ...] | None = None
    for name in names:
        if name.casefold() == ANY:
            continue
        if name.casefold() == FATAL:
            fatal_modes = _fatal_modes(taxonomy)
            continue
        mode = taxonomy.find(name)
        if mode is None:
            raise click.UsageError(f"--fail-on {name}: {_unknown_mode_text(name, taxonomy)}")
        modes.append(mode.slug)
    return Gate(taxonomy, ANY in map(str.casefold, names), tuple(modes), fatal_modes)


def _fatal_modes(taxonomy: Taxonomy) -> tuple[str, ...]:
    """Return the slugs of the modes that a published study calls fatal; empty without a study."""
    published = published_classes(taxonomy.ref)
    if published is None:
        return ()
    return tuple(slug for slug, name in published.classes.items() if name == FATAL)


def _unknown_mode_text(name: str, taxonomy: Taxonomy) -> str:
    modes_by_name = {
        mode_name.casefold(): mode
        for mode in taxonomy.modes
        for mode_name in (mode.code, mode.slug, mode.name)
    }
    matches = get_close_matches(name.casefold(), modes_by_name, n=1, cutoff=0.5)
    codes_text = f"{taxonomy.ref} has {', '.join(mode.code for mode in taxonomy.modes)}"
    if not matches:
        return f"no such mode; {codes_text}"
    match = modes_by_name[matches[0]]
    return f"no such mode; did you mean {match.code} ({match.name})? {codes_text}"


def guards_for(path: Path, gate: Gate, *, while_running: bool = False) -> tuple[Rule, ...]:
    """Return the guards of a file that are on, as rules.

    Args:
        path: The file of guards.
        gate: The findings that make the check fail, and the taxonomy.
        while_running: Leave out guards that need the end of a run.

    Raises:
        InvalidGuards: The file cannot be used, or has no usable guard.
        click.UsageError: No guard looks for a mode that makes the check fail.
    """
    rules = tuple(
        rule for rule in read_rules(path, gate.taxonomy) if not (while_running and rule.needs_end)
    )
    if not rules:
        raise InvalidGuards(f"{path}: all guards check only the end of a run; use 'mast-tui lint'")
    guarded_modes = {rule.mode for rule in rules}
    for slug in gate.modes:
        if slug not in guarded_modes:
            code = gate.taxonomy.mode(slug).code
            raise click.UsageError(f"--fail-on {code}: no guard of {path} that is on checks it")
    return rules


def rules_for(names: str | None, gate: Gate, *, while_running: bool = False) -> tuple[Rule, ...]:
    """Choose the rules to run, by their names or by default.

    Args:
        names: The value of ``--rules``; None for the default rules.
        gate: The findings that make the check fail, and the taxonomy.
        while_running: Leave out rules that need the end of a run.

    Returns:
        The rules, in their order.

    Raises:
        MastError: There is no rule of a given name, or none looks for a mode of the taxonomy.
        click.UsageError: No chosen rule looks for a mode of the gate, or all named rules need the
            end of a run.
    """
    taxonomy = gate.taxonomy
    codes = {mode.slug: mode.code for mode in taxonomy.modes}
    supported_rules = tuple(rule for rule in RULES if rule.mode in codes)
    if not supported_rules:
        raise MastError(f"the rules support no mode of {taxonomy.ref}; they were made for MAST")
    usable_rules = tuple(rule for rule in supported_rules if not (while_running and rule.needs_end))
    chosen = _default_rules(usable_rules, gate)
    if names is not None:
        named_rules = chosen_rules(names)
        chosen = tuple(rule for rule in named_rules if rule in usable_rules)
        if not chosen:
            names_text = ", ".join(rule.name for rule in named_rules)
            raise click.UsageError(
                f"--rules {names_text}: checks only the end of a run; use 'mast-tui lint'"
            )
    rule_modes = {rule.mode for rule in chosen}
    for slug in gate.modes:
        if slug not in rule_modes:
            raise click.UsageError(_unreachable_mode_text(slug, codes, usable_rules))
    _check_fatal_modes(gate, rule_modes, codes)
    return chosen


def _default_rules(usable_rules: tuple[Rule, ...], gate: Gate) -> tuple[Rule, ...]:
    """Return the default rules, and those for other modes that the gate needs.

    The default rules are the precise ones. Other rules find more, and are more often wrong.
    """
    needed_modes = {*gate.modes, *(gate.fatal_modes or ())} - {rule.mode for rule in DEFAULT}
    return tuple(rule for rule in usable_rules if rule in DEFAULT or rule.mode in needed_modes)


def _check_fatal_modes(gate: Gate, rule_modes: set[str], codes: Mapping[str, str]) -> None:
    """Check that the rules can make the check fail with ``--fail-on fatal``.

    Raises:
        click.UsageError: No mode is known to be fatal, or no rule looks for a fatal one.
    """
    if gate.fatal_modes is None:
        return
    if not gate.fatal_modes:
        raise click.UsageError(
            f"--fail-on fatal: no study says which modes of {gate.taxonomy.ref} are fatal, and the "
            "rules do not mark decisive findings; give codes"
        )
    if rule_modes.isdisjoint(gate.fatal_modes):
        fatal_codes = ", ".join(sorted(codes[slug] for slug in gate.fatal_modes))
        raise click.UsageError(
            f"--fail-on fatal: none of the rules that run checks a fatal mode ({fatal_codes}); "
            "leave out --rules, or give --rules all"
        )


def _unreachable_mode_text(slug: str, codes: dict[str, str], usable_rules: tuple[Rule, ...]) -> str:
    """Return the text of the error for a mode that no chosen rule looks for.

    ``usable_rules`` are the rules that the user can choose.
    """
    code = codes[slug]
    names = [rule.name for rule in usable_rules if rule.mode == slug]
    if names:
        return (
            f"--fail-on {code}: none of the rules that run checks it; add {' or '.join(names)} "
            "to --rules"
        )
    if any(rule.mode == slug for rule in RULES):
        return f"--fail-on {code}: it shows only at the end of a run; use 'mast-tui lint'"
    rule_codes = sorted({codes[rule.mode] for rule in usable_rules})
    return f"--fail-on {code}: no rule checks it; the rules check {', '.join(rule_codes)}"


@dataclass(frozen=True, slots=True)
class PlacedFinding:
    """A finding with its location.

    The location is that of one span: the span with the quote, else the first one.

    Attributes:
        place: The location of this span.
        key: The key of this span.
        number: The number of this span, from 1.
        first: The number of the finding's first span, from 1.
        last: The number of the finding's last span, from 1.
        rule: The name of the rule; None for a model.
    """

    trace_id: str
    path: Path
    place: FilePlace
    key: str
    number: int
    first: int
    last: int
    mode: Mode
    rule: str | None
    quote: str
    reason: str
    confidence: float
    decisive: bool | None
    fails: bool

    @property
    def title(self) -> str:
        """The code and name of the mode, with the name of the rule."""
        rule = "" if self.rule is None else f" ({self.rule})"
        return f"{self.mode.code} {self.mode.name}{rule}"


@dataclass(frozen=True, slots=True)
class LintedTrace:
    """A judged trace with its findings in reading order."""

    trace_id: str
    path: Path
    findings: tuple[PlacedFinding, ...]


@dataclass(slots=True)
class LintReport:
    """The results of a judge on all traces.

    Attributes:
        rules: The rules with their modes. For a model the name of the rule is None.
        failed: The unreadable files, with the reason.
        skipped: The files without traces, with the reason.
    """

    judge: str
    taxonomy: Taxonomy
    rules: tuple[tuple[str | None, Mode], ...]
    fail_on: str
    traces: list[LintedTrace] = field(default_factory=list)
    failed: list[tuple[Path, str]] = field(default_factory=list)
    skipped: list[tuple[Path, str]] = field(default_factory=list)

    @property
    def findings(self) -> list[PlacedFinding]:
        """The findings of all traces."""
        return [finding for trace in self.traces for finding in trace.findings]

    @property
    def failing(self) -> int:
        """The number of findings that make the check fail."""
        return sum(finding.fails for finding in self.findings)


def relative_path(path: Path) -> str:
    """Return a path relative to the working folder; absolute if it is outside."""
    relative = Path(os.path.relpath(path))
    return path.as_posix() if relative.parts[:1] == ("..",) else relative.as_posix()


def find_by_rules(judge: RulesJudge, gate: Gate, trace: Trace, /) -> Sequence[PlacedFinding]:
    """Read a trace to its end, and return the findings of the rules in reading order.

    Args:
        judge: The rules.
        gate: The findings that make the check fail, and the taxonomy.
        trace: The trace.

    Raises:
        OSError: The trace cannot be read.
    """
    read_fully(trace)
    return [
        placed_finding(trace, rule.name, finding, gate) for rule, finding in judge.findings(trace)
    ]


def placed_finding(trace: Trace, rule: str | None, finding: Finding, gate: Gate) -> PlacedFinding:
    """Return a finding with its location: the span with the quote, else its first span.

    Args:
        trace: The trace of the finding.
        rule: The name of the rule; None for a model.
        finding: The finding.
        gate: The findings that make the check fail, and the taxonomy.
    """
    evidence = finding.evidence
    first = _span_index(trace, finding.first, 0)
    last = _span_index(trace, finding.last, len(trace) - 1)
    shown_index = _span_index(
        trace, evidence.key if evidence is not None and evidence.placed else finding.first, first
    )
    span = trace.span(shown_index)
    return PlacedFinding(
        trace.identity.trace_id,
        trace.path,
        place_in_file(trace.path, span.place),
        span.key,
        shown_index + 1,
        first + 1,
        last + 1,
        gate.taxonomy.mode(finding.mode),
        rule,
        "" if evidence is None else evidence.quote,
        finding.rationale,
        finding.confidence,
        finding.decisive,
        gate.is_failed_by(finding),
    )


def _span_index(trace: Trace, key: str | None, default: int) -> int:
    index = None if key is None else trace.index_of(key)
    return default if index is None else index
